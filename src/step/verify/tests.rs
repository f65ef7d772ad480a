//! One program per rule that breaks this rule alone.

use super::*;
use crate::step::{Guard, OriginId, Solve, Space, SpaceKind, Stage, parse, print};

/// A program that obeys every rule; `{...}` marks where a case puts its text.
const GOOD: &str = r#"
program "p"
origin #0 "p.neuro":1
space @a
space @b
space @ab from @a to @b
space @c of @a tree
space @n in @c
uniform @dt = dt
uniform @g
series @i
data @a.d over @a
const @a.c over @a
const @ab.w over @ab
const @c.ga over @c
state @a.v over @a history 4
state @b.v over @b
state @c.v over @c
state @total
temp @a.t over @a
temp @b.sum over @b
temp @b.kick over @b
temp @c.d over @c
temp @c.b over @c
temp @count
output @a.o over @a
output @mean
event @a.e over @a
{declare}
fn init steps {init_steps} {
  over @a {
    %0 = field @a.d
    store @a.c, %0
    store @a.v, %0
    {init}
  }
  over @b {
    %1 = index
    store @b.v, %1
    {init_b}
  }
  over @ab {
    %2 = gather @a.c along source
    store @ab.w, %2
    {init_ab}
  }
  over @c {
    %3 = const 1.0
    store @c.ga, %3
    store @c.v, %3
  }
  every {
    %4 = const 0.0
    store @total, %4
  }
}
fn step steps {steps} {
  once {
    %0 = field @g
    {once}
  }
  once over @a {
    %20 = field @a.c
    {once_a}
  }
  {first}
  every {
    %10 = time
    {every}
  }
  over @ab {
    %21 = gather @a.v along source
    %22 = gather @b.v along target
    %23 = back @a.v along source, %0
    accumulate @b.sum along target, %21
    {edges}
  }
  over @ab when @a.e along source delay @ab.w {
    %24 = field @ab.w
    accumulate @b.kick along target, %24
    {delivered}
  }
  over @a {
    %30 = field @a.v
    %31 = sample @i, %10
    %32 = lt %30, %31
    %33 = draw normal 1, %0
    %34 = spike fast_sigmoid 25.0, %30
    store @a.t, %33
    store @a.v, %20
    emit @a.e, %32
    accumulate @count, %33
    {body}
  }
  over @a when @a.e {
    %35 = mul %20, %10
    store @a.v, %35
    {guarded}
  }
  over @a {
    %40 = field @a.t
    %41 = add %40, %20
    {second}
  }
  over @b {
    %42 = field @b.sum
    %43 = field @b.kick
    %44 = add %42, %43
    store @b.v, %44
    {body_b}
  }
  over @c {
    %50 = gather @a.c along of
    store @c.d, %50
    store @c.b, %50
    {tree}
  }
  over @n {
    %51 = gather @c.v along in
    accumulate @c.d along in, %51
    {subset}
  }
  solve tree @c.v: own @c.d, link @c.ga, rhs @c.b #0
  over @c {
    %52 = gather @c.v along parent
    {solved}
  }
  every {
    %60 = field @count
    store @total, %60
    {shared}
  }
  {end}
}
fn observe {
  over @a {
    %0 = field @a.v
    store @a.o, %0
    accumulate @mean, %0
    {observe}
  }
}
{function}
"#;

