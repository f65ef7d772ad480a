//! A model in memory, by name and in units.
//!
//! In come the names, units and defaults of a model and values in these units; out go values in these units and spikes.
//! Never true here: a panic on a wrong name or a wrong length.

use super::branched::{Branched, Field, Link, Task};
use super::branches::Side;
use super::edge_text;
use super::edges::{Edges, Relation, Shared, orders};
use super::events::{Delivery, PerEdge, Traffic};
use super::lanes::Scalar;
use super::machine::{Bank, Fault, Group, Kernels, Machine, Model, Numbering, Place, Role, Shape, Space, SpaceSpike};
use super::order::Arrangement;
use super::remember::{Back, Remembering, When};
use super::series::{Sample, check};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// All that is known of a model besides its kernels.
#[derive(Debug)]
pub struct Spec {
    /// Its name.
    pub name: &'static str,
    /// Its populations, and what their cells consist of.
    pub spaces: &'static [SpaceInfo],
    /// Its fields, in no particular order.
    pub fields: &'static [FieldInfo],
    /// The uniform table's defaults, in canonical units.
    pub uniforms: &'static [f64],
    /// The series table's defaults, in canonical units.
    pub series: &'static [&'static [Sample]],
    /// The defaults of data fields, in canonical units: for populations of default size; or those of the elements of one cell, which all cells have then.
    pub data: &'static [(Place, &'static [f64])],
    /// Its networks.
    pub networks: &'static [NetworkInfo],
    /// Which populations take their steps together.
    pub groups: &'static [GroupInfo],
    /// Those of its cells that have branches.
    pub branched: &'static [BranchedInfo],
    /// The entry of the uniform table that is the time step in ms.
    pub dt: Option<usize>,
    /// The default seed.
    pub seed: u64,
    /// A thread is used from this many cells on.
    pub min_cells: usize,
}

impl Spec {
    /// The populations whose numbers of cells are for those to choose who make a model.
    pub fn populations(&self) -> impl Iterator<Item = &'static SpaceInfo> {
        self.spaces.iter().filter(|space| space.count == Count::Free)
    }

    /// The sizes of all spaces, given those of the populations.
    fn sizes(&self, populations: &[usize]) -> Result<Vec<usize>, Error> {
        let free = self.populations().count();
        if populations.len() != free {
            return Err(Error(format!("{} sizes were given for {free} populations", populations.len())));
        }
        let mut given = populations.iter().copied();
        let mut sizes: Vec<usize> = Vec::with_capacity(self.spaces.len());
        for space in self.spaces {
            let size = match space.count {
                Count::Free => given.next().unwrap_or(space.size),
                // Cells stand before what they consist of.
                Count::PerCell { of, each } => sizes[of].saturating_mul(each),
                Count::Fixed => space.size,
            };
            if u32::try_from(size).is_err() {
                return Err(Error(format!("{size} cells are more than random numbers can tell apart")));
            }
            sizes.push(size);
        }
        Ok(sizes)
    }
}

/// How many elements a space has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// As many cells as whoever makes a model says.
    Free,
    /// So many in each cell of a population.
    PerCell {
        /// The number of the population.
        of: usize,
        /// How many.
        each: usize,
    },
    /// As many as there were when the model was compiled.
    Fixed,
}

/// A population, or what the cells of one consist of.
#[derive(Clone, Copy, Debug)]
pub struct SpaceInfo {
    /// Its name.
    pub name: &'static str,
    /// Its default number of elements.
    pub size: usize,
    /// What decides it.
    pub count: Count,
    /// Its layout.
    pub shape: Shape,
    /// What edges read of it.
    pub shared: &'static [Shared],
}

/// Spaces that take their steps together.
#[derive(Clone, Copy, Debug)]
pub struct GroupInfo {
    /// Their numbers.
    pub spaces: &'static [usize],
    /// In how many passes a step is done.
    pub passes: usize,
    /// In how many passes what is recorded is computed, if anything of it comes along edges; else 0.
    pub observed: usize,
    /// Do events go from cell to cell?
    pub events: bool,
    /// Branched cells among them, by their numbers.
    pub branched: &'static [usize],
}

