//! The train block: what learns from which data, by which loss and which optimizer.
//!
//! In comes the block; out goes a [`Train`], all of its numbers checked. Names of parameters and populations are kept as they are written: what they stand
//! for is known when the settings of a run are.
//! Never true here: a name of the network is resolved, or a file is opened.

use super::calls::Env;
use super::error::TrainError;
use super::expr::constant_of;
use super::keys::Block;
use super::lower::Lowerer;
use super::place::{FlatPath, flatten};
use super::scope::{Scope, ScopeKind};
use super::sweep::{SweptNumber, written};
use super::{Expr, ExprKind, Ty};
use crate::operators::Surrogate;
use crate::source::Span;
use crate::syntax::ast::{self, TrainMember};
use crate::units::Dim;
use std::collections::HashMap;
use std::path::PathBuf;

/// What of a model learns, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Train {
    /// What is learnt from.
    pub data: Samples,
    /// The directory of the model file.
    pub directory: PathBuf,
    /// The parameter of cells that gets the samples.
    pub input: (String, Span),
    /// How long (ms) a frame of a sample lasts, and where that is said; samples do not change if absent.
    pub frame: Option<(f64, Span)>,
    /// The weights, delays and parameters that learn.
    pub learn: Vec<Learn>,
    /// The loss.
    pub loss: Loss<Aim>,
    /// What it reads.
    pub read: Read,
    /// What is kept within bounds besides.
    pub keep: Vec<Keep>,
    /// What stands for the derivative of a spike.
    pub surrogate: Slope,
    /// Has what a spike resets no part in the derivative?
    pub detached: bool,
    /// Along which ways derivatives go back.
    pub gradient: Gradient,
    /// How parameters move.
    pub optimizer: Optimizer,
    /// How its learning rate falls.
    pub schedule: Schedule,
    /// The learning rate of delays; that of the optimizer if absent.
    pub delay_lr: Option<f64>,
    /// The largest norm of the gradient in all that learns, in canonical units.
    pub clip: Option<f64>,
    /// Samples of one step of the optimizer.
    pub batch: usize,
    /// How often all samples are seen.
    pub epochs: usize,
    /// After how many epochs in which the loss of the test samples has not become less the training ends; never before its epochs if absent.
    pub patience: Option<usize>,
    /// What is kept for testing.
    pub test: Test,
    /// The whole block.
    pub span: Span,
}

/// Where samples are: files, relative to the directory of the model, and where they are named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Samples {
    /// An archive that has their classes, too, or the samples alone.
    pub file: (String, Span),
    /// Their classes, if they are in a file of their own.
    pub labels: Option<(String, Span)>,
}

/// What nothing learns from.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// A share of the samples, drawn by the seed, and where it is said, if it is.
    Share(f64, Option<Span>),
    /// Samples of their own.
    Samples(Samples),
}

/// Along which ways derivatives go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gradient {
    /// All: backpropagation through time.
    Bptt,
    /// Within each cell, and from the cells that the loss reads to those that send to them: what e-prop adds up along the way forward.
    Eprop,
}

/// What stands for the derivative of a spike.
#[derive(Debug, Clone, PartialEq)]
pub enum Slope {
    /// One that has a name.
    Named(Surrogate),
    /// A number that is made of how far a cell is above its threshold ([`ExprKind::Beyond`]).
    Written(Expr),
}

impl Slope {
    /// The one that has a name; none if the model writes it.
    pub fn named(&self) -> Surrogate {
        match self {
            Slope::Named(surrogate) => *surrogate,
            Slope::Written(_) => Surrogate::None,
        }
    }
}

/// Something that learns.
#[derive(Debug, Clone, PartialEq)]
pub struct Learn {
    /// Its name as it is written.
    pub name: String,
    /// Where it stays; anywhere if absent.
    pub range: Option<(SweptNumber, SweptNumber)>,
    /// Where it is named.
    pub span: Span,
}

impl Learn {
    /// Something that learns, without a place in a file, and may go anywhere.
    pub fn of(name: &str) -> Learn {
        Learn { name: name.to_owned(), range: None, span: Span::default() }
    }
}