fn program(changes: &[(&str, &str)]) -> Program {
    let mut text = GOOD.to_string();
    for (mark, with) in changes {
        let mark = format!("{{{mark}}}");
        assert!(text.contains(&mark), "no mark {mark}");
        text = text.replace(&mark, with);
    }
    let text = text.replace("{init_steps}", "1").replace("{steps}", "1");
    let is_mark = |line: &str| line.trim().starts_with('{') && line.trim().ends_with('}');
    let lines: Vec<&str> = text.lines().filter(|line| !is_mark(line)).collect();
    let text = lines.join("\n");
    parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Cases `(rule, mark, text)`; what the text form cannot spell is in `built`.
const CASES: &[(Rule, &str, &str)] = &[
    (Rule::UniqueSources, "declare", "uniform @delta = dt"),
    (Rule::FieldSpace, "declare", "uniform @u over @a"),
    (Rule::FieldSpace, "declare", "series @u over @a"),
    (Rule::FieldSpace, "declare", "data @u"),
    (Rule::FieldSpace, "declare", "const @u"),
    (Rule::FieldSpace, "declare", "event @u"),
    (Rule::History, "declare", "temp @u over @a history 1"),
    (Rule::History, "declare", "uniform @u history 1"),
    (Rule::History, "declare", "event @u over @a history 1"),
    (Rule::OneFunction, "function", "fn observe {\n}"),
    (Rule::Steps, "steps", "0"),
    (Rule::Steps, "init_steps", "2"),
    (Rule::OnceFirst, "end", "once over @a {\n}"),
    (Rule::OnceFirst, "end", "once {\n}"),
    (Rule::OnceFirst, "once_a", "store @a.v, %20"),
    (Rule::OnceFirst, "once_a", "%70 = bool true\nemit @a.e, %70"),
    (Rule::OnceFirst, "once_a", "accumulate @count, %20"),
    (Rule::OnceFirst, "once", "store @total, %0"),
    (Rule::Result, "body", "%70 = store @a.t, %30"),
    (Rule::Result, "body", "add %30, %30"),
    (Rule::Result, "edges", "gather @a.v along source"),
    (Rule::DefinedOnce, "body", "%30 = field @a.v"),
    (Rule::DefinedOnce, "body", "%0 = field @a.v"),
    (Rule::DefinedOnce, "body_b", "%30 = field @b.v"),
    (Rule::DefinedBefore, "body", "%70 = neg %71\n%71 = field @a.v"),
    (Rule::DefinedBefore, "second", "%70 = neg %30"),
    (Rule::DefinedBefore, "second", "%70 = neg %35"),
    (Rule::DefinedBefore, "guarded", "%70 = neg %30"),
    (Rule::DefinedBefore, "body_b", "%70 = neg %30"),
    (Rule::DefinedBefore, "shared", "%70 = neg %30"),
    (Rule::DefinedBefore, "shared", "%70 = neg %20"),
    (Rule::DefinedBefore, "end", "over @ab {\n%70 = neg %24\n}"),
    (Rule::DefinedBefore, "edges", "%70 = neg %20"),
    (Rule::DefinedBefore, "first", "once {\n%70 = neg %20\n}"),
    (Rule::Types, "body", "%70 = neg %32"),
    (Rule::Types, "body", "%70 = not %30"),
    (Rule::Types, "body", "%70 = and %30, %32"),
    (Rule::Types, "body", "%70 = add %30, %32"),
    (Rule::Types, "body", "%70 = fma %30, %30, %32"),
    (Rule::Types, "body", "%70 = select %30, %30, %30"),
    (Rule::Types, "body", "%70 = select %32, %32, %32"),
    (Rule::Types, "body", "%70 = draw uniform 0, %32"),
    (Rule::Types, "body", "%70 = sample @i, %32"),
    (Rule::Types, "body", "%70 = spike %32"),
    (Rule::Types, "body", "%70 = narrow %30\n%71 = spike %70"),
    (Rule::Types, "body", "%70 = neg %34"),
    (Rule::Types, "body", "store @a.t, %32"),
    (Rule::Types, "body", "accumulate @count, %32"),
    (Rule::Types, "body", "emit @a.e, %30"),
    (Rule::Types, "edges", "%70 = gt %21, %22\n%71 = back @a.v along source, %70"),
    (Rule::Elements, "once", "%70 = index"),
    (Rule::Elements, "every", "%70 = index"),
    (Rule::Elements, "every", "%70 = draw uniform 1, %10"),
    (Rule::Maps, "every", "%70 = gather @a.v along source"),
    (Rule::Maps, "body", "%70 = gather @b.v along source"),
    (Rule::Maps, "edges", "%70 = gather @b.v along source"),
    (Rule::Maps, "edges", "%70 = gather @total along source"),
    (Rule::Maps, "edges", "%70 = gather @ab.w along source"),
    (Rule::Maps, "subset", "%70 = gather @c.v along of"),
    (Rule::Maps, "subset", "%70 = gather @c.v along parent"),
    (Rule::Maps, "tree", "%70 = gather @c.v along of"),
    (Rule::Maps, "edges", "%70 = back @a.v along target, %0"),
    (Rule::Maps, "shared", "%70 = back @a.v along source, %0"),
    (Rule::Maps, "edges", "accumulate @b.sum along source, %21"),
    (Rule::Maps, "body_b", "accumulate @b.sum, %42"),
    (Rule::Maps, "edges", "accumulate @count along target, %21"),
    (Rule::Maps, "shared", "%70 = const 1.0\naccumulate @count, %70"),
    (Rule::OwnElement, "every", "%70 = field @a.c"),
    (Rule::OwnElement, "body_b", "%70 = field @a.v"),
    (Rule::OwnElement, "edges", "%70 = field @b.v"),
    (Rule::OwnElement, "body_b", "store @a.v, %44"),
    (Rule::OwnElement, "every", "store @a.v, %10"),
    (Rule::OwnElement, "body_b", "%70 = bool true\nemit @a.e, %70"),
    (Rule::OwnElement, "every", "%70 = bool true\nemit @a.e, %70"),
    (Rule::OwnElement, "body_b", "%70 = back @a.v, %0"),
    (Rule::OwnElement, "body", "store @total, %30"),
    (Rule::OwnElement, "init", "store @total, %0"),
    (Rule::TimePhases, "once", "%70 = time"),
    (Rule::TimePhases, "once_a", "%70 = step_index"),
    (Rule::Readable, "body", "%70 = field @i"),
    (Rule::Readable, "body", "%70 = field @a.d"),
    (Rule::Readable, "observe", "%70 = field @a.d"),
    (Rule::Readable, "observe", "%70 = field @a.o"),
    (Rule::Readable, "body", "%70 = field @a.e"),
    (Rule::Readable, "edges", "%70 = gather @a.d along source"),
    (Rule::Readable, "init_ab", "%70 = gather @a.d along source"),
    (Rule::Readable, "edges", "%70 = gather @a.e along source"),
    (Rule::Readable, "init", "%70 = field @a.t"),
    (Rule::Readable, "init_ab", "%70 = gather @g along source"),
    (Rule::ReadPhase, "once_a", "%70 = field @a.v"),
    (Rule::ReadPhase, "once_a", "%70 = field @a.t"),
    (Rule::ReadPhase, "once", "%70 = field @total"),
    (Rule::ReadPhase, "first", "once over @ab {\n%70 = gather @a.v along source\n}"),
    (Rule::StoredBeforeRead, "observe", "%70 = field @a.t"),
    (Rule::StoredBeforeRead, "edges", "%70 = gather @a.t along source"),
    (Rule::StoredBeforeRead, "every", "%70 = field @count"),
    (Rule::StoredBeforeRead, "init", "%70 = field @total"),
    (Rule::Storable, "body", "store @a.c, %30"),
    (Rule::Storable, "body", "store @a.o, %30"),
    (Rule::Storable, "body", "store @g, %30"),
    (Rule::Storable, "body", "store @a.e, %30"),
    (Rule::Storable, "init", "store @a.t, %0"),
    (Rule::Storable, "init", "store @a.d, %0"),
    (Rule::Storable, "observe", "store @a.v, %0"),
    (Rule::GatheredSettled, "edges", "%70 = gather @b.sum along target"),
    (Rule::GatheredSettled, "body", "%70 = back @a.v, %0"),
    (Rule::GatheredSettled, "solved", "store @c.v, %52"),
    (Rule::GatheredSettled, "tree", "%70 = gather @c.d along parent"),
    (Rule::GatheredSettled, "tree", "accumulate @c.d along parent, %50"),
    (Rule::GatheredSettled, "body", "%70 = field @count"),
    (Rule::GatheredSettled, "solved", "%70 = field @c.d\naccumulate @c.d along parent, %70"),
    (Rule::GatheredSettled, "solved", "accumulate @c.d along parent, %52\nstore @c.d, %52"),
    (Rule::GatheredSettled, "solved", "accumulate @c.d along parent, %52\n%70 = gather @c.d along parent"),
    (Rule::GatheredSettled, "solved", "%70 = gather @c.d along parent\naccumulate @c.d along parent, %70"),
    (Rule::GatheredSettled, "second", "%70 = back @a.v, %0\nstore @a.v, %70"),
    (Rule::Accumulates, "edges", "accumulate @b.v along target, %21"),
    (Rule::Accumulates, "edges", "accumulate @a.c along source, %21"),
    (Rule::Accumulates, "body", "accumulate @mean, %30"),
    (Rule::Accumulates, "body", "accumulate @total, %30"),
    (Rule::Accumulates, "body", "accumulate @g, %30"),
    (Rule::Accumulates, "init", "accumulate @count, %0"),
    (Rule::Accumulates, "observe", "accumulate @a.o along source, %0"),
    (Rule::Back, "observe", "%70 = back @a.v, %0"),
    (Rule::Back, "init", "%70 = back @a.v, %0"),
    (Rule::Back, "once_a", "%70 = back @a.v, %0"),
    (Rule::Back, "body_b", "%70 = back @b.v, %0"),
    (Rule::Back, "shared", "%70 = back @total, %0"),
    (Rule::Back, "body", "%70 = back @a.t, %0"),
    (Rule::Back, "edges", "%70 = const 5.0\n%71 = back @a.v along source, %70"),
    (Rule::Back, "edges", "%70 = const 1.5\n%71 = back @a.v along source, %70"),
    (Rule::Back, "edges", "%70 = const -1.0\n%71 = back @a.v along source, %70"),
    (Rule::Back, "edges", "%70 = const nan\n%71 = back @a.v along source, %70"),
    (Rule::Guards, "end", "every when @a.e {\n}"),
    (Rule::Guards, "end", "over @b when @a.e {\n}"),
    (Rule::Guards, "end", "over @ab when @a.e along target {\n}"),
    (Rule::Guards, "end", "over @ab when @a.e along of {\n}"),
    (Rule::Guards, "end", "over @ab when @a.e {\n}"),
    (Rule::Guards, "end", "over @a when @a.v {\n}"),
    (Rule::Guards, "end", "over @a when @a.e delay @a.v {\n}"),
    (Rule::Guards, "end", "over @ab when @a.e along source delay @a.c {\n}"),
    (Rule::Guards, "first", "over @a when @a.e {\n}"),
    (Rule::Guards, "first", "once over @a when @a.e {\n}"),
    (Rule::Guards, "guarded", "%70 = bool true\nemit @a.e, %70"),
    (Rule::Guards, "observe", "}\nover @a when @a.e {"),
    (Rule::Solves, "first", "solve tree @c.v: own @c.d, link @c.ga, rhs @c.b"),
    (Rule::Solves, "end", "solve tree @a.v: own @a.t, link @a.c, rhs @a.t"),
    (Rule::Solves, "end", "solve tree @total: own @total, link @total, rhs @total"),
    (Rule::Solves, "end", "solve tree @c.ga: own @c.d, link @c.ga, rhs @c.b"),
    (Rule::Solves, "end", "solve tree @c.v: own @a.t, link @c.ga, rhs @c.b"),
    (Rule::Solves, "end", "solve tree @c.v: own @c.d, link @g, rhs @c.b"),
    (Rule::Solves, "end", "solve tree @c.v: own @c.d, link @c.ga, rhs @c.v"),
    (Rule::Solves, "end", "solve tree @c.v: own @c.d, link @c.ga, rhs @c.b, from @c.v"),
    (Rule::Solves, "observe", "}\nsolve tree @c.v: own @c.ga, link @c.ga, rhs @c.ga\nover @a {"),
    (Rule::Surrogates, "body", "%70 = spike arctan 0.0, %30"),
    (Rule::Surrogates, "body", "%70 = spike sigmoid -1.0, %30"),
    (Rule::Surrogates, "body", "%70 = spike fast_sigmoid inf, %30"),
    (Rule::Surrogates, "body", "%70 = spike triangular nan, %30"),
    (Rule::Emits, "body", "emit @a.v, %32"),
    (Rule::Emits, "observe", "%70 = bool true\nemit @a.e, %70"),
    (Rule::Samples, "body", "%70 = sample @g, %30"),
    (Rule::Streams, "body", "%70 = draw normal 4294967296, %30"),
    (Rule::InitStores, "declare", "state @a.u over @a"),
    (Rule::InitStores, "declare", "state @u"),
    (Rule::InitStores, "declare", "const @b.u over @b"),
    (Rule::ObserveStores, "declare", "output @a.u over @a"),
    (Rule::ObserveStores, "declare", "output @u"),
];

/// Cases of rules that a text cannot break because the parser needs them too, or that need two changes.
fn built() -> Vec<(Rule, Program)> {
    let mut cases = vec![
        (Rule::StoredBeforeRead, program(&[("declare", "temp @a.u over @a"), ("body", "%70 = field @a.u")])),
        (
            Rule::StoredBeforeRead,
            program(&[
                ("declare", "temp @a.u over @a"),
                ("guarded", "store @a.u, %20"),
                ("second", "%70 = field @a.u"),
            ]),
        ),
        (
            Rule::StoredBeforeRead,
            program(&[("declare", "state @a.u over @a"), ("init", "%70 = field @a.u\nstore @a.u, %70")]),
        ),
        (
            Rule::StoredBeforeRead,
            program(&[("declare", "const @b.u over @b"), ("init_ab", "%70 = gather @b.u along target")]),
        ),
        (Rule::OneFunction, changed(|p| p.functions.push(p.functions[1].clone()))),
        (Rule::TimeStep, changed(|p| p.fields[0].name = "delta".into())),
        (
            Rule::TimeStep,
            changed(|p| p.fields[0] = Field { source: Source::None, name: "d".into(), ..p.fields[0].clone() }),
        ),
        (
            Rule::TimeStep,
            changed(|p| p.fields[0] = Field { source: Source::None, kind: FieldKind::Series, ..p.fields[0].clone() }),
        ),
        (Rule::UniqueSpaces, with_space("a", SpaceKind::Plain)),
        (Rule::UniqueFields, changed(|p| p.fields[1].name = "a.v".into())),
        (Rule::SpaceOrder, with_space("x", SpaceKind::Product { of: SpaceId(5), tree: false })),
        (Rule::SpaceOrder, changed(|p| p.spaces[0].kind = SpaceKind::Relation { from: SpaceId(1), to: SpaceId(2) })),
    ];
    cases.extend(out_of_range().into_iter().map(|program| (Rule::IdsInRange, program)));
    cases
}

/// Programs whose ids point nowhere.
fn out_of_range() -> Vec<Program> {
    let (nowhere, no_space, no_origin) = (FieldId(99), SpaceId(7), Some(OriginId(1)));
    let ops = |change: &dyn Fn(&mut Op)| {
        changed(|p| {
            let regions = p.functions.iter_mut().flat_map(|f| f.regions_mut());
            regions.flat_map(|region| &mut region.ops).for_each(change);
        })
    };
    let guard = |change: &dyn Fn(&mut Guard)| {
        changed(|p| p.functions[1].regions_mut().filter_map(|r| r.guard.as_mut()).for_each(change))
    };
    let solve = |change: &dyn Fn(&mut Solve)| {
        changed(|p| {
            for stage in &mut p.functions[1].stages {
                if let Stage::Solve(solve) = stage {
                    change(solve);
                }
            }
        })
    };
    let of_kind = |select: &dyn Fn(&OpKind) -> bool| {
        ops(&|op: &mut Op| {
            if select(&op.kind) {
                op.kind = op.kind.map_field(|_| nowhere);
            }
        })
    };
    vec![
        with_space("x", SpaceKind::Subset { of: no_space }),
        with_space("x", SpaceKind::Relation { from: SpaceId(0), to: no_space }),
        changed(|p| p.fields[3].over = Some(no_space)),
        changed(|p| p.fields[3].origin = no_origin),
        changed(|p| p.functions[0].regions_mut().for_each(|r| r.over = Some(no_space))),
        ops(&|op| op.origin = no_origin),
        of_kind(&|kind| matches!(kind, OpKind::Field(_))),
        of_kind(&|kind| matches!(kind, OpKind::Gather(..))),
        of_kind(&|kind| matches!(kind, OpKind::Back(..))),
        of_kind(&|kind| matches!(kind, OpKind::Sample(..))),
        of_kind(&|kind| matches!(kind, OpKind::Store(..))),
        of_kind(&|kind| matches!(kind, OpKind::Accumulate(..))),
        of_kind(&|kind| matches!(kind, OpKind::Emit(..))),
        guard(&|guard| guard.event = nowhere),
        guard(&|guard| guard.delay = Some(nowhere)),
        solve(&|solve| solve.x = nowhere),
        solve(&|solve| solve.own = nowhere),
        solve(&|solve| solve.link = nowhere),
        solve(&|solve| solve.rhs = nowhere),
        solve(&|solve| solve.from = Some(nowhere)),
        solve(&|solve| solve.origin = no_origin),
    ]
}

fn changed(change: impl FnOnce(&mut Program)) -> Program {
    let mut p = program(&[]);
    change(&mut p);
    p
}

fn with_space(name: &str, kind: SpaceKind) -> Program {
    changed(|p| p.spaces.push(Space { name: name.into(), kind }))
}

#[test]
fn a_good_program_passes() {
    let good = program(&[]);
    assert_eq!(parse(&print(&good)), Ok(good.clone()));
    let verified = verify(good.clone()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(verified.program(), &good);
    assert_eq!(verified.into_inner(), good);
}

#[test]
fn good_additions_pass() {
    for (mark, text) in [
        // Values from once reach later regions over the same space, and those from regions over nothing all.
        ("second", "%70 = mul %20, %10"),
        ("guarded", "%70 = mul %20, %0"),
        ("first", "once over @ab {\n%70 = field @ab.w\n}\nover @ab {\n%71 = neg %70\n}"),
        ("once_a", "%70 = mul %20, %0"),
        // What all share is read anywhere; what is over nothing is added up over any space.
        ("body_b", "%70 = field @total"),
        ("edges", "%70 = field @g\naccumulate @count, %70"),
        ("delivered", "accumulate @count, %24"),
        // Constants of other elements, once.
        ("first", "once over @ab {\n%70 = gather @a.c along source\n}"),
        ("first", "once over @c {\n%70 = gather @c.ga along parent\n}"),
        // A sum is stored before it is added to, read after, and stored again.
        ("solved", "%70 = field @c.d\nstore @c.d, %70"),
        ("end", "over @b {\n%70 = const 0.0\nstore @b.sum, %70\n%71 = field @b.sum\n}"),
        ("end", "over @ab {\n%70 = gather @b.sum along target\n}"),
        // The past, of the element itself and as far back as the history goes.
        ("second", "%70 = const 4.0\n%71 = back @a.v, %70"),
        ("second", "%70 = back @a.v, %0"),
        // A guard with a delay needs no earlier stage, one without it an earlier stage.
        ("first", "over @ab when @a.e along source delay @ab.w {\n}"),
        ("end", "over @ab when @a.e along source {\n}"),
        ("observe", "store @a.t, %0\n%70 = field @a.t"),
        ("observe", "}\nover @ab {\n%70 = gather @a.v along source\naccumulate @b.sum along target, %70"),
        ("init_ab", "%70 = gather @b.v along target"),
        ("declare", "state @u history 3 = state 2 #0\ntemp @w = sum 2 1"),
    ] {
        let program = if mark == "declare" {
            let store = [("init_b", "}\nevery {\n%70 = const 1.0\nstore @u, %70"), ("shared", "%70 = back @u, %0")];
            program(&[(mark, text), store[0], store[1]])
        } else {
            program(&[(mark, text)])
        };
        assert_eq!(check(&program), Ok(()), "{text}");
        assert_eq!(parse(&print(&program)), Ok(program));
    }
}

#[test]
fn every_rule_is_enforced_and_has_a_case() {
    let mut cases = built();
    cases.extend(CASES.iter().map(|&(rule, mark, text)| (rule, program(&[(mark, text)]))));
    for &(rule, name, _) in Rule::ALL {
        assert!(cases.iter().any(|(r, _)| *r == rule), "the rule {name} has no case");
    }
    let mut wrong = Vec::new();
    for (rule, program) in cases {
        let error = check(&program).err();
        if error.as_ref().map(|e| e.rule) != Some(rule) {
            wrong.push(format!("{rule:?} expected, {error:?} found in\n{}", print(&program)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn messages_name_function_stage_operation_and_rule() {
    let message = |mark, text| check(&program(&[(mark, text)])).map_err(|e| e.to_string()).err().unwrap_or_default();
    assert_eq!(
        message("second", "%70 = neg %35 #0"),
        "fn step, over @a, `%70 = neg %35 #0`: %35 belongs to `over @a when @a.e` and does not reach `over @a` (rule \
         defined-before: a value is defined above: in the same region, or in one that is over nothing, or over the same \
         space and runs once, and that runs no more often than the user's)"
    );
    let first = |text: &str| text.split(" (rule").next().unwrap_or_default().to_string();
    assert_eq!(
        first(&message("edges", "%70 = gather @b.v along source")),
        "fn step, over @ab, `%70 = gather @b.v along source`: @b.v is over @b, `source` leads to @a"
    );
    assert_eq!(
        first(&message("end", "over @ab when @a.e along target {\n}")),
        "fn step, over @ab when @a.e along target: @a.e is over @a"
    );
    assert_eq!(
        first(&message("end", "solve tree @c.v: own @c.d, link @c.ga, rhs @c.v")),
        "fn step, `solve tree @c.v: own @c.d, link @c.ga, rhs @c.v`: @c.v is read and set"
    );
}

#[test]
fn rules_are_listed_in_order() {
    for (i, (rule, ..)) in Rule::ALL.iter().enumerate() {
        assert_eq!(*rule as usize, i);
    }
}
