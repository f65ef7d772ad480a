//! Tests of the text form: what is printed reads back the same, and nothing that is read panics.

use super::*;

fn sample() -> Program {
    let mut p = Program { name: "a \"name\"\n".into(), ..Program::default() };
    let origin = p.add_origin("dir/a b.neuro", 12);
    let s = SpaceId(0);
    for (name, kind) in [
        ("squid", SpaceKind::Plain),
        ("with space \u{2028}\u{7}", SpaceKind::Product { of: s, tree: false }),
        ("tree", SpaceKind::Product { of: SpaceId(1), tree: true }),
        ("of", SpaceKind::Subset { of: SpaceId(2) }),
        ("from", SpaceKind::Relation { from: s, to: SpaceId(1) }),
    ] {
        p.spaces.push(Space { name: name.into(), kind });
    }
    let sources = [
        Source::None,
        Source::Dt,
        Source::Param(0),
        Source::State(1),
        Source::Next(u32::MAX),
        Source::Sum(2, 1),
        Source::Refractory(3),
        Source::Spiked(4),
        Source::Spikes(4),
        Source::Amount(1),
        Source::Back(6),
        Source::Modulated(2),
        Source::Data(5, 6),
        Source::Series(7),
        Source::Output(8),
    ];
    for (i, (name, kind, over)) in [
        ("dt", FieldKind::Uniform, None),
        ("squid.i", FieldKind::Series, None),
        ("squid.d", FieldKind::Data, Some(s)),
        ("squid.Na.gbar", FieldKind::Const, Some(s)),
        ("squid.v'", FieldKind::State, Some(s)),
        ("next squid.v", FieldKind::Temp, Some(SpaceId(1))),
        ("\\", FieldKind::Output, Some(s)),
        ("", FieldKind::Event, Some(s)),
        ("größe", FieldKind::Const, Some(SpaceId(4))),
        ("history", FieldKind::State, None),
        ("over", FieldKind::Uniform, Some(s)),
    ]
    .into_iter()
    .enumerate()
    {
        let history = if i % 3 == 1 { i as u32 } else { 0 };
        let origin = (i % 2 == 0).then_some(origin);
        p.add_field(Field { name: name.into(), kind, over, history, source: sources[i], origin });
    }
    let v = ValueId;
    let ops = kinds(&p).into_iter().enumerate().map(|(i, kind)| Op {
        result: (i % 7 != 3).then_some(v(i as u32)),
        kind,
        exact: i % 2 == 1,
        origin: (i % 3 == 0).then_some(origin),
    });
    let stages = stages(ops.collect(), origin);
    for (role, steps) in [(Role::Init, 1), (Role::Step, 3), (Role::Observe, 0), (Role::Init, u32::MAX)] {
        p.functions.push(Function { role, steps, stages: stages.clone() });
    }
    p.functions.push(Function { role: Role::Init, steps: 1, stages: vec![] });
    p
}

/// Every operation with all that it may say.
fn kinds(p: &Program) -> Vec<OpKind> {
    let mut kinds: Vec<OpKind> =
        [0.0, -0.0, 0.1, 1e16, -1.5e-300, f64::MIN_POSITIVE / 8.0, f64::MAX, f64::INFINITY, f64::NEG_INFINITY]
            .map(OpKind::Const)
            .to_vec();
    let (v, f) = (ValueId, FieldId);
    kinds.extend([OpKind::Bool(true), OpKind::Bool(false), OpKind::Time, OpKind::StepIndex, OpKind::Index]);
    kinds.extend((0..p.fields.len() as u32).map(|i| OpKind::Field(f(i))));
    kinds.extend(UnaryOp::ALL.iter().map(|(op, _)| OpKind::Unary(*op, v(1))));
    kinds.extend(BinaryOp::ALL.iter().map(|(op, _)| OpKind::Binary(*op, v(1), v(u32::MAX))));
    for (function, _) in Elementary::ALL {
        kinds.extend(Tolerance::ALL.map(|(tolerance, _)| OpKind::Approximate(function, tolerance, v(1))));
    }
    kinds.extend([OpKind::Fma(v(1), v(2), v(3)), OpKind::Select(v(3), v(2), v(1))]);
    for d in [Distribution::Uniform, Distribution::Normal, Distribution::Exponential] {
        kinds.push(OpKind::Draw(d, u64::MAX, v(4)));
    }
    kinds.extend([OpKind::Sample(f(1), v(2)), OpKind::Store(f(4), v(2)), OpKind::Emit(f(7), v(2))]);
    kinds.extend(Map::ALL.iter().map(|(map, _)| OpKind::Gather(f(4), *map)));
    for map in Map::ALL.iter().map(|(map, _)| Some(*map)).chain([None]) {
        kinds.extend([OpKind::Back(f(4), map, v(2)), OpKind::Accumulate(f(5), map, v(2))]);
    }
    for surrogate in [
        Surrogate::None,
        Surrogate::FastSigmoid(25.0),
        Surrogate::Arctan(0.1),
        Surrogate::Sigmoid(1e300),
        Surrogate::Triangular(-0.5),
        Surrogate::StraightThrough,
    ] {
        kinds.push(OpKind::Spike(surrogate, v(9)));
    }
    kinds.push(OpKind::SpikeBy(v(9), v(2)));
    kinds
}