/// A loss, a mean over samples; each sample has a class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss<T = f64> {
    /// The cross entropy of the softmax of the readout.
    CrossEntropy,
    /// The mean square of the difference to one value for the cell of the right class, and another one for all others.
    MeanSquare {
        /// For the right class.
        correct: T,
        /// For the others.
        incorrect: T,
    },
}

/// What a readout shall be; of what dimension that is, is known where the readout is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aim {
    /// In canonical units.
    pub value: f64,
    /// Its dimension.
    pub dim: Dim,
    /// Where it stands.
    pub span: Span,
}

/// What is read out of a network, and of what.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// What.
    pub readout: Readout,
    /// A population, or a state of cells; where these have sections, at a place.
    pub of: String,
    /// All of it: `spike_count(out)`.
    pub written: String,
    /// Where that is named.
    pub span: Span,
}

/// What is kept within bounds: the mean over the samples of a batch of what is read out of each cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Keep {
    /// What is read out.
    pub read: Read,
    /// Between which values it costs nothing.
    pub range: (SweptNumber, SweptNumber),
    /// How far outside it costs 1.
    pub within: SweptNumber,
    /// The whole line.
    pub span: Span,
}

/// What of a trial is read out of each cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readout {
    /// The number of spikes.
    SpikeCount,
    /// The mean of a state over all steps.
    Mean,
    /// Its largest value.
    Max,
    /// Its last value.
    Last,
    /// When it spikes first (ms); the end of the run if it does not.
    FirstSpike,
    /// A state, or whether it spikes, after every step by itself: the loss is the mean of those of all steps.
    EveryStep,
}

impl Readout {
    const ALL: [(&'static str, Readout); 6] = [
        ("spike_count", Readout::SpikeCount),
        ("first_spike", Readout::FirstSpike),
        ("mean", Readout::Mean),
        ("max", Readout::Max),
        ("last", Readout::Last),
        ("every_step", Readout::EveryStep),
    ];

    /// The readout of a name.
    fn named(name: &str) -> Option<Readout> {
        Readout::ALL.iter().find(|(known, _)| *known == name).map(|(_, readout)| *readout)
    }
}

/// How parameters move.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Optimizer {
    /// Stochastic gradient descent.
    Sgd {
        /// The learning rate.
        lr: f64,
        /// The share of the last step that goes on.
        momentum: f64,
    },
    /// Adam: Kingma and Ba, ICLR (2015); with decay of weights apart from gradients, AdamW: Loshchilov and Hutter, ICLR (2019).
    Adam {
        /// The learning rate.
        lr: f64,
        /// The decay of the mean of gradients.
        beta1: f64,
        /// The decay of the mean of their squares.
        beta2: f64,
        /// What is added to the root of the squares.
        epsilon: f64,
        /// The decay of weights in a step, as a multiple of the learning rate.
        weight_decay: f64,
    },
}

/// How the learning rate falls from epoch to epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Schedule {
    /// It does not.
    Constant,
    /// Along half a cosine (Loshchilov and Hutter, ICLR, 2017, without restarts), to a share of it after the last epoch.
    Cosine {
        /// The share.
        floor: f64,
    },
    /// To a share of it after so many epochs, again and again.
    Step {
        /// The epochs.
        every: f64,
        /// The share.
        factor: f64,
    },
    /// To a share of it in every epoch.
    Exponential {
        /// The share.
        factor: f64,
    },
}

/// `f(x, name = 1)`: the name, what a loss or a readout reads, and numbers; those among them that are written.
struct Called<'a> {
    name: &'a ast::Name,
    first: Option<&'a ast::Expr>,
    numbers: HashMap<&'static str, f64>,
    written: HashMap<&'static str, Aim>,
}

const SURROGATES: [&str; 5] = ["fast_sigmoid", "arctan", "sigmoid", "triangular", "straight_through"];

