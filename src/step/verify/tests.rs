//! One program per rule that breaks this rule alone.

use super::*;
use crate::step::{OriginId, Space, parse, print};

/// A program that obeys every rule; `{...}` marks where a case puts its text.
const GOOD: &str = r#"
program "p"
origin #0 "p.neuro":1
space @a
space @b
uniform @dt
uniform @g
series @i
data @a.d over @a
cell @a.c over @a
state @a.v over @a
temp @a.t over @a
output @a.o over @a
event @a.e over @a
{declare}
kernel init over @a steps {init_steps} {
  body {
    %0 = field @a.d
    store @a.c, %0
    store @a.v, %0
    {init}
  }
}
kernel step over @a steps {steps} {
  call {
    %0 = field @g
    {call}
  }
  time {
    %10 = time
    {time}
  }
  cell {
    %20 = field @a.c
    {cell}
  }
  body {
    %30 = field @a.v
    %31 = sample @i, %10
    %32 = lt %30, %31
    %33 = draw normal 1, %0
    store @a.t, %33
    store @a.v, %20
    emit @a.e, %32
    {body}
  }
  body {
    %40 = field @a.t
    {second}
  }
  {end}
}
kernel observe over @a steps 1 {
  body {
    %0 = field @a.v
    store @a.o, %0
    {observe}
  }
}
{kernel}
"#;

