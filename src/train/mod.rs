//! Training: networks learn classes of samples.
//!
//! In come a checked model with a `train` block and settings; out goes a [`Session`], which learns an epoch at a time and can be tested and kept.
//! Never true here: what is tested was learnt from, or a result depends on the number of threads.

mod loss;
mod optimizer;
mod trained;

pub use loss::{Judge, Judged, Kept, Reading};
pub use optimizer::{Moving, clip, share, update};
pub use trained::{Progress, Trained};

use crate::codegen::plan::Precision;
use crate::data::{Dataset, Split};
use crate::diag::{Code, Diagnostic};
use crate::discretize::Carried;
use crate::driver::{
    Checked, CompileOptions, EngineChoice, Fitted, Found, Learner, Lesson, flatten, frame, none_is_tested, reads,
    samples,
};
use crate::engine::EngineError;
use crate::hir::{self, Schedule};
use crate::ode::{self, PerCell};
use crate::passes::Backend;
use crate::simulate::Loss;
use crate::simulate::trials::Room;
use crate::units;
use optimizer::{shrink, squares};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

/// What an epoch, or a test, has come to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Score {
    /// The mean loss of a sample.
    pub loss: f64,
    /// The share of samples that are taken for their class.
    pub accuracy: f64,
    /// Spikes for each sample.
    pub spikes: f64,
    /// How many samples were seen.
    pub samples: usize,
    /// Wall time, in s.
    pub seconds: f64,
}

/// Sees what happens; the answer is whether to go on.
pub trait Watcher {
    /// After each batch: how many samples of the epoch have been seen, of how many, and the mean loss so far.
    fn batch(&mut self, seen: usize, of: usize, loss: f64) -> bool;
}

/// Nobody looks.
pub struct Unwatched;

impl Watcher for Unwatched {
    fn batch(&mut self, _: usize, _: usize, _: f64) -> bool {
        true
    }
}

/// A network that learns.
pub struct Session {
    learner: Learner,
    room: Room,
    data: Dataset,
    judge: Judge,
    batch: usize,
    /// What a value of the samples is in canonical units.
    scale: i32,
    /// For all that learns of projections.
    edges: Vec<Moving>,
    parameters: Vec<f64>,
    moving: Moving,
    schedule: Schedule,
    /// Of how many epochs the schedule knows.
    planned: usize,
    clip: Option<f64>,
    epochs: u64,
    patience: Option<u64>,
    /// The least loss of the test samples so far, and after how many epochs it was.
    best: (f64, u64),
    /// The names of what is set from outside.
    set: BTreeSet<String>,
    /// A warning of what is asked for and cannot be done.
    warning: Option<Diagnostic>,
}

