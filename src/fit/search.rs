//! The search for the best values.
//!
//! In come a run, bounds and targets; the optimizers are those of `argmin`. Out goes the best of all runs, whatever an optimizer ends with.
//! Never true here: a start depends on anything but the seed, its number and the bounds.

use super::{Bounds, FAR, Method, Observed, Runs, Target};
use crate::driver::Differentiable;
use crate::engine::EngineError;
use crate::runtime::rng::Draw;
use crate::simulate::Loss;
use argmin::core::{CostFunction, Error, Executor, Gradient, IterState, Solver};
use argmin::solver::linesearch::MoreThuenteLineSearch;
use argmin::solver::neldermead::NelderMead;
use argmin::solver::quasinewton::LBFGS;
use std::cell::RefCell;

/// What a run that is not finite counts as: worse than all others, and a number that line searches can go back from.
const NOT_FINITE: f64 = 1e10;
/// How many of the last gradients L-BFGS remembers.
const REMEMBERED: usize = 7;
/// Below this spread of losses a simplex has converged.
const SPREAD: f64 = 1e-14;

/// How to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// How the best values are looked for.
    pub method: Method,
    /// From how many places: the first is that of the model, where it lies between the bounds; the others are drawn.
    pub starts: u32,
    /// Steps of the optimizer from each place, at most.
    pub iterations: u64,
    /// The key of the draws.
    pub seed: u64,
}

/// What became of one start.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// Where it began, in canonical units.
    pub from: Vec<f64>,
    /// The best that it found.
    pub values: Vec<f64>,
    /// The loss there.
    pub loss: f64,
    /// How many runs it took.
    pub runs: u64,
    /// Had all of its runs, more than one, the same loss above 0? Then nothing said where to go.
    pub flat: bool,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The best values, in canonical units.
    pub values: Vec<f64>,
    /// The loss there.
    pub loss: f64,
    /// By how much the run is off each target there: the root of the mean squared error, in canonical units; infinite where a cell has no such number.
    pub off: Vec<f64>,
    /// Every start, in order.
    pub starts: Vec<Start>,
    /// Did the watcher stop it?
    pub stopped: bool,
}

impl Outcome {
    /// What whoever takes the values should know: a sentence about the starts that were lost in a plain.
    pub fn remark(&self) -> Option<String> {
        let flat = self.starts.iter().filter(|start| start.flat).count();
        let which = match (flat, self.starts.len()) {
            (0, _) => return None,
            (1, 1) => "all runs".into(),
            (flat, all) if flat == all => "all runs of every start".into(),
            (1, all) => format!("all runs of one of {all} starts"),
            (flat, all) => format!("all runs of each of {flat} of {all} starts"),
        };
        let help =
            "the targets do not change near where a search begins; take more starts, narrower bounds or another target";
        Some(format!("{which} had the same loss, so that nothing said where to go: {help}"))
    }
}

/// Who wants to know how it goes.
pub trait Watcher {
    /// Called after every run with the number of the start, the runs of it so far and the least loss of it so far; `false` ends the search.
    fn run(&mut self, start: u32, runs: u64, loss: f64) -> bool;
}

/// A watcher that only lets run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watcher for Unwatched {
    fn run(&mut self, _start: u32, _runs: u64, _loss: f64) -> bool {
        true
    }
}

/// A run, seen by an optimizer.
struct Problem<'a> {
    run: &'a mut dyn Runs,
    bounds: &'a [Bounds],
    targets: &'a [Target],
    watcher: &'a mut dyn Watcher,
    start: u32,
    /// The values that the start has, and the unbounded numbers that belong to them.
    begins: (Vec<f64>, Vec<f64>),
    runs: u64,
    best: Option<(f64, Vec<f64>)>,
    /// The greatest loss, of runs that are not finite too.
    most: f64,
    /// The last point, its loss and gradient: optimizers ask for them one after the other.
    last: Option<(Vec<f64>, f64, Vec<f64>)>,
    failed: Option<EngineError>,
    stopped: bool,
    /// Was a run finite whose gradient was not?
    steep: bool,
}

