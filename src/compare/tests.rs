//! Judgements on made-up runs whose faults are known.

use super::judge::{Convergence, Engine, Judgement, Meeting, Runs, engine, judge};
use super::{Shift, differences};
use crate::engine::moved::MOVED;
use crate::results::{RunResult, Samples, Series, SpikeTrain};
use ndarray::Array2;
use std::f64::consts::PI;
use std::sync::Arc;

const DT: f64 = 0.1;
const DURATION: f64 = 100.0;

/// A run whose cells have the values `f(t, cell)` every half millisecond.
fn traces(cells: usize, f: impl Fn(f64, usize) -> f64) -> RunResult {
    let t: Vec<f64> = (0..=200).map(|i| f64::from(i) / 2.0).collect();
    let values = Samples::F64(Array2::from_shape_fn((t.len(), cells), |(row, cell)| f(t[row], cell)));
    let series = Series::of_cells("x", "mV", (0..cells as u64).collect(), Arc::new(t), values);
    let series = Series { population: "p".into(), ..series };
    RunResult { series: vec![series], ..RunResult::default() }
}

fn trace(f: impl Fn(f64) -> f64) -> RunResult {
    traces(1, |t, _| f(t))
}

/// A run with these spikes of cell 0.
fn train(t: Vec<f64>) -> RunResult {
    let i = vec![0; t.len()];
    RunResult { spikes: vec![SpikeTrain { population: "p".into(), cells: 1, t, i }], ..RunResult::default() }
}

/// What `own` is with a step, what another method is, and what becomes of moved states.
struct Case<'f> {
    own: &'f dyn Fn(f64) -> RunResult,
    other: &'f dyn Fn(f64) -> RunResult,
    moved: &'f dyn Fn() -> RunResult,
}

impl Case<'_> {
    fn judge(&self) -> Judgement {
        let [base, half, quarter, finest] = [1.0, 2.0, 4.0, 16.0].map(|parts| (self.own)(DT / parts));
        let [other_half, other_quarter, finest_other] = [2.0, 4.0, 16.0].map(|parts| (self.other)(DT / parts));
        let moved = (self.moved)();
        let runs = Runs {
            dt: DT,
            duration: DURATION,
            base: &base,
            halved: Some([&half, &quarter]),
            other: Some([&other_half, &other_quarter]),
            finest: Some(&finest),
            finest_other: Some(&finest_other),
            moved: Some(&moved),
        };
        let first = judge(&Runs { finest: None, finest_other: None, ..runs }).remove(0);
        if super::judge::doubtful(std::slice::from_ref(&first)) { judge(&runs).remove(0) } else { first }
    }
}

/// Judges a trace: `own(t, dt)`, `other(t, dt)`; moved states stay moved.
fn judged(own: impl Fn(f64, f64) -> f64, other: impl Fn(f64, f64) -> f64) -> Judgement {
    let run = |dt: f64| trace(|t| own(t, dt));
    let moved = || trace(|t| own(t, DT) * (1.0 + MOVED));
    Case { own: &run, other: &|dt| trace(|t| other(t, dt)), moved: &moved }.judge()
}

fn solution(t: f64) -> f64 {
    -65.0 + 20.0 * (t / 5.0).sin()
}

/// Another method that is as good as exact.
fn exact(t: f64, dt: f64) -> f64 {
    solution(t) + 10.0 * dt.powi(4) * (t / 7.0).cos()
}

fn order(judgement: &Judgement) -> f64 {
    match judgement.step.unwrap().convergence {
        Convergence::Order(order) => order,
        other => panic!("{other:?}"),
    }
}

fn same(judgement: &Judgement) -> bool {
    matches!(judgement.method, Some(Meeting::Same(_)))
}

fn apart(judgement: &Judgement) -> bool {
    matches!(judgement.method, Some(Meeting::Apart { confirmed: Some(_), .. }))
}

#[test]
fn orders_are_seen() {
    for (p, full) in [(1, 1.0), (2, 2.0), (4, 4.0)] {
        let j = judged(|t, dt| solution(t) + 3.0 * dt.powi(p) * (t / 4.0).cos(), exact);
        assert!((order(&j) - full).abs() < 0.05, "{j:?}");
        assert!(same(&j), "{j:?}");
        // The mean of |cos| is 2 / pi.
        let step = j.step.unwrap();
        assert!((step.error / (3.0 * DT.powi(p) * 2.0 / PI) - 1.0).abs() < 0.1, "{j:?}");
        assert_eq!(step.until, None);
        assert!(!j.sensitivity.unwrap().sensitive, "{j:?}");
    }
}