/// Every stage with all that it may say.
fn stages(ops: Vec<Op>, origin: OriginId) -> Vec<Stage> {
    let f = FieldId;
    let mut regions = vec![Region { rate: Rate::Every, over: Some(SpaceId(0)), guard: None, ops }];
    for (rate, over) in [(Rate::Once, None), (Rate::Every, None), (Rate::Once, Some(SpaceId(1)))] {
        regions.push(Region { rate, over, guard: None, ops: vec![] });
        for (along, delay) in [(None, None), (Some(Map::Source), None), (None, Some(f(8))), (Some(Map::In), Some(f(8)))]
        {
            let guard = Some(Guard { event: f(7), along, delay });
            regions.push(Region { rate, over, guard, ops: vec![] });
        }
    }
    let mut stages: Vec<Stage> = regions.into_iter().map(Stage::Region).collect();
    for (from, origin) in [(None, None), (None, Some(origin)), (Some(f(8)), None), (Some(f(8)), Some(origin))] {
        stages.push(Stage::Solve(Solve { x: f(4), own: f(5), link: f(6), rhs: f(7), from, origin }));
    }
    stages
}

#[test]
fn what_is_printed_reads_back() {
    let p = sample();
    let text = print(&p);
    assert_eq!(parse(&text).as_ref(), Ok(&p), "{text}");
    // -0 equals 0, so compare the texts too.
    assert_eq!(parse(&text).map(|p| print(&p)), Ok(text.clone()));
    assert!(text.contains("const -0.0\n"), "{text}");
}

#[test]
fn nan_reads_back_as_nan() {
    let text = "program \"p\"\nspace @s\nfn init {\n  over @s {\n    %0 = const nan\n  }\n}\n";
    assert_eq!(parse(text).map(|p| print(&p)), Ok(text.to_string()));
}

#[test]
fn comments_and_blank_lines_are_skipped() {
    let text = "// first\n\nprogram \"a // b\" // name\n  space @s//x\r\n";
    let program = parse(text).map(|p| (p.name, p.spaces));
    assert_eq!(program, Ok(("a // b".into(), vec![Space { name: "s".into(), kind: SpaceKind::Plain }])));
}

#[test]
fn messages_have_a_line_and_are_plain() {
    let top = "program \"p\"\nspace @s\nstate @v over @s\n";
    let function = format!("{top}fn step {{\n");
    let body = format!("{function}over @s {{\n");
    let cases = [
        (String::new(), "line 1: the text does not say `program \"name\"`"),
        ("space @".into(), "line 1: expected a name after `@`"),
        ("/ x".into(), "line 1: a single `/` means nothing here; comments start with `//`"),
        ("program \"x".into(), "line 1: a quoted text does not end on its line"),
        (format!("{top}state @v over @s"), "line 4: the field `@v` is declared twice"),
        (format!("{top}state @w over @t"), "line 4: no space `@t` is declared above"),
        (format!("{top}origin #1 \"f\":2"), "line 4: expected `#0` (origins are numbered in order), found `#1`"),
        (format!("{top}thing @w"), "line 4: `thing` does not declare anything"),
        (format!("{top}uniform @w @x"), "line 4: expected the end of the line, found `@x`"),
        (format!("{top}space @r from @s @s"), "line 4: expected `to`, found `@s`"),
        (format!("{top}space @r of @t"), "line 4: no space `@t` is declared above"),
        (format!("{top}space @s in @s"), "line 4: the space `@s` is declared twice"),
        (format!("{top}space @r in @s tree"), "line 4: expected the end of the line, found `tree`"),
        (format!("{top}state @w history"), "line 4: expected a number of steps before the line ends"),
        (format!("{top}state @w = next"), "line 4: expected a number before the line ends"),
        (format!("{top}state @w = noise 3"), "line 4: a field cannot stand for `noise`"),
        (format!("{top}data @w over @s = data 3"), "line 4: expected a second number before the line ends"),
        (format!("{top}fn run {{"), "line 4: `run` is no function; they are `init`, `step` and `observe`"),
        (format!("{top}fn step 40 {{"), "line 4: expected `{`, found `40`"),
        (body.clone(), "line 5: the text ends inside a function; `}` is missing"),
        (format!("{function}body {{"), "line 5: `body` is no stage; they are `once`, `every`, `over` and `solve`"),
        (format!("{function}over @t {{"), "line 5: no space `@t` is declared above"),
        (format!("{function}once every {{"), "line 5: expected `{`, found `every`"),
        (format!("{function}over @s when @v delay {{"), "line 5: expected a field such as `@squid.soma.v`, found `{`"),
        (format!("{function}solve @v: diag @v"), "line 5: expected `tree`, found `@v`"),
        (format!("{function}solve tree @v: own @v, rhs @v"), "line 5: expected `link`, found `rhs`"),
        (format!("{body}%0 = gather @v"), "line 6: expected `along` before the line ends"),
        (
            format!("{body}%0 = gather @v along child"),
            "line 6: expected a map (`source`, `target`, `of`, `parent` or `in`), found `child`",
        ),
        (
            format!("{body}accumulate @v along %0"),
            "line 6: expected a map (`source`, `target`, `of`, `parent` or `in`), found `%0`",
        ),
        (format!("{body}%0 = spike box 1.0, %1"), "line 6: there is no surrogate `box`"),
        (format!("{body}%0 = spike arctan, %1"), "line 6: expected a number, found `,`"),
        (format!("{body}%0 = const infinity"), "line 6: `infinity` is not a number"),
        (format!("{body}%0 = const"), "line 6: expected a number before the line ends"),
        (format!("{body}%0 = warp %1"), "line 6: there is no operation `warp`"),
        (format!("{body}%0 = field @w"), "line 6: no field `@w` is declared above"),
        (format!("{body}%0 = add %1 %2"), "line 6: expected `,`, found `%2`"),
        (
            format!("{body}%4294967296 = time"),
            "line 6: expected a number from 0 to 4294967295 after `%`, found `4294967296`",
        ),
        (format!("{body}%0 = time #0"), "line 6: no origin `#0` is declared above"),
    ];
    for (text, message) in cases {
        assert_eq!(parse(&text).map_err(|e| e.to_string()), Err(message.to_string()), "{text}");
    }
}