fn program(changes: &[(&str, &str)]) -> Program {
    let mut text = GOOD.to_string();
    let defaults = [("init_steps", "1"), ("steps", "1")];
    for (mark, with) in changes.iter().chain(&defaults) {
        text = text.replace(&format!("{{{mark}}}"), with);
    }
    let marks = ["declare", "init", "call", "time", "cell", "body", "second", "end", "observe", "kernel"];
    for mark in marks {
        text = text.replace(&format!("{{{mark}}}"), "");
    }
    parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Cases `(rule, mark, text)`; what the text form cannot spell is in `built`.
const CASES: &[(Rule, &str, &str)] = &[
    (Rule::OneKernel, "kernel", "kernel observe over @a steps 1 {\n}"),
    (Rule::Steps, "steps", "0"),
    (Rule::Steps, "init_steps", "2"),
    (Rule::PhaseOrder, "end", "cell {\n}"),
    (Rule::Result, "body", "%50 = store @a.t, %30"),
    (Rule::Result, "body", "add %30, %30"),
    (Rule::DefinedOnce, "body", "%30 = field @a.v"),
    (Rule::DefinedOnce, "body", "%0 = field @a.v"),
    (Rule::DefinedBefore, "body", "%50 = neg %51\n%51 = field @a.v"),
    (Rule::DefinedBefore, "second", "%50 = neg %30"),
    (Rule::DefinedBefore, "cell", "%50 = neg %10"),
    (Rule::DefinedBefore, "call", "%50 = neg %20"),
    (Rule::Types, "body", "%50 = neg %32"),
    (Rule::Types, "body", "%50 = not %30"),
    (Rule::Types, "body", "%50 = and %30, %32"),
    (Rule::Types, "body", "%50 = add %30, %32"),
    (Rule::Types, "body", "%50 = fma %30, %30, %32"),
    (Rule::Types, "body", "%50 = select %30, %30, %30"),
    (Rule::Types, "body", "%50 = select %32, %32, %32"),
    (Rule::Types, "body", "%50 = draw uniform 0, %32"),
    (Rule::Types, "body", "%50 = sample @i, %32"),
    (Rule::Types, "body", "store @a.t, %32"),
    (Rule::Types, "body", "emit @a.e, %30"),
    (Rule::OwnSpace, "kernel", "kernel step over @b steps 1 {\nbody {\n%0 = field @a.v\n}\n}"),
    (Rule::OwnSpace, "kernel", "kernel step over @b steps 1 {\nbody {\n%0 = field @g\nstore @a.v, %0\n}\n}"),
    (Rule::OwnSpace, "kernel", "kernel step over @b steps 1 {\nbody {\n%0 = bool true\nemit @a.e, %0\n}\n}"),
    (Rule::UniformRegions, "call", "%50 = field @a.c"),
    (Rule::UniformRegions, "time", "%50 = index"),
    (Rule::UniformRegions, "time", "%50 = draw uniform 1, %10"),
    (Rule::UniformRegions, "time", "store @a.v, %10"),
    (Rule::TimePhases, "call", "%50 = time"),
    (Rule::TimePhases, "cell", "%50 = step_index"),
    (Rule::Readable, "body", "%50 = field @i"),
    (Rule::Readable, "body", "%50 = field @a.d"),
    (Rule::Readable, "observe", "%50 = field @a.d"),
    (Rule::Readable, "observe", "%50 = field @a.t"),
    (Rule::Readable, "observe", "%50 = field @a.o"),
    (Rule::Readable, "body", "%50 = field @a.e"),
    (Rule::ReadPhase, "cell", "%50 = field @a.v"),
    (Rule::ReadPhase, "cell", "%50 = field @a.t"),
    (Rule::Storable, "body", "store @a.c, %30"),
    (Rule::Storable, "body", "store @a.o, %30"),
    (Rule::Storable, "body", "store @g, %30"),
    (Rule::Storable, "body", "store @a.e, %30"),
    (Rule::Storable, "init", "store @a.t, %0"),
    (Rule::Storable, "init", "store @a.d, %0"),
    (Rule::Storable, "observe", "store @a.v, %0"),
    (Rule::EffectPhase, "cell", "store @a.v, %20"),
    (Rule::EffectPhase, "cell", "%50 = bool true\nemit @a.e, %50"),
    (Rule::Emits, "body", "emit @a.v, %32"),
    (Rule::Emits, "init", "%50 = bool true\nemit @a.e, %50"),
    (Rule::Samples, "body", "%50 = sample @g, %30"),
    (Rule::Streams, "body", "%50 = draw normal 4294967296, %30"),
    (Rule::InitStores, "declare", "state @a.u over @a"),
    (Rule::InitStores, "declare", "cell @b.u over @b"),
    (Rule::ObserveStores, "declare", "output @a.u over @a"),
];

/// Cases of rules that a text cannot break because the parser needs them too, or that need two changes.
fn built() -> Vec<(Rule, Program)> {
    let changed = |change: &dyn Fn(&mut Program)| {
        let mut p = program(&[]);
        change(&mut p);
        p
    };
    let step_body = |p: &mut Program| p.kernels[1].regions[3].ops.len() - 1;
    vec![
        (Rule::UniqueSpaces, changed(&|p| p.spaces.push(Space { name: "a".into() }))),
        (Rule::UniqueFields, changed(&|p| p.fields[1].name = "a.v".into())),
        (Rule::IdsInRange, changed(&|p| p.fields[3].kind = FieldKind::Data(SpaceId(2)))),
        (Rule::IdsInRange, changed(&|p| p.fields[3].origin = Some(OriginId(1)))),
        (Rule::IdsInRange, changed(&|p| p.kernels[0].space = SpaceId(7))),
        (Rule::IdsInRange, changed(&|p| p.kernels[0].regions[0].ops[0].kind = OpKind::Field(FieldId(99)))),
        (Rule::IdsInRange, changed(&|p| p.kernels[0].regions[0].ops[0].origin = Some(OriginId(1)))),
        (
            Rule::IdsInRange,
            changed(&|p| {
                let last = step_body(p);
                p.kernels[1].regions[3].ops[last].kind = OpKind::Emit(FieldId(99), ValueId(32));
            }),
        ),
        (Rule::TimeStep, changed(&|p| p.fields[0].name = "delta".into())),
        (Rule::TimeStep, changed(&|p| p.fields[0].kind = FieldKind::Series)),
        (Rule::EdgeRegions, program(&[("body", "%50 = there @a.v")])),
        (Rule::EdgeRegions, program(&[("body", "accumulate @a.t, %33")])),
        (
            Rule::EdgeRegions,
            program(&[("declare", "edges @a.n over @a"), ("cell", "}\nedge @a.n {\n%50 = there @a.c")]),
        ),
        (
            Rule::EdgeRegions,
            program(&[("declare", "edges @a.n over @a"), ("cell", "}\nedge @a.n {\naccumulate @a.v, %0")]),
        ),
        (
            Rule::EdgeRegions,
            program(&[("declare", "edges @b.n over @b"), ("cell", "}\nedge @b.n {\n%50 = there @a.v")]),
        ),
        (Rule::StoredBeforeRead, program(&[("declare", "temp @a.u over @a"), ("body", "%50 = field @a.u")])),
        (
            Rule::StoredBeforeRead,
            program(&[("declare", "state @a.u over @a"), ("init", "%50 = field @a.u\nstore @a.u, %50")]),
        ),
    ]
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
fn every_rule_is_enforced_and_has_a_case() {
    let mut cases = built();
    cases.extend(CASES.iter().map(|&(rule, mark, text)| (rule, program(&[(mark, text)]))));
    for &(rule, name, _) in Rule::ALL {
        assert!(cases.iter().any(|(r, _)| *r == rule), "the rule {name} has no case");
    }
    for (rule, program) in cases {
        let error = verify(program.clone()).err();
        let found = error.as_ref().map(|e| e.rule);
        assert_eq!(found, Some(rule), "{}\n{error:?}", print(&program));
    }
}

#[test]
fn messages_name_kernel_operation_and_rule() {
    let error = verify(program(&[("second", "%50 = neg %30 #0")])).map_err(|e| e.to_string());
    assert_eq!(
        error.err().unwrap_or_default(),
        "kernel step over @a, `%50 = neg %30 #0`: %30 belongs to another body region (rule defined-before: a value is \
         defined earlier in the same region or in a region whose phase reaches the user's)"
    );
}

#[test]
fn rules_are_listed_in_order() {
    for (i, (rule, ..)) in Rule::ALL.iter().enumerate() {
        assert_eq!(*rule as usize, i);
    }
}
