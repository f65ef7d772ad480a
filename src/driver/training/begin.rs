//! What cells begin with, where that is not the same in all trials and in all batches.
//!
//! In come the fields of a network that learns; out go those whose first values follow what samples give, or a parameter that learns, and these values.
//! Never true here: a value is computed that stays what it was.

use super::{Whole, internal};
use crate::diag::Diagnostic;
use crate::engine::EngineError;
use crate::ode::{self, Model, Node, NodeId, ParamId, StateId};
use crate::simulate::trials::Net;
use crate::step::{Program, Source};
use std::collections::{BTreeMap, BTreeSet};

/// What follows samples and parameters that learn.
pub(super) struct Followers {
    all: Vec<Follower>,
    /// Of the parameter that samples give: the number of its numbers, and those of one trial.
    input: (u32, usize),
    /// The numbers of files that are read, by population and number.
    data: BTreeMap<(usize, u32), Vec<f64>>,
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

/// Does a value follow one of these parameters?
pub(super) fn follows(model: &Model, value: NodeId, params: &BTreeSet<ParamId>) -> bool {
    let (mut seen, mut left) = (BTreeSet::new(), vec![value]);
    while let Some(value) = left.pop() {
        for id in model.graph.reachable([value]) {
            let Node::Param(param) = model.graph.node(id) else { continue };
            if params.contains(&param) {
                return true;
            }
            if seen.insert(param) {
                left.push(model.param(param).value);
            }
        }
    }
    false
}

impl Followers {
    /// Those among what cells begin with, in a program whose events are carried. Samples give `input`; `learnt` are the parameters that learn.
    pub fn new(
        model: &mut Model,
        program: &Program,
        net: &Net,
        (input, learnt): (ParamId, BTreeSet<ParamId>),
        whole: &Whole,
    ) -> Result<Followers, Vec<Diagnostic>> {
        let samples = BTreeSet::from([input]);
        let of_files = |model: &Model, value: NodeId| -> Vec<u32> {
            let (mut found, mut seen, mut left) = (Vec::new(), BTreeSet::new(), vec![value]);
            while let Some(value) = left.pop() {
                for id in model.graph.reachable([value]) {
                    match model.graph.node(id) {
                        Node::Data(file) => found.push(file),
                        Node::Param(param) if seen.insert(param) => left.push(model.param(param).value),
                        _ => {}
                    }
                }
            }
            found
        };
        let given = of_files(model, model.param(input).value);
        let [given] = given[..] else { return Err(internal("samples give no numbers of cells")) };
        let mut followers = Followers { all: Vec::new(), input: (given, 0), data: BTreeMap::new() };
        for (begin, (both, values)) in net.begin.iter().enumerate() {
            let (value, population) = match program.field(both.forward).source {
                Source::Param(param) if ParamId(param) == input => continue,
                Source::Param(param) => {
                    let (value, p) = (model.param(ParamId(param)).value, model.param(ParamId(param)));
                    (value, p.home.or(p.population))
                }
                Source::State(state) => {
                    let state = model.state(StateId(state));
                    (state.init, Some(state.population))
                }
                _ => continue,
            };
            let Some(population) = population else { continue };
            let of_samples = follows(model, value, &samples);
            if of_samples || follows(model, value, &learnt) {
                let cells = values.len() / net.trials.max(1);
                let one = Follower { begin, value, population, cells, of_samples };
                for file in of_files(model, one.value) {
                    let own = whole.data(one.population, file);
                    own.and_then(|numbers| followers.data.insert((one.population, file), numbers));
                }
                followers.all.push(one);
            }
        }
        followers.input.1 = net.given.elements / net.trials.max(1);
        Ok(followers)
    }

    /// Do any follow samples?
    pub fn of_samples(&self) -> bool {
        self.all.iter().any(|one| one.of_samples)
    }

    /// Which they are, among what cells begin with.
    pub fn numbers(&self) -> Vec<usize> {
        self.all.iter().map(|one| one.begin).collect()
    }

    /// Brings them up to date, with the values that samples give at first, trial by trial.
    pub fn bring(&self, model: &Model, given: &[f64], net: &mut Net) -> Result<(), EngineError> {
        for one in &self.all {
            let of_trial = |trial: usize| {
                let (input, own) = self.input;
                let data = |population: Option<usize>, file: u32| match file == input {
                    true => Some(given.get(trial * own..(trial + 1) * own)?.to_vec()),
                    false => self.data.get(&(population?, file)).cloned(),
                };
                let values = ode::cells::values(model, one.value, Some(one.population), one.cells, &data);
                values.ok_or_else(|| {
                    let name = net.begin.get(one.begin).map_or(0, |(both, _)| both.forward.0);
                    EngineError(format!("internal error: what field {name} begins with is not known"))
                })
            };
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