impl Problem<'_> {
    fn values(&self, u: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (values, begin) = &self.begins;
        let value = |at: usize| {
            let (x, slope) = self.bounds[at].inside(u[at]);
            // What a start has is no sum that is rounded.
            (if u[at] == begin[at] { values[at] } else { x }, slope)
        };
        (0..u.len()).map(value).unzip()
    }

    /// The loss of a run, and its gradient if it is wanted, at a point.
    fn at(&mut self, u: &[f64], with_gradient: bool) -> Result<(f64, Vec<f64>), Error> {
        if let Some((last, loss, gradient)) = &self.last
            && last == u
            && (!with_gradient || !gradient.is_empty())
        {
            return Ok((*loss, gradient.clone()));
        }
        let (values, slopes) = self.values(u);
        let targets = self.targets;
        let mut look = |seen: Observed<'_>| loss(targets, seen);
        let found = if with_gradient {
            let none = || Err(EngineError("this run has no gradient".into()));
            let found = self.run.slopes(&values, &mut look).unwrap_or_else(none);
            found.map(|(loss, gradient)| (loss, gradient.iter().zip(slopes).map(|(g, s)| g * s).collect()))
        } else {
            self.run.look(&values, &mut look).map(|loss| (loss, Vec::new()))
        };
        let (mut loss, mut gradient): (f64, Vec<f64>) = match found {
            Ok(found) => found,
            Err(error) => {
                let message = error.to_string();
                self.failed = Some(error);
                return Err(Error::msg(message));
            }
        };
        self.runs += 1;
        if !loss.is_finite() || gradient.iter().any(|x| !x.is_finite()) {
            self.steep |= loss.is_finite();
            loss = NOT_FINITE;
            gradient.iter_mut().for_each(|x| *x = 0.0);
        } else if self.best.as_ref().is_none_or(|(least, _)| loss < *least) {
            self.best = Some((loss, values));
        }
        self.most = self.most.max(loss);
        self.last = Some((u.to_vec(), loss, gradient.clone()));
        let least = self.best.as_ref().map_or(loss, |best| best.0);
        if !self.watcher.run(self.start, self.runs, least) {
            self.stopped = true;
            return Err(Error::msg("stopped"));
        }
        Ok((loss, gradient))
    }
}

/// The loss of what a run shows; see the [module documentation](super). Numbers that are read out of it have no slopes.
pub fn loss(targets: &[Target], seen: Observed<'_>) -> Loss {
    let mut slopes: Vec<Vec<f64>> = seen.samples.iter().map(|of| vec![0.0; of.len()]).collect();
    let mut value = 0.0;
    let share = targets.len() as f64;
    for target in targets {
        match target {
            Target::Trace(trace) => {
                let (square, parts) = trace.error(&seen.samples[trace.record]);
                let weight = 1.0 / (trace.variance * share);
                value += weight * square;
                for (slope, part) in slopes[trace.record].iter_mut().zip(parts) {
                    *slope += weight * part;
                }
            }
            Target::Number(number) => value += number.error(seen).0 / share,
        }
    }
    Loss { value, slopes }
}

/// What optimizers are given.
struct Seen<'a, 'p> {
    problem: &'p RefCell<Problem<'a>>,
    gradients: bool,
}

impl CostFunction for Seen<'_, '_> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, u: &Vec<f64>) -> Result<f64, Error> {
        let mut problem = self.problem.borrow_mut();
        // The simplex has no way to end before its time, and panics at an error: nothing runs any more.
        if !self.gradients && (problem.failed.is_some() || problem.stopped) {
            return Ok(NOT_FINITE);
        }
        match problem.at(u, self.gradients) {
            Ok((loss, _)) => Ok(loss),
            Err(_) if !self.gradients => Ok(NOT_FINITE),
            Err(error) => Err(error),
        }
    }
}

impl Gradient for Seen<'_, '_> {
    type Param = Vec<f64>;
    type Gradient = Vec<f64>;

    fn gradient(&self, u: &Vec<f64>) -> Result<Vec<f64>, Error> {
        Ok(self.problem.borrow_mut().at(u, true)?.1)
    }
}

/// The free parameters that no target depends on, by number: neither at these values nor at others between the bounds.
pub fn idle(run: &mut Differentiable, bounds: &[Bounds], targets: &[Target]) -> Result<Vec<usize>, EngineError> {
    let mut count = |samples: &[Vec<f64>]| loss(targets, Observed { samples, spikes: &[] });
    let mut idle: Vec<usize> = (0..bounds.len()).collect();
    // The best values have no slope, either: two places, of which one is not the middle of anything.
    for part in [0.5, 0.6180339887498949] {
        let values: Vec<f64> = bounds.iter().map(|b| b.low + part * (b.high - b.low)).collect();
        let (found, gradient) = run.gradient(&values, &mut count)?;
        // A run that is not finite tells nothing.
        idle.retain(|&at| !run.matters(&found, at) || (found.loss.is_finite() && gradient[at] == 0.0));
        if idle.is_empty() {
            break;
        }
    }
    Ok(idle)
}

