//! What the differences between runs mean.
//!
//! In come results of one model at several steps, of another method, and with moved states; out goes a judgement for each recorded
//! quantity, and one for each engine.
//! Never true here: a difference that a smaller step or moved states explain is called a fault.
//!
//! All distances are means over cells and, where they are shown, over time.

use super::quantity::{Distance, Kind, Missing, Quantity, quantities};
use crate::engine::moved::MOVED;
use crate::results::RunResult;

/// A difference below this part of a variable's largest value is rounding.
const ROUNDING: f64 = 1e-9;
/// Differences are in the linear regime up to this part of what the quantity does by itself.
const LINEAR: f64 = 0.1;
/// By how much a difference must exceed rounding before an order is read from it.
const MEASURABLE: f64 = 4.0;
/// Halving the step of a method of order p makes its error smaller by 2^p; below this order nothing is seen to converge.
const LEAST_ORDER: f64 = 0.5;
/// No method has an order like this.
const MOST_ORDER: f64 = 8.0;
/// What is left of the error of a method of order 1 is as large as what the last halving of its step changed. So many times that are
/// allowed, since the order may be less where something jumps.
const LEFT: f64 = 4.0;
/// So many leaps (see [`Quantity::leap`]) may be seen or missed by chance.
const LEAPS: f64 = 2.0;
/// Two methods may miss this part of each other's spikes by chance.
const MISSED: f64 = 0.05;
/// What is in the last part of a run of this length may come after it with another method.
const AT_THE_END: f64 = 0.01;
/// A distance that falls to less than this while the step is quartered falls.
const FALLS: f64 = 0.75;
/// So many times what becomes of moved states is sensitivity.
const SENSITIVITY: f64 = 10.0;
/// A model is called sensitive if what states are moved by grows by this: of the seven digits of single precision three are left.
const SENSITIVE: f64 = 1e4;
/// So many roundings of an engine, each grown as what states are moved by grows, are no fault.
const ROUNDINGS: f64 = 1e3;

/// Runs of one model that recorded the same. What is absent did not run, or has no meaning.
#[derive(Debug, Clone, Copy)]
pub struct Runs<'r> {
    /// The time step, in ms.
    pub dt: f64,
    /// In ms.
    pub duration: f64,
    /// The model as it is.
    pub base: &'r RunResult,
    /// At a half and at a quarter of the step.
    pub halved: Option<[&'r RunResult; 2]>,
    /// With another method, at a half and at a quarter of the step.
    pub other: Option<[&'r RunResult; 2]>,
    /// At a sixteenth of the step, where [`doubtful`] asks for it.
    pub finest: Option<&'r RunResult>,
    /// The same with the other method.
    pub finest_other: Option<&'r RunResult>,
    /// With states that are moved now and then.
    pub moved: Option<&'r RunResult>,
}

/// What runs say about a recorded quantity.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The variable, or the population.
    pub name: String,
    /// The unit of the distances.
    pub unit: String,
    /// Trace or spikes.
    pub kind: Kind,
    /// How far it moves at all; for spikes, the mean interval.
    pub range: f64,
    /// What the step does to it.
    pub step: Option<Step>,
    /// Whether another method says the same.
    pub method: Option<Meeting>,
    /// What becomes of moved states.
    pub sensitivity: Option<Sensitivity>,
}

/// What the step does to a quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The error at the given step, as the smaller steps tell it.
    pub error: f64,
    /// How it falls.
    pub convergence: Convergence,
    /// The time from which on it is not small any more, in ms.
    pub until: Option<f64>,
}

/// What happens to differences as the step is halved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Convergence {
    /// There are none but rounding (for spikes, to the ends of steps).
    Rounding,
    /// They fall with this order.
    Order(f64),
    /// They are a few leaps, or large from the beginning: no order can be seen.
    Leaps,
    /// They do not fall; moved states make as large ones.
    Sensitive,
    /// They do not fall; this is the order.
    Unsettled(f64),
}

