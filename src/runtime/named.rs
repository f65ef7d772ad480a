//! A model in memory, by name and in units.
//!
//! In come the names, units and defaults of a model and values in these units; out go values in these units and spikes.
//! Never true here: a panic on a wrong name or a wrong length.

use super::edge_text;
use super::edges::{Edges, Relation, Shared, orders};
use super::lanes::Scalar;
use super::machine::{Bank, Group, Kernels, Machine, Model, Place, Shape, Space, SpaceSpike};
use super::order::Arrangement;
use super::series::{Sample, check};
use std::fmt;
use std::sync::Arc;

/// All that is known of a model besides its kernels.
#[derive(Debug)]
pub struct Spec {
    /// Its name.
    pub name: &'static str,
    /// Its populations.
    pub spaces: &'static [SpaceInfo],
    /// Its fields, in no particular order.
    pub fields: &'static [FieldInfo],
    /// The uniform table's defaults, in canonical units.
    pub uniforms: &'static [f64],
    /// The series table's defaults, in canonical units.
    pub series: &'static [&'static [Sample]],
    /// The defaults of data fields, in canonical units, for populations of default size.
    pub data: &'static [(Place, &'static [f64])],
    /// Its networks.
    pub networks: &'static [NetworkInfo],
    /// The populations that take their steps together, by their numbers, and in how many passes.
    pub groups: &'static [(&'static [usize], usize)],
    /// The entry of the uniform table that is the time step in ms.
    pub dt: Option<usize>,
    /// The default seed.
    pub seed: u64,
    /// A thread is used from this many cells on.
    pub min_cells: usize,
}

/// A population.
#[derive(Clone, Copy, Debug)]
pub struct SpaceInfo {
    /// Its name.
    pub name: &'static str,
    /// Its default number of cells.
    pub size: usize,
    /// Its layout.
    pub shape: Shape,
    /// What edges read of it.
    pub shared: &'static [Shared],
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
}