/// Where a start begins, in canonical units; `own` are the values of the model.
fn begin(search: &Search, number: u32, bounds: &[Bounds], own: &[Option<f64>]) -> Vec<f64> {
    let draw = Draw { seed: search.seed, stream: 0 };
    let place = |(at, bounds): (usize, &Bounds)| {
        let inside = own[at].filter(|x| (bounds.low..=bounds.high).contains(x));
        match (number, inside) {
            (0, Some(x)) => x,
            (0, None) => (bounds.low + bounds.high) / 2.0,
            _ => bounds.low + (bounds.high - bounds.low) * draw.uniform(at as u32, u64::from(number)),
        }
    };
    bounds.iter().enumerate().map(place).collect()
}

/// Looks for the values of the free parameters with which the run comes nearest to the targets.
pub fn fit(
    run: &mut dyn Runs,
    bounds: &[Bounds],
    targets: &[Target],
    search: &Search,
    watcher: &mut dyn Watcher,
) -> Result<Outcome, EngineError> {
    let own: Vec<Option<f64>> = run.outline().fitted.iter().map(|one| one.value).collect();
    let mut starts: Vec<Start> = Vec::new();
    let (mut stopped, mut steep) = (false, false);
    for number in 0..search.starts {
        let from = begin(search, number, bounds, &own);
        let begin: Vec<f64> = bounds.iter().zip(&from).map(|(bounds, &x)| bounds.outside(x)).collect();
        let u: Vec<f64> = begin.iter().map(|u| u.clamp(-FAR, FAR)).collect();
        let problem = RefCell::new(Problem {
            run: &mut *run,
            bounds,
            targets,
            watcher: &mut *watcher,
            start: number,
            begins: (from.clone(), begin.clone()),
            runs: 0,
            best: None,
            most: f64::NEG_INFINITY,
            last: None,
            failed: None,
            stopped: false,
            steep: false,
        });
        // What lies too near to a bound for a search is tried for itself.
        let begun = u == begin || problem.borrow_mut().at(&begin, false).is_ok();
        let seen = Seen { problem: &problem, gradients: search.method == Method::Lbfgs };
        // An optimizer may give up, for example where a line search finds nothing lower: the best of its runs counts.
        let _ = match search.method {
            _ if !begun => Ok(()),
            Method::Lbfgs => {
                let solver = LBFGS::new(MoreThuenteLineSearch::new(), REMEMBERED);
                executed(seen, solver, |state: IterState<Vec<f64>, Vec<f64>, (), (), (), f64>| {
                    state.param(u).max_iters(search.iterations)
                })
            }
            Method::NelderMead => {
                let corner = |at: usize| u.iter().enumerate().map(|(i, x)| x + f64::from(u8::from(i == at))).collect();
                let simplex: Vec<Vec<f64>> = std::iter::once(u.clone()).chain((0..u.len()).map(corner)).collect();
                NelderMead::new(simplex).with_sd_tolerance(SPREAD).and_then(|solver| {
                    executed(seen, solver, |state: IterState<Vec<f64>, (), (), (), (), f64>| {
                        state.max_iters(search.iterations)
                    })
                })
            }
        };
        let problem = problem.into_inner();
        if let Some(error) = problem.failed {
            return Err(error);
        }
        stopped |= problem.stopped;
        steep |= problem.steep;
        let flat =
            problem.runs > 1 && problem.best.as_ref().is_some_and(|(least, _)| *least > 0.0 && *least == problem.most);
        let (loss, values) = problem.best.unwrap_or((f64::INFINITY, from.clone()));
        starts.push(Start { from, values, loss, runs: problem.runs, flat });
        if stopped {
            break;
        }
    }
    let best = starts.iter().min_by(|a, b| a.loss.total_cmp(&b.loss));
    let Some(Start { values, loss, .. }) = best.cloned() else {
        return Err(EngineError("a fit needs at least one start".into()));
    };
    if !loss.is_finite() {
        return Err(EngineError(match steep {
            true => "no gradient of the fit was finite, though runs were: look for the values without gradients (`search = nelder_mead`)".into(),
            false => "no run of the fit was finite: take narrower bounds or a smaller step".into(),
        }));
    }
    let mut off = Vec::new();
    run.look(&values, &mut |seen| {
        off = targets.iter().map(|target| target.off(seen)).collect();
        Loss { value: 0.0, slopes: Vec::new() }
    })?;
    Ok(Outcome { values, loss, off, starts, stopped })
}

/// Runs an optimizer to its end.
fn executed<O, S, G>(
    problem: O,
    solver: S,
    configure: impl FnOnce(IterState<Vec<f64>, G, (), (), (), f64>) -> IterState<Vec<f64>, G, (), (), (), f64>,
) -> Result<(), Error>
where
    S: Solver<O, IterState<Vec<f64>, G, (), (), (), f64>>,
    IterState<Vec<f64>, G, (), (), (), f64>: argmin::core::State,
{
    Executor::new(problem, solver).configure(configure).ctrlc(false).timer(false).run().map(|_| ())
}
