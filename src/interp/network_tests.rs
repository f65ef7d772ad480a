//! Networks with delays, and cables, whose numbers are known in closed form.

use super::*;
use crate::engine::Edges;
use crate::step::{parse, verify};
use std::sync::Arc;

fn interp(text: &str, setup: impl FnOnce(&Program) -> Setup) -> Interp {
    let program = parse(text).unwrap_or_else(|e| panic!("{e}"));
    let setup = setup(&program);
    Interp::new(verify(program).unwrap_or_else(|e| panic!("{e}")), &setup).unwrap_or_else(|e| panic!("{e}"))
}

fn field(program: &Program, name: &str) -> FieldId {
    program.find_field(name).unwrap_or_else(|| panic!("there is no field {name}"))
}

fn space(program: &Program, name: &str) -> SpaceId {
    let at = program.spaces.iter().position(|s| s.name == name).unwrap_or_else(|| panic!("there is no space {name}"));
    SpaceId(at as u32)
}

fn read(interp: &Interp, name: &str, size: usize) -> Vec<f64> {
    let mut out = Vec::new();
    interp.read(field(interp.program(), name), 0..size, &mut out).unwrap_or_else(|e| panic!("{e}"));
    out
}

/// Compartments of each cell.
const LENGTH: usize = 1000;

/// A sealed cable of equal compartments, whose current enters at one end, comes to rest at v - rest = I r cosh((N - i - 1/2) x) / ..., the
/// solution of the difference equation (2 g cosh x = leak + 2 g) with no flow through either end.
#[test]
fn a_thousand_compartments_come_to_the_rest_of_a_cable() -> Result<(), EngineError> {
    let (axial, current, rest, leaks) = (3.0, 0.5, -65.0, [0.02, 0.05]);
    let mut interp = interp(include_str!("cable.ir"), |p| Setup {
        sizes: vec![2, 2 * LENGTH, 2],
        uniforms: vec![
            (field(p, "dt"), 1e6),
            (field(p, "axial"), axial),
            (field(p, "capacitance"), 1.0),
            (field(p, "current"), current),
            (field(p, "rest"), rest),
        ],
        data: vec![(field(p, "cell.leak.given"), leaks.to_vec())],
        trees: vec![(space(p, "comp"), (0..LENGTH as u32).map(|i| i.saturating_sub(1)).collect())],
        subsets: vec![(space(p, "electrode"), Arc::new([0]))],
        ..Setup::default()
    });
    interp.init()?;
    // Steps of 1000 s: at rest after a few of them.
    interp.step(0, 5, &mut Vec::new())?;
    let v = read(&interp, "comp.v", 2 * LENGTH);
    for (cell, leak) in leaks.into_iter().enumerate() {
        let x = (1.0_f64 + leak / (2.0 * axial)).acosh();
        // cosh(a) / sinh(b) with large a and b, as exponentials.
        let shape = |a: f64, b: f64| (a - b).exp() * (1.0 + (-2.0 * a).exp()) / (1.0 - (-2.0 * b).exp());
        let length = LENGTH as f64;
        for i in 0..LENGTH {
            let scale = current / (2.0 * axial * (x / 2.0).sinh());
            let expected = rest + scale * shape((length - i as f64 - 0.5) * x, length * x);
            let found = v[cell * LENGTH + i];
            assert!((found - expected).abs() < 1e-9, "cell {cell}, compartment {i}: {found}, not {expected}");
        }
    }
    Ok(())
}

/// From rest on, the charge of all compartments is that of one with the sum of the conductances: currents along the cable cancel.
#[test]
fn the_charge_of_a_cable_does_not_depend_on_its_axial_conductance() -> Result<(), EngineError> {
    let (dt, leak, current, steps) = (0.025, 0.1, 0.5, 200);
    let charge = |axial: f64| -> Result<Vec<f64>, EngineError> {
        let mut interp = interp(include_str!("cable.ir"), |p| Setup {
            sizes: vec![1, 7, 2],
            uniforms: vec![
                (field(p, "dt"), dt),
                (field(p, "axial"), axial),
                (field(p, "capacitance"), 1.0),
                (field(p, "current"), current),
                (field(p, "rest"), -65.0),
            ],
            data: vec![(field(p, "cell.leak.given"), vec![leak])],
            // Two branches from the root, one of them branched again.
            trees: vec![(space(p, "comp"), Arc::new([0, 0, 1, 1, 0, 4, 5]))],
            subsets: vec![(space(p, "electrode"), Arc::new([3, 6]))],
            ..Setup::default()
        });
        interp.init()?;
        interp.step(0, steps, &mut Vec::new())?;
        interp.observe(u64::from(steps))?;
        let (each, all) = (read(&interp, "cell.charge", 1), read(&interp, "all", 1));
        assert!((each[0] - all[0]).abs() < 1e-12);
        Ok(all)
    };
    // q' = 2 I - leak q, by backward Euler.
    let expected = 2.0 * current / leak * (1.0 - (1.0 + leak * dt).powi(-(steps as i32)));
    for axial in [0.0, 0.3, 40.0] {
        let found = charge(axial)?[0];
        assert!((found - expected).abs() < 1e-9, "{axial}: {found}, not {expected}");
    }
    Ok(())
}

