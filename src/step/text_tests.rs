//! Tests of the text form: what is printed reads back the same, and nothing that is read panics.

use super::*;

fn sample() -> Program {
    let mut p = Program { name: "a \"name\"\n".into(), ..Program::default() };
    let origin = p.add_origin("dir/a b.neuro", 12);
    p.spaces.push(Space { name: "squid".into() });
    p.spaces.push(Space { name: "with space \u{2028}\u{7}".into() });
    let s = SpaceId(0);
    for (name, kind) in [
        ("dt", FieldKind::Uniform),
        ("squid.i", FieldKind::Series),
        ("squid.d", FieldKind::Data(s)),
        ("squid.Na.gbar", FieldKind::Cell(s)),
        ("squid.v'", FieldKind::State(s)),
        ("next squid.v", FieldKind::Temp(SpaceId(1))),
        ("\\", FieldKind::Output(s)),
        ("", FieldKind::Event(s)),
        ("größe", FieldKind::Cell(s)),
    ] {
        p.add_field(name, kind, (name == "dt").then_some(origin));
    }
    let mut kinds: Vec<OpKind> =
        [0.0, -0.0, 0.1, 1e16, -1.5e-300, f64::MIN_POSITIVE / 8.0, f64::MAX, f64::INFINITY, f64::NEG_INFINITY]
            .map(OpKind::Const)
            .to_vec();
    let (v, f) = (ValueId, FieldId);
    kinds.extend([OpKind::Bool(true), OpKind::Bool(false), OpKind::Time, OpKind::StepIndex, OpKind::Index]);
    kinds.extend((0..p.fields.len() as u32).map(|i| OpKind::Field(f(i))));
    kinds.extend(UnaryOp::ALL.iter().map(|(op, _)| OpKind::Unary(*op, v(1))));
    kinds.extend(BinaryOp::ALL.iter().map(|(op, _)| OpKind::Binary(*op, v(1), v(u32::MAX))));
    for (function, _) in Function::ALL {
        kinds.extend(Tolerance::ALL.map(|(tolerance, _)| OpKind::Approximate(function, tolerance, v(1))));
    }
    kinds.extend([OpKind::Fma(v(1), v(2), v(3)), OpKind::Select(v(3), v(2), v(1))]);
    for d in [Distribution::Uniform, Distribution::Normal, Distribution::Exponential] {
        kinds.push(OpKind::Draw(d, u64::MAX, v(4)));
    }
    kinds.extend([OpKind::Sample(f(1), v(2)), OpKind::Store(f(4), v(2)), OpKind::Emit(f(7), v(2))]);
    let ops = kinds.into_iter().enumerate().map(|(i, kind)| Op {
        result: (i % 7 != 3).then_some(ValueId(i as u32)),
        kind,
        exact: i % 2 == 1,
        origin: (i % 3 == 0).then_some(origin),
    });
    let mut regions = vec![Region { phase: Phase::Body, ops: ops.collect() }];
    regions.extend([Phase::Time, Phase::Cell, Phase::Call].map(|phase| Region { phase, ops: vec![] }));
    for role in [Role::Init, Role::Step, Role::Observe] {
        p.kernels.push(Kernel { role, space: s, steps: 3, regions: regions.clone() });
    }
    p.kernels.push(Kernel { role: Role::Init, space: SpaceId(1), steps: u32::MAX, regions: vec![] });
    p
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
    let text = "program \"p\"\nspace @s\nkernel init over @s steps 1 {\n  body {\n    %0 = const nan\n  }\n}\n";
    assert_eq!(parse(text).map(|p| print(&p)), Ok(text.to_string()));
}

#[test]
fn comments_and_blank_lines_are_skipped() {
    let text = "// first\n\nprogram \"a // b\" // name\n  space @s//x\r\n";
    let program = parse(text).map(|p| (p.name, p.spaces));
    assert_eq!(program, Ok(("a // b".into(), vec![Space { name: "s".into() }])));
}

#[test]
fn messages_have_a_line_and_are_plain() {
    let top = "program \"p\"\nspace @s\nstate @v over @s\n";
    let body = format!("{top}kernel step over @s steps 1 {{\nbody {{\n");
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
        (
            format!("{top}kernel run over @s"),
            "line 4: `run` is no kind of kernel; they are `init`, `step` and `observe`",
        ),
        (body.clone(), "line 5: the text ends inside a kernel; `}` is missing"),
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
fn operator_tables_are_in_order() {
    for (i, (op, _)) in UnaryOp::ALL.iter().enumerate() {
        assert_eq!(*op as usize, i);
    }
    for (i, (op, _)) in BinaryOp::ALL.iter().enumerate() {
        assert_eq!(*op as usize, i);
    }
}