impl Session {
    /// Reads the samples and compiles the network. Of all steps at most `budget` bytes are kept.
    pub fn new(
        checked: &Checked,
        options: &CompileOptions,
        choice: &dyn Fn() -> Result<EngineChoice, EngineError>,
        threads: usize,
        precision: Precision,
        budget: f64,
    ) -> Result<Session, Vec<Diagnostic>> {
        let Some(model) = &checked.model else { return Err(checked.diagnostics.clone()) };
        let Some(train) = &model.train else {
            let d = Diagnostic::without_place(Code::MissingKey, "this model has no `train` block");
            return Err(vec![d.help("`neuroc fit` fits parameters of a run to traces without one")]);
        };
        let (flat, _) = flatten(model, options)?;
        let data = samples(&flat, train)?;
        // A name that is wrong is told with the others.
        let full = ode::full_name(&flat, &train.input.0).unwrap_or_default();
        let scale = flat.params.iter().find(|p| p.name == full).map_or(0, |p| p.unit.exponent);
        let batch = train.batch.min(data.train().len());
        let reads = reads(&flat, train)?;
        let example: Arc<[f64]> = data.frame(0, 0).iter().map(|&x| units::scale(x, scale)).collect();
        let lesson = Lesson {
            gradient: train.gradient,
            input: train.input.clone(),
            example,
            frame: frame(&flat, train, data.frames()).map_err(|d| vec![d])?,
            learn: train.learn.clone(),
            reads: reads.each,
            carried: Carried { surrogate: train.surrogate.named(), detached: train.detached },
            trials: batch,
            threads,
            precision,
        };
        let mut learner = Learner::new(checked, options, &lesson, choice)?;
        let wrong = |message: String, why: &str| vec![Diagnostic::new(Code::BadData, train.data.file.1, message, why)];
        let room = learner.limit(budget).map_err(|least| {
            let each = least / batch as f64;
            let told = units::bytes;
            let least = format!("going back keeps at least {}, and {} may be used", told(least), told(budget));
            let mut would_do = vec!["a larger --memory".to_owned()];
            if budget >= each {
                would_do.insert(0, format!("`batch = {}`", (budget / each) as usize));
            }
            if options.backend == Backend::Xla {
                would_do.push("the native engine, which can take steps again in place of keeping them".to_owned());
            }
            wrong(least, &format!("a sample takes {}; {} would do", told(each), would_do.join(", or ")))
        })?;
        if train.patience.is_some() && data.test().is_empty() {
            let (all, share) =
                (data.train().len(), if let hir::Test::Share(share, _) = train.test { share } else { 0.0 });
            return Err(wrong(
                "`patience` waits for the loss of the test samples to become less".into(),
                &format!("{share} of {all} samples are none"),
            ));
        }
        let (optimizer, clips) = (train.optimizer, train.clip.is_some());
        let settled = learner.settle(optimizer.remembers(), &|held| update(optimizer, clips, held));
        settled.map_err(|e| vec![Diagnostic::without_place(Code::Unsupported, e.0)])?;
        let moving = |number: usize, count: usize| match learner.are_delays(number) {
            true => Moving::new(optimizer.of_delays(train.delay_lr), count),
            false if learner.has_settled(number) => Moving::new(optimizer, 0),
            false => Moving::new(optimizer, count),
        };
        let learnt = learner.learnt();
        let edges = learnt.iter().enumerate().map(|(at, (_, values))| moving(at, values.len())).collect();
        let parameters: Vec<f64> = learner.fitted().iter().map(|one| one.value.unwrap_or(f64::NAN)).collect();
        let reading = |readout, of: usize| Reading { readout, of, cells: learner.outputs()[of] };
        let of_loss = reading(train.read.readout, reads.of[0]);
        let kept = train.keep.iter().zip(&reads.of[1..]).zip(&reads.kept).map(|((keep, &of), (range, within))| Kept {
            read: reading(keep.read.readout, of),
            low: range.low,
            high: range.high,
            within: *within,
        });
        let judge = Judge { loss: reads.loss, unit: reads.unit, read: of_loss, kept: kept.collect(), dt: flat.dt };
        let moving = Moving::new(train.optimizer, parameters.len());
        let (schedule, planned, clip) = (train.schedule, train.epochs, train.clip);
        let warning = none_is_tested(train, &data);
        Ok(Session {
            learner,
            room,
            data,
            judge,
            batch,
            scale,
            edges,
            parameters,
            moving,
            schedule,
            planned,
            clip,
            epochs: 0,
            patience: train.patience.map(|patience| patience as u64),
            best: (f64::INFINITY, 0),
            set: options.names_set(&flat),
            warning,
        })
    }

    /// Of how many epochs the schedule of the learning rate shall know; of those that the block says otherwise.
    pub fn plan(&mut self, epochs: usize) {
        self.planned = epochs;
    }

    /// A warning if none of the samples is kept for testing, though a share of them is to be.
    pub fn warning(&self) -> Option<&Diagnostic> {
        self.warning.as_ref()
    }

    /// The samples.
    pub fn data(&self) -> &Dataset {
        &self.data
    }

    /// How many numbers learn.
    pub fn count(&self) -> usize {
        self.parameters.len() + self.learner.learnt().iter().map(|(_, values)| values.len()).sum::<usize>()
    }

    /// How many lists of weights live where steps are taken, on a device.
    pub fn settled(&self) -> usize {
        (0..self.edges.len()).filter(|&number| self.learner.has_settled(number)).count()
    }

    /// What is kept of all steps.
    pub fn room(&self) -> Room {
        self.room
    }

    /// How many steps are taken forward for a gradient: those of a run, and those that are taken again.
    pub fn steps(&self) -> u64 {
        self.learner.steps() as u64 + self.room.again
    }

