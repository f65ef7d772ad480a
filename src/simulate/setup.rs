//! The values that a program reads from outside: sizes, uniform parameters, data files, edges.
//!
//! In come a model, a program of it and its extent; out goes a [`Setup`], or everything that is wrong with the values.
//! Never true here: a field is left without a value, or gets one that nobody gave.

use super::culprit::said;
use super::edges::{Projected, all_projected, edges, projected};
use super::extent::Extent;
use crate::data::{self, DataFile, Numbers};
use crate::diag::{Code, Diagnostic};
use crate::discretize::{connection_space, projection_space};
use crate::engine::{LONGEST, Setup};
use crate::hir::{Method, shown};
use crate::morphology::Measure;
use crate::ode::{self, Kind, Model, Node, NodeId, Param, Projection};
use crate::step::{FieldId, FieldKind, Program, Source, SpaceId, Value};
use crate::units::Dim;
use std::sync::Arc;

/// Values of everything a program reads from outside: sizes, uniform parameters, data files; and what is probably wrong with what is drawn for edges.
pub fn setup(model: &Model, program: &Program, extent: &Extent) -> Result<(Setup, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut setup =
        Setup { sizes: extent.cells.clone(), grids: extent.grids.clone(), seed: model.seed, ..Setup::default() };
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    for (population, space) in model.populations.iter().zip(0..).map(|(p, i)| (p, SpaceId(i))) {
        match &population.kind {
            Kind::Cells | Kind::Clock => {}
            Kind::Tree { tree, .. } => setup.trees.push((space, Arc::clone(&tree.parents))),
            Kind::Part { elements, .. } => setup.subsets.push((space, Arc::clone(elements))),
        }
    }
    for (i, connection) in model.connections.iter().enumerate() {
        match edges(model, extent, connection) {
            Ok(edges) => {
                setup.sizes.push(edges.sources.len());
                setup.edges.push((connection_space(model, i), Arc::new(edges)));
            }
            Err(error) => errors.push(error),
        }
    }
    let mut of_projections = Vec::new();
    for (i, (projection, projected)) in model.projections.iter().zip(all_projected(model, extent)).enumerate() {
        match projected {
            Ok(of) => {
                let of_spikes = of.spikes.iter().flat_map(|spikes| spikes.warnings.clone());
                let written = projection.place.map_or(i, |place| place.first);
                let found = delays(model, extent, projection, &of).into_iter();
                let found = found.chain(of.outside(model, written)).chain(of_spikes);
                let (wrong, odd): (Vec<_>, Vec<_>) = found.partition(Diagnostic::is_error);
                errors.extend(wrong);
                warnings.extend(odd);
                setup.sizes.push(of.edges.sources.len());
                let (space, edges) = (projection_space(model, i), Arc::clone(&of.edges));
                of_projections.push((space, of));
                setup.edges.push((space, edges));
            }
            Err(error) => errors.push(error),
        }
    }
    for (i, field) in program.fields.iter().enumerate() {
        let id = FieldId(i as u32);
        let added = match field.source {
            Source::Dt => {
                setup.uniforms.push((id, extent.grid.dt));
                Ok(())
            }
            Source::Param(p) if field.kind == FieldKind::Uniform => {
                uniform(model, &model.params[p as usize]).map(|x| setup.uniforms.push((id, x)))
            }
            Source::Series(file) => {
                let duration = extent.grid.steps as f64 * extent.grid.dt;
                let series = data::series(&model.data[file as usize], [0.0, duration]);
                series.map(|series| setup.series.push((id, series.samples)))
            }
            Source::Data(population, file) => {
                let file = &model.data[file as usize];
                let edges = of_projections.iter().find(|(space, _)| space.0 == population);
                let values = match (extent.cells.get(population as usize), edges) {
                    (Some(&cells), _) => data::per_cell(file, cells, model.seed).and_then(|values| {
                        // NumPy's last index is the fastest.
                        let shape: Vec<usize> = extent.grids[population as usize].iter().rev().copied().collect();
                        data::shaped(file, &shape, "that of the population, with its first size last").map(|()| values)
                    }),
                    (None, Some((_, edges))) => edges.data(file, model.seed).and_then(|values| {
                        data::shaped(file, &edges.shape(), "by target, and of each target by source").map(|()| values)
                    }),
                    // What is wrong with the edges has been said.
                    (None, None) => continue,
                };
                values.map(|values| setup.data.push((id, values)))
            }
            Source::Measure(space, measure) => {
                let population = space as usize;
                let count = extent.cells.get(population).copied().unwrap_or(0);
                match model.measures(population, Measure::of_number(measure), count) {
                    Some(values) => setup.data.push((id, values)),
                    None => errors.push(Diagnostic::without_place(
                        Code::Internal,
                        format!("`{}` is asked for where there are no compartments", field.name),
                    )),
                }
                Ok(())
            }
            // How fast parameters move is set before each run.
            Source::Tangent(..) if field.kind == FieldKind::Uniform => {
                setup.uniforms.push((id, 0.0));
                Ok(())
            }
            Source::None
            | Source::Param(_)
            | Source::State(_)
            | Source::Next(_)
            | Source::Slope(..)
            | Source::Point(..)
            | Source::Sum(..)
            | Source::Slopes(..)
            | Source::There(..)
            | Source::Told(..)
            | Source::Arrived(..)
            | Source::Sent(..)
            | Source::Amount(_)
            | Source::Modulated(_)
            | Source::Weight(_)
            | Source::Delay(_)
            | Source::Back(_)
            | Source::Seen(_)
            | Source::Refractory(_)
            | Source::Spiked(_)
            | Source::Spikes(_)
            | Source::Output(_)
            | Source::Observed(..)
            | Source::Axial(..)
            | Source::Membrane(..)
            | Source::Conductance(..)
            | Source::Own(..)
            | Source::Rhs(..)
            | Source::Middle(..)
            | Source::Transmembrane(..)
            | Source::Escaping(..)
            | Source::Injected(..)
            | Source::InjectedSlope(..)
            | Source::Diffusion(..)
            | Source::Adjoint(_)
            | Source::Seed(_)
            | Source::Gradient(..)
            | Source::Tangent(..) => Ok(()),
        };
        // Of a kernel that several projections have it is told once.
        errors.extend(added.err().filter(|error| !errors.contains(error)));
    }
    if errors.is_empty() { Ok((setup, warnings)) } else { Err(errors) }
}