/// Branched cells of a kind.
#[derive(Clone, Copy, Debug)]
pub struct BranchedInfo {
    /// How many of them stand side by side.
    pub width: usize,
    /// How many elements a cell has, for each space of them.
    pub each: &'static [(usize, usize)],
    /// What maps and solutions reach.
    pub fields: &'static [Field],
    /// The maps: from which space, to which one, and where from each element of a cell.
    pub links: &'static [(usize, usize, &'static [u32])],
    /// What `init`, a step and `observe` do.
    pub tasks: [&'static [Task]; 3],
}

/// What connects cells.
#[derive(Clone, Copy, Debug)]
pub struct NetworkInfo {
    /// The number of the population of their sources.
    pub from: usize,
    /// The number of the population of their targets.
    pub to: usize,
    /// The default edges, for populations of default size, as [`edge_text`] has them.
    pub default: &'static str,
    /// What each edge has for itself: what events bring, what edges that remember begin with, or what those compute with that are seen all the time.
    pub numbers: &'static [EdgeInfo<f64>],
    /// What events do along them; without it cells see each other all the time.
    pub events: Option<EventsInfo>,
    /// The entries of the uniform table that delays and numbers of edges were computed from.
    pub fixed: &'static [usize],
}

/// Events along edges.
#[derive(Clone, Copy, Debug)]
pub struct EventsInfo {
    /// The number of the event in the population of the sources.
    pub event: u64,
    /// How many steps an event takes along each edge.
    pub delays: EdgeInfo<u32>,
    /// What it does.
    pub effect: EffectInfo,
}

/// What events do.
#[derive(Clone, Copy, Debug)]
pub enum EffectInfo {
    /// They add the number of the edge to a temp slot of the population of the targets.
    Adds {
        /// The slot.
        slot: usize,
    },
    /// They change what the edge remembers.
    Remembers(RememberInfo),
}

/// Edges that remember.
#[derive(Clone, Copy, Debug)]
pub struct RememberInfo {
    /// How the numbers of edges are laid out for kernels.
    pub shape: Shape,
    /// For each data field the slot of the targets that it is a copy of.
    pub read: &'static [(Bank, usize)],
    /// The output fields that are added to a temp slot of the targets.
    pub sums: &'static [(usize, usize)],
    /// What is emitted by the targets and changes edges.
    pub back: &'static [BackInfo],
}

/// An event of the targets that edges hear of.
#[derive(Clone, Copy, Debug)]
pub struct BackInfo {
    /// Its number in the population of the targets.
    pub event: u64,
    /// How many steps it takes to each edge.
    pub delays: EdgeInfo<u32>,
    /// When in a step edges hear of it.
    pub when: When,
}

/// A number of every edge.
#[derive(Clone, Copy, Debug)]
pub enum EdgeInfo<N> {
    /// The same for all.
    Same(N),
    /// In the order of the default edges, as [`edge_text`] has them.
    Each(&'static str),
}

impl<N: Copy + FromStr> EdgeInfo<N> {
    /// Those of so many edges, if they are right.
    fn numbers<X: Copy>(self, edges: usize, right: impl Fn(N) -> Option<X>) -> Option<PerEdge<X>> {
        match self {
            EdgeInfo::Same(number) => right(number).map(PerEdge::Same),
            EdgeInfo::Each(text) => {
                let numbers = edge_text::parse_numbers(text)?.into_iter().map(right).collect::<Option<Vec<X>>>()?;
                (numbers.len() == edges).then(|| PerEdge::Each(numbers.into()))
            }
        }
    }

    /// Are they the same for any edges?
    fn is_same(self) -> bool {
        matches!(self, EdgeInfo::Same(_))
    }
}

impl NetworkInfo {
    /// Edges that fit their populations, with what each of them has; nothing if there are no numbers for so many of them.
    fn with(&self, edges: Edges) -> Option<Network> {
        let count = edges.sources.len();
        let steps = |info: &EdgeInfo<u32>, least: u32| {
            info.numbers(count, |steps| (least..=LONGEST).contains(&steps).then_some(steps))
        };
        let numbers = self.numbers.iter().map(|info| info.numbers(count, Some)).collect::<Option<_>>()?;
        let (delays, back) = match &self.events {
            None => (PerEdge::Same(0), Vec::new()),
            // An event arrives a step later at the earliest.
            Some(events) => (
                steps(&events.delays, 1)?,
                events.back().iter().map(|back| steps(&back.delays, back.when.least())).collect::<Option<_>>()?,
            ),
        };
        Some(Network { edges: Arc::new(edges), numbers, delays, back })
    }

