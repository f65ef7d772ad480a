//! Spikes, what they reset, and what arrives somewhere else after a delay.
//!
//! In come the states at a time; out go changed states, spikes, and when something is due next.
//! Never true here: a time is rounded to a step.

use super::switches::Switches;
use super::tape::{Ground, Scene, Tape};
use super::{TINY, is_clock, lost, spiking};
use crate::engine::{Edges, EngineError};
use crate::ode::{Condition, Model, Node, NodeId, STRETCH, Spike};
use crate::step::{FieldId, Source};
use rustc_hash::FxHashMap as HashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

/// Events that are so near to each other (ms, or so much of the time) are at one time; so near are spikes found.
pub const TINY_TIME: f64 = 1e-12;
/// At one time spikes make others so often at most.
const ROUNDS: u32 = 10_000;

/// The edges of a projection with what they carry, and for how long.
pub struct Lines {
    /// By target.
    pub edges: Arc<Edges>,
    /// What each carries.
    pub weights: Vec<f64>,
    /// How long it takes (ms).
    pub delays: Vec<f64>,
}

/// What is due at a time. Times are not negative, so their bits are in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    time: u64,
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// The cells of a population (by rule) wake up.
    Wakes(usize, usize),
    /// Something arrives through a projection at an element; what it carries, in bits.
    Arrives(usize, usize, u64),
    /// A drive does something to an element.
    Drives(usize, usize),
}

/// The spike rule of a population.
struct Rule {
    field: FieldId,
    /// What makes a spike: whether it is true of each.
    truth: Tape,
    /// How far each is above it, which says where it becomes true.
    margin: Tape,
    /// New values of states, and for how long what is held is.
    resets: Tape,
    reset: Vec<usize>,
    refractory: bool,
    /// The first unknown of each state that is held.
    held: Vec<Vec<u32>>,
    /// Must it come from below?
    crosses: bool,
    armed: Vec<bool>,
    asleep: Vec<bool>,
    /// Where its spikes go: for each element, projections with target, weight and delay.
    targets: Vec<Vec<(usize, u32, f64, f64)>>,
}

/// What events add to a state.
struct Added {
    first: usize,
    amount: Tape,
    /// The projection that brings it; none if a drive does.
    arrives: Option<usize>,
}

/// What happens between steps.
pub struct Events {
    rules: Vec<Rule>,
    added: Vec<Added>,
    due: BinaryHeap<Reverse<Due>>,
    arrived: Vec<Vec<f64>>,
    /// For each projection, the one that stands for all that arrives at its receptor.
    stands_for: Vec<usize>,
    driven: bool,
}

impl Events {
    /// Those of a model.
    pub fn new(
        model: &mut Model,
        ground: &Ground,
        fields: &HashMap<Source, FieldId>,
        lines: &[Lines],
    ) -> Result<Events, EngineError> {
        let mut rules = Vec::new();
        for population in 0..model.populations.len() {
            let Some(spike) = model.populations[population].spike.clone() else { continue };
            let crosses = matches!(spike.condition, Condition::Crosses(..));
            let [truth, margin] = spiking(model, population)?.ok_or_else(|| lost("what makes a spike"))?;
            let first = |state: crate::ode::StateId| ground.unknowns[state.0 as usize].ok_or_else(|| lost("a state"));
            let values: Vec<_> = spike.resets.iter().map(|reset| reset.1).chain(spike.refractory).collect();
            let count = ground.sizes[population];
            let mut targets = vec![Vec::new(); count];
            for (at, p) in model.projections.iter().enumerate().filter(|(_, p)| p.from == population) {
                let Lines { edges, weights, delays } = &lines[at];
                for target in 0..ground.sizes[p.to] {
                    let range = edges.offsets[target] as usize..edges.offsets[target + 1] as usize;
                    for edge in range {
                        let source = edges.sources[edge] as usize;
                        targets[source].push((at, target as u32, weights[edge], delays[edge]));
                    }
                }
            }
            let held = spike.held.iter().map(|&s| ground.unknowns(model, s, population).ok_or_else(|| lost("a state")));
            rules.push(Rule {
                field: *fields.get(&Source::Spikes(population as u32)).ok_or_else(|| lost("spikes"))?,
                truth: Tape::new(model, ground, population, &[truth])?,
                margin: Tape::new(model, ground, population, &[margin])?,
                resets: Tape::new(model, ground, population, &values)?,
                reset: spike.resets.iter().map(|reset| first(reset.0)).collect::<Result<_, _>>()?,
                refractory: spike.refractory.is_some(),
                held: held.collect::<Result<_, _>>()?,
                crosses,
                armed: vec![false; count],
                asleep: vec![false; count],
                targets,
            });
        }
        let mut due = BinaryHeap::new();
        for (at, p) in model.projections.iter().enumerate().filter(|(_, p)| is_clock(model, p.from)) {
            let Lines { edges, weights, delays } = &lines[at];
            for target in 0..ground.sizes[p.to] {
                for edge in edges.offsets[target] as usize..edges.offsets[target + 1] as usize {
                    let begin = f64::from(edges.sources[edge]) * f64::from(STRETCH) * model.dt;
                    let what = What::Arrives(at, target, weights[edge].to_bits());
                    due.push(Reverse(Due { time: (begin + delays[edge]).max(0.0).to_bits(), what }));
                }
            }
        }
        let (mut added, mut driven) = (Vec::new(), false);
        for jump in model.jumps.clone() {
            let state = model.state(jump.state);
            let population = state.population;
            let first = ground.unknowns[jump.state.0 as usize].ok_or_else(|| lost("a state"))?;
            let arrives = model.graph.reachable([jump.amount]).into_iter().find_map(|id| match model.graph.node(id) {
                Node::Arrived(p, _) => Some(p as usize),
                _ => None,
            });
            let number = added.len();
            added.push(Added { first, amount: Tape::new(model, ground, population, &[jump.amount])?, arrives });
            if arrives.is_none() {
                for (t, element) in driven_at(model, ground, population, jump.amount)? {
                    driven = true;
                    due.push(Reverse(Due { time: t.to_bits(), what: What::Drives(number, element) }));
                }
            }
        }
        let arrived = model.projections.iter().map(|p| vec![0.0; ground.sizes[p.to]]).collect();
        let stands_for = model.projections.iter().map(|p| p.arrives as usize).collect();
        Ok(Events { rules, added, due, arrived, stands_for, driven })
    }