/// A network whose arrivals can be counted: edges (target, source, weight, delay in steps).
const EDGES: &[(usize, usize, f64, usize)] =
    &[(0, 0, 1.0, 1), (0, 2, 0.5, 15), (0, 2, 0.25, 15), (1, 1, 2.0, 3), (2, 0, 4.0, 2), (2, 2, 8.0, 1)];

fn delays(lag: f64, delay: impl Fn(usize) -> f64) -> Interp {
    let (e, i) = (3, 4);
    let by_target = |edges: &[(usize, usize)], targets: usize| {
        let offsets = (0..=targets).map(|t| edges.iter().filter(|edge| edge.0 < t).count() as u32).collect();
        Arc::new(Edges { offsets, sources: edges.iter().map(|edge| edge.1 as u32).collect() })
    };
    let forth = by_target(&EDGES.iter().map(|&(t, s, ..)| (t, s)).collect::<Vec<_>>(), i);
    // Cell 3 of `@i` kicks cell 0 of `@e` twice.
    let back = by_target(&[(0, 3), (0, 3), (2, 1)], e);
    interp(include_str!("delays.ir"), |p| Setup {
        sizes: vec![e, i, EDGES.len(), 3],
        uniforms: vec![(field(p, "dt"), 0.1), (field(p, "lag"), lag)],
        data: vec![
            (field(p, "ei.weight.given"), EDGES.iter().map(|edge| edge.2).collect()),
            (field(p, "ei.delay.given"), EDGES.iter().map(|edge| delay(edge.3)).collect()),
        ],
        edges: vec![(space(p, "ei"), forth), (space(p, "ie"), back)],
        ..Setup::default()
    })
}

/// Cell `n` of `@e` fires in steps 0, n + 2, 2 (n + 2), ...
fn fires(n: usize, step: i64) -> bool {
    step >= 0 && step % (n as i64 + 2) == 0
}

#[test]
fn events_arrive_after_the_delay_of_their_edge() -> Result<(), EngineError> {
    let mut network = delays(2.0, |d| d as f64);
    network.init()?;
    let (mut sum, mut arrived, mut sums) = ([0.0; 4], [0.0; 6], vec![[0.0; 4]]);
    let mut kicks = [0.0; 3];
    let mut count = 0.0;
    for step in 0..60i64 {
        network.step(step as u64, 1, &mut Vec::new())?;
        for (edge, &(target, source, weight, delay)) in EDGES.iter().enumerate() {
            if fires(source, step - delay as i64) {
                sum[target] += weight;
                arrived[edge] += 1.0;
            }
        }
        if step % 3 == 0 {
            kicks[0] += 2.0;
            kicks[2] += 1.0;
        }
        count += (0..3).filter(|&n| fires(n, step)).count() as f64;
        assert_eq!(read(&network, "i.sum", 4), sum, "after step {step}");
        assert_eq!(read(&network, "ei.arrived", 6), arrived, "after step {step}");
        assert_eq!(read(&network, "e.kicks", 3), kicks, "after step {step}");
        assert_eq!(read(&network, "fired", 1), [count], "after step {step}");
        // What the sums were at the start of the step two steps ago; at first, what they began with.
        assert_eq!(read(&network, "i.before", 4), sums[(step as usize).saturating_sub(2)], "after step {step}");
        sums.push(sum);
        // A ramp is index * 10 + step; three steps ago, but never before the run.
        let past = |source: usize| source as f64 * 10.0 + (step - 3).max(0) as f64;
        let seen = |target: usize| EDGES.iter().filter(|edge| edge.0 == target).map(|edge| past(edge.1)).sum::<f64>();
        assert_eq!(read(&network, "i.past", 4), [0, 1, 2, 3].map(seen), "after step {step}");
    }
    network.observe(60)?;
    assert_eq!(read(&network, "weight", 1), [15.75]);
    assert_eq!(read(&network, "e.kicked", 3), kicks);
    Ok(())
}