    /// Learns from all samples once, in the order of the next epoch; none if the watcher has stopped it.
    pub fn epoch(&mut self, watcher: &mut dyn Watcher) -> Result<Option<Score>, EngineError> {
        let order = self.data.epoch(self.learner.seed(), self.epochs);
        let share = share(self.schedule, self.epochs, self.planned);
        self.epochs += 1;
        let (begin, mut score, mut right, mut seen) = (Instant::now(), Score::default(), 0, 0);
        for batch in order.chunks(self.batch) {
            let (input, classes) = self.batch(batch);
            let (judge, trials) = (&self.judge, self.batch);
            let mut judged = Judged::default();
            let mut loss = |samples: &[Vec<f64>]| {
                judged = judge.judge(samples, trials, &classes);
                Loss { value: judged.loss, slopes: judged.slopes.clone() }
            };
            let found = self.learner.gradient(&self.parameters, &input, &mut loss);
            let mut found = found.map_err(|error| self.told(error, batch))?;
            if !found.loss.is_finite() {
                return Err(EngineError(format!("the loss is {} in epoch {}", found.loss, self.epochs)));
            }
            self.finite(&found)?;
            self.learn(&mut found, share)?;
            score.loss += judged.loss * batch.len() as f64;
            score.spikes += of_real(&found.spikes, batch.len());
            right += judged.right;
            seen += batch.len();
            if !watcher.batch(seen, order.len(), score.loss / seen as f64) {
                return Ok(None);
            }
        }
        Ok(Some(score.of(seen, right, begin)))
    }

    /// An error of the learner, with what has been lost if that is known.
    fn told(&self, error: EngineError, batch: &[usize]) -> EngineError {
        let lost = self.learner.lost().and_then(|(name, trial, cell)| Some((name, batch.get(trial)?, cell)));
        lost.map_or(error, |(name, sample, cell)| {
            EngineError(format!(
                "number {cell} of `{name}` is no longer a finite number in epoch {}, with sample {sample} (`neuroc run --sample {sample}` \
                 shows it before anything is learnt)",
                self.epochs
            ))
        })
    }

    /// Refuses derivatives that are no finite numbers: whatever learns from them is lost.
    fn finite(&self, found: &Found) -> Result<(), EngineError> {
        let odd = |values: &[f64]| values.iter().copied().find(|x| !x.is_finite());
        // Names come with copies of all that learns: only what goes wrong needs one.
        let (name, x) = if let Some((at, x)) = found.parameters.iter().enumerate().find(|(_, x)| !x.is_finite()) {
            (self.learner.fitted()[at].name.clone(), *x)
        } else if let Some((at, x)) = found.edges.iter().enumerate().find_map(|(at, of)| Some((at, odd(of)?))) {
            (self.learner.learnt()[at].0.to_string(), x)
        } else {
            return Ok(());
        };
        Err(EngineError(format!(
            "the derivative of the loss in `{name}` is {x} in epoch {}; nothing is learnt from it (a smaller `lr` helps against growth, \
             another initial value against a slope without a limit)",
            self.epochs
        )))
    }

    /// A step against slopes, at a share of the learning rate.
    fn learn(&mut self, found: &mut Found, share: f64) -> Result<(), EngineError> {
        // Parameters move in the units that they are written in.
        let units: Vec<f64> = self.learner.fitted().iter().map(|one| units::scale(1.0, one.unit.exponent)).collect();
        found.parameters.iter_mut().zip(&units).for_each(|(slope, unit)| *slope *= unit);
        let mut slopes: Vec<&mut [f64]> = found.edges.iter_mut().map(|w| w.as_mut_slice()).collect();
        slopes.push(&mut found.parameters);
        // What has settled moves first: there all slopes are known whose norm counts.
        let (moving, most) = (&self.moving, self.clip);
        let by = self.learner.descend(|| moving.numbers(share, most, squares(&slopes)))?;
        match (by, most) {
            (Some(by), _) => shrink(&mut slopes, by),
            (None, Some(most)) => clip(&mut slopes, most),
            (None, None) => {}
        }
        let edges = &mut self.edges;
        self.learner.change(|number, values| edges[number].step(values, &found.edges[number], share));
        self.parameters.iter_mut().zip(&units).for_each(|(x, unit)| *x /= unit);
        self.moving.step(&mut self.parameters, &found.parameters, share);
        self.parameters.iter_mut().zip(&units).for_each(|(x, unit)| *x *= unit);
        for (x, range) in self.parameters.iter_mut().zip(self.learner.ranges()) {
            range.hold(std::slice::from_mut(x));
        }
        Ok(())
    }