    /// Can a cell spike?
    pub fn any_spikes(&self) -> bool {
        !self.rules.is_empty()
    }

    /// Up to when drives are known, if there are some.
    pub fn end_at(&self, duration: f64) -> Option<f64> {
        self.driven.then_some(duration)
    }

    /// When something is due next.
    pub fn next(&self) -> f64 {
        self.due.peek().map_or(f64::INFINITY, |Reverse(due)| f64::from_bits(due.time))
    }

    /// A run begins with these values.
    pub fn begin(&mut self, y: &[f64], t: f64, switched: f64) {
        for rule in &mut self.rules {
            let truths = &rule.truth.values(&scene(y, t, switched))[0];
            // What is above from the beginning has crossed nothing.
            rule.armed.iter_mut().zip(truths).for_each(|(armed, truth)| *armed = !rule.crosses || *truth == 0.0);
        }
    }

    /// Does a cell spike with these values?
    pub fn over(&mut self, y: &[f64], t: f64, switched: f64) -> bool {
        let mut over = false;
        for Rule { truth, armed, asleep, .. } in &mut self.rules {
            truth.run(&scene(y, t, switched), |_, first, values| {
                let mut cells = (first..).zip(values);
                over |= cells.any(|(element, truth)| armed[element] && !asleep[element] && *truth != 0.0);
            });
        }
        over
    }

    /// How far the cell that is nearest to its next spike is above what makes one.
    pub fn margin(&mut self, y: &[f64], t: f64, switched: f64) -> f64 {
        let mut most = f64::NEG_INFINITY;
        for Rule { margin, armed, asleep, .. } in &mut self.rules {
            margin.run(&scene(y, t, switched), |_, first, values| {
                for (element, value) in (first..).zip(values) {
                    if armed[element] && !asleep[element] {
                        most = most.max(*value);
                    }
                }
            });
        }
        most
    }

    /// Does what is due at a time: cells wake up, events arrive, cells spike and are reset. True if a state was changed.
    pub fn happen(
        &mut self,
        t: f64,
        switched: f64,
        y: &mut [f64],
        still: &mut [bool],
        spikes: &mut Vec<(f64, FieldId, u64)>,
    ) -> Result<bool, EngineError> {
        let mut changed = false;
        for _ in 0..ROUNDS {
            let mut came = false;
            let mut drives: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
            let mut receptors: Vec<usize> = Vec::new();
            while self.next() <= t + TINY_TIME * t.abs().max(1.0) {
                let Some(Reverse(due)) = self.due.pop() else { break };
                came = true;
                match due.what {
                    What::Wakes(rule, element) => {
                        let rule = &mut self.rules[rule];
                        rule.asleep[element] = false;
                        rule.held.iter().for_each(|held| still[held[element] as usize] = false);
                        // What has come from below while it slept has not been seen.
                        let truth = rule.truth.values(&scene(y, t, switched))[0][element];
                        rule.armed[element] = !rule.crosses || truth == 0.0;
                    }
                    What::Arrives(projection, element, weight) => {
                        let receptor = self.stands_for[projection];
                        self.arrived[receptor][element] += f64::from_bits(weight);
                        receptors.push(receptor);
                    }
                    What::Drives(added, element) => drives.entry(added).or_default().push(element),
                }
            }
            receptors.sort_unstable();
            receptors.dedup();
            for (number, Added { first, amount, arrives }) in self.added.iter_mut().enumerate() {
                let chosen = drives.get(&number);
                if chosen.is_none() && arrives.is_none_or(|receptor| !receptors.contains(&receptor)) {
                    continue;
                }
                // The step of a drive begins a tiny step before its end.
                let (begin, switched) = if arrives.is_some() { (t, switched) } else { (t - TINY, t - TINY) };
                let arrived = &self.arrived;
                let scene = Scene { y: &*y, t: begin, switched, junctions: &[], arrived, across: &[] };
                let amounts = amount.values(&scene).swap_remove(0);
                for (element, amount) in amounts.iter().enumerate() {
                    let meant = chosen.is_none_or(|chosen| chosen.contains(&element));
                    if meant && *amount != 0.0 && !still[*first + element] {
                        y[*first + element] += amount;
                        changed = true;
                    }
                }
            }
            receptors.iter().for_each(|&receptor| self.arrived[receptor].fill(0.0));
            let spiked = self.spike(t, switched, y, still, spikes);
            changed |= spiked;
            if !came && !spiked {
                return Ok(changed);
            }
        }
        let what = "spikes make each other without end; give cells a refractory time, or connections a longer delay";
        Err(EngineError(format!("at {t} ms {what}")))
    }