/// A delay of more steps than can be; of those that differ from edge to edge the first that is less than a step; or a warning if those of a file are no
/// whole steps.
fn delays(model: &Model, extent: &Extent, p: &Projection, edges: &Projected) -> Option<Diagnostic> {
    if edges.spikes.is_some() || model.method == Method::Adaptive {
        return None;
    }
    // What is the same for all edges has been looked at with other values, and draws within limits need no look.
    let dt = extent.grid.dt;
    let steps = |delay: f64| (delay / dt + 0.5).floor();
    let of = |wanted: fn(&Node) -> bool| {
        model.graph.reachable([p.delay]).into_iter().any(|id| wanted(&model.graph.node(id)))
    };
    let written = of(|node| matches!(node, Node::Data(_))) && !of(|node| matches!(node, Node::Draw(..)));
    let fine = || steps(ode::cells::least(model, p.delay)) >= 1.0;
    let unit = Dim::TIME.display_unit();
    // Spikes of the target may take up to twice as long to the synapse.
    let dendritic = p.plasticity.as_ref().and_then(|plasticity| plasticity.dendritic);
    let back = dendritic.map_or(0.0, |(part, _)| match ode::evaluate(model, part) {
        Ok(Value::Real(part)) => 2.0 * part,
        Ok(_) | Err(_) => 0.0,
    });
    let longest = f64::from(LONGEST);
    let is_long = |delay: f64| steps(delay).max((back * steps(delay) + 0.5).floor()) > longest;
    let too_long = |which: String, delay: f64| {
        let message = format!("{which} is {}, too many steps", shown(delay, &unit));
        let most = shown(longest * dt / back.max(1.0), &unit);
        let d = Diagnostic::new(
            Code::OutOfDomain,
            p.span,
            message,
            format!("nothing is on its way for more than {LONGEST} steps"),
        );
        let d = if back > 1.0 {
            d.note(format!("spikes of the target take {back} times as long to the synapse"))
        } else {
            d
        };
        d.help(format!("make it {most} at most, or `dt` longer"))
    };
    if let Ok(known) = ode::evaluate(model, p.delay) {
        let delay = known.real().filter(|delay| is_long(*delay))?;
        return Some(too_long(format!("the delay of `{}`", p.name), delay));
    }
    if !written && fine() {
        return None;
    }
    let data = |_: Option<usize>, file: u32| edges.data(&model.data[file as usize], model.seed).ok();
    let delays = ode::cells::values(model, p.delay, None, edges.rows.len(), &data)?;
    if let Some(edge) = delays.iter().position(|delay| is_long(*delay)) {
        return Some(too_long(format!("the delay of edge {edge} of `{}`", p.name), delays[edge]));
    }
    if let Some(edge) = delays.iter().position(|delay| steps(*delay) < 1.0) {
        let delay = shown(delays[edge], &unit);
        let message = format!("the delay of edge {edge} of `{}` is {delay}, less than the time step", p.name);
        let d = Diagnostic::new(Code::OutOfDomain, p.span, message, "a spike arrives a step later at the earliest");
        let least = shown(dt, &unit);
        let is_file = |node: &Node| matches!(node, Node::Data(file) if !matches!(model.data[*file as usize].numbers, Numbers::Distances));
        let of_file = model.graph.reachable([p.delay]).into_iter().any(|id| is_file(&model.graph.node(id)));
        return Some(match (p.spacing.is_some(), of(|node| matches!(node, Node::Draw(..)))) {
            (_, false) if of_file => d.help(format!("make it {least} at least in the file, or `dt` shorter")),
            (true, false) => d.help(format!("add what every spike takes: `delay = {least} + distance / ...`")),
            (true | false, _) => {
                d.help(format!("draw it within limits: `delay ~ truncated(normal(...), {least}, ...)`"))
            }
        });
    }
    let rounded = || delays.iter().map(|&delay| ode::in_steps(delay, dt)).enumerate();
    let (edge, taken) = rounded().filter(|_| written).find_map(|(edge, taken)| Some((edge, taken?)))?;
    let (count, all) = (rounded().filter(|one| one.1.is_some()).count(), delays.len());
    let message = format!("{count} of {all} delays of `{}` are not whole numbers of steps", p.name);
    let taken = format!("{} of edge {edge} become {}", shown(delays[edge], &unit), shown(taken, &unit));
    let d = Diagnostic::new(Code::DelayRounded, p.span, message, taken);
    Some(d.note(format!("a step is {}", shown(dt, &unit))))
}

