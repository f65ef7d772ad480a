//! Tests of: differentiate. Every operation against central differences, on text.

use super::{Wanted, backward};
use crate::engine::{Edges, Engine, Setup};
use crate::interp::Interp;
use crate::simulate::{Along, Backward, Gradient, Loss, Sampled, turn_edges};
use crate::step::{BinaryOp, FieldId, FieldKind, Program, Source, SpaceId, UnaryOp, Verified, parse, verify};
use std::sync::Arc;

const STEPS: u64 = 4;

fn program(text: &str) -> Verified {
    verify(parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"))).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Values for all uniforms of a program, each another one.
fn setup(program: &Program, sizes: &[usize]) -> Setup {
    let uniforms = program.fields_where(|f| f.kind == FieldKind::Uniform).into_iter();
    let value = |f: FieldId| if program.field(f).name == "dt" { 0.25 } else { 0.4 + 0.07 * f64::from(f.0) };
    Setup { sizes: sizes.to_vec(), uniforms: uniforms.map(|f| (f, value(f))).collect(), seed: 7, ..Setup::default() }
}

/// The weight of a sample in the loss.
fn weight(sampled: usize, at: usize) -> f64 {
    (1.0 + sampled as f64 + 0.7 * at as f64).sin()
}

/// A loss that is linear and square in all samples.
fn loss(samples: &[Vec<f64>]) -> Loss {
    let mut value = 0.0;
    let slope = |(i, of): (usize, &Vec<f64>)| {
        of.iter().enumerate().map(|(at, x)| weight(i, at) + 0.2 * x).collect::<Vec<f64>>()
    };
    for (i, of) in samples.iter().enumerate() {
        for (at, x) in of.iter().enumerate() {
            value += weight(i, at) * x + 0.1 * x * x;
        }
    }
    Loss { value, slopes: samples.iter().enumerate().map(slope).collect() }
}

/// All states and outputs after every step.
fn sampled(program: &Program, setup: &Setup) -> Vec<Sampled> {
    let fields = program.fields_where(|f| matches!(f.kind, FieldKind::State | FieldKind::Output));
    let elements = |f: FieldId| program.field(f).over.map_or(1, |space| setup.sizes[space.0 as usize]);
    fields.into_iter().map(|field| Sampled { field, cells: 0..elements(field), steps: (0..=STEPS).collect() }).collect()
}

fn parameters(program: &Program) -> Vec<FieldId> {
    program.fields_where(|f| f.kind == FieldKind::Uniform && f.name != "dt")
}

/// The same set-up for another program, which has the fields of the first.
fn moved(setup: &Setup, from: &Program, to: &Program) -> Setup {
    let there = |f: FieldId| to.find_field(&from.field(f).name);
    let uniforms = setup.uniforms.iter().filter_map(|&(f, x)| Some((there(f)?, x))).collect();
    let data = setup.data.iter().filter_map(|(f, x)| Some((there(*f)?, x.clone()))).collect();
    let series = setup.series.iter().filter_map(|(f, x)| Some((there(*f)?, x.clone()))).collect();
    let mut moved = Setup { uniforms, data, series, ..setup.clone() };
    turn_edges(from, &mut moved).unwrap();
    moved
}

fn gradient(forward: &Verified, setup: &Setup, budget: u64) -> Gradient {
    let program = forward.program();
    let sampled = sampled(program, setup);
    let wanted =
        Wanted { of: sampled.iter().map(|s| s.field).collect(), wrt: parameters(program), ..Wanted::default() };
    let back = backward(forward, &wanted).unwrap_or_else(|e| panic!("{e}"));
    let run = Backward::new(program, back.program(), &setup.sizes, sampled, wanted.wrt.len(), STEPS, budget);
    let run = run.unwrap_or_else(|e| panic!("{e}"));
    let there = moved(setup, program, back.program());
    let mut engines = [(forward.clone(), setup), (back, &there)]
        .map(|(program, setup)| Interp::new(program, setup).unwrap_or_else(|e| panic!("{e}")));
    let [forward, back] = &mut engines;
    run.run(forward, back, &mut loss).unwrap_or_else(|e| panic!("{e}"))
}

/// The same forward, along each parameter.
fn along(forward: &Verified, setup: &Setup) -> Gradient {
    let program = forward.program();
    let directions: Vec<Vec<FieldId>> = parameters(program).into_iter().map(|field| vec![field]).collect();
    let along = super::forward(forward, &directions).unwrap_or_else(|e| panic!("{e}"));
    let sampled = sampled(program, setup);
    let tangent = |field: FieldId, direction: usize| along.program().bound(Source::Tangent(field.0, direction as u32));
    let of_direction = |direction| sampled.iter().map(|s| tangent(s.field, direction)).collect();
    let tangents: Vec<Vec<Option<FieldId>>> = (0..directions.len()).map(of_direction).collect();
    let mut setup = setup.clone();
    setup.uniforms.extend((0..directions.len()).map(|d| (tangent(directions[d][0], d).expect("it moves"), 1.0)));
    let run = Along::new(along.program(), sampled, &tangents, STEPS);
    let mut engine = Interp::new(along, &setup).unwrap_or_else(|e| panic!("{e}"));
    run.run(&mut engine, &mut loss).unwrap_or_else(|e| panic!("{e}"))
}

/// The derivative in each parameter, by central differences and Richardson's extrapolation.
fn differences(forward: &Verified, setup: &Setup) -> Vec<f64> {
    let program = forward.program();
    let at = |parameter: FieldId, by: f64| {
        let mut setup = setup.clone();
        setup.uniforms.iter_mut().filter(|(f, _)| *f == parameter).for_each(|(_, x)| *x += by);
        let mut engine = Interp::new(forward.clone(), &setup).unwrap_or_else(|e| panic!("{e}"));
        let sampled = sampled(program, &setup);
        engine.init().unwrap_or_else(|e| panic!("{e}"));
        let mut rows = vec![Vec::new(); sampled.len()];
        for step in 0..=STEPS {
            engine.observe(step).unwrap_or_else(|e| panic!("{e}"));
            for (sampled, rows) in sampled.iter().zip(&mut rows) {
                engine.read(sampled.field, sampled.cells.clone(), rows).unwrap_or_else(|e| panic!("{e}"));
            }
            engine.step(step, 1, &mut Vec::new()).unwrap_or_else(|e| panic!("{e}"));
        }
        loss(&rows).value
    };
    let central = |parameter, h: f64| (at(parameter, h) - at(parameter, -h)) / (2.0 * h);
    let derivative = |parameter| (4.0 * central(parameter, 5e-4) - central(parameter, 1e-3)) / 3.0;
    parameters(program).into_iter().map(derivative).collect()
}

/// Compares forward mode with differences, where there is no other.
fn check_forward(text: &str, setup: impl Fn(&Program) -> Setup) {
    let forward = program(text);
    let setup = setup(forward.program());
    let (along, expected) = (along(&forward, &setup), differences(&forward, &setup));
    assert!(expected.iter().any(|x| *x != 0.0), "{text}");
    for (i, expected) in expected.into_iter().enumerate() {
        let found = along.total(i);
        assert!((found - expected).abs() <= 3e-9 * expected.abs().max(1.0), "{found}, not {expected}\n{text}");
    }
}

/// Compares both ways with differences, and a tape that keeps few states with one that keeps all.
fn check(text: &str, setup: impl Fn(&Program) -> Setup) {
    let forward = program(text);
    let setup = setup(forward.program());
    let gradient = self::gradient(&forward, &setup, u64::MAX);
    let along = self::along(&forward, &setup);
    let expected = differences(&forward, &setup);
    let names = parameters(forward.program());
    for (i, expected) in expected.into_iter().enumerate() {
        let (found, name) = (gradient.total(i), &forward.program().field(names[i]).name);
        let within = 3e-9 * expected.abs().max(1.0);
        assert!((found - expected).abs() <= within, "`{name}`: {found}, not {expected}\n{text}");
        let (forward, within) = (along.total(i), 1e-12 * expected.abs().max(1.0));
        assert!((forward - found).abs() <= within, "`{name}`: {forward} forward, {found} back\n{text}");
    }
    let of_states = |f: &crate::step::Field| match (f.kind, f.over) {
        (FieldKind::State, Some(space)) => setup.sizes[space.0 as usize] as u64,
        (FieldKind::State, None) => 1,
        _ => 0,
    };
    let slot: u64 = 8 * forward.program().fields.iter().map(of_states).sum::<u64>();
    for slots in [1, 2, 3] {
        let few = self::gradient(&forward, &setup, slots * slot);
        assert_eq!(few.parts, gradient.parts, "{slots}");
        assert!(few.kept <= slots * slot, "{} bytes in {slots} times {slot}", few.kept);
    }
    assert_eq!(gradient.steps, STEPS);
}

/// A program whose state goes on by half and adds an expression of the state, a parameter and a constant of cells.
fn with(expression: &str) -> String {
    format!(
        "program \"p\"
space @a
uniform @dt = dt
uniform @p
uniform @q
const @a.c over @a
state @a.x over @a
output @a.y over @a
fn init {{
  over @a {{
    %0 = index
    %1 = const 0.1
    %2 = mul %0, %1
    %3 = field @p
    %4 = add %2, %3
    store @a.c, %4
    %5 = field @q
    %6 = mul %4, %5
    store @a.x, %6
  }}
}}
fn step {{
  over @a {{
    %0 = field @a.x
    %1 = field @a.c
    %2 = field @p
    %3 = const 0.3
    %4 = const 0.5
    %5 = mul %0, %3
    %6 = add %5, %1
    %7 = mul %0, %2
    %8 = add %7, %4
    {expression}
    %101 = mul %0, %4
    %103 = const 0.1
    %102 = fma %100, %103, %101
    store @a.x, %102
  }}
}}
fn observe {{
  over @a {{
    %0 = field @a.x
    %1 = field @q
    %2 = mul %0, %1
    %3 = sin %2
    store @a.y, %3
  }}
}}
"
    )
}

fn three(program: &Program) -> Setup {
    setup(program, &[3])
}

#[test]
fn unary_operations() {
    for &(op, name) in UnaryOp::ALL {
        match op {
            UnaryOp::Not | UnaryOp::Narrow | UnaryOp::Widen => continue,
            _ => {}
        }
        check(&with(&format!("%100 = {name} %6")), three);
        // Below 0, where that is possible, and a product of it.
        if !matches!(op, UnaryOp::Sqrt | UnaryOp::Ln | UnaryOp::Log2 | UnaryOp::Log10) {
            check(&with(&format!("%50 = neg %6\n%51 = {name} %50\n%100 = mul %51, %8")), three);
        }
    }
}

#[test]
fn binary_operations() {
    for &(op, name) in BinaryOp::ALL {
        match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Pow => {}
            BinaryOp::Min | BinaryOp::Max => {}
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge | BinaryOp::Eq | BinaryOp::Ne => {
                check(
                    &with(&format!(
                        "%50 = {name} %6, %8\n%51 = bool true\n%52 = and %50, %51\n%100 = select %52, %6, %8"
                    )),
                    three,
                );
                continue;
            }
            BinaryOp::And | BinaryOp::Or | BinaryOp::Poisson => continue,
        }
        check(&with(&format!("%100 = {name} %6, %8")), three);
        check(&with(&format!("%100 = {name} %8, %6")), three);
        check(&with(&format!("%100 = {name} %6, %6")), three);
        check(&with(&format!("%100 = {name} %6, %3")), three);
        check(&with(&format!("%100 = {name} %3, %6")), three);
    }
}

#[test]
fn other_operations() {
    check(&with("%100 = fma %6, %8, %0"), three);
    check(
        &with("%50 = index\n%51 = time\n%52 = step_index\n%53 = mul %50, %51\n%54 = add %53, %52\n%100 = mul %54, %6"),
        three,
    );
    check(&with("%50 = step_index\n%51 = draw normal 3, %50\n%100 = mul %51, %6"), three);
    check(&with("%50 = expm1 %6\n%100 = div %50, %6"), three);
    check(&with("%50 = mul %6, %8\n%51 = expm1 %50\n%100 = div %51, %6"), three);
    check(&with("%50 = mul %6, %2\n%51 = neg %50\n%52 = mul %8, %51\n%53 = expm1 %52\n%100 = div %53, %51"), three);
    for (function, of) in
        [("exp", 6), ("exp2", 8), ("expm1", 6), ("exp2m1", 8), ("exp2rel", 8), ("ln", 6), ("log2", 8), ("log10", 6)]
    {
        check(&with(&format!("%100 = approximate {function} 1e-9, %{of}")), three);
    }
}

#[test]
fn what_a_selection_leaves_out_has_no_derivative() {
    // The root of 0 and the logarithm of what is below have none.
    for op in ["sqrt", "ln"] {
        let text = format!("%50 = sub %6, %6\n%51 = {op} %50\n%52 = lt %50, %3\n%100 = select %52, %8, %51");
        check(&with(&text), three);
    }
    check(&with("%50 = sub %6, %6\n%51 = div %6, %50\n%52 = lt %50, %3\n%100 = select %52, %8, %51"), three);
    check(&with("%50 = sub %6, %6\n%51 = div %6, %50\n%100 = min %8, %51"), three);
}

#[test]
fn linoids_and_quotients_near_their_limits() {
    for size in ["0.0", "1e-9", "1e-3", "0.2", "-0.24", "-0.26", "0.3", "-7.0", "20.0"] {
        // The power of twenty times a state is infinite.
        let names = if size == "20.0" { &["linoid"][..] } else { &["linoid", "exp2rel"] };
        for name in names {
            check(
                &with(&format!(
                    "%50 = sub %6, %6\n%51 = const 0.01\n%52 = mul %6, %51\n%53 = add %50, %52\n%54 = const {size}\n%55 = mul %54, %6\n%56 = {name} %55\n%100 = add %56, %53"
                )),
                three,
            );
        }
    }
}

/// A triangle of junctions.
fn junctions(program: &Program) -> Setup {
    let edges = Edges { offsets: vec![0, 2, 4, 6], sources: vec![1, 2, 0, 2, 0, 1] };
    Setup { edges: vec![(SpaceId(1), Arc::new(edges))], ..setup(program, &[3, 6]) }
}

#[test]
fn what_edges_gather_and_accumulate() {
    check(include_str!("../../tests/ir/junctions.ir"), junctions);
}

#[test]
fn trees_are_solved_backward() {
    let text = include_str!("../interp/cable.ir");
    let setup = |program: &Program| {
        let data = program.fields_where(|f| f.kind == FieldKind::Data).into_iter();
        let size = |f: FieldId| [2, 8, 4][program.field(f).over.map_or(0, |space| space.0 as usize)];
        let data = data.map(|f| (f, (0..size(f)).map(|i| 0.3 + 0.2 * i as f64).collect())).collect();
        let trees = vec![(SpaceId(1), Arc::from([0, 0, 1, 1]))];
        let subsets = vec![(SpaceId(2), Arc::from([1, 3]))];
        Setup { data, trees, subsets, ..self::setup(program, &[2, 8, 4]) }
    };
    check(text, setup);
}

#[test]
fn one_value_for_all() {
    let text = "program \"p\"
space @a
uniform @dt = dt
uniform @p
state @a.x over @a
state @s
temp @sum
fn init {
  every {
    %0 = field @p
    store @s, %0
  }
  over @a {
    %1 = index
    %2 = field @p
    %3 = add %1, %2
    store @a.x, %3
  }
}
fn step {
  over @a {
    %0 = field @a.x
    %1 = sin %0
    accumulate @sum, %1
  }
  every {
    %2 = field @sum
    %3 = sin %2
    store @s, %3
  }
  over @a {
    %4 = field @s
    %5 = field @a.x
    %6 = mul %4, %5
    %7 = sin %6
    store @a.x, %7
  }
}
";
    check(text, |program| setup(program, &[3]));
}

#[test]
fn stages_see_what_earlier_ones_stored() {
    let text = "program \"p\"
space @a
uniform @dt = dt
uniform @p
state @a.x over @a
state @a.y over @a
state @a.z over @a
temp @a.t over @a
fn init {
  over @a {
    %0 = index
    %1 = field @p
    %2 = add %0, %1
    store @a.x, %2
    %3 = sin %2
    store @a.y, %3
    store @a.z, %1
  }
}
fn step {
  once {
    %0 = field @p
    %1 = mul %0, %0
  }
  over @a {
    %2 = field @a.x
    %3 = mul %2, %1
    store @a.t, %3
    %4 = field @a.t
    %5 = cos %4
    store @a.x, %5
  }
  over @a {
    %6 = field @a.x
    %7 = field @a.y
    %8 = mul %6, %7
    store @a.t, %8
    store @a.y, %6
  }
  over @a {
    %9 = field @a.t
    %10 = field @a.x
    %11 = sub %9, %10
    store @a.x, %11
  }
}
";
    check(text, |program| setup(program, &[3]));
}

#[test]
fn spikes_have_surrogates() {
    // One step: x is 0 or 1 by a spike of `p - 0.5`, so that the derivative of `x` in `p` is the surrogate's.
    let text = |surrogate: &str| {
        format!(
            "program \"p\"
space @a
uniform @dt = dt
uniform @p
state @a.x over @a
fn init {{
  over @a {{
    %0 = const 0.0
    store @a.x, %0
  }}
}}
fn step {{
  over @a {{
    %0 = field @p
    %1 = const 0.5
    %2 = sub %0, %1
    %3 = spike {surrogate}%2
    %4 = const 3.0
    %5 = const 1.0
    %6 = select %3, %4, %5
    store @a.x, %6
  }}
}}
"
        )
    };
    // `p` is 0.47, the field with the number 1; the loss is the state after one step.
    let x: f64 = 0.47 - 0.5;
    let e = (-25.0 * x).exp();
    let s = 1.0 / (1.0 + e);
    for (surrogate, slope) in [
        ("fast_sigmoid 25.0, ", (1.0 + 25.0 * x.abs()).powi(-2)),
        ("arctan 25.0, ", 1.0 / (1.0 + (25.0 * x).powi(2))),
        ("sigmoid 25.0, ", 4.0 * s * (1.0 - s)),
        ("triangular 25.0, ", 1.0 - 25.0 * x.abs()),
        ("straight_through, ", 1.0),
        ("", 0.0),
    ] {
        let forward = program(&text(surrogate));
        let setup = setup(forward.program(), &[1]);
        let states = forward.program().fields_where(|f| f.kind == FieldKind::State);
        let wanted = Wanted { of: states.clone(), wrt: parameters(forward.program()), ..Wanted::default() };
        let back = backward(&forward, &wanted).unwrap_or_else(|e| panic!("{e}"));
        let sampled = vec![Sampled { field: states[0], cells: 0..1, steps: vec![1] }];
        let run = Backward::new(forward.program(), back.program(), &[1], sampled, 1, 1, u64::MAX);
        let run = run.unwrap_or_else(|e| panic!("{e}"));
        let there = moved(&setup, forward.program(), back.program());
        let mut forward = Interp::new(forward, &setup).unwrap_or_else(|e| panic!("{e}"));
        let mut back = Interp::new(back, &there).unwrap_or_else(|e| panic!("{e}"));
        let mut loss = |samples: &[Vec<f64>]| Loss { value: samples[0][0], slopes: vec![vec![1.0]] };
        let found = run.run(&mut forward, &mut back, &mut loss).unwrap_or_else(|e| panic!("{e}")).total(0);
        assert!((found - 2.0 * slope).abs() < 1e-12, "{surrogate}: {found}, not {}", 2.0 * slope);
    }
}

#[test]
fn constants_have_gradients_of_their_own() {
    let forward = program(&with("%100 = mul %6, %8"));
    let setup = three(forward.program());
    let c = forward.program().find_field("a.c").unwrap();
    let x = forward.program().find_field("a.x").unwrap();
    let wanted = Wanted { of: vec![x], wrt: vec![c], ..Wanted::default() };
    let back = backward(&forward, &wanted).unwrap_or_else(|e| panic!("{e}"));
    assert!(back.program().bound(Source::Gradient(0, 0)).is_some());
    let sampled = vec![Sampled { field: x, cells: 0..3, steps: vec![1] }];
    let run = Backward::new(forward.program(), back.program(), &[3], sampled, 1, 1, u64::MAX).unwrap();
    let there = moved(&setup, forward.program(), back.program());
    let mut back = Interp::new(back, &there).unwrap_or_else(|e| panic!("{e}"));
    let mut forward = Interp::new(forward, &setup).unwrap_or_else(|e| panic!("{e}"));
    let mut loss =
        |samples: &[Vec<f64>]| Loss { value: samples[0].iter().sum(), slopes: vec![vec![1.0; samples[0].len()]] };
    let found = run.run(&mut forward, &mut back, &mut loss).unwrap_or_else(|e| panic!("{e}"));
    // x1 = 0.1 (0.3 x0 + c) (x0 p + 0.5) + 0.5 x0, where x0 has been made of `c` before.
    let value = |f: &str| there.uniforms.iter().find(|(id, _)| back.program().field(*id).name == f).unwrap().1;
    let (p, q) = (value("p"), value("q"));
    let expected: Vec<f64> = (0..3)
        .map(|i| {
            let c = 0.1 * f64::from(i) + p;
            0.1 * (c * q * p + 0.5)
        })
        .collect();
    assert_eq!(found.parts[0].len(), 1);
    let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-14;
    assert!(found.parts[0][0].1.iter().zip(&expected).all(close), "{found:?} {expected:?}");
}

#[test]
fn what_is_read_of_earlier_steps_has_derivatives_forward() {
    // What a stage goes back to it does not store.
    let earlier = "fn step {
  over @a {
    %200 = const 2.0
    %201 = back @a.x, %200
    store @a.earlier, %201
  }";
    let text = with("%50 = field @a.earlier\n%100 = mul %50, %6")
        .replace("state @a.x over @a", "state @a.x over @a history 3\ntemp @a.earlier over @a")
        .replace("fn step {", earlier);
    check_forward(&text, three);
}

#[test]
fn what_has_no_gradient_is_named() {
    let refused = |text: &str| {
        let forward = program(text);
        let of = forward.program().fields_where(|f| f.kind == FieldKind::State);
        // Forward less is refused: nothing is gone back through.
        if !text.contains("history") {
            let directions: Vec<Vec<FieldId>> = parameters(forward.program()).into_iter().map(|f| vec![f]).collect();
            assert!(super::forward(&forward, &directions).is_err(), "it has a gradient forward\n{text}");
        }
        match backward(&forward, &Wanted { of, wrt: parameters(forward.program()), ..Wanted::default() }) {
            Ok(_) => panic!("it has a gradient\n{text}"),
            Err(why) => why.to_string(),
        }
    };
    let so_far = ", which has no gradient so far";
    assert_eq!(
        refused(&with("%50 = narrow %6\n%100 = widen %50")),
        format!("numbers of single precision are not differentiated{so_far}")
    );
    assert_eq!(
        refused(&with("%100 = poisson %3, %6")),
        format!("how many events there are is drawn, with a mean that depends on what is fitted{so_far}")
    );
    let delays = include_str!("../interp/delays.ir");
    assert!(refused(delays).ends_with(so_far), "{}", refused(delays));
    let lif = include_str!("../../tests/ir/lif.ir");
    assert!(refused(lif).contains("changes by a jump when it spikes"), "{}", refused(lif));
}