/// Whether two methods go to the same solution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Meeting {
    /// They do; so far are they apart at a quarter of the step.
    Same(f64),
    /// As far as can be seen.
    Open {
        /// From here on (ms), what the steps leave open is as large as what the quantity does.
        until: f64,
    },
    /// They do not: each has settled, or the other one has while this one does not come nearer.
    Apart {
        /// Since when, in ms.
        since: f64,
        /// How far the method at dt, dt/2 and dt/4 is from the other one at dt/4.
        distances: [f64; 3],
        /// Do they stay apart at a sixteenth of the step? Absent if that did not run.
        confirmed: Option<f64>,
    },
    /// One of them has spikes that the other one has not, and the last halving of their steps changes nothing in it. If both have them at a sixteenth
    /// of the step, the method lacks them at the given one.
    Missing {
        /// Since when, in ms.
        since: f64,
        /// How many spikes the method and the other one have, in the cells that differ.
        spikes: [usize; 2],
        /// Are they missing at a sixteenth of the step, too?
        confirmed: bool,
    },
}

/// What becomes of moved states.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sensitivity {
    /// How far it goes away at most, in any cell.
    pub distance: f64,
    /// By how much its part of the quantity has grown; absent for spikes.
    pub growth: Option<f64>,
    /// Is the model sensitive?
    pub sensitive: bool,
}

/// What an engine's differences from the reference are.
#[derive(Debug, Clone, PartialEq)]
pub enum Engine {
    /// Rounding.
    Rounding,
    /// Rounding that the model has grown; where the engine rounds more than the reference, less than the error of the step, too.
    Sensitive,
    /// More than that.
    Differs {
        /// In which quantity.
        name: String,
        /// Since when, in ms.
        since: f64,
    },
}

/// Do judgements need runs at a sixteenth of the step?
pub fn doubtful(judgements: &[Judgement]) -> bool {
    judgements.iter().any(|j| {
        let unsettled = j.step.is_some_and(|step| matches!(step.convergence, Convergence::Unsettled(_)));
        unsettled || matches!(j.method, Some(Meeting::Apart { .. } | Meeting::Missing { .. }))
    })
}

/// Judges each recorded quantity.
pub fn judge<'r>(runs: &Runs<'r>) -> Vec<Judgement> {
    let mut all = vec![runs.base];
    let mut places = |more: &[&'r RunResult]| {
        let at = all.len();
        all.extend_from_slice(more);
        at
    };
    let halved = runs.halved.map(|halved| places(&halved));
    let other = runs.other.map(|other| places(&other));
    let finest = runs.finest.map(|finest| places(&[finest]));
    let finest_other = runs.finest_other.map(|finest| places(&[finest]));
    let moved = runs.moved.map(|moved| places(&[moved]));
    let margin = (AT_THE_END * runs.duration).max(MEASURABLE * runs.dt);
    let judge = |q: &Quantity| {
        let distance = |a: usize, b: usize| q.distance(a, b);
        let of_moved = moved.map(|m| distance(0, m));
        let sensitivity = of_moved.as_ref().map(|moved| sensitivity(q, runs.dt, moved));
        let noise = Noise::new(q, runs.dt, of_moved);
        Judgement {
            name: q.name.clone(),
            unit: q.unit.clone(),
            kind: q.kind,
            range: q.range,
            step: halved.map(|h| match finest {
                None => step(q, &noise, &[distance(0, h), distance(h, h + 1), distance(0, h + 1)], 1.0),
                Some(f) => step(q, &noise, &[distance(0, h + 1), distance(h + 1, f), distance(0, f)], 2.0),
            }),
            method: halved.zip(other).map(|(h, o)| {
                let distances = Distances {
                    between: [0, h, h + 1].map(|own| distance(own, o + 1).sum),
                    own: distance(h, h + 1).sum,
                    others: distance(o, o + 1).sum,
                    finest: finest.zip(finest_other).map(|(own, other)| distance(own, other).sum),
                };
                let missing = |a: usize, b: usize| q.missing(a, b, margin);
                let lost = Lost {
                    between: missing(h + 1, o + 1),
                    by_chance: [Some((h, h + 1)), Some((o, o + 1)), moved.map(|m| (0, m))]
                        .into_iter()
                        .flatten()
                        .any(|(a, b)| missing(a, b).is_some()),
                    finest: finest.zip(finest_other).map(|(own, other)| missing(own, other)),
                    by_the_step: finest.is_some_and(|own| missing(0, own).is_some()),
                };
                match meeting(q, &noise, &distances) {
                    Meeting::Same(distance) => lost_spikes(q, &lost).unwrap_or(Meeting::Same(distance)),
                    other => other,
                }
            }),
            sensitivity,
        }
    };
    quantities(&all, runs.duration).iter().map(judge).collect()
}