#[test]
fn how_steps_are_grouped_and_what_was_before_change_nothing() -> Result<(), EngineError> {
    let [mut one, mut other] = [delays(5.0, |d| d as f64), delays(5.0, |d| d as f64)];
    let [mut spikes_one, mut spikes_other] = [vec![], vec![]];
    one.init()?;
    one.step(0, 50, &mut spikes_one)?;
    other.init()?;
    other.step(0, 20, &mut spikes_other)?;
    for step in 20..50 {
        other.step(step, 1, &mut spikes_other)?;
    }
    assert_eq!(spikes_one, spikes_other);
    for (name, size) in [("i.sum", 4), ("ei.arrived", 6), ("i.before", 4), ("i.past", 4), ("fired", 1)] {
        assert_eq!(read(&one, name, size), read(&other, name, size), "{name}");
    }
    // A second run begins without what the first remembers.
    other.init()?;
    let mut again = vec![];
    other.step(0, 50, &mut again)?;
    assert_eq!(spikes_one, again);
    assert_eq!(read(&one, "i.sum", 4), read(&other, "i.sum", 4));
    Ok(())
}

#[test]
fn delays_that_nothing_remembers_are_refused() {
    let after = |lag: f64, delay: f64| {
        let mut network = delays(lag, |d| if d == 15 { delay } else { d as f64 });
        network.init().and_then(|()| network.step(0, 20, &mut Vec::new())).map_err(|e| e.0)
    };
    assert_eq!(after(2.0, 15.0), Ok(()));
    // Events are remembered as long as the longest delay asks.
    assert_eq!(after(2.0, 16.0), Ok(()));
    let broken = "`ei.delay` of element 1 is 0.5, not a number of steps";
    assert_eq!(after(2.0, 0.5), Err(broken.into()));
    let none = "element 1 of `ei` waits 0 steps, but a later stage emits `e.spikes`";
    assert_eq!(after(2.0, 0.0), Err(none.into()));
    assert_eq!(after(6.0, 15.0), Err("`i.sum` is read 6 steps back, but remembered for 5".into()));
}

#[test]
fn elements_that_do_not_fit_are_refused() {
    let program = || verify(parse(include_str!("cable.ir")).unwrap_or_else(|e| panic!("{e}")));
    let p = parse(include_str!("cable.ir")).unwrap_or_else(|e| panic!("{e}"));
    let with = |sizes: [usize; 3], tree: &[u32], subset: &[u32]| {
        let names = ["dt", "axial", "capacitance", "current", "rest"];
        let setup = Setup {
            sizes: sizes.to_vec(),
            uniforms: names.iter().map(|name| (field(&p, name), 1.0)).collect(),
            data: vec![(field(&p, "cell.leak.given"), vec![1.0; sizes[0]])],
            trees: vec![(space(&p, "comp"), Arc::from(tree))],
            subsets: vec![(space(&p, "electrode"), Arc::from(subset))],
            ..Setup::default()
        };
        Interp::new(program().unwrap_or_else(|e| panic!("{e}")), &setup).map(|_| ()).map_err(|e| e.0)
    };
    assert_eq!(with([2, 6, 2], &[0, 0, 1], &[2]), Ok(()));
    assert_eq!(
        with([2, 7, 2], &[0, 0, 1], &[2]),
        Err("the space `comp`: 7 elements are not so many for each of 2".into())
    );
    let no_tree = "the space `comp`: its tree is not one of 3 elements, each behind its parent";
    assert_eq!(with([2, 6, 2], &[0, 2, 1], &[2]), Err(no_tree.into()));
    assert_eq!(with([2, 6, 2], &[0, 0], &[2]), Err(no_tree.into()));
    let no_list = "the space `electrode`: its list is not one of 2 elements of 6";
    assert_eq!(with([2, 6, 2], &[0, 0, 1], &[3]), Err(no_list.into()));
}