#[test]
fn what_needs_no_smaller_step_says_so() {
    let j = judged(|t, _| solution(t), |t, _| solution(t));
    assert_eq!(j.step.unwrap().convergence, Convergence::Rounding);
    assert_eq!(j.method, Some(Meeting::Same(0.0)));
    let still = judged(|_, _| -65.0, |_, _| -65.0);
    assert!(same(&still), "{still:?}");
    let nothing = judged(|_, _| 0.0, |_, _| 0.0);
    assert!(same(&nothing), "{nothing:?}");
    assert_eq!(nothing.sensitivity.unwrap().growth, Some(0.0));
}

#[test]
fn a_limit_that_is_not_the_solution_is_a_fault() {
    // It converges, with order 1, and freezes at -60.
    let frozen = judged(|t, dt| solution(t).min(-60.0) + 0.1 * dt, exact);
    assert!((order(&frozen) - 1.0).abs() < 0.05, "{frozen:?}");
    let Some(Meeting::Apart { since, distances, confirmed: Some(confirmed) }) = frozen.method else {
        panic!("{frozen:?}");
    };
    assert!(since < 10.0, "{frozen:?}");
    assert!(distances.iter().all(|d| (d / confirmed - 1.0).abs() < 0.01), "{frozen:?}");
    // A formula that is wrong by a hundredth.
    let wrong = judged(|t, dt| 1.01 * solution(t) + 0.1 * dt * t.cos(), exact);
    assert!(apart(&wrong), "{wrong:?}");
    // One that gives something else at every step.
    let erratic = judged(|t, dt| solution(t) + 0.5 * (1.0 + (t / 9.0 + 100.0 * dt).cos()), exact);
    assert!(apart(&erratic), "{erratic:?}");
    assert!(matches!(erratic.step.unwrap().convergence, Convergence::Unsettled(_)), "{erratic:?}");
}

#[test]
fn another_method_that_has_not_settled_accuses_nobody() {
    let j = judged(|t, dt| solution(t) + dt.powi(4), |t, dt| solution(t) + 100.0 * dt * (t / 3.0).cos());
    assert!(matches!(j.method, Some(Meeting::Open { .. })), "{j:?}");
    let j = judged(|t, dt| solution(t) + dt.powi(4), |t, dt| solution(t) + dt.powi(2) * (t / 3.0).cos());
    assert!(same(&j), "{j:?}");
}

/// An action potential of a millisecond every ten milliseconds.
fn firing(t: f64) -> f64 {
    if t.rem_euclid(10.0) < 1.0 { 30.0 } else { -65.0 + t.rem_euclid(10.0) }
}

#[test]
fn phases_that_drift_are_no_fault() {
    for drift in [0.01, 0.1, 1.0] {
        let j = judged(|t, dt| firing(t * (1.0 + drift * dt)), |t, dt| firing(t * (1.0 + dt.powi(4))));
        assert!(!apart(&j), "{drift}: {j:?}");
        let step = j.step.unwrap();
        assert!(!matches!(step.convergence, Convergence::Unsettled(_)), "{drift}: {j:?}");
        assert_eq!(step.until.is_some(), drift > 0.05, "{drift}: {j:?}");
    }
    // The same, of many cells.
    let many = |drift: f64| traces(40, |t, cell| firing(t * (1.0 + drift) + 0.37 * cell as f64));
    let case = Case { own: &|dt| many(0.02 * dt), other: &|dt| many(dt.powi(4)), moved: &|| many(0.02 * DT + MOVED) };
    let j = case.judge();
    assert!((order(&j) - 1.0).abs() < 0.3, "{j:?}");
    assert!(same(&j), "{j:?}");
}

#[test]
fn a_reset_that_is_seen_a_step_later_is_no_fault() {
    // At a sample, one method has just been reset, the other has not, whatever the step.
    let reset = |t: f64, at: f64| if t < at { t } else { t - at };
    let j = judged(|t, _| reset(t, 50.0), |t, dt| reset(t, 50.0 + dt));
    assert!(same(&j), "{j:?}");
    // Steps round the time of a reset up.
    let up = |at: f64, dt: f64| (at / dt).ceil() * dt;
    let sawtooth = |t: f64, period: f64| t.rem_euclid(period);
    let j = judged(|t, dt| sawtooth(t, up(3.33, dt)), |t, dt| sawtooth(t, up(3.33, dt) + dt.powi(4)));
    assert!(!apart(&j), "{j:?}");
    // A wrong reset shows.
    let j = judged(|t, _| sawtooth(t, 10.0), |t, _| sawtooth(t, 10.0) + if t < 10.0 { 0.0 } else { 2.0 });
    assert!(apart(&j), "{j:?}");
}