    /// Cells spike of which it becomes true what makes a spike.
    fn spike(
        &mut self,
        t: f64,
        switched: f64,
        y: &mut [f64],
        still: &mut [bool],
        spikes: &mut Vec<(f64, FieldId, u64)>,
    ) -> bool {
        let mut any = false;
        for (number, rule) in self.rules.iter_mut().enumerate() {
            let truths = rule.truth.values(&scene(y, t, switched)).swap_remove(0);
            let over = |element: &usize| rule.armed[*element] && !rule.asleep[*element] && truths[*element] != 0.0;
            let spiking: Vec<usize> = (0..truths.len()).filter(over).collect();
            if !spiking.is_empty() {
                any = true;
                let values = rule.resets.values(&scene(y, t, switched));
                for &element in &spiking {
                    spikes.push((t, rule.field, element as u64));
                    for (first, values) in rule.reset.iter().zip(&values) {
                        y[first + element] = values[element];
                    }
                    // Whoever would wake up at the time of its spike does not fall asleep: it would spike again and again.
                    if let (true, Some(duration)) = (rule.refractory, values.last())
                        && duration[element] > TINY_TIME * t.abs().max(1.0)
                    {
                        rule.asleep[element] = true;
                        rule.held.iter().for_each(|held| still[held[element] as usize] = true);
                        let time = (t + duration[element]).to_bits();
                        self.due.push(Reverse(Due { time, what: What::Wakes(number, element) }));
                    }
                    for &(projection, target, weight, delay) in &rule.targets[element] {
                        let what = What::Arrives(projection, target as usize, weight.to_bits());
                        self.due.push(Reverse(Due { time: (t + delay.max(0.0)).to_bits(), what }));
                    }
                }
            }
            // Of whom it is not true it may become true.
            let after =
                if spiking.is_empty() { truths } else { rule.truth.values(&scene(y, t, switched)).swap_remove(0) };
            rule.armed.iter_mut().zip(&after).for_each(|(armed, truth)| *armed = *truth == 0.0);
        }
        any
    }
}

/// What the spike rule of a population reads, if it has one. Where it jumps in time, steps end.
pub fn read(model: &mut Model, population: usize) -> Result<Vec<NodeId>, EngineError> {
    let Some([truth, _]) = spiking(model, population)? else { return Ok(Vec::new()) };
    let rule = model.populations[population].spike.iter().flat_map(Spike::reads);
    Ok(rule.chain([truth]).collect())
}

/// What is seen where nothing arrives.
fn scene(y: &[f64], t: f64, switched: f64) -> Scene<'_> {
    Scene { y, t, switched, junctions: &[], arrived: &[], across: &[] }
}

/// When a drive does something to which element.
fn driven_at(
    model: &Model,
    ground: &Ground,
    population: usize,
    amount: NodeId,
) -> Result<Vec<(f64, usize)>, EngineError> {
    let Some(switches) = Switches::new(model, ground, population, &[amount])? else { return Ok(Vec::new()) };
    let mut tape = Tape::new(model, ground, population, &[amount])?;
    let mut found = Vec::new();
    let mut known: HashMap<u64, Vec<f64>> = HashMap::default();
    for element in 0..ground.sizes[population] {
        let mut at = -1.0;
        loop {
            at = switches.of_element(element, at);
            if at > model.duration + TINY {
                break;
            }
            // A step that ends at the time of an event begins a step before it; the condition ends half a step before it.
            let t = at + 0.5 * TINY;
            let begin = t - TINY;
            let values =
                known.entry(t.to_bits()).or_insert_with(|| tape.values(&scene(&[], begin, begin)).swap_remove(0));
            if values[element] != 0.0 && t <= model.duration {
                found.push((t.max(0.0), element));
            }
        }
    }
    Ok(found)
}