/// A named value or array of values.
#[derive(Clone, Copy, Debug)]
pub struct FieldInfo {
    /// Its name.
    pub name: &'static str,
    /// Its unit, as the model's author wrote it; empty for pure numbers.
    pub unit: &'static str,
    /// One of this unit in canonical units.
    pub scale: f64,
    /// What it is.
    pub doc: &'static str,
    /// Where it is.
    pub home: FieldHome,
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
    /// What connects cells: its number among the networks.
    Network(usize),
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
            FieldHome::Cells(place) => match place.bank {
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

/// A model that can be run.
pub struct Named<T> {
    spec: &'static Spec,
    machine: Machine<T>,
    kernels: Arc<dyn Kernels<T>>,
    sizes: Vec<usize>,
    /// How many threads may be used.
    most_threads: usize,
    uniforms: Vec<f64>,
    series: Vec<Vec<Sample>>,
    seed: u64,
    /// The edges of each network; none where the default is for another number of cells.
    edges: Vec<Option<Arc<Edges>>>,
    /// Data fields that have their values.
    given: Vec<Place>,
    step: u64,
    ready: bool,
    spikes: Vec<SpaceSpike>,
}

impl<T: Scalar + Send + Sync + 'static> Named<T> {
    /// A model with these numbers of cells, one per population, and default parameters.
    pub fn with(
        spec: &'static Spec,
        kernels: Box<dyn Kernels<T>>,
        sizes: &[usize],
        threads: usize,
    ) -> Result<Named<T>, Error> {
        if sizes.len() != spec.spaces.len() {
            return Err(Error(format!("{} sizes were given for {} populations", sizes.len(), spec.spaces.len())));
        }
        if let Some(size) = sizes.iter().find(|&&size| u32::try_from(size).is_err()) {
            return Err(Error(format!("{size} cells are more than random numbers can tell apart")));
        }
        let network = |network: &NetworkInfo| {
            let default = [network.from, network.to].into_iter().all(|at| spec.spaces[at].size == sizes[at]);
            let edges = if default { edge_text::parse(network.default) } else { None };
            edges.filter(|edges| edges.check(sizes[network.to], sizes[network.from]).is_ok()).map(Arc::new)
        };
        let edges: Vec<Option<Arc<Edges>>> = spec.networks.iter().map(network).collect();
        let kernels: Arc<dyn Kernels<T>> = kernels.into();
        let uniforms = spec.uniforms.to_vec();
        let series: Vec<Vec<Sample>> = spec.series.iter().map(|samples| samples.to_vec()).collect();
        let machine = machine(spec, sizes, &edges, (&uniforms, &series), &kernels, threads);
        let mut named = Named {
            spec,
            machine,
            kernels,
            sizes: sizes.to_vec(),
            most_threads: threads,
            uniforms,
            series,
            seed: spec.seed,
            edges,
            given: Vec::new(),
            step: 0,
            ready: false,
            spikes: Vec::new(),
        };
        named.machine.set_seed(spec.seed);
        // A default for another number of cells is none.
        for &(place, values) in spec.data {
            if named.machine.write(place, values).is_ok() {
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

    /// Sets a parameter that all cells share, in its unit. What `init` computed from it changes with the next `init`.
    pub fn set_param(&mut self, name: &str, value: f64) -> Result<(), Error> {
        let field = self.field(name)?;
        let FieldHome::Param(index) = field.home else { return Self::mismatch(field, "parameter") };
        let value = value * field.scale;
        self.uniforms[index] = value;
        self.machine.set_uniform(index, value).map_err(|fault| Error(format!("`{name}`: {fault}")))
    }

    /// A parameter that all cells share, in its unit.
    pub fn param(&self, name: &str) -> Result<f64, Error> {
        let field = self.field(name)?;
        let FieldHome::Param(index) = field.home else { return Self::mismatch(field, "parameter") };
        Ok(self.uniforms[index] / field.scale)
    }

    /// Sets a function of time: samples `(t in ms, value in its unit)` with times that never go back.
    pub fn set_series(&mut self, name: &str, samples: &[(f64, f64)]) -> Result<(), Error> {
        let field = self.field(name)?;
        let FieldHome::Series(index) = field.home else { return Self::mismatch(field, "function of time") };
        let samples: Vec<Sample> = samples.iter().map(|&(t, value)| Sample { t, value: value * field.scale }).collect();
        check(&samples).map_err(|_| Error(format!("the samples of `{name}` are none or go back in time")))?;
        self.series[index].clone_from(&samples);
        self.machine.set_series(index, samples).map_err(|fault| Error(format!("`{name}`: {fault}")))
    }

    /// Sets the seed of all random numbers.
    pub fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
        self.machine.set_seed(seed);
    }

    /// Connects cells anew: the sources of target `i` are `sources[offsets[i]..offsets[i + 1]]`, so there is one offset more than there
    /// are targets. Junctions within a population have an edge in each direction; those between two are two networks. Then `init` must
    /// come again.
    pub fn set_edges(&mut self, name: &str, offsets: &[u32], sources: &[u32]) -> Result<(), Error> {
        let field = self.field(name)?;
        let FieldHome::Network(index) = field.home else { return Self::mismatch(field, "network") };
        let edges = Edges { offsets: offsets.to_vec(), sources: sources.to_vec() };
        let NetworkInfo { from, to, .. } = self.spec.networks[index];
        edges.check(self.sizes[to], self.sizes[from]).map_err(|why| Error(format!("`{name}`: {why}")))?;
        self.edges[index] = Some(Arc::new(edges));
        // Who shares what with whom is decided when a machine is made. Data are all that it holds before `init`.
        let failed = |fault| Error(format!("`{name}`: {fault}"));
        let tables = (&self.uniforms[..], &self.series[..]);
        let mut machine = machine(self.spec, &self.sizes, &self.edges, tables, &self.kernels, self.most_threads);
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
        match &self.edges[index] {
            Some(edges) => Ok((&edges.offsets, &edges.sources)),
            None => Err(no_edges(name)),
        }
    }

    /// Sets numbers per cell, in their unit: data before `init`, cell parameters and states after it.
    pub fn write(&mut self, name: &str, values: &[f64]) -> Result<(), Error> {
        let field = self.field(name)?;
        let FieldHome::Cells(place) = field.home else { return Self::mismatch(field, "number per cell") };
        if place.bank == Bank::Output {
            return Self::mismatch(field, "state, cell parameter or data");
        }
        if place.bank != Bank::Data && !self.ready {
            return Err(Error(format!("`{name}` was set before `init`, which would set it anew")));
        }
        let values: Vec<f64> = values.iter().map(|value| value * field.scale).collect();
        self.machine.write(place, &values).map_err(|fault| Error(format!("`{name}`: {fault}")))?;
        self.given.push(place);
        Ok(())
    }

    /// Sets cell parameters and initial states, and the time to 0.
    pub fn init(&mut self) -> Result<(), Error> {
        for field in self.spec.fields {
            if let FieldHome::Network(index) = field.home
                && self.edges[index].is_none()
            {
                return Err(no_edges(field.name));
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
        let FieldHome::Cells(place) = field.home else { return Self::mismatch(field, "number per cell") };
        let failed = |fault| Error(format!("`{name}`: {fault}"));
        if place.bank == Bank::Output {
            self.machine.observe(self.step).map_err(failed)?;
        }
        let size = self.machine.size(place.space).unwrap_or(0);
        let mut values = Vec::with_capacity(size);
        self.machine.read(place, 0..size, &mut values).map_err(failed)?;
        values.iter_mut().for_each(|value| *value /= field.scale);
        Ok(values)
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

fn no_edges(name: &str) -> Error {
    Error(format!("`{name}` needs edges for this number of cells before `init`: use `set_edges`"))
}

/// A machine of these sizes and edges, with uniforms and series. Networks without edges are not run.
fn machine<T: Scalar + Send + Sync + 'static>(
    spec: &'static Spec,
    sizes: &[usize],
    edges: &[Option<Arc<Edges>>],
    (uniforms, series): (&[f64], &[Vec<Sample>]),
    kernels: &Arc<dyn Kernels<T>>,
    threads: usize,
) -> Machine<T> {
    let relation = |(network, edges): (&NetworkInfo, &Option<Arc<Edges>>)| {
        let none = || Edges { offsets: vec![0; sizes[network.to] + 1], sources: Vec::new() };
        let edges = edges.clone().unwrap_or_else(|| Arc::new(none()));
        Relation { from: network.from, to: network.to, edges }
    };
    let relations: Vec<Relation> = spec.networks.iter().zip(edges).map(relation).collect();
    let cells = |(space, &size): (&SpaceInfo, &usize)| (size, &[][..], space.shape.lanes);
    let cells: Vec<(usize, &[usize], usize)> = spec.spaces.iter().zip(sizes).map(cells).collect();
    let orders = orders(Arrangement::default(), &relations, &cells);
    let space = |((space, &size), order): ((&SpaceInfo, &usize), _)| Space {
        shape: space.shape,
        size,
        order,
        shared: space.shared.to_vec(),
    };
    let spaces = spec.spaces.iter().zip(sizes).zip(orders).map(space).collect();
    let group = |&(spaces, passes): &(&[usize], usize)| Group {
        spaces: spaces.to_vec(),
        passes,
        events: false,
        branched: Vec::new(),
    };
    let groups = spec.groups.iter().map(group).collect();
    let model = Model { spaces, relations, groups, branched: Vec::new() };
    Machine::new(
        model,
        Arc::default(),
        uniforms.to_vec(),
        series.to_vec(),
        Arc::clone(kernels),
        threads,
        spec.min_cells,
    )
}