impl Projected {
    /// What is outside of its domain; `at` is the index of the projection.
    fn outside(&self, model: &Model, at: usize) -> Vec<Diagnostic> {
        let data = |_: Option<usize>, file: u32| self.data(&model.data[file as usize], model.seed).ok();
        ode::domains::per_edge(model, at, self.rows.len(), &data)
    }

    /// The values of an expression for the edges; `None` if they are not known before the run.
    pub(super) fn values(&self, model: &Model, root: NodeId) -> Option<Vec<f64>> {
        let data = |_: Option<usize>, file: u32| self.data(&model.data[file as usize], model.seed).ok();
        ode::cells::values(model, root, None, self.rows.len(), &data)
    }

    /// The shape of an array with their numbers: that of the kernel, or by cells that have as many each; else a vector.
    fn shape(&self) -> Vec<usize> {
        let ends: Vec<u32> = self.edges.offsets.iter().copied().step_by(self.each).collect();
        let rows = || ends.windows(2).map(|ends| (ends[1] - ends[0]) as usize);
        match (self.kernel, rows().next()) {
            (Some(sizes), _) => sizes.to_vec(),
            (None, Some(each)) if rows().all(|row| row == each) => vec![ends.len() - 1, each],
            (None, _) => Vec::new(),
        }
    }