/// A difference that grows by e every two milliseconds until it is as large as it can be.
fn chaos(start: f64, t: f64) -> f64 {
    20.0 * (start / 20.0 * (t / 2.0).exp()).sin()
}

#[test]
fn chaos_is_no_fault() {
    let own = |dt: f64| trace(|t| solution(t) + chaos(dt * 1e-3, t));
    let other = |dt: f64| trace(|t| solution(t) - chaos(dt.powi(4), t));
    let moved = || trace(|t| solution(t) + chaos(DT * 1e-3 + 65.0 * MOVED, t));
    let j = Case { own: &own, other: &other, moved: &moved }.judge();
    assert!(!apart(&j), "{j:?}");
    assert!(matches!(j.method, Some(Meeting::Open { .. })), "{j:?}");
    assert!(j.step.unwrap().until.is_some(), "{j:?}");
    let moved = || trace(|t| solution(t) + chaos(65.0 * MOVED, t));
    let j = Case { own: &|_| trace(solution), other: &|_| trace(solution), moved: &moved }.judge();
    let sensitivity = j.sensitivity.unwrap();
    assert!(sensitivity.sensitive && sensitivity.growth.unwrap() > 1e8, "{j:?}");
}

#[test]
fn a_value_that_is_not_a_number_is_a_difference() {
    let j = judged(|t, dt| if t > 50.0 && dt < DT { f64::NAN } else { solution(t) }, exact);
    assert!(matches!(j.step.unwrap().convergence, Convergence::Leaps | Convergence::Unsettled(_)), "{j:?}");
    assert!(differences(&trace(solution), &trace(|_| f64::NAN)).variables[0].part.is_nan());
}

#[test]
fn spikes_are_judged_by_their_times() {
    let up = |at: f64, dt: f64| (at / dt).ceil() * dt;
    let every = |period: f64, dt: f64| -> Vec<f64> {
        (1..).map(|i| up(f64::from(i) * period, dt)).take_while(|&t| t <= DURATION).collect()
    };
    let drifting = |dt: f64| train(every(7.3 * (1.0 + 0.5 * dt), dt));
    let good = |dt: f64| train(every(7.3 * (1.0 + dt.powi(4)), dt));
    let j = Case { own: &drifting, other: &good, moved: &|| drifting(DT) }.judge();
    assert!((order(&j) - 1.0).abs() < 0.5, "{j:?}");
    assert!(same(&j), "{j:?}");
    assert!(!j.sensitivity.unwrap().sensitive, "{j:?}");
    // A spike at the end, or one that is nearly missed, is there at some steps and not at others.
    let last = |dt: f64| train(if dt < DT { every(7.3, dt) } else { every(7.3, dt)[1..].to_vec() });
    let j = Case { own: &last, other: &good, moved: &|| last(DT) }.judge();
    assert!(!apart(&j), "{j:?}");
    // Another rate is a fault; so is silence.
    let fast = |dt: f64| train(every(6.3, dt));
    let j = Case { own: &fast, other: &good, moved: &|| fast(DT) }.judge();
    assert!(apart(&j), "{j:?}");
    let silent = |_: f64| train(Vec::new());
    let j = Case { own: &silent, other: &good, moved: &|| silent(DT) }.judge();
    assert!(apart(&j), "{j:?}");
    let j = Case { own: &silent, other: &silent, moved: &|| silent(DT) }.judge();
    assert!(same(&j), "{j:?}");
    let j = Case { own: &good, other: &good, moved: &|| train(every(7.5, DT)) }.judge();
    assert!(j.sensitivity.unwrap().sensitive, "{j:?}");
}