#[test]
fn what_points_nowhere_is_printed() {
    let mut p = parse("program \"p\"\nspace @s\n").unwrap_or_else(|e| panic!("{e}"));
    let (f, s) = (FieldId, SpaceId);
    p.spaces.push(Space { name: "r".into(), kind: SpaceKind::Relation { from: s(0), to: s(9) } });
    let field = Field {
        name: "v".into(),
        kind: FieldKind::State,
        over: Some(s(7)),
        history: 0,
        source: Source::None,
        origin: Some(OriginId(3)),
    };
    p.add_field(field);
    let op = |kind| Op { result: None, kind, exact: false, origin: None };
    let region = Region {
        rate: Rate::Every,
        over: Some(s(8)),
        guard: Some(Guard { event: f(5), along: Some(Map::Source), delay: Some(f(6)) }),
        ops: vec![op(OpKind::Gather(f(4), Map::Of)), op(OpKind::Accumulate(f(3), None, ValueId(2)))],
    };
    let solve = Solve { x: f(0), own: f(1), link: f(2), rhs: f(3), from: Some(f(7)), origin: None };
    let stages = vec![Stage::Region(region), Stage::Solve(solve)];
    p.functions.push(Function { role: Role::Step, steps: 1, stages });
    let expected = r#"program "p"
space @s
space @r from @s to @?9
state @v over @?7 #3
fn step {
  over @?8 when @?5 along source delay @?6 {
    gather @?4 along of
    accumulate @?3, %2
  }
  solve tree @v: own @?1, link @?2, rhs @?3, from @?7
}
"#;
    assert_eq!(print(&p), expected);
}

#[test]
fn no_text_panics() {
    let text = print(&sample());
    let pieces = ["\u{0}", "@", "%", "#", "\"", "\\u{", "{", "}", "}\n}", "é", ",", "//", "4294967296", "-", "\n"];
    // A fixed linear congruential sequence: the test is the same every time.
    let mut random = 12345u64;
    let mut next = move |below: usize| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) as usize % below
    };
    for _ in 0..4000 {
        let mut chars: Vec<char> = text.chars().collect();
        for _ in 0..=next(3) {
            let at = next(chars.len());
            let until = (at + next(40)).min(chars.len());
            chars.splice(at..until, pieces[next(pieces.len())].chars());
        }
        let text: String = chars.into_iter().collect();
        if let Ok(program) = parse(&text) {
            let _ = check(&program);
        }
    }
}

#[test]
fn tables_are_in_order() {
    for (i, (map, _)) in Map::ALL.iter().enumerate() {
        assert_eq!(*map as usize, i);
    }
    for (i, (kind, _)) in print::KINDS.iter().enumerate() {
        assert_eq!(*kind as usize, i);
    }
    for (i, (op, _)) in UnaryOp::ALL.iter().enumerate() {
        assert_eq!(*op as usize, i);
    }
    for (i, (op, _)) in BinaryOp::ALL.iter().enumerate() {
        assert_eq!(*op as usize, i);
    }
}