/// One cell that fires in step 0, two relations from it to one sum: `@r` carries 1 for a step, `@q` a large number for three steps and, over another
/// edge, minus that for two. What it emits later is 0.
fn older_first(between: &str) -> String {
    format!(
        "program \"p\"
space @a
space @x
space @r from @a to @x
space @q from @a to @x
const @r.delay over @r
const @q.delay over @q
const @q.weight over @q
state @a.fired over @a
state @x.v over @x
temp @x.in over @x
temp @x.other over @x
event @a.spikes over @a
fn init {{
  over @a {{
    %0 = const 0.0
    store @a.fired, %0
  }}
  over @x {{
    %1 = const 0.0
    store @x.v, %1
  }}
  over @r {{
    %2 = const 3.0
    store @r.delay, %2
  }}
  over @q {{
    %3 = index
    %4 = const 2.0
    %5 = const 1e17
    %6 = mul %3, %4
    %7 = const 1.0
    %8 = sub %7, %6
    %9 = mul %8, %5
    store @q.weight, %9
    %10 = add %3, %7
    store @q.delay, %10
  }}
}}
fn step {{
  over @r when @a.spikes along source delay @r.delay {{
    %0 = const 1.0
    accumulate @x.in along target, %0
  }}
  {between}
  over @q when @a.spikes along source delay @q.delay {{
    %1 = field @q.weight
    accumulate @x.in along target, %1
  }}
  over @a {{
    %2 = field @a.fired
    %3 = const 3.0
    %4 = lt %2, %3
    emit @a.spikes, %4
    %5 = const 1.0
    %6 = add %2, %5
    store @a.fired, %6
  }}
  over @x {{
    %7 = field @x.in
    store @x.v, %7
  }}
}}
"
    )
}

/// The cell fires in steps 0, 1 and 2, so that in step 3 the event of step 0 brings 1 along `@r`, that of step 1 -1e17 and that of step 2 1e17 along `@q`.
#[test]
fn arrivals_one_after_the_other_are_taken_together() -> Result<(), EngineError> {
    let one = || Arc::new(Edges { offsets: vec![0, 1], sources: vec![0] });
    let two = || Arc::new(Edges { offsets: vec![0, 2], sources: vec![0, 0] });
    let arrived = |text: &str| -> Result<f64, EngineError> {
        let mut network = interp(text, |p| Setup {
            sizes: vec![1, 1, 1, 2],
            edges: vec![(space(p, "r"), one()), (space(p, "q"), two())],
            ..Setup::default()
        });
        network.init()?;
        network.step(0, 4, &mut Vec::new())?;
        Ok(read(&network, "x.v", 1)[0])
    };
    // What is older first: 1 - 1e17 + 1e17.
    assert_eq!(arrived(&older_first(""))?, 0.0);
    // The youngest along `@r`, which stands first: -1e17 + 1e17 + 1.
    let turned = older_first("").replace("const 3.0\n    store @r.delay", "const 1.0\n    store @r.delay");
    let youngest = turned.replace("%10 = add %3, %7", "%10 = add %3, %4");
    assert_eq!(arrived(&youngest)?, 1.0);
    // Where another stage stands between them, one after the other: 1 - 1e17 + 1e17.
    let between = "over @x {\n    %20 = const 0.0\n    store @x.other, %20\n  }";
    assert_eq!(arrived(&youngest.replace("  \n  over @q when", &format!("  {between}\n  over @q when")))?, 0.0);
    Ok(())
}

/// What `init` emits was emitted in the step before the first: with a delay of one step it arrives in the first one, in every run.
#[test]
fn what_init_emits_arrives_from_the_first_step_on() -> Result<(), EngineError> {
    let text = "program \"before\"\nspace @a\nspace @aa from @a to @a\nevent @a.e over @a\nconst @aa.delay over @aa\nstate @a.n over @a\n\
        temp @a.sum over @a\nfn init {\n over @a {\n  %0 = const 0.0\n  store @a.n, %0\n  %1 = index\n  %2 = eq %1, %0\n  emit @a.e, %2\n }\n\
        over @aa {\n  %3 = index\n  %4 = const 1.0\n  %5 = add %3, %4\n  store @aa.delay, %5\n }\n}\n\
        fn step {\n over @aa when @a.e along source delay @aa.delay {\n  %6 = const 1.0\n  accumulate @a.sum along target, %6\n }\n\
        over @a {\n  %7 = field @a.n\n  %8 = field @a.sum\n  %9 = add %7, %8\n  store @a.n, %9\n }\n}\n";
    // Cell 0 sends to both, with delays of 1 and 2 steps.
    let edges = Arc::new(Edges { offsets: vec![0, 1, 2], sources: vec![0, 0] });
    let mut network =
        interp(text, |p| Setup { sizes: vec![2, 2], edges: vec![(space(p, "aa"), edges)], ..Setup::default() });
    for _ in 0..2 {
        network.init()?;
        let mut spikes = Vec::new();
        let mut seen = Vec::new();
        for step in 0..4 {
            network.step(step, 1, &mut spikes)?;
            seen.push(read(&network, "a.n", 2));
        }
        assert_eq!(seen, [[1.0, 0.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]);
        assert!(spikes.is_empty(), "no step has emitted anything");
    }
    Ok(())
}