/// One spike is so little that no distance between two runs tells of it.
#[test]
fn a_spike_that_one_method_lacks_is_told() {
    let verdict = |own: &dyn Fn(f64) -> Vec<f64>, other: &dyn Fn(f64) -> Vec<f64>, moved: Vec<f64>| {
        let moved = || train(moved.clone());
        Case { own: &|dt| train(own(dt)), other: &|dt| train(other(dt)), moved: &moved }.judge().method.unwrap()
    };
    let (none, one) = (|_: f64| Vec::new(), |dt: f64| vec![40.0 + dt]);
    let two = |dt: f64| vec![40.0 + dt, 42.0 + dt];
    let missing = |since: f64, spikes: [usize; 2]| Meeting::Missing { since, spikes, confirmed: true };
    let first = 40.0 + DT / 16.0;
    assert_eq!(verdict(&one, &none, one(DT)), missing(first, [1, 0]));
    assert_eq!(verdict(&none, &one, Vec::new()), missing(first, [0, 1]));
    assert_eq!(verdict(&one, &two, one(DT)), missing(first + 2.0, [1, 2]));
    assert!(matches!(verdict(&one, &one, one(DT)), Meeting::Same(_)));
    // Much smaller steps find it: then the step loses it.
    let found = |dt: f64| if dt < DT / 10.0 { vec![40.0] } else { Vec::new() };
    let by_the_step = Meeting::Missing { since: 40.0 + DT / 4.0, spikes: [0, 1], confirmed: false };
    assert_eq!(verdict(&found, &one, Vec::new()), by_the_step);
    assert!(matches!(verdict(&one, &found, one(DT)), Meeting::Open { .. }));
    // Moved states lose it, too; or the last halving finds it; or it may come after the end.
    assert!(matches!(verdict(&one, &none, Vec::new()), Meeting::Open { .. }));
    let late = |dt: f64| if dt < DT / 3.0 { vec![40.0] } else { Vec::new() };
    assert!(matches!(verdict(&late, &none, Vec::new()), Meeting::Open { .. }));
    assert!(matches!(verdict(&|_| vec![99.9], &none, vec![99.9]), Meeting::Same(_)));
}

#[test]
fn engines_differ_by_rounding_or_by_more() {
    let base = trace(|t| solution(t) + chaos(1e-3, t));
    let moved = trace(|t| solution(t) + chaos(1e-3 + 65.0 * MOVED, t));
    let half = trace(|t| solution(t) + chaos(0.5e-3, t));
    let runs = Runs {
        dt: DT,
        duration: DURATION,
        base: &base,
        halved: Some([&half, &half]),
        other: None,
        finest: None,
        finest_other: None,
        moved: Some(&moved),
    };
    let verdict = |rounding: f64, f: &dyn Fn(f64) -> f64| engine(&base, &trace(f), rounding, &runs);
    let double = |f: &dyn Fn(f64) -> f64| verdict(1e-12, f);
    assert_eq!(double(&|t| solution(t) + chaos(1e-3, t)), Engine::Rounding);
    assert_eq!(double(&|t| (solution(t) + chaos(1e-3, t)) * (1.0 + 1e-14)), Engine::Rounding);
    assert_eq!(double(&|t| solution(t) + chaos(1e-3 + 65e-14, t)), Engine::Sensitive);
    // More than rounding at once, long before chaos could have made it.
    let fault = |t: f64| solution(t) + chaos(1e-3, t) + if t < 2.0 { 0.0 } else { 1e-4 };
    let Engine::Differs { name, since } = double(&fault) else { panic!("{:?}", double(&fault)) };
    assert_eq!(name, "x");
    assert!((2.0..3.0).contains(&since), "{since}");
    assert_eq!(verdict(1e-6, &fault), Engine::Rounding);
    assert!(matches!(double(&|_| f64::NAN), Engine::Differs { .. }));
    assert!(matches!(verdict(1e-6, &|t| solution(t) + 10.0), Engine::Differs { .. }));
}

#[test]
fn the_table_tells_the_largest_difference() {
    let found = differences(&trace(|_| -50.0), &trace(|t| if t == 10.0 { -49.0 } else { -50.5 }));
    assert_eq!((found.variables[0].apart, found.variables[0].part), (1.0, 0.02));
    let spikes = |a: &[f64], b: &[f64]| differences(&train(a.to_vec()), &train(b.to_vec())).spikes[0];
    assert_eq!(spikes(&[1.0, 2.0], &[1.0, 2.5]), Shift::By(0.5));
    assert_eq!(spikes(&[1.0, 2.0], &[1.0]), Shift::Count(1));
    assert_eq!(spikes(&[], &[]), Shift::By(0.0));
}
