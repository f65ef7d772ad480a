//! What cells begin with, where that is not the same in all trials and in all batches.
//!
//! In come the fields of a network that learns; out go those whose first values follow what samples give, or a parameter that learns, and these values; and
//! what cells send along graded synapses.
//! Never true here: a value is computed that stays what it was.

use super::{Whole, internal};
use crate::diag::Diagnostic;
use crate::engine::EngineError;
use crate::ode::{self, Model, NodeId, ParamId, StateId};
use crate::simulate::trials::Net;
use crate::step::{Program, Source};
use std::collections::{BTreeMap, BTreeSet};

/// What follows samples and parameters that learn.
pub(super) struct Followers {
    all: Vec<Follower>,
    /// In the order of [`Net::sent`].
    sendings: Vec<Sending>,
    /// Does something that is sent follow samples?
    sends_samples: bool,
    /// Of the parameter that samples give: the number of its numbers, and those of one trial.
    input: (u32, usize),
    /// The numbers of files that are read, by population and number.
    data: BTreeMap<(usize, u32), Vec<f64>>,
}

/// What cells send along graded synapses.
struct Sending {
    /// A function of parameters, the index and draws.
    value: NodeId,
    population: usize,
    /// The cells of a trial.
    cells: usize,
}

/// Something that cells begin with.
struct Follower {
    /// Its number in [`Net::begin`].
    begin: usize,
    /// What it is: a function of parameters, the index and draws.
    value: NodeId,
    population: usize,
    /// The cells of a trial.
    cells: usize,
    /// Does it differ from sample to sample?
    of_samples: bool,
}

impl Followers {
    /// Those among what cells begin with, in a program whose events are carried. Samples give `input`; `learnt` are the parameters that learn; `passed` is
    /// what cells pass on through graded synapses when a run begins, by the first projection.
    pub fn new(
        model: &Model,
        program: &Program,
        net: &Net,
        (input, learnt, passed): (ParamId, BTreeSet<ParamId>, BTreeMap<usize, NodeId>),
        whole: &Whole,
    ) -> Result<Followers, Vec<Diagnostic>> {
        let Some(&given) = model.made_of(model.param(input).value).1.first() else {
            return Err(internal("samples give no numbers of cells"));
        };
        let each = net.given.elements / net.trials.max(1);
        let mut followers = Followers {
            all: Vec::new(),
            sendings: Vec::new(),
            sends_samples: false,
            input: (given, each),
            data: BTreeMap::new(),
        };
        let numbers = |population: usize, files: BTreeSet<u32>| {
            let of_file = move |file: u32| Some(((population, file), whole.data(population, file)?));
            files.into_iter().filter_map(of_file)
        };
        for (_, p, graded) in model.graded_given() {
            let (params, files) = model.made_of(graded.sent);
            followers.sends_samples |= params.contains(&input);
            followers.data.extend(numbers(p.from, files));
            let cells = whole.experiment.extent.cells[p.from];
            followers.sendings.push(Sending { value: graded.sent, population: p.from, cells });
        }
        for (begin, (both, values)) in net.begin.iter().enumerate() {
            let (value, population) = match program.field(both.forward).source {
                Source::Param(param) if ParamId(param) == input => continue,
                Source::Param(param) => {
                    let param = model.param(ParamId(param));
                    (param.value, param.home.or(param.population))
                }
                Source::State(state) => {
                    let state = model.state(StateId(state));
                    (state.init, Some(state.population))
                }
                Source::Sent(first, _) => {
                    let first = first as usize;
                    let value = passed.get(&first).ok_or_else(|| internal("what cells pass on is not known"))?;
                    (*value, Some(model.projections[first].from))
                }
                _ => continue,
            };
            let is_passed = matches!(program.field(both.forward).source, Source::Sent(..));
            let Some(population) = population else { continue };
            let (params, files) = model.made_of(value);
            let of_samples = params.contains(&input);
            if is_passed || of_samples || !params.is_disjoint(&learnt) {
                let cells = values.len() / net.trials.max(1);
                followers.data.extend(numbers(population, files));
                followers.all.push(Follower { begin, value, population, cells, of_samples });
            }
        }
        Ok(followers)
    }

    /// The file whose numbers stand for what samples give.
    pub fn file(&self) -> u32 {
        self.input.0
    }

    /// Do any follow samples?
    pub fn of_samples(&self) -> bool {
        self.sends_samples || self.all.iter().any(|one| one.of_samples)
    }

    /// Which they are, among what cells begin with.
    pub fn numbers(&self) -> Vec<usize> {
        self.all.iter().map(|one| one.begin).collect()
    }

    /// Brings them up to date, and what is sent, with the values that samples give, `[frame][trial and cell]`.
    pub fn bring(&self, model: &Model, frames: &[Vec<f64>], net: &mut Net) -> Result<(), EngineError> {
        let of_trial = |frame: &[f64], trial: usize, (value, population, cells): (NodeId, usize, usize)| {
            let (input, own) = self.input;
            let data = |population: Option<usize>, file: u32| match file == input {
                true => Some(frame.get(trial * own..(trial + 1) * own)?.to_vec()),
                false => self.data.get(&(population?, file)).cloned(),
            };
            let values = ode::cells::values(model, value, Some(population), cells, &data);
            values.ok_or_else(|| EngineError("internal error: what cells begin with or send is not known".into()))
        };
        for (sent, one) in net.sent.iter_mut().zip(&self.sendings) {
            let of_frame = |frame: &Vec<f64>| -> Result<Vec<f64>, EngineError> {
                let all = (0..net.trials).map(|trial| of_trial(frame, trial, (one.value, one.population, one.cells)));
                Ok(all.collect::<Result<Vec<_>, _>>()?.concat())
            };
            *sent = frames.iter().map(of_frame).collect::<Result<_, _>>()?;
        }
        let first = frames.first().map_or(&[][..], Vec::as_slice);
        for one in &self.all {
            let of_trial = |trial: usize| of_trial(first, trial, (one.value, one.population, one.cells));
            let values = match one.of_samples {
                true => (0..net.trials).map(of_trial).collect::<Result<Vec<_>, _>>()?.concat(),
                false => of_trial(0)?.repeat(net.trials),
            };
            if let Some((_, begin)) = net.begin.get_mut(one.begin) {
                *begin = values;
            }
        }
        Ok(())
    }
}