    /// Can it have any edges?
    fn has_any(&self) -> bool {
        let of_events =
            |events: &EventsInfo| events.delays.is_same() && events.back().iter().all(|back| back.delays.is_same());
        self.numbers.iter().all(|info| info.is_same()) && self.events.as_ref().is_none_or(of_events)
    }

    /// Do its edges remember?
    fn remembers(&self) -> bool {
        matches!(self.events, Some(EventsInfo { effect: EffectInfo::Remembers(_), .. }))
    }
}

impl EventsInfo {
    /// What edges hear of their targets.
    fn back(&self) -> &'static [BackInfo] {
        match self.effect {
            EffectInfo::Adds { .. } => &[],
            EffectInfo::Remembers(remembers) => remembers.back,
        }
    }
}

/// A named value or array of values.
#[derive(Clone, Copy, Debug)]
pub struct FieldInfo {
    /// Its name.
    pub name: &'static str,
    /// Its unit, as the model's author wrote it; empty for pure numbers.
    pub unit: &'static str,
    /// One of this unit is ten to this power in canonical units.
    pub exponent: i32,
    /// What it is.
    pub doc: &'static str,
    /// Where it is.
    pub home: FieldHome,
    /// Of a parameter: others that its default has been part of.
    pub computes: &'static [&'static str],
    /// Of a state of branched cells: what others see of it.
    pub copies: &'static [CopyInfo],
}

/// A state at places of branched cells, which others see: some elements of each cell of another field.
#[derive(Clone, Copy, Debug)]
pub struct CopyInfo {
    /// The field that they are in.
    pub field: &'static str,
    /// How many elements a cell of the other has.
    pub each: usize,
    /// Which of them it has.
    pub elements: &'static [usize],
}

impl FieldInfo {
    /// A number in the unit of the field in canonical units.
    fn canonical(&self, value: f64) -> f64 {
        scaled(value, self.exponent)
    }

    /// A canonical number in the unit of the field, as results have it.
    fn shown(&self, canonical: f64) -> f64 {
        scaled(canonical, -self.exponent)
    }
}

/// `value * 10^exponent`, by one exact power of ten where there is one: as the units of the compiler, which crates do not have, do it.
fn scaled(value: f64, exponent: i32) -> f64 {
    if exponent >= 0 { value * 10f64.powi(exponent) } else { value / 10f64.powi(-exponent) }
}

/// What a field is and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldHome {
    /// A parameter that all cells share.
    Param(usize),
    /// A function of time.
    Series(usize),
    /// Numbers per cell.
    Cells(Place),
    /// Numbers of elements of branched cells that maps reach.
    Reached {
        /// The number of their space.
        space: usize,
        /// The number among the [fields](BranchedInfo::fields) of these cells.
        field: usize,
        /// What they are.
        bank: Bank,
    },
    /// What connects cells: its number among the networks.
    Network(usize),
    /// Numbers that edges remember.
    OfEdges {
        /// The number of the network.
        network: usize,
        /// The buffer.
        bank: Bank,
        /// The field's number in the buffer.
        slot: usize,
    },
    /// Events of a population.
    Event {
        /// The number of the population.
        space: usize,
        /// The event's number in it.
        event: u64,
    },
}

impl FieldHome {
    /// What it is, in a word.
    pub fn kind(self) -> &'static str {
        match self {
            FieldHome::Param(_) => "parameter",
            FieldHome::Series(_) => "function of time",
            FieldHome::Network(_) => "network",
            FieldHome::Event { .. } => "event",
            FieldHome::Cells(Place { bank, .. })
            | FieldHome::Reached { bank, .. }
            | FieldHome::OfEdges { bank, .. } => match bank {
                Bank::State => "state",
                Bank::Cell => "cell parameter",
                Bank::Output => "output",
                Bank::Data => "data",
                Bank::Temp => "value within a step",
            },
        }
    }
}

/// What went wrong, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// The edges of a network, and what each of them has.
#[derive(Clone, Debug)]
struct Network {
    edges: Arc<Edges>,
    numbers: Vec<PerEdge<f64>>,
    /// How many steps an event takes along each.
    delays: PerEdge<u32>,
    /// And what goes back to it, of each kind.
    back: Vec<PerEdge<u32>>,
}