    /// Tries the samples that are kept for testing; none if there are none. With `patience` it is noted how good they are.
    pub fn test(&mut self) -> Result<Option<Score>, EngineError> {
        let all = self.data.test().to_vec();
        if all.is_empty() {
            return Ok(None);
        }
        let (begin, mut score, mut right) = (Instant::now(), Score::default(), 0);
        for batch in all.chunks(self.batch) {
            let (input, classes) = self.batch(batch);
            let found = self.learner.samples(&self.parameters, &input);
            let (samples, spikes) = found.map_err(|error| self.told(error, batch))?;
            let judged = self.judge.judge(&samples, self.batch, &classes);
            score.loss += judged.loss * batch.len() as f64;
            score.spikes += of_real(&spikes, batch.len());
            right += judged.right;
        }
        let score = score.of(all.len(), right, begin);
        if score.loss < self.best.0 {
            self.best = (score.loss, self.epochs);
        }
        Ok(Some(score))
    }

    /// What has been learnt so far; weights that live on a device are fetched.
    pub fn trained(&mut self) -> Result<Trained, EngineError> {
        let mut fetched = self.learner.fetch()?;
        let learnt = self.learner.learnt();
        let parameters = self.learner.fitted().iter().zip(&self.parameters).map(|(one, x)| (one.name.as_str(), *x));
        let all = learnt.iter().flat_map(|(name, values)| values.iter().map(|x| (*name, *x))).chain(parameters);
        if let Some((name, x)) = all.into_iter().find(|(_, x)| !x.is_finite()) {
            return Err(EngineError(format!("`{name}` has become {x} in epoch {}: take a smaller `lr`", self.epochs)));
        }
        if let Some(d) = self.learner.outside(&self.parameters).into_iter().next() {
            let help = "let it `learn` between bounds, or take a smaller `lr`";
            return Err(EngineError(format!(
                "in epoch {} a run would refuse what is learnt: {}: {help}",
                self.epochs, d.message
            )));
        }
        let edges = learnt.into_iter();
        let edges = edges.map(|(name, values)| PerCell { name: name.to_string(), values: values.into() });
        let parameters = self.learner.fitted().iter().zip(&self.parameters);
        let parameters = parameters.map(|(one, &x)| format!("{}={}", one.name, one.shown(x)));
        let mut remembered = Vec::new();
        for (number, moving) in self.edges.iter().chain([&self.moving]).enumerate() {
            remembered.push(match fetched.remove(&number) {
                Some(mut lists) => {
                    let count = lists.first().map_or(0, Vec::len);
                    lists.resize(2, vec![0.0; count]);
                    [std::mem::take(&mut lists[0]), std::mem::take(&mut lists[1])]
                }
                None => moving.memory().1.map(<[f64]>::to_vec),
            });
        }
        let progress = Progress {
            epochs: self.epochs,
            steps: self.moving.memory().0,
            lists: self.moving.remembers(),
            seed: self.learner.seed(),
            split: Some(self.data.split()),
            parameters: self.parameters.clone(),
            remembered,
        };
        Ok(Trained { edges: edges.collect(), parameters: parameters.collect(), progress: Some(progress) })
    }