impl<'a> Lowerer<'a> {
    /// Lowers the train block.
    pub(super) fn train(&mut self, train: &'a ast::Train) -> Option<Train> {
        let before = self.diagnostics.count();
        let mut keys: HashMap<&str, &ast::Let> = HashMap::new();
        let (mut learn, mut keep): (Vec<Learn>, Vec<Keep>) = (Vec::new(), Vec::new());
        let mut meant: Vec<&str> = Vec::new();
        let word = Span { end: train.span.start + 5, ..train.span };
        for member in &train.members {
            match member {
                TrainMember::Key(l) if !Block::Train.has_key(&l.name.text) => {
                    self.unknown_key(&l.name, Block::Train);
                    // What is meant by it is not missing.
                    meant.extend(crate::diag::nearest(&l.name.text, Block::Train.keys().iter().copied()));
                }
                TrainMember::Key(l) => {
                    if let Some(first) = keys.insert(&l.name.text, l) {
                        self.duplicate_key(&l.name, first.name.span);
                    }
                }
                TrainMember::Learn { target, range, .. } => {
                    for flat in flatten(target) {
                        if !flat.selections.is_empty() {
                            self.error(TrainError::PartOf { span: flat.span });
                        }
                        // What is wrong is said, and the block is not used then.
                        let _ = self.one_place(&flat);
                        let range = range.as_ref().map(|(low, high)| (written(low), written(high)));
                        learn.push(Learn { name: self.name_with_place(&flat), range, span: flat.span });
                    }
                }
                TrainMember::Keep { readout, of, range, within, span } => keep.extend(self.keep(
                    (readout, &of.1),
                    (written(&range.0), written(&range.1)),
                    written(within),
                    *span,
                )),
            }
        }
        if learn.is_empty() {
            self.error(TrainError::NothingLearns { span: word });
        }
        let key = |l: &mut Self, key: &'static str, example: &'static str| {
            let found = keys.get(key).map(|l| &l.value);
            if found.is_none() && !meant.contains(&key) {
                l.error(TrainError::NoKey { key, example, span: word });
            }
            found
        };
        let archive = "data = \"digits.npz\"";
        let file = key(self, "data", "data = \"digits.npz\"").and_then(|e| self.train_file(e, "data", archive));
        let [labels, test_labels] = [
            ("labels", "labels = \"train-labels-idx1-ubyte\""),
            ("test_labels", "test_labels = \"t10k-labels-idx1-ubyte\""),
        ]
        .map(|(key, example)| match keys.get(key) {
            Some(l) => self.train_file(&l.value, key, example).map(Some),
            None => Some(None),
        });
        let input = key(self, "input", "input = pixels.x").and_then(|e| self.train_path(e));
        let frame = match keys.get("frame") {
            Some(l) => self.train_time(&l.value).map(|ms| Some((ms, l.value.span))),
            None => Some(None),
        };
        let loss = key(self, "loss", "loss = cross_entropy(spike_count(out))").and_then(|e| self.train_loss(e));
        let optimizer = match keys.get("optimizer") {
            Some(l) => self.train_optimizer(&l.value),
            None => Some(Optimizer::Adam { lr: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 }),
        };
        let schedule = match keys.get("schedule") {
            Some(l) => self.train_schedule(&l.value),
            None => Some(Schedule::Constant),
        };
        let mut above_zero = |key: &'static str| match keys.get(key) {
            Some(l) => self.train_number(&l.value, key, &|x| x > 0.0, "a number above 0").map(Some),
            None => Some(None),
        };
        let (clip, delay_lr) = (above_zero("clip"), above_zero("delay_lr"));
        if let Some(l) = keys.get("delay_lr").filter(|_| !learn.iter().any(|one| one.name.ends_with(".delay"))) {
            self.error(TrainError::NoDelays { span: l.name.span });
        }
        let surrogate = match keys.get("surrogate") {
            Some(l) => self.train_surrogate(&l.value),
            None => Some(Slope::Named(Surrogate::FastSigmoid(25.0))),
        };
        let detached = match keys.get("reset") {
            Some(l) => match &l.value.kind {
                ast::ExprKind::Path(path) if super::names::join(path) == "detached" => Some(true),
                ast::ExprKind::Path(path) if super::names::join(path) == "attached" => Some(false),
                _ => {
                    self.error(TrainError::Reset { span: l.value.span });
                    None
                }
            },
            None => Some(true),
        };
        let gradient = match keys.get("gradient") {
            Some(l) => match &l.value.kind {
                ast::ExprKind::Path(path) if super::names::join(path) == "bptt" => Some(Gradient::Bptt),
                ast::ExprKind::Path(path) if super::names::join(path) == "eprop" => Some(Gradient::Eprop),
                _ => {
                    self.error(TrainError::Gradient { span: l.value.span });
                    None
                }
            },
            None => Some(Gradient::Bptt),
        };
        let mut count = |key: &'static str, absent: Option<usize>| match keys.get(key) {
            Some(l) => self
                .train_number(&l.value, key, &|x| x >= 1.0 && x.fract() == 0.0 && x <= 1e9, "a whole number from 1 on")
                .map(|x| Some(x as usize)),
            None => Some(absent),
        };
        let (batch, epochs) = (count("batch", Some(32)), count("epochs", Some(10)));
        let patience = count("patience", None);
        let test = match keys.get("test") {
            Some(ast::Let { value: ast::Expr { kind: ast::ExprKind::Str(name), span }, .. }) => {
                test_labels.clone().map(|labels| Test::Samples(Samples { file: (name.clone(), *span), labels }))
            }
            Some(l) => self
                .train_number(
                    &l.value,
                    "test",
                    &|x| (0.0..1.0).contains(&x),
                    "a share from 0 to less than 1, or a file",
                )
                .map(|share| Test::Share(share, Some(l.value.span))),
            None => Some(Test::Share(0.2, None)),
        };
        if let (Some(Some((_, span))), Some(Test::Share(..))) = (&test_labels, &test) {
            self.error(TrainError::LabelsOfNone { span: *span });
        }
        if let (Some(l), Some(Test::Share(0.0, _))) = (keys.get("patience"), &test) {
            self.error(TrainError::NoTests { span: l.name.span });
        }
        if self.diagnostics.since(before).iter().any(crate::diag::Diagnostic::is_error) {
            return None;
        }
        let (loss, read) = loss?;
        Some(Train {
            data: Samples { file: file?, labels: labels? },
            directory: self.sources.file(train.span.file).directory.clone(),
            input: input?,
            frame: frame?,
            learn,
            loss,
            read,
            keep,
            surrogate: surrogate?,
            detached: detached?,
            gradient: gradient?,
            optimizer: optimizer?,
            schedule: schedule?,
            delay_lr: delay_lr?,
            clip: clip?,
            batch: batch??,
            epochs: epochs??,
            patience: patience?,
            test: test?,
            span: train.span,
        })
    }

    /// The name of something of the network.
    fn train_path(&mut self, e: &ast::Expr) -> Option<(String, Span)> {
        if let ast::ExprKind::Path(path) = &e.kind {
            return Some((super::names::join(path), e.span));
        }
        self.error(TrainError::NotAName { span: e.span });
        None
    }

    /// The names of a path, and among them the place in a cell that it may have: `a.b.dend(0.5).Synapse.weight`.
    fn name_with_place(&self, flat: &FlatPath<'_>) -> String {
        let mut names: Vec<String> = flat.names.iter().map(|name| name.text.clone()).collect();
        if let Some(at) = flat.at {
            let before = flat.names.iter().filter(|name| name.span.start < at.span.start).count();
            names.insert(before, self.text(at.span).split_whitespace().collect());
        }
        names.join(".")
    }

    /// The name of cells or of a state of them, which may be at a place: `out.soma(0.5).v`.
    fn read_path(&mut self, e: &ast::Expr) -> Option<(String, Span)> {
        match &e.kind {
            ast::ExprKind::At(before, ..) if !before.is_empty() => {
                Some((self.text(e.span).split_whitespace().collect(), e.span))
            }
            _ => self.train_path(e),
        }
    }

    /// The name of a file, and where it stands.
    fn train_file(&mut self, e: &ast::Expr, key: &'static str, example: &'static str) -> Option<(String, Span)> {
        match &e.kind {
            ast::ExprKind::Str(name) => Some((name.clone(), e.span)),
            _ => {
                self.error(TrainError::NotAFile { key, example, span: e.span });
                None
            }
        }
    }

    /// A time in ms, above zero.
    fn train_time(&mut self, e: &ast::Expr) -> Option<f64> {
        let mut scope = Scope::new(ScopeKind::Constant, 0);
        let value = self.expr(&mut scope, "", e)?;
        let ms = constant_of(&value).filter(|_| value.ty == Ty::Real(Dim::TIME));
        if ms.is_none_or(|ms| !(ms.is_finite() && ms > 0.0)) {
            self.error(TrainError::NotATime { span: e.span });
        }
        ms
    }

    fn train_number(
        &mut self,
        e: &ast::Expr,
        what: &str,
        fits: &dyn Fn(f64) -> bool,
        needed: &'static str,
    ) -> Option<f64> {
        let mut scope = Scope::new(ScopeKind::Constant, 0);
        let value = self.expr(&mut scope, "", e)?;
        let value = self.expect(&scope, value, Dim::ONE, &format!("`{what}`"))?;
        self.train_constant(&value, e.span, what, (fits, needed))
    }

    /// A number of any dimension, in canonical units.
    fn train_constant(
        &mut self,
        value: &Expr,
        span: Span,
        what: &str,
        (fits, needed): (&dyn Fn(f64) -> bool, &'static str),
    ) -> Option<f64> {
        match constant_of(value) {
            Some(x) if x.is_finite() && fits(x) => Some(x),
            Some(x) => {
                self.error(TrainError::Number { what, value: x, needed, span });
                None
            }
            None => {
                self.error(TrainError::NotConstant { what, span });
                None
            }
        }
    }

    /// A number that has the unit that its place asks for.
    fn train_aim(&mut self, e: &ast::Expr, what: &str) -> Option<Aim> {
        let mut scope = Scope::new(ScopeKind::Constant, 0);
        let x = self.expr(&mut scope, "", e)?;
        let value = self.train_constant(&x, e.span, what, (&|_| true, "a number"))?;
        let Ty::Real(dim) = x.ty else { return None };
        Some(Aim { value, dim, span: e.span })
    }

    /// Reads a call, with the numbers that it may have and what they are if they are absent.
    fn called(
        &mut self,
        e: &'a ast::Expr,
        what: &'static str,
        known: &[&'static str],
        numbers: &dyn Fn(&str) -> &'static [(&'static str, f64)],
    ) -> Option<Called<'a>> {
        let (name, args): (&ast::Name, &[ast::Arg]) = match &e.kind {
            ast::ExprKind::Call(name, args) => (name, args),
            ast::ExprKind::Path(path) if path.len() == 1 => (&path[0], &[]),
            _ => {
                self.error(TrainError::Unknown { what, name: "", known, span: e.span });
                return None;
            }
        };
        if !known.contains(&name.text.as_str()) {
            self.error(TrainError::Unknown { what, name: &name.text, known, span: name.span });
            return None;
        }
        let numbers = numbers(&name.text);
        let mut called =
            Called { name, first: None, numbers: numbers.iter().copied().collect(), written: HashMap::new() };
        // What a loss or a readout reads has no name; of others that is the first number.
        let reads = matches!(what, "loss" | "readout");
        let mut fine = true;
        let mut nameless = false;
        let mut said: Vec<(&str, Span)> = Vec::new();
        for arg in args {
            let known = match &arg.name {
                None if std::mem::replace(&mut nameless, true) || !reads && numbers.is_empty() => {
                    let example = numbers.get(usize::from(!reads)).map(|(known, _)| *known);
                    let name = &name.text;
                    self.error(TrainError::TooMany { name, example, span: arg.value.span });
                    fine = false;
                    continue;
                }
                None if reads => {
                    called.first = Some(&arg.value);
                    continue;
                }
                None => numbers[0].0,
                Some(key) => match numbers.iter().find(|(known, _)| *known == key.text) {
                    Some((known, _)) => known,
                    None => {
                        let known: Vec<&str> = numbers.iter().map(|(known, _)| *known).collect();
                        self.error(TrainError::Argument {
                            of: &name.text,
                            name: &key.text,
                            known: &known,
                            span: key.span,
                        });
                        fine = false;
                        continue;
                    }
                },
            };
            let span = arg.name.as_ref().map_or(arg.value.span, |key| key.span);
            if let Some((_, first)) = said.iter().find(|(first, _)| *first == known) {
                self.duplicate_key(&ast::Name { text: known.to_owned(), span }, *first);
                fine = false;
                continue;
            }
            said.push((known, span));
            // The slope of a surrogate has the unit of one over the threshold's.
            if ["correct", "incorrect", "slope"].contains(&known) {
                match self.train_aim(&arg.value, known) {
                    Some(aim) => drop(called.written.insert(known, aim)),
                    None => fine = false,
                }
                continue;
            }
            let (fits, needed): (&dyn Fn(f64) -> bool, _) = match known {
                "beta1" | "beta2" | "momentum" => (&|x| (0.0..1.0).contains(&x), "a number from 0 to less than 1"),
                "weight_decay" => (&|x| x >= 0.0, "a number from 0 on"),
                "every" => (&|x| x >= 1.0 && x.fract() == 0.0, "a whole number from 1 on"),
                "floor" => (&|x| (0.0..=1.0).contains(&x), "a share from 0 to 1"),
                "factor" => (&|x| x > 0.0 && x <= 1.0, "a share above 0, up to 1"),
                _ => (&|x| x > 0.0, "a number above 0"),
            };
            match self.train_number(&arg.value, known, fits, needed) {
                Some(x) => drop(called.numbers.insert(known, x)),
                None => fine = false,
            }
        }
        fine.then_some(called)
    }

    fn train_loss(&mut self, e: &'a ast::Expr) -> Option<(Loss<Aim>, Read)> {
        let numbers = |name: &str| -> &'static [(&'static str, f64)] {
            match name {
                "mse" => &[("correct", f64::NAN), ("incorrect", f64::NAN)],
                _ => &[],
            }
        };
        let called = self.called(e, "loss", &["cross_entropy", "mse"], &numbers)?;
        let loss = match called.name.text.as_str() {
            "mse" => {
                let [correct, incorrect] = ["correct", "incorrect"].map(|key| called.written.get(key).copied());
                let (Some(correct), Some(incorrect)) = (correct, incorrect) else {
                    self.error(TrainError::NoTargets { span: e.span });
                    return None;
                };
                Loss::MeanSquare { correct, incorrect }
            }
            _ => Loss::CrossEntropy,
        };
        let Some(read) = called.first else {
            self.error(TrainError::NoReadout { loss: &called.name.text, span: e.span });
            return None;
        };
        let names = Readout::ALL.map(|(name, _)| name);
        let inner = self.called(read, "readout", &names, &|_| &[])?;
        let readout = Readout::named(&inner.name.text)?;
        match inner.first {
            Some(of) => {
                let (of, span) = self.read_path(of)?;
                let written = format!("{}({of})", inner.name.text);
                Some((loss, Read { readout, of, written, span }))
            }
            None => {
                self.error(TrainError::NotAName { span: read.span });
                None
            }
        }
    }

    /// `keep spike_count(hidden) = 1 .. 20 within 10`.
    fn keep(
        &mut self,
        (readout, of): (&'a ast::Name, &ast::Name),
        range: (SweptNumber, SweptNumber),
        within: SweptNumber,
        span: Span,
    ) -> Option<Keep> {
        let known: Vec<&'static str> = (Readout::ALL.iter())
            .filter(|(_, readout)| *readout != Readout::EveryStep)
            .map(|(name, _)| *name)
            .collect();
        if !known.contains(&readout.text.as_str()) {
            self.error(TrainError::Unknown { what: "readout", name: &readout.text, known: &known, span: readout.span });
            return None;
        }
        let written = format!("{}({})", readout.text, of.text);
        let read = Read { readout: Readout::named(&readout.text)?, of: of.text.clone(), written, span: of.span };
        Some(Keep { read, range, within, span })
    }

    fn train_optimizer(&mut self, e: &'a ast::Expr) -> Option<Optimizer> {
        let numbers = |name: &str| -> &'static [(&'static str, f64)] {
            match name {
                "sgd" => &[("lr", 1e-2), ("momentum", 0.0)],
                "adam" => &[("lr", 1e-3), ("beta1", 0.9), ("beta2", 0.999), ("epsilon", 1e-8)],
                _ => &[("lr", 1e-3), ("beta1", 0.9), ("beta2", 0.999), ("epsilon", 1e-8), ("weight_decay", 1e-2)],
            }
        };
        let called = self.called(e, "optimizer", &["sgd", "adam", "adamw"], &numbers)?;
        let number = |key: &str| called.numbers.get(key).copied().unwrap_or(0.0);
        Some(match called.name.text.as_str() {
            "sgd" => Optimizer::Sgd { lr: number("lr"), momentum: number("momentum") },
            _ => Optimizer::Adam {
                lr: number("lr"),
                beta1: number("beta1"),
                beta2: number("beta2"),
                epsilon: number("epsilon"),
                weight_decay: number("weight_decay"),
            },
        })
    }

    fn train_schedule(&mut self, e: &'a ast::Expr) -> Option<Schedule> {
        let numbers = |name: &str| -> &'static [(&'static str, f64)] {
            match name {
                "cosine" => &[("floor", 0.0)],
                "step" => &[("every", f64::NAN), ("factor", 0.1)],
                _ => &[("factor", f64::NAN)],
            }
        };
        let called = self.called(e, "schedule", &["cosine", "step", "exponential"], &numbers)?;
        if let Some((argument, _)) = called.numbers.iter().find(|(_, x)| x.is_nan()) {
            self.error(TrainError::Missing { of: &called.name.text, argument, span: e.span });
            return None;
        }
        let number = |key: &str| called.numbers[key];
        Some(match called.name.text.as_str() {
            "cosine" => Schedule::Cosine { floor: number("floor") },
            "step" => Schedule::Step { every: number("every"), factor: number("factor") },
            _ => Schedule::Exponential { factor: number("factor") },
        })
    }

    /// `arctan(slope = 2)`, or an expression of `x`.
    fn train_surrogate(&mut self, e: &'a ast::Expr) -> Option<Slope> {
        let is_named = match &e.kind {
            ast::ExprKind::Path(path) => {
                path.len() == 1 && path[0].text != "x" && self.item(0, &path[0].text).is_none()
            }
            ast::ExprKind::Call(name, _) => {
                SURROGATES.contains(&name.text.as_str())
                    || super::builtins::function(&name.text).is_none() && self.item(0, &name.text).is_none()
            }
            _ => false,
        };
        if is_named {
            return self.named_surrogate(e).map(Slope::Named);
        }
        let mut scope = Scope::new(ScopeKind::Constant, 0);
        let beyond = Expr { kind: ExprKind::Beyond, ty: Ty::Real(Dim::ONE), span: e.span };
        let env = Env::from([("x".to_owned(), Some(beyond))]);
        let slope = self.expr_in(&mut scope, "", e, Some(&env))?;
        self.expect(&scope, slope, Dim::ONE, "`surrogate`").map(Slope::Written)
    }

    fn named_surrogate(&mut self, e: &'a ast::Expr) -> Option<Surrogate> {
        let numbers = |name: &str| -> &'static [(&'static str, f64)] {
            match name {
                "straight_through" => &[],
                "fast_sigmoid" => &[("slope", 25.0)],
                _ => &[("slope", 1.0)],
            }
        };
        let called = self.called(e, "surrogate", &SURROGATES, &numbers)?;
        let slope = match called.written.get("slope") {
            Some(Aim { value, .. }) if *value > 0.0 => *value,
            Some(&Aim { value, span, .. }) => {
                self.error(TrainError::Number { what: "slope", value, needed: "a number above 0", span });
                return None;
            }
            None => called.numbers.get("slope").copied().unwrap_or(1.0),
        };
        Some(match called.name.text.as_str() {
            "fast_sigmoid" => Surrogate::FastSigmoid(slope),
            "arctan" => Surrogate::Arctan(slope),
            "sigmoid" => Surrogate::Sigmoid(slope),
            "triangular" => Surrogate::Triangular(slope),
            _ => Surrogate::StraightThrough,
        })
    }
}