/// A model that can be run.
pub struct Named<T> {
    spec: &'static Spec,
    machine: Machine<T>,
    kernels: Arc<dyn Kernels<T>>,
    sizes: Vec<usize>,
    /// How many threads may be used.
    most_threads: usize,
    uniforms: Vec<f64>,
    /// Which of them somebody has set.
    set: Vec<bool>,
    series: Vec<Vec<Sample>>,
    seed: u64,
    /// The edges of each network; none where the default is for another number of cells.
    networks: Vec<Option<Network>>,
    /// Data fields that have their values.
    given: Vec<Place>,
    step: u64,
    ready: bool,
    spikes: Vec<SpaceSpike>,
}

impl<T: Scalar + Send + Sync + 'static> Named<T> {
    /// A model with these numbers of cells, one per [population](Spec::populations), and default parameters.
    pub fn with(
        spec: &'static Spec,
        kernels: Box<dyn Kernels<T>>,
        sizes: &[usize],
        threads: usize,
    ) -> Result<Named<T>, Error> {
        let sizes = spec.sizes(sizes)?;
        let network = |network: &NetworkInfo| {
            let default = [network.from, network.to].into_iter().all(|at| spec.spaces[at].size == sizes[at]);
            let edges = if default { edge_text::parse(network.default) } else { None };
            let edges = edges.filter(|edges| edges.check(sizes[network.to], sizes[network.from]).is_ok())?;
            network.with(edges)
        };
        let networks: Vec<Option<Network>> = spec.networks.iter().map(network).collect();
        let kernels: Arc<dyn Kernels<T>> = kernels.into();
        let uniforms = spec.uniforms.to_vec();
        let series: Vec<Vec<Sample>> = spec.series.iter().map(|samples| samples.to_vec()).collect();
        let machine = machine(spec, &sizes, &networks, (&uniforms, &series), &kernels, threads);
        let mut named = Named {
            spec,
            machine,
            kernels,
            sizes,
            most_threads: threads,
            set: vec![false; uniforms.len()],
            uniforms,
            series,
            seed: spec.seed,
            networks,
            given: Vec::new(),
            step: 0,
            ready: false,
            spikes: Vec::new(),
        };
        named.machine.set_seed(spec.seed);
        // A default for another number of cells is none, unless it is that of each cell.
        for &(place, values) in spec.data {
            let of_each = matches!(spec.spaces[place.space].count, Count::PerCell { each, .. } if each == values.len());
            let repeated = if of_each { named.sizes[place.space] / values.len().max(1) } else { 1 };
            if named.machine.write(place, &values.repeat(repeated)).is_ok() {
                named.given.push(place);
            }
        }
        Ok(named)
    }

    /// The names, units and defaults.
    pub fn spec(&self) -> &'static Spec {
        self.spec
    }

    /// The number of cells of a population.
    pub fn size(&self, population: &str) -> Result<usize, Error> {
        let space = self.spec.spaces.iter().position(|space| space.name == population);
        let unknown = || Error(format!("there is no population `{population}`"));
        space.and_then(|space| self.machine.size(space)).ok_or_else(unknown)
    }

    /// The number of time steps done since `init`.
    pub fn steps_done(&self) -> u64 {
        self.step
    }

    /// How many threads it uses.
    pub fn threads(&self) -> usize {
        self.machine.threads()
    }

    fn field(&self, name: &str) -> Result<&'static FieldInfo, Error> {
        let last = |name: &str| name.rsplit('.').next().map(str::to_lowercase);
        self.spec.fields.iter().find(|field| field.name == name).ok_or_else(|| {
            let like = self.spec.fields.iter().filter(|field| last(field.name) == last(name));
            let like: Vec<String> = like.map(|field| format!("`{}`", field.name)).collect();
            let hint = if like.is_empty() { String::new() } else { format!("; there is {}", like.join(", ")) };
            Error(format!("there is no `{name}`{hint}"))
        })
    }

    fn mismatch<X>(field: &FieldInfo, wanted: &str) -> Result<X, Error> {
        Err(Error(format!("`{}` is a {}, not a {wanted}", field.name, field.home.kind())))
    }

    /// Sets a parameter that all cells share, in its unit, to a finite number. What `init` computed from it changes with the next `init`; other parameters that were
    /// computed from it when this crate was made stay, and have to be set, too.
    pub fn set_param(&mut self, name: &str, value: f64) -> Result<(), Error> {
        let field = self.field(name)?;
        let FieldHome::Param(index) = field.home else { return Self::mismatch(field, "parameter") };
        if let Some(network) = self.computed_from(index) {
            return Err(Error(format!(
                "`{name}` cannot be changed: delays of `{network}`, or what its edges bring, were computed from it when this crate \
                 was made"
            )));
        }
        if !value.is_finite() {
            return Err(Error(format!("`{name}` cannot be {value}: a parameter is a finite number")));
        }
        let value = field.canonical(value);
        self.uniforms[index] = value;
        self.set[index] = true;
        self.machine.set_uniform(index, value).map_err(|fault| Error(format!("`{name}`: {fault}")))
    }

    /// Has somebody set every parameter that was computed from one that somebody has set?
    fn followed(&self) -> Result<(), Error> {
        let is_set = |field: &FieldInfo| matches!(field.home, FieldHome::Param(index) if self.set[index]);
        for field in self.spec.fields.iter().filter(|field| is_set(field)) {
            let stays = |name: &&&str| self.spec.fields.iter().any(|other| other.name == **name && !is_set(other));
            if let Some(other) = field.computes.iter().find(stays) {
                let name = field.name;
                return Err(Error(format!(
                    "`{other}` was computed from `{name}` when this crate was made, and does not follow it: set `{other}`, too"
                )));
            }
        }
        Ok(())
    }

    /// A network whose edges have numbers that were computed from an entry of the uniform table.
    fn computed_from(&self, index: usize) -> Option<&'static str> {
        let is_fixed = |field: &&FieldInfo| match field.home {
            FieldHome::Network(network) => self.spec.networks[network].fixed.contains(&index),
            _ => false,
        };
        self.spec.fields.iter().find(is_fixed).map(|field| field.name)
    }

    /// A parameter that all cells share, in its unit.
    pub fn param(&self, name: &str) -> Result<f64, Error> {
        let field = self.field(name)?;
        let FieldHome::Param(index) = field.home else { return Self::mismatch(field, "parameter") };
        Ok(field.shown(self.uniforms[index]))
    }

    /// Sets a function of time: samples `(t in ms, value in its unit)` with times that never go back.
    pub fn set_series(&mut self, name: &str, samples: &[(f64, f64)]) -> Result<(), Error> {
        let field = self.field(name)?;
        let FieldHome::Series(index) = field.home else { return Self::mismatch(field, "function of time") };
        let samples: Vec<Sample> =
            samples.iter().map(|&(t, value)| Sample { t, value: field.canonical(value) }).collect();
        check(&samples).map_err(|_| Error(format!("the samples of `{name}` are none or go back in time")))?;
        self.series[index].clone_from(&samples);
        self.machine.set_series(index, samples).map_err(|fault| Error(format!("`{name}`: {fault}")))
    }

    /// Sets the seed of all random numbers of a run. Edges, their delays and weights stay as they were drawn when the model was compiled.
    pub fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
        self.machine.set_seed(seed);
    }

    /// Connects cells anew: the sources of target `i` are `sources[offsets[i]..offsets[i + 1]]`, so there is one offset more than there
    /// are targets. Junctions within a population have an edge in each direction; those between two are two networks. Where each edge has a
    /// delay or a weight of its own, edges cannot be changed. Then `init` must come again.
    pub fn set_edges(&mut self, name: &str, offsets: &[u32], sources: &[u32]) -> Result<(), Error> {
        let field = self.field(name)?;
        let FieldHome::Network(index) = field.home else { return Self::mismatch(field, "network") };
        let edges = Edges { offsets: offsets.to_vec(), sources: sources.to_vec() };
        let network = &self.spec.networks[index];
        if let Some(why) = unchangeable(network, name) {
            return Err(why);
        }
        let NetworkInfo { from, to, .. } = *network;
        edges.check(self.sizes[to], self.sizes[from]).map_err(|why| Error(format!("`{name}`: {why}")))?;
        self.networks[index] = network.with(edges);
        // Who shares what with whom is decided when a machine is made. Data are all that it holds before `init`.
        let failed = |fault| Error(format!("`{name}`: {fault}"));
        let tables = (&self.uniforms[..], &self.series[..]);
        let mut machine = machine(self.spec, &self.sizes, &self.networks, tables, &self.kernels, self.most_threads);
        machine.set_seed(self.seed);
        for &place in self.given.iter().filter(|place| place.bank == Bank::Data) {
            let mut values: Vec<f64> = Vec::new();
            self.machine.read(place, 0..self.sizes[place.space], &mut values).map_err(failed)?;
            machine.write(place, &values).map_err(failed)?;
        }
        self.machine = machine;
        self.ready = false;
        Ok(())
    }

    /// The edges of a network, as [`set_edges`](Named::set_edges) takes them: offsets and sources.
    pub fn edges(&self, name: &str) -> Result<(&[u32], &[u32]), Error> {
        let field = self.field(name)?;
        let FieldHome::Network(index) = field.home else { return Self::mismatch(field, "network") };
        match &self.networks[index] {
            Some(Network { edges, .. }) => Ok((&edges.offsets, &edges.sources)),
            None => Err(no_edges(&self.spec.networks[index], name)),
        }
    }

    /// Sets numbers per cell, in their unit: data before `init`, cell parameters and states after it.
    pub fn write(&mut self, name: &str, values: &[f64]) -> Result<(), Error> {
        let field = self.field(name)?;
        let (FieldHome::Cells(Place { bank, .. }) | FieldHome::Reached { bank, .. } | FieldHome::OfEdges { bank, .. }) =
            field.home
        else {
            return Self::mismatch(field, "number per cell");
        };
        if bank == Bank::Output {
            return Self::mismatch(field, "state, cell parameter or data");
        }
        if bank != Bank::Data && !self.ready {
            return Err(Error(format!("`{name}` was set before `init`, which would set it anew")));
        }
        let values: Vec<f64> = values.iter().map(|&value| field.canonical(value)).collect();
        self.put(field, &values)?;
        for copy in field.copies {
            let of_cell = |cell: &[f64]| copy.elements.iter().map(|&at| cell[at]).collect::<Vec<f64>>();
            let values: Vec<f64> = values.chunks_exact(copy.each).flat_map(of_cell).collect();
            self.put(self.field(copy.field)?, &values)?;
        }
        Ok(())
    }

    /// Writes canonical numbers.
    fn put(&mut self, field: &FieldInfo, values: &[f64]) -> Result<(), Error> {
        let written = match field.home {
            FieldHome::Cells(place) => {
                let written = self.machine.write(place, values);
                self.given.extend(written.is_ok().then_some(place));
                written
            }
            FieldHome::Reached { space, field, .. } => self.machine.write_branches((space, field), values),
            FieldHome::OfEdges { network, bank, slot } => {
                let (place, edges) = self.of_edges(network, bank, slot);
                match values.len() == edges {
                    true => self.machine.write_edges(place, values),
                    false => Err(Fault::Length(edges, values.len())),
                }
            }
            FieldHome::Param(_) | FieldHome::Series(_) | FieldHome::Network(_) | FieldHome::Event { .. } => Ok(()),
        };
        written.map_err(|fault| Error(format!("`{}`: {fault}", field.name)))
    }

    /// Sets cell parameters and initial states, and the time to 0.
    pub fn init(&mut self) -> Result<(), Error> {
        self.followed()?;
        for field in self.spec.fields {
            if let FieldHome::Network(index) = field.home
                && self.networks[index].is_none()
            {
                return Err(no_edges(&self.spec.networks[index], field.name));
            }
            if let FieldHome::Cells(place) = field.home
                && place.bank == Bank::Data
                && !self.given.contains(&place)
            {
                return Err(Error(format!("`{}` needs values before `init`: use `write`", field.name)));
            }
        }
        self.machine.init().map_err(|fault| Error(fault.to_string()))?;
        self.step = 0;
        self.spikes.clear();
        self.ready = true;
        Ok(())
    }

    fn ready(&self) -> Result<(), Error> {
        if self.ready { Ok(()) } else { Err(Error("`init` must come first".to_string())) }
    }

    /// Advances by time steps.
    pub fn step(&mut self, steps: u64) -> Result<(), Error> {
        self.ready()?;
        self.followed()?;
        let before = self.spikes.len();
        let stepped = self.machine.step(self.step, steps, &mut self.spikes);
        stepped.map_err(|fault| Error(fault.to_string()))?;
        self.spikes[before..].sort_unstable();
        self.step += steps;
        Ok(())
    }

    /// The time in ms.
    pub fn time(&self) -> Result<f64, Error> {
        let dt = self.spec.dt.ok_or_else(|| Error("this model has no time step".to_string()))?;
        Ok(self.step as f64 * self.uniforms[dt])
    }

    /// The numbers of all cells of a state, cell parameter or output, in its unit.
    pub fn read(&mut self, name: &str) -> Result<Vec<f64>, Error> {
        self.ready()?;
        let field = self.field(name)?;
        let (bank, size) = match field.home {
            FieldHome::Cells(Place { space, bank, .. }) | FieldHome::Reached { space, bank, .. } => {
                (bank, self.sizes[space])
            }
            FieldHome::OfEdges { network, bank, slot } => (bank, self.of_edges(network, bank, slot).1),
            FieldHome::Param(_) | FieldHome::Series(_) | FieldHome::Network(_) | FieldHome::Event { .. } => {
                return Self::mismatch(field, "number per cell");
            }
        };
        let failed = |fault| Error(format!("`{name}`: {fault}"));
        if bank == Bank::Output {
            self.machine.observe(self.step).map_err(failed)?;
        }
        let mut values = Vec::with_capacity(size);
        let read = match field.home {
            FieldHome::Cells(place) => self.machine.read(place, 0..size, &mut values),
            FieldHome::Reached { space, field, .. } => self.machine.read_branches((space, field), 0..size, &mut values),
            FieldHome::OfEdges { network, bank, slot } => {
                self.machine.read_edges(self.of_edges(network, bank, slot).0, 0..size, &mut values)
            }
            FieldHome::Param(_) | FieldHome::Series(_) | FieldHome::Network(_) | FieldHome::Event { .. } => Ok(()),
        };
        read.map_err(failed)?;
        values.iter_mut().for_each(|value| *value = field.shown(*value));
        Ok(values)
    }

    /// Where numbers of edges are, the number of their kind among those that remember as the space, and how many edges there are.
    fn of_edges(&self, network: usize, bank: Bank, slot: usize) -> (Place, usize) {
        let kind = self.spec.networks[..network].iter().filter(|other| other.remembers()).count();
        let edges = self.networks[network].as_ref().map_or(0, |network| network.edges.sources.len());
        (Place { space: kind, bank, slot }, edges)
    }

    /// The events of a name since `init` (or `clear_spikes`): `(step, cell)`, in order. The time of one is `(step + 1) * dt`.
    pub fn spikes(&self, name: &str) -> Result<Vec<(u64, u64)>, Error> {
        let field = self.field(name)?;
        let FieldHome::Event { space, event } = field.home else { return Self::mismatch(field, "event") };
        let of_field = self.spikes.iter().filter(|spike| (spike.space, spike.event) == (space, event));
        Ok(of_field.map(|spike| (spike.step, spike.cell)).collect())
    }

    /// Forgets all events so far.
    pub fn clear_spikes(&mut self) {
        self.spikes.clear();
    }

    /// Is every state of every cell finite?
    pub fn all_finite(&self) -> bool {
        self.machine.all_finite()
    }
}