    /// The numbers of a file for the edges, in their order.
    fn data(&self, file: &DataFile, seed: u64) -> Result<Vec<f64>, Diagnostic> {
        if let (Numbers::OfEdges, Some(spikes)) = (&file.numbers, &self.spikes) {
            return Ok(spikes.delays.clone());
        }
        if let (Numbers::Distances, Some(distances)) = (&file.numbers, &self.distances) {
            return Ok(distances.clone());
        }
        let values = self.given(file, seed)?;
        Ok(self.rows.iter().map(|&row| values[row as usize]).collect())
    }

    /// The numbers of a file as it gives them.
    fn given(&self, file: &DataFile, seed: u64) -> Result<Vec<f64>, Diagnostic> {
        let edges = self.rows.len();
        let cells = self.spikes.as_ref().map_or(edges, |spikes| spikes.cells);
        let count = self.kernel.map_or(cells, |sizes| sizes.iter().product());
        data::numbers(file, count, seed, |given| match self.kernel {
            Some([to, from, rows, columns]) => format!(
                "the kernel has {count}: for {to} channels from {from} channels, {rows} rows and {columns} columns"
            ),
            None => {
                let diagonal = self.within.is_some_and(|cells| given == cells * cells && edges + cells == given);
                let why = if diagonal { ": no cell is joined with itself, so leave the diagonal out" } else { "" };
                format!("the projection has {edges} edges{why}")
            }
        })
    }
}

/// The numbers that the edges of a projection share.
#[derive(Debug, Clone, PartialEq)]
pub struct Shared {
    /// The numbers of the kernel.
    pub values: Vec<f64>,
    /// Which of them each edge has.
    pub of: Vec<u32>,
    /// What part of it.
    pub share: f64,
}

/// The numbers that the edges of a projection share; `None` if each edge has its own.
pub fn shared(model: &Model, extent: &Extent, p: &Projection) -> Result<Option<Shared>, Diagnostic> {
    let Some(share) = p.share else { return Ok(None) };
    let of = projected(model, extent, p)?;
    let count = of.kernel.map_or(0, |sizes| sizes.iter().product());
    let data = |_: Option<usize>, file: u32| of.given(&model.data[file as usize], model.seed).ok();
    match (ode::cells::values(model, p.weight, None, count, &data), ode::evaluate(model, share)) {
        (Some(values), Ok(Value::Real(share))) => Ok(Some(Shared { values, of: of.rows, share })),
        _ => Err(Diagnostic::new(Code::Internal, p.span, "these weights are not known before the run", "")),
    }
}

fn uniform(model: &Model, param: &Param) -> Result<f64, Diagnostic> {
    let name = &param.name;
    let what = match ode::evaluate(model, param.value) {
        Ok(Value::Real(x)) if x.is_finite() => return Ok(x),
        Ok(Value::Real(x)) => format!("parameter `{name}` is {x}"),
        Ok(Value::Single(x)) => format!("parameter `{name}` is {x}"),
        Ok(Value::Mask(_)) => format!("parameter `{name}` is a condition, not a number"),
        Err(ode::EvalError::Cyclic) => format!("parameter `{name}` depends on itself"),
        Err(ode::EvalError::NotUniform) => format!("parameter `{name}` is not known before the run"),
    };
    let d = Diagnostic::new(Code::BadValue, param.span, what, "a finite number is needed");
    let leaf = |node| match node {
        Node::Param(p) => ode::evaluate(model, model.param(p).value).ok(),
        _ => None,
    };
    Err(match ode::fault(model, &parameters_too(model, param.value), leaf) {
        Some(fault) => {
            let d = d.note(said(&fault));
            fault.help.into_iter().fold(d, |d, help| d.help(help))
        }
        None => d,
    })
}

/// An expression, and those of all parameters that it depends on, behind what they are needed for.
fn parameters_too(model: &Model, root: NodeId) -> Vec<NodeId> {
    let (mut all, mut at) = (vec![root], 0);
    while let Some(&node) = all.get(at) {
        for n in model.graph.reachable([node]) {
            if let Node::Param(p) = model.graph.node(n)
                && !all.contains(&model.param(p).value)
            {
                all.push(model.param(p).value);
            }
        }
        at += 1;
    }
    all
}