    /// Goes on where another session of the same model has been. The error is a sentence; then nothing has changed, unless it is a device that fails.
    pub fn resume(&mut self, trained: &Trained) -> Result<(), String> {
        let Some(progress) = &trained.progress else {
            return Err("it does not say how far its training has come".into());
        };
        if progress.seed != self.learner.seed() {
            return Err(format!(
                "its seed was {}, and is {} now: samples that it has learnt from would be tested",
                progress.seed,
                self.learner.seed()
            ));
        }
        // Of the same samples in the same order the first are tested.
        let now = self.data.split();
        let others = |then: &Split| then.samples != now.samples || then.tested < now.tested;
        if let Some(then) = progress.split.filter(|then| now.tested > 0 && others(then)) {
            return Err(format!(
                "{} of {} samples were kept for testing, and {} of {} are now: samples that it has learnt from would be tested",
                then.tested, then.samples, now.tested, now.samples
            ));
        }
        let own: Vec<(String, usize)> =
            self.learner.learnt().iter().map(|(name, values)| (name.to_string(), values.len())).collect();
        let theirs: Vec<(String, usize)> =
            trained.edges.iter().map(|one| (one.name.clone(), one.values.len())).collect();
        let counts = own.iter().map(|(_, count)| *count).chain([self.parameters.len()]);
        let fits = |(lists, count): (&[Vec<f64>; 2], usize)| lists.iter().all(|list| list.len() == count);
        let fine = progress.parameters.len() == self.parameters.len()
            && progress.remembered.len() == own.len() + 1
            && progress.remembered.iter().zip(counts).all(fits);
        // Parameters may learn in another order there.
        let names: Vec<&str> =
            trained.parameters.iter().map(|line| line.split_once('=').map_or(&line[..], |(name, _)| name)).collect();
        let there = |one: &Fitted| names.iter().position(|name| *name == one.name);
        let order: Option<Vec<usize>> = self.learner.fitted().iter().map(there).collect();
        let (true, Some(order)) = (fine && own == theirs && names.len() == self.parameters.len(), order) else {
            return Err("other weights, delays and parameters have learnt there than learn here".into());
        };
        let ordered = |values: &[f64]| -> Vec<f64> { order.iter().map(|&at| values[at]).collect() };
        let learn = own.iter().map(|(name, _)| name).chain(self.learner.fitted().iter().map(|one| &one.name));
        if let Some(name) = learn.into_iter().find(|name| self.set.contains(*name)) {
            return Err(format!("`{name}` is set, but would go on with what has been learnt there"));
        }
        if progress.lists != 0 && progress.lists != self.moving.remembers() {
            return Err("another optimizer has learnt there, which remembers other numbers".into());
        }
        let values: Vec<Vec<f64>> = trained.edges.iter().map(|one| one.values.to_vec()).collect();
        self.learner.set_learnt(&values);
        self.parameters = ordered(&progress.parameters);
        let (mut settled, kept) = (BTreeMap::new(), self.moving.remembers());
        for (number, (moving, lists)) in self.edges.iter_mut().zip(&progress.remembered).enumerate() {
            let lists = lists.each_ref().map(|list| list.as_slice());
            match self.learner.has_settled(number) {
                true => drop(settled.insert(number, lists[..kept].to_vec())),
                false => moving.remember(progress.steps, lists),
            }
        }
        // The last are those of the parameters.
        let lists = progress.remembered[own.len()].each_ref().map(|list| ordered(list));
        self.moving.remember(progress.steps, lists.each_ref().map(|list| list.as_slice()));
        self.epochs = progress.epochs;
        self.learner.bring(&settled).map_err(|error| error.0)?;
        if self.patience.is_some() {
            // What was written is what was best.
            self.best = (f64::INFINITY, 0);
            self.test().map_err(|error| error.0)?;
        }
        Ok(())
    }

    /// How many epochs there have been.
    pub fn epochs(&self) -> u64 {
        self.epochs
    }

    /// Is what has been learnt to be kept? With `patience` it is as long as the test samples have not been better before; always without.
    pub fn is_best(&self) -> bool {
        self.patience.is_none() || [0, self.epochs].contains(&self.best.1)
    }

    /// With `patience`, after how many epochs the test samples were best.
    pub fn best(&self) -> Option<u64> {
        self.patience.map(|_| self.best.1)
    }

    /// Have they not been better for so many epochs that the training ends?
    pub fn gives_up(&self) -> bool {
        self.patience.is_some_and(|patience| self.epochs - self.best.1 >= patience)
    }

    /// The frames of samples, filled up to a whole batch with the first of them, and their classes.
    fn batch(&self, samples: &[usize]) -> (Vec<Vec<f64>>, Vec<usize>) {
        let of_frame = |frame: usize| {
            let all = samples.iter().chain(samples.iter().cycle()).take(self.batch);
            all.flat_map(|&at| self.data.frame(at, frame)).map(|&x| units::scale(x, self.scale)).collect()
        };
        let input = (0..self.data.frames()).map(of_frame).collect();
        (input, samples.iter().map(|&at| self.data.class(at)).collect())
    }
}

/// The spikes of trials without those that only fill a batch up.
fn of_real(spikes: &[u64], samples: usize) -> f64 {
    spikes[..samples.min(spikes.len())].iter().sum::<u64>() as f64
}

impl Score {
    fn of(self, samples: usize, right: usize, begin: Instant) -> Score {
        let count = samples as f64;
        Score {
            loss: self.loss / count,
            accuracy: right as f64 / count,
            spikes: self.spikes / count,
            samples,
            seconds: begin.elapsed().as_secs_f64(),
        }
    }
}