/// The longest delay in steps.
const LONGEST: u32 = 1 << 20;

/// Why a network has to keep the edges that it had when the model was compiled, if it has.
fn unchangeable(network: &NetworkInfo, name: &str) -> Option<Error> {
    (!network.has_any()).then(|| {
        Error(format!(
            "each edge of `{name}` has a delay or a weight of its own, so they are those of this crate, for populations of default size"
        ))
    })
}

fn no_edges(network: &NetworkInfo, name: &str) -> Error {
    unchangeable(network, name).unwrap_or_else(|| {
        Error(format!("`{name}` needs edges for this number of cells before `init`: use `set_edges`"))
    })
}

/// A machine of these sizes and edges, with uniforms and series. Networks without edges are not run.
fn machine<T: Scalar + Send + Sync + 'static>(
    spec: &'static Spec,
    sizes: &[usize],
    networks: &[Option<Network>],
    (uniforms, series): (&[f64], &[Vec<Sample>]),
    kernels: &Arc<dyn Kernels<T>>,
    threads: usize,
) -> Machine<T> {
    let branched = |info: &BranchedInfo| {
        let cells = info.each.first().map_or(0, |&(space, each)| sizes[space].checked_div(each).unwrap_or(0));
        let link = |&(from, to, elements): &(usize, usize, &[u32])| Link { from, to, elements: elements.to_vec() };
        Arc::new(Branched {
            side: Side { cells, width: info.width },
            each: info.each.to_vec(),
            fields: info.fields.to_vec(),
            links: info.links.iter().map(link).collect(),
            tasks: info.tasks.map(<[Task]>::to_vec),
        })
    };
    let branched: Vec<Arc<Branched>> = spec.branched.iter().map(branched).collect();
    let group = |group: &GroupInfo| Group {
        spaces: group.spaces.to_vec(),
        passes: group.passes,
        observed: group.observed,
        events: group.events,
        branched: group.branched.to_vec(),
    };
    let groups: Vec<Group> = spec.groups.iter().map(group).collect();
    let numbering = Numbering::new(&groups, &branched, spec.networks.iter().any(|network| network.remembers()));
    let rounded = |values: &PerEdge<f64>| match values {
        PerEdge::Same(value) => PerEdge::Same(T::from_f64(*value)),
        PerEdge::Each(values) => PerEdge::Each(values.iter().map(|&value| T::from_f64(value)).collect()),
    };
    let (mut relations, mut traffic): (Vec<Relation>, Traffic<T>) = (Vec::new(), Traffic::default());
    // Those that remember have kernels behind all populations.
    let mut next = spec.spaces.len();
    for (info, network) in spec.networks.iter().zip(networks) {
        let &NetworkInfo { from, to, .. } = info;
        let Some(EventsInfo { event, effect, .. }) = info.events else {
            let none = || Edges { offsets: vec![0; sizes[to] + 1], sources: Vec::new() };
            let edges = network.as_ref().map_or_else(|| Arc::new(none()), |network| Arc::clone(&network.edges));
            let numbers = network.as_ref().map_or_else(Vec::new, |network| network.numbers.clone());
            relations.push(Relation { from, to, edges, numbers });
            continue;
        };
        let kernels = next;
        next += usize::from(info.remembers());
        let Some(Network { edges, numbers, delays, back }) = network.clone() else { continue };
        let mut numbers: Vec<PerEdge<T>> = numbers.iter().map(rounded).collect();
        match effect {
            EffectInfo::Adds { slot } => {
                if let Some(carried) = numbers.pop() {
                    traffic.deliveries.push(Delivery { from, event, to, slot, edges, delays, carried });
                }
            }
            EffectInfo::Remembers(RememberInfo { shape, read, sums, back: heard }) => {
                let told = |(info, delays): (&BackInfo, _)| Back { event: info.event, delays, when: info.when };
                traffic.remembering.push(Arc::new(Remembering {
                    from,
                    event,
                    to,
                    back: heard.iter().zip(back).map(told).collect(),
                    edges,
                    delays,
                    begin: numbers,
                    shape,
                    read: read.to_vec(),
                    sums: sums.to_vec(),
                    step: std::array::from_fn(|pass| numbering.kernel(kernels, Role::Step, pass)),
                    observe: numbering.kernel(kernels, Role::Observe, 0),
                }));
            }
        }
    }
    let cells = |(space, &size): (&SpaceInfo, &usize)| (size, &[][..], space.shape.lanes);
    let cells: Vec<(usize, &[usize], usize)> = spec.spaces.iter().zip(sizes).map(cells).collect();
    let mut orders = orders(Arrangement::default(), &relations, &cells);
    branched.iter().for_each(|branched| branched.arrange(&mut orders, |space| spec.spaces[space].shape.lanes));
    let space = |((space, &size), order): ((&SpaceInfo, &usize), _)| Space {
        shape: space.shape,
        size,
        order,
        shared: space.shared.to_vec(),
    };
    let spaces = spec.spaces.iter().zip(sizes).zip(orders).map(space).collect();
    Machine::new(
        Model { spaces, relations, groups, branched },
        Arc::new(traffic),
        uniforms.to_vec(),
        series.to_vec(),
        Arc::clone(kernels),
        threads,
        spec.min_cells,
    )
}