/// Judges an engine by its result and the reference's. `rounding` is what a function of the engine may be off by, relative to its
/// value.
pub fn engine(reference: &RunResult, found: &RunResult, rounding: f64, runs: &Runs) -> Engine {
    // An engine that rounds more than double precision does may see a spike a step earlier or later.
    let half = runs.halved.map(|halved| halved[0]).filter(|_| rounding * ROUNDINGS > ROUNDING);
    let mut all = vec![reference, found, runs.base];
    all.extend(runs.moved);
    all.extend(half);
    let grows = SENSITIVITY.max(ROUNDINGS * rounding / MOVED);
    let mut verdict = Engine::Rounding;
    for q in quantities(&all, runs.duration) {
        let distance = q.distance(0, 1).sum;
        let moved = runs.moved.map(|_| q.distance(2, 3));
        let step = half.map(|_| q.distance(2, all.len() - 1).sum);
        let floor = match q.kind {
            // What is a difference of larger numbers has their rounding, of which moved states tell.
            Kind::Trace => {
                let start = moved.as_ref().and_then(|moved| moved.most.first()).map_or(0.0, |start| start / MOVED);
                ROUNDINGS * rounding * start.max(q.largest)
            }
            Kind::Spikes => runs.dt,
        };
        let rounded = |r: usize| floor * (r + 1) as f64;
        let allowed = |r: usize| {
            let grown = moved.as_ref().map_or(0.0, |moved| grows * moved.sum[r]);
            let seen = step.as_ref().map_or(0.0, |step| LEFT * step[r] + LEAPS * q.leap);
            rounded(r) + grown + seen
        };
        let judged = |r: usize| moved.as_ref().is_none_or(|moved| moved.sum[r] < limit(&q) * (r + 1) as f64);
        if let Some(r) = (0..distance.len()).find(|&r| distance[r] > allowed(r) && judged(r)) {
            return Engine::Differs { name: q.name, since: q.t[r] };
        }
        if (0..distance.len()).any(|r| distance[r] > rounded(r)) {
            verdict = Engine::Sensitive;
        }
    }
    verdict
}

/// Up to here a mean difference is small beside what a quantity does.
fn limit(q: &Quantity) -> f64 {
    LINEAR * q.spread.max(1e-3 * q.largest)
}

/// What differs for no reason of the method: rounding, and what sensitivity makes of it.
struct Noise {
    floor: f64,
    moved: Option<Distance>,
}

impl Noise {
    fn new(q: &Quantity, dt: f64, moved: Option<Distance>) -> Noise {
        let floor = match q.kind {
            Kind::Trace => ROUNDING * q.largest,
            // A spike belongs to the end of its step: at a quarter of the step, so much is open.
            Kind::Spikes => dt / 4.0,
        };
        Noise { floor, moved }
    }

    /// Rounding until a row.
    fn rounding(&self, row: usize) -> f64 {
        self.floor * (row + 1) as f64
    }

    /// All until a row.
    fn at(&self, row: usize) -> f64 {
        self.rounding(row) + self.moved.as_ref().map_or(0.0, |moved| SENSITIVITY * moved.sum[row])
    }
}

/// The mean until a row of what was added up.
fn mean(sums: &[f64], row: usize) -> f64 {
    sums[row] / (row + 1) as f64
}

/// From the distances between a step and a smaller one, between that and one as much smaller again, and between the first and the
/// last, where each is smaller by so many halvings.
fn step(q: &Quantity, noise: &Noise, [coarse, fine, whole]: &[Distance; 3], halvings: f64) -> Step {
    let Some(last) = coarse.sum.len().checked_sub(1) else {
        return Step { error: 0.0, convergence: Convergence::Rounding, until: None };
    };
    let changed = |r: usize| coarse.sum[r].max(fine.sum[r]);
    let measurable = |r: usize| changed(r) > MEASURABLE * noise.rounding(r);
    if !measurable(last) {
        return Step { error: mean(&whole.sum, last), convergence: Convergence::Rounding, until: None };
    }
    let linear = (0..=last).rfind(|&r| changed(r) <= limit(q) * (r + 1) as f64);
    let until = linear.map_or(Some(0), |r| (r < last).then_some(r + 1)).map(|r| q.t[r]);
    let convergence = match linear {
        Some(r) if measurable(r) => match order(q, noise, coarse, fine, r).map(|order| order / halvings) {
            Some(order) if order > MOST_ORDER => Convergence::Leaps,
            Some(order) if order >= LEAST_ORDER => Convergence::Order(order),
            _ if fine.sum[r] <= noise.at(r) => Convergence::Sensitive,
            Some(order) => Convergence::Unsettled(order),
            None => Convergence::Leaps,
        },
        Some(_) | None => Convergence::Leaps,
    };
    let error = match (convergence, until) {
        // Richardson: what halving the step changed is all but 2^-p of the error.
        (Convergence::Order(p), None) => mean(&coarse.sum, last) / (1.0 - (-p * halvings).exp2()),
        (Convergence::Order(_), Some(_))
        | (Convergence::Rounding | Convergence::Leaps | Convergence::Sensitive | Convergence::Unsettled(_), _) => {
            mean(&whole.sum, last)
        }
    };
    Step { error, convergence, until }
}

/// By which power of 2 differences fall until a row, if they are more than a few leaps.
fn order(q: &Quantity, noise: &Noise, coarse: &Distance, fine: &Distance, row: usize) -> Option<f64> {
    let mean = |least: f64| (coarse.sum[row] / fine.sum[row].max(least)).log2();
    let most = coarse.most[row].max(fine.most[row]);
    match q.kind {
        // Where errors of several orders cancel, either the mean or the largest difference shows less.
        Kind::Trace if most <= LINEAR * q.range => {
            let most = (coarse.most[row] / fine.most[row].max(noise.floor)).log2();
            return Some(mean(noise.rounding(row)).max(most));
        }
        // No spike is missing.
        Kind::Spikes if most <= q.leap / 2.0 => return Some(mean(noise.rounding(row))),
        Kind::Trace | Kind::Spikes => {}
    }
    let many = coarse.sum[row].max(fine.sum[row]) > 2.0 * LEAPS * q.leap;
    many.then(|| mean(noise.rounding(row).max(q.leap)))
}

/// Distances of two methods until each row.
struct Distances {
    /// From the other method at dt/4, for dt, dt/2 and dt/4.
    between: [Vec<f64>; 3],
    /// What the last halving changed.
    own: Vec<f64>,
    /// What it changed with the other method.
    others: Vec<f64>,
    /// Between the methods at dt/16.
    finest: Option<Vec<f64>>,
}

fn meeting(q: &Quantity, noise: &Noise, d: &Distances) -> Meeting {
    let [at_dt, at_half, at_quarter] = &d.between;
    let rows = || 0..q.t.len();
    let least = |r: usize| noise.at(r) + LEAPS * q.leap;
    let open = |r: usize| LEFT * (d.own[r] + d.others[r]) + least(r);
    // Both have settled, each elsewhere.
    let settled = |&r: &usize| at_quarter[r] > open(r);
    // The other one has settled; this one does not come nearer.
    let stuck = |&r: &usize| {
        let before = at_dt[r].max(at_half[r]);
        let linear = before.max(at_quarter[r]) <= limit(q) * (r + 1) as f64;
        let other = d.others[r] <= at_quarter[r] / (2.0 * LEFT);
        linear && other && at_quarter[r] >= 0.9 * before && at_quarter[r] > least(r)
    };
    let sure = |&a: &usize, &b: &usize| (at_quarter[a] / open(a)).total_cmp(&(at_quarter[b] / open(b)));
    let apart = match rows().find(settled) {
        Some(since) => rows().max_by(sure).map(|surest| (since, surest)),
        None => rows().find(stuck).zip(rows().rfind(stuck)),
    };
    if let Some((since, surest)) = apart {
        let confirmed = d.finest.as_ref().map(|finest| finest[surest]);
        let since = q.t[since];
        if confirmed.is_some_and(|finest| finest < FALLS * at_quarter[surest]) {
            return Meeting::Open { until: since };
        }
        let mean = |sum: f64| sum / (surest + 1) as f64;
        let distances = [at_dt, at_half, at_quarter].map(|sums| mean(sums[surest]));
        return Meeting::Apart { since, distances, confirmed: confirmed.map(mean) };
    }
    let hidden = |&r: &usize| LEFT * (d.own[r] + d.others[r]) + noise.at(r) > MEASURABLE * limit(q) * (r + 1) as f64;
    let Some(last) = rows().next_back() else { return Meeting::Same(0.0) };
    if hidden(&last) {
        let until = rows().rfind(|r| !hidden(r)).map_or(0, |seen| seen + 1);
        return Meeting::Open { until: q.t[until] };
    }
    Meeting::Same(mean(at_quarter, last))
}

/// Spikes that one run has and another one has not.
struct Lost {
    /// Between the methods at dt/4.
    between: Option<Missing>,
    /// Do the last halving of one of them or moved states lose spikes, too?
    by_chance: bool,
    /// Between the methods at dt/16, if they ran.
    finest: Option<Option<Missing>>,
    /// Between the method at dt and at dt/16?
    by_the_step: bool,
}

/// Where two methods are near each other on average: whether one lacks spikes of the other. A few spikes that are lost make no distance.
fn lost_spikes(q: &Quantity, lost: &Lost) -> Option<Meeting> {
    let missing = lost.between?;
    let all = missing.spikes[0].max(missing.spikes[1]).max(q.t.len().saturating_sub(1));
    if missing.count as f64 <= MISSED * all as f64 {
        return None;
    }
    let is = |Missing { since, spikes, .. }: Missing, confirmed| Some(Meeting::Missing { since, spikes, confirmed });
    let open = Some(Meeting::Open { until: missing.since });
    match lost.finest {
        _ if lost.by_chance => open,
        Some(Some(finest)) => is(finest, true),
        Some(None) if !lost.by_the_step => open,
        Some(None) | None => is(missing, false),
    }
}

fn sensitivity(q: &Quantity, dt: f64, moved: &Distance) -> Sensitivity {
    let (Some(&start), Some(&distance)) = (moved.most.first(), moved.most.last()) else {
        return Sensitivity { distance: 0.0, growth: None, sensitive: false };
    };
    match q.kind {
        Kind::Trace => {
            let growth = if distance == 0.0 { 0.0 } else { distance / start.max(MOVED * q.largest) };
            Sensitivity { distance, growth: Some(growth), sensitive: growth >= SENSITIVE }
        }
        // One spike may happen to be seen a step later.
        Kind::Spikes => Sensitivity { distance, growth: None, sensitive: distance > 1.5 * dt },
    }
}
