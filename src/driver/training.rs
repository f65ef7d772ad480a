//! Networks whose weights and parameters learn: many trials at once, with gradients that go back through spikes.
//!
//! In come a checked model and a [`Lesson`]; out goes a [`Learner`]: what trials read out, and the gradient of a loss of that.
//! Never true here: a loss is chosen, or a run of the same model would deliver its events in other steps.

mod begin;
mod places;
mod reads;

use super::gradient::{Moved, decides_sizes, engine, fitted, moved, range};
use super::{Checked, CompileOptions, Compiled, EngineChoice, Experiment, Fitted, Passes, compile_flat, flatten};
#[cfg(feature = "xla")]
use crate::codegen::plan::DeviceClass;
use crate::codegen::plan::Precision;
#[cfg(feature = "xla")]
use crate::codegen::stablehlo::{Entry, mlir};
use crate::data::Dataset;
use crate::diag::{Code, Diagnostic, nearest};
use crate::differentiate::{self, Wanted};
use crate::discretize::{Carried, discretize_carried, projection_space};
use crate::engine::frames::Frames;
use crate::engine::{Edges, Engine, EngineError, Recording, Setup};
use crate::hir::{Learn, Method, Train};
use crate::interp::Interp;
use crate::ode::{self, Kind, Model, Node, NodeId, ParamId, PerCell};
use crate::passes::{self, Keep};
#[cfg(feature = "xla")]
use crate::simulate::trials::Device;
use crate::simulate::trials::{
    self, Both, Given, Host, Net, Origin, Passing, Route, Runner, Settling, Slopes, Spiking, Tract, Update,
};
use crate::simulate::{self, Loss, Shared};
use crate::source::Span;
use crate::step::{self, FieldId, FieldKind, OpKind, Program, Role, Source, SpaceKind, Verified};
use crate::units::{self, Dim, DisplayUnit};
use begin::{Followers, follows};
use reads::{Picked, Place, readout};
pub use reads::{Read, Reads, reads};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is learnt, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Lesson {
    /// The parameter of cells that differs from trial to trial, and where it is named.
    pub input: (String, Span),
    /// Values of it that the model takes, for as many cells as there are.
    pub example: Arc<[f64]>,
    /// How many steps it keeps its values; all if absent.
    pub frame: Option<usize>,
    /// Projections whose weights or delays learn, and parameters; a name may be the end of one.
    pub learn: Vec<Learn>,
    /// What the loss reads, each once.
    pub reads: Vec<(Read, Span)>,
    /// How spikes count.
    pub carried: Carried,
    /// How many trials run at once.
    pub trials: usize,
    /// How many threads carry events.
    pub threads: usize,
    /// The numbers of the engine.
    pub precision: Precision,
}

/// What is wrong with the names of a `train` block, and what of the model cannot learn.
pub(super) fn wrong_names(model: &Model, train: &Train) -> Vec<Diagnostic> {
    let reads = reads(model, train);
    let learnt = learnt(model, &train.learn, &train.input);
    let idle = match (&learnt, &reads) {
        (Ok(learns), Ok(reads)) => idle(model, &learns.projections, &train.learn, &reads.each).err(),
        // What is wrong with the readout is told once.
        _ => None,
    };
    let found = [suited(model).err(), learnt.err(), idle, given(model, &train.input).err(), reads.err()];
    let mut found: Vec<Diagnostic> = found.into_iter().flatten().flatten().collect();
    found.extend(left_behind(model, train));
    let word = Span { end: train.span.start + 5, ..train.span };
    found.into_iter().map(|d| at(word, d)).collect()
}

/// What is wrong if samples change in a run and a parameter follows their values, or what cells pass on and compute.
fn left_behind(model: &Model, train: &Train) -> Option<Diagnostic> {
    let (_, frame) = train.frame?;
    let full = given(model, &train.input).ok()?;
    let input = model.params.iter().position(|p| p.name == full)?;
    let of_samples = BTreeSet::from([ParamId(input as u32)]);
    let passed = model.passed_on().into_iter().find(|(_, sent)| follows(model, *sent, &of_samples));
    if let Some((first, _)) = passed {
        let p = &model.projections[first];
        let message = format!("what `{}` passes on would keep the values of a frame for a step of the next", p.name);
        let d = Diagnostic::new(Code::Unsupported, frame, message, "the samples change from frame to frame");
        let d = d.see(p.span, format!("what its cells pass on is made of states and of `{full}`"));
        return Some(d.help("pass on a state that follows the samples: `x' = ...`"));
    }
    let (_, follower) = (0..).zip(&model.params).find(|(at, p)| {
        *at != input && (p.home.is_some() || p.population.is_some()) && follows(model, p.value, &of_samples)
    })?;
    let message = format!("`{}` would keep the values of the first frame", follower.name);
    let d = Diagnostic::new(Code::Unsupported, frame, message, "the samples change from frame to frame");
    let own = follower.name.rsplit('.').next().unwrap_or_default();
    Some(
        d.see(follower.span, format!("this follows `{full}`"))
            .help(format!("write it as `let {own} = ...`, which is computed in every step")),
    )
}

/// The samples of a `train` block, if they fit its network.
pub fn samples(model: &Model, train: &Train) -> Result<Dataset, Vec<Diagnostic>> {
    let (name, span) = &train.data;
    let file = train.directory.join(name);
    let data = Dataset::read(&file, *span, train.frame.is_some(), train.test, model.seed).map_err(|d| vec![d])?;
    // What is wrong with sizes is told elsewhere.
    let Ok(extent) = simulate::extent(model) else { return Ok(data) };
    let mut errors = Vec::new();
    let wrong = |message: String, why: String| Diagnostic::new(Code::BadData, *span, message, why);
    let param = given(model, &train.input).ok().and_then(|full| model.params.iter().find(|p| p.name == full));
    if let Some(population) = param.and_then(|p| p.home.or(p.population)) {
        let (cells, values) = (extent.cells[population], data.values());
        if cells != values {
            let message =
                format!("a sample has {values} values, but `{}` has {cells} cells", model.populations[population].name);
            let d = wrong(message, format!("the samples have the shape [{values}]"));
            errors.push(d.see(train.input.1, format!("each of the {cells} cells needs one")));
        }
    }
    errors.extend(frame(model, train, data.frames()).err());
    let outputs = reads(model, train).ok().and_then(|reads| reads.each.first().cloned());
    let outputs = outputs.and_then(|read| readout(model, &read).ok()).map(|read| extent.cells[read.population(model)]);
    let classes = data.classes();
    if let Some(outputs) = outputs.filter(|&outputs| outputs < classes) {
        let message = format!("there are {classes} classes, but {outputs} cells are read out");
        let d = wrong(message, "a cell for each class is needed".into());
        let from_one = data.least_class() > 0;
        errors.push(if from_one { d.help("classes are counted from 0, and none is 0") } else { d });
    }
    if errors.is_empty() { Ok(data) } else { Err(errors) }
}

/// A sample, as a run takes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The parameter of cells that has its values.
    pub parameter: String,
    /// The values in canonical units, frame by frame; one frame if they stay.
    pub frames: Vec<Vec<f64>>,
    /// How many steps a frame lasts.
    pub steps: usize,
    /// The class.
    pub class: usize,
    /// Is it kept for testing?
    pub is_test: bool,
}

impl Sample {
    /// What its run begins with.
    pub fn first(&self) -> PerCell {
        let values = self.frames.first().map_or_else(Vec::new, Clone::clone);
        PerCell { name: self.parameter.clone(), values: values.into() }
    }

    /// The engine of a run that has taken [`Sample::first`] as an engine of the whole sample.
    pub fn shown(&self, program: &Program, engine: Box<dyn Engine>) -> Result<Box<dyn Engine>, EngineError> {
        if self.frames.len() == 1 {
            return Ok(engine);
        }
        let field = program.find_field(&self.parameter).filter(|&field| program.field(field).kind == FieldKind::Const);
        let field = field.ok_or_else(|| EngineError(format!("nothing in a step reads `{}`", self.parameter)))?;
        Ok(Box::new(Frames::new(engine, field, self.frames.clone(), self.steps)))
    }
}

/// A sample of the data of a `train` block, by its number.
pub fn sample(model: &Model, train: &Train, number: usize) -> Result<Sample, Vec<Diagnostic>> {
    let data = samples(model, train)?;
    if number >= data.count() {
        let message = format!("there is no sample {number}: `{}` has {}", train.data.0, data.count());
        let d = Diagnostic::without_place(Code::BadValue, message);
        return Err(vec![d.help(format!("the first is 0, the last {}", data.count() - 1))]);
    }
    let parameter = given(model, &train.input)?;
    let exponent = model.params.iter().find(|p| p.name == parameter).map_or(0, |p| p.unit.exponent);
    let steps = frame(model, train, data.frames()).map_err(|d| vec![d])?.unwrap_or(1);
    let values = |frame| data.frame(number, frame).iter().map(|&x| units::scale(x, exponent)).collect();
    Ok(Sample {
        parameter,
        frames: (0..data.frames()).map(values).collect(),
        steps,
        class: data.class(number),
        is_test: data.test().binary_search(&number).is_ok(),
    })
}

/// How many steps a frame of the samples lasts; none if they do not change. All frames last as long as the run.
pub fn frame(model: &Model, train: &Train, frames: usize) -> Result<Option<usize>, Diagnostic> {
    let Some((ms, span)) = train.frame else { return Ok(None) };
    let steps = (ms / model.dt).round();
    if steps < 1.0 || (steps * model.dt - ms).abs() > 1e-9 * ms {
        let message = format!("a frame of {ms} ms is no whole number of steps of {} ms", model.dt);
        return Err(Diagnostic::new(Code::BadValue, span, message, "as long as some steps"));
    }
    let run = (model.duration / model.dt).round();
    if steps * frames as f64 != run {
        let all = steps * frames as f64 * model.dt;
        let message = format!("{frames} frames of {ms} ms last for {all} ms, but the run for {} ms", model.duration);
        let d = Diagnostic::new(Code::BadData, span, message, "as long as the run in all");
        return Err(d.help("frames of zeros at the end of the samples let the network answer"));
    }
    Ok(Some(steps as usize))
}

/// Where something that learns stays, in canonical units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The least that it may be.
    pub low: f64,
    /// The most.
    pub high: f64,
}

impl Range {
    const ANY: Range = Range { low: f64::NEG_INFINITY, high: f64::INFINITY };

    /// Brings what has left it back to its end.
    pub fn hold(self, values: &mut [f64]) {
        values.iter_mut().for_each(|x| *x = x.clamp(self.low, self.high));
    }
}

/// What of a projection learns, and where it stays.
#[derive(Debug, Clone, Copy, Default)]
struct OfProjection {
    weight: Option<Range>,
    delay: Option<Range>,
}

/// Which numbers of a projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Weights,
    Delays,
}

/// What numbers that learn are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// The weights of a projection.
    Weights(usize),
    /// Its delays.
    Delays(usize),
    /// What each cell has: the number among [`Learner::cells`].
    Cells(usize),
}

/// Numbers that learn, each for itself: one for each edge of a projection, or for all that share a kernel; or one for each cell.
#[derive(Debug, Clone)]
struct Numbers {
    /// `a.b.Kick.weight`, `hidden.tau`.
    name: String,
    of: Of,
    /// The other projections that have the same: those to the other places of which a target gets the largest.
    same: Vec<usize>,
    range: Range,
    /// What one of the unit that they are written in is in canonical units: they move in that.
    unit: f64,
}

/// A parameter that learns for each cell.
struct OfCells {
    /// Its number in [`Net::begin`].
    begin: usize,
    /// In canonical units.
    values: Vec<f64>,
}

impl OfCells {
    /// All trials begin with them.
    fn tell(&self, net: &mut Net) {
        let trials = net.trials;
        if let Some((_, begin)) = net.begin.get_mut(self.begin) {
            *begin = self.values.repeat(trials);
        }
    }
}

/// So many numbers matrices of edges whose delays learn may have on a device: 1 GiB in double precision.
#[cfg(feature = "xla")]
const MOST_PLACES: usize = 1 << 27;

/// A network that learns.
pub struct Learner {
    model: Model,
    net: Net,
    runner: Box<dyn Runner>,
    fitted: Vec<Fitted>,
    /// Where they stay.
    ranges: Vec<Range>,
    moved: Vec<Moved>,
    /// What learns of edges and cells.
    numbers: Vec<Numbers>,
    /// The parameters that learn for each cell; their gradients are behind those of `moved`.
    cells: Vec<OfCells>,
    /// How many cells each readout has.
    outputs: Vec<usize>,
    /// Of each readout what is read, where cells have several values.
    picked: Vec<Option<Picked>>,
    /// Those of `numbers` that live where steps are taken.
    settled: Vec<usize>,
    /// What cells begin with that follows samples and parameters.
    followers: Followers,
}

/// The derivatives of a loss.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// The loss.
    pub loss: f64,
    /// The derivatives in all that learns of projections, in the order of [`Learner::learnt`] and the units of [`Learner::change`]; of edges in the order of
    /// gradients. Those in weights that have settled are none: they stay where steps are taken.
    pub edges: Vec<Vec<f64>>,
    /// The derivatives in the parameters that learn, in canonical units.
    pub parameters: Vec<f64>,
    /// How many spikes there were in all trials.
    pub spikes: u64,
}

fn refused<T>(what: String) -> Result<T, Vec<Diagnostic>> {
    Err(vec![Diagnostic::without_place(Code::Unsupported, what)])
}

fn internal(what: impl std::fmt::Display) -> Vec<Diagnostic> {
    vec![Diagnostic::without_place(Code::Internal, what.to_string())]
}

/// All of a network that learns but what takes its steps.
struct Prepared {
    model: Model,
    net: Net,
    programs: Programs,
    fitted: Vec<Fitted>,
    ranges: Vec<Range>,
    moved: Vec<Moved>,
    numbers: Vec<Numbers>,
    cells: Vec<OfCells>,
    outputs: Vec<usize>,
    picked: Vec<Option<Picked>>,
    followers: Followers,
}

impl Prepared {
    fn new(checked: &Checked, options: &CompileOptions, lesson: &Lesson) -> Result<Prepared, Vec<Diagnostic>> {
        let Some(model) = &checked.model else { return Err(checked.diagnostics.clone()) };
        if lesson.precision == Precision::Bf16 {
            return refused("networks learn in f64 or f32, not in bf16".into());
        }
        let mut options = CompileOptions { keep_all: true, ..options.clone() };
        let (flat, _) = flatten(model, &options)?;
        suited(&flat)?;
        let input = given(&flat, &lesson.input)?;
        options.per_cell.push(PerCell { name: input.clone(), values: Arc::clone(&lesson.example) });
        let (mut model, _) = flatten(model, &options)?;
        let Learnt { projections: routes_learn, parameters, cells: of_cells } =
            learnt(&model, &lesson.learn, &lesson.input)?;
        let (fitted, ranges): (Vec<Fitted>, Vec<Range>) = parameters.into_iter().unzip();
        idle(&model, &routes_learn, &lesson.learn, &lesson.reads)?;
        let whole = Whole::new(&model, checked, &options)?;
        // All trials, whose events are carried.
        if model.method == Method::Adaptive {
            return refused("networks learn with a method that has steps of `dt`, not with adaptive steps".into());
        }
        let program = discretize_carried(&model, &checked.sources, lesson.carried);
        let program = step::verify(program).map_err(internal)?;
        numbered_cells(program.program())?;
        let (mut moved, mut wrt) = moved(&mut model, program.program(), &fitted);
        for (one, _) in &of_cells {
            let field = program.program().bound(Source::Param(one.param.0));
            let field = field.filter(|&field| program.program().field(field).kind == FieldKind::Const);
            let idle = || refused(format!("`{}` cannot learn: no step reads it", one.name));
            wrt.push(field.map_or_else(idle, Ok)?);
        }
        let read = lesson.reads.iter().map(|read| readout(&model, read)).collect::<Result<Vec<_>, _>>()?;
        let states = read.iter().filter_map(|read| match read {
            Place::State(state, _) => program.program().bound(Source::State(state.0)),
            Place::Count(_) | Place::Spikes(_) => None,
        });
        let of: Vec<FieldId> = states.collect();
        let programs = Programs::new(&model, program, (of, wrt), &whole, &options, lesson.trials)?;
        let given = programs.input(&input);
        let spiking = programs.spiking(&model, &whole);
        let routes = programs.routes(&model, &whole, &spiking, &routes_learn)?;
        let (readouts, outputs): (_, Vec<usize>) = programs.readouts(&read, &whole, &spiking)?.into_iter().unzip();
        let picked: Vec<Option<Picked>> = read.iter().map(|read| read.picked()).collect();
        let outputs = outputs.iter().zip(&picked).map(|(all, picked)| all / picked.map_or(1, |one| one.each)).collect();
        let steps = usize::try_from(whole.experiment.extent.grid.steps).unwrap_or(usize::MAX);
        let frame = lesson.frame.unwrap_or(steps).max(1);
        let elements = lesson.example.len() * lesson.trials;
        let mut net = Net {
            states: programs.states(),
            begin: programs.begin(&model, &whole)?,
            follow: Vec::new(),
            given: Given { of: given, elements, frames: steps.div_ceil(frame).max(1), steps: frame },
            spiking: spiking.iter().map(|(_, spiking)| *spiking).collect(),
            passing: programs.passing(&model, &whole)?,
            sent: vec![Vec::new(); model.graded_given().count()],
            routes,
            readouts,
            gradients: (0..(moved.len() + of_cells.len()) as u32).map(|of| programs.gradient(of)).collect(),
            trials: lesson.trials,
            steps,
        };
        for one in &mut moved {
            one.forward = programs.there().bound(Source::Param(one.param.0));
            one.back = programs.back().bound(Source::Param(one.param.0));
        }
        let mut numbers = numbers(&model, &routes_learn);
        let mut cells = Vec::new();
        for (one, range) in of_cells {
            let own = of_each_cell(&one, range, programs.there(), &net);
            let own = own.map_err(|d| vec![at(place_of(&lesson.learn, &one.name), d)])?;
            numbers.push(Numbers {
                name: one.name,
                of: Of::Cells(cells.len()),
                same: Vec::new(),
                range,
                unit: units::scale(1.0, one.unit.exponent),
            });
            cells.push(own);
        }
        let input = model.params.iter().zip(0..).find(|(p, _)| p.name == input).map(|(_, at)| ParamId(at));
        let input = input.ok_or_else(|| internal("what samples give is no parameter"))?;
        let learn: BTreeSet<ParamId> = fitted.iter().map(|one| one.param).collect();
        begins_alike(&model, &learn.iter().copied().chain([input]).collect())?;
        let passed = model.passed_on().into_iter().map(|(first, sent)| (first, model.at_the_beginning(sent)));
        let passed: BTreeMap<usize, NodeId> = passed.collect();
        if let Some((&first, _)) = passed.iter().find(|(_, begin)| !model.stays(**begin)) {
            return refused(format!(
                "what the graded synapses of `{}` pass on changes by itself in time; so far states and parameters are passed on",
                model.projections[first].name
            ));
        }
        let followers = Followers::new(&model, programs.there(), &net, (input, learn, passed), &whole)?;
        if net.given.of.is_none() && !followers.of_samples() {
            let (name, span) = &lesson.input;
            let d = Diagnostic::without_place(Code::Unsupported, format!("nothing in a run reads `{name}`"));
            return Err(vec![at(*span, d)]);
        }
        net.follow = followers.numbers().into_iter().chain(cells.iter().map(|own| own.begin)).collect();
        let prepared =
            Prepared { model, net, programs, fitted, ranges, moved, numbers, cells, outputs, picked, followers };
        prepared.matters()?;
        Ok(prepared)
    }

    /// Is there anything to learn?
    fn matters(&self) -> Result<(), Vec<Diagnostic>> {
        for (number, one) in self.fitted.iter().enumerate() {
            let depends = self.moved.iter().zip(&self.net.gradients);
            if !depends.into_iter().any(|(moved, fields)| moved.slopes[number].is_some() && !fields.is_empty()) {
                return refused(format!("`{}` cannot learn: nothing that is read out depends on it", one.name));
            }
        }
        let of_cells = self.numbers.iter().filter(|one| matches!(one.of, Of::Cells(_)));
        for (one, fields) in of_cells.zip(&self.net.gradients[self.moved.len()..]) {
            if fields.is_empty() {
                return refused(format!("`{}` cannot learn: nothing that is read out depends on it", one.name));
            }
        }
        Ok(())
    }
}

impl Learner {
    /// Compiles a network for as many trials as the lesson wants.
    pub fn new(
        checked: &Checked,
        options: &CompileOptions,
        lesson: &Lesson,
        choice: &dyn Fn() -> Result<EngineChoice, EngineError>,
    ) -> Result<Learner, Vec<Diagnostic>> {
        let Prepared { model, net, programs, fitted, ranges, moved, numbers, cells, outputs, picked, followers } =
            Prepared::new(checked, options, lesson)?;
        let runner = programs.runner(&net, lesson, choice)?;
        let settled = Vec::new();
        Ok(Learner { model, net, runner, fitted, ranges, moved, numbers, cells, outputs, picked, settled, followers })
    }

    /// What XLA compiles of a lesson: the entry points of both directions, as text.
    #[cfg(feature = "xla")]
    pub fn modules(checked: &Checked, options: &CompileOptions, lesson: &Lesson) -> Result<String, Vec<Diagnostic>> {
        let Prepared { net, programs, .. } = Prepared::new(checked, options, lesson)?;
        let mut text = String::new();
        for (way, kind) in [&programs.forward, &programs.backward].into_iter().zip(trials::kinds(&net).map_err(cannot)?)
        {
            let plan = way.plan(lesson.precision)?;
            let device = way.setup.device_plan(&plan, DeviceClass::Cpu).map_err(cannot)?;
            let function = Entry::new(&plan, &device, kind.clone(), kind.name()).function;
            let module = mlir::write(&plan.name, &[function], &plan.origins, mlir::Format::Plain);
            text += &String::from_utf8_lossy(&module);
        }
        Ok(text)
    }

    /// How many bytes of states are kept on the way forward; on a device also who has sent, and what arrives on the way back.
    pub fn memory(&self) -> f64 {
        self.runner.bytes(&self.net)
    }

    /// How many cells each readout has.
    pub fn outputs(&self) -> &[usize] {
        &self.outputs
    }

    /// The key of the model's random numbers.
    pub fn seed(&self) -> u64 {
        self.model.seed
    }

    /// The parameters that learn.
    pub fn fitted(&self) -> &[Fitted] {
        &self.fitted
    }

    /// Where they stay.
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// Lets weights live where steps are taken, if a device takes them and each is the weight of one edge. A function that `update` makes moves
    /// them, and the lists that are remembered of them begin at 0.
    pub fn settle(&mut self, lists: usize, update: Update<'_>) -> Result<(), EngineError> {
        let settling = |one: &Numbers| match one.of {
            Of::Weights(route) if one.same.is_empty() => {
                Some(Settling { route, range: [one.range.low, one.range.high], unit: one.unit })
            }
            Of::Weights(_) | Of::Delays(_) | Of::Cells(_) => None,
        };
        let routes: Vec<Settling> = self.numbers.iter().filter_map(settling).collect();
        let routes = self.runner.settle(&self.net, &routes, lists, update)?;
        let is_there = |one: &Numbers| matches!(one.of, Of::Weights(route) if routes.contains(&route));
        let numbers = self.numbers.iter().enumerate().filter(|(_, one)| is_there(one));
        self.settled = numbers.map(|(number, _)| number).collect();
        Ok(())
    }

    /// Does this one, of what [`Learner::learnt`] lists, live where steps are taken?
    pub fn has_settled(&self, number: usize) -> bool {
        self.settled.contains(&number)
    }

    /// Moves what has settled against the slopes of the last gradient; `numbers` is the last argument of the function. The answer is its last result, if that
    /// is a single number; none if nothing has settled.
    pub fn descend(&mut self, numbers: impl FnOnce() -> Vec<f64>) -> Result<Option<f64>, EngineError> {
        self.runner.settled().map_or(Ok(None), |settled| settled.descend(&numbers()))
    }

    /// Fetches what has settled, for [`Learner::learnt`]. The answer are the lists that are remembered of each, in the order of gradients.
    pub fn fetch(&mut self) -> Result<BTreeMap<usize, Vec<Vec<f64>>>, EngineError> {
        let mut remembered = BTreeMap::new();
        let Some(settled) = self.runner.settled() else { return Ok(remembered) };
        for &number in &self.settled {
            let one = &self.numbers[number];
            let Of::Weights(route) = one.of else { continue };
            let mut lists = settled.bring_down(&self.net, route)?.into_iter();
            let weights = lists.next().unwrap_or_default();
            self.net.routes[route].tract.change(|own| {
                own.copy_from_slice(&weights);
                // The end of a range may be rounded on a device.
                one.range.hold(own);
            });
            remembered.insert(number, lists.collect());
        }
        Ok(remembered)
    }

    /// Brings what [`Learner::set_learnt`] has set to where it has settled, with lists that are remembered.
    pub fn bring(&mut self, remembered: &BTreeMap<usize, Vec<&[f64]>>) -> Result<(), EngineError> {
        let Some(settled) = self.runner.settled() else { return Ok(()) };
        let all = remembered.iter().filter(|(number, _)| self.settled.contains(number));
        for (&number, lists) in all {
            if let Of::Weights(route) = self.numbers[number].of {
                settled.bring_up(&self.net, route, lists)?;
            }
        }
        Ok(())
    }

    /// Changes what learns of edges and cells and has not settled, one after the other, in the order of gradients; weights are in the units of their synapses,
    /// delays in ms, parameters in the units that they are written in. What leaves its range is brought back to its end.
    pub fn change(&mut self, mut change: impl FnMut(usize, &mut [f64])) {
        let dt = self.model.dt;
        for (at, Numbers { of, same, range, unit, .. }) in self.numbers.iter().enumerate() {
            if self.settled.contains(&at) {
                continue;
            }
            let mut in_units = |values: &mut [f64]| {
                values.iter_mut().for_each(|x| *x /= unit);
                change(at, values);
                values.iter_mut().for_each(|x| *x *= unit);
                range.hold(values);
            };
            match *of {
                Of::Weights(route) => {
                    let tract = &mut self.net.routes[route].tract;
                    tract.change(in_units);
                    if !same.is_empty() {
                        let weights = tract.weights();
                        same.iter().for_each(|&other| self.net.routes[other].tract.set_weights(&weights));
                    }
                }
                Of::Delays(route) => self.net.routes[route].tract.change_delays(|steps| {
                    steps.iter_mut().for_each(|steps| *steps *= dt);
                    change(at, steps);
                    steps.iter_mut().for_each(|ms| *ms /= dt);
                }),
                Of::Cells(number) => {
                    in_units(&mut self.cells[number].values);
                    self.cells[number].tell(&mut self.net);
                }
            }
        }
    }

    /// What learns of edges and cells: weights (`a.b.Kick.weight`) and delays in ms (`a.b.Kick.delay`) in the order of the edges: by target, and of each target by
    /// source; of edges that share a kernel its numbers; parameters of cells in canonical units. What has settled is as it was fetched last.
    pub fn learnt(&self) -> Vec<(&str, Vec<f64>)> {
        let tract = |route: usize| &self.net.routes[route].tract;
        let values = |one: &Numbers| match one.of {
            Of::Weights(route) => tract(route).weights(),
            Of::Delays(route) => tract(route).moved_delays().into_iter().map(|steps| steps * self.model.dt).collect(),
            Of::Cells(number) => self.cells[number].values.clone(),
        };
        self.numbers.iter().map(|one| (one.name.as_str(), values(one))).collect()
    }

    /// Are these, of what [`Learner::learnt`] lists, delays?
    pub fn are_delays(&self, number: usize) -> bool {
        self.numbers.get(number).is_some_and(|one| matches!(one.of, Of::Delays(_)))
    }

    /// Gives what learns of edges and cells values, as [`Learner::learnt`] lists them.
    pub fn set_learnt(&mut self, all: &[Vec<f64>]) {
        for (one, values) in self.numbers.iter().zip(all) {
            one.same.iter().for_each(|&other| self.net.routes[other].tract.set_weights(values));
            match one.of {
                Of::Weights(route) => self.net.routes[route].tract.set_weights(values),
                Of::Delays(route) => {
                    let steps: Vec<f64> = values.iter().map(|ms| ms / self.model.dt).collect();
                    self.net.routes[route].tract.set_delays(&steps);
                }
                Of::Cells(number) => {
                    self.cells[number].values.clone_from(values);
                    self.cells[number].tell(&mut self.net);
                }
            }
        }
    }

    /// Values in the order of gradients, for what has this number in [`Learner::learnt`], in the order of the edges.
    pub fn in_order(&self, number: usize, values: &[f64]) -> Vec<f64> {
        match self.numbers.get(number).map(|one| one.of) {
            Some(Of::Weights(route) | Of::Delays(route)) => self.net.routes[route].tract.in_order(values),
            Some(Of::Cells(_)) => values.to_vec(),
            None => Vec::new(),
        }
    }

    /// What the trials read out, for each readout `[sample][trial][cell]`, and the number of spikes, as in a run: delays that learn are whole numbers of steps.
    /// `input` has values `[frame][trial][cell]`.
    pub fn samples(&mut self, parameters: &[f64], input: &[Vec<f64>]) -> Result<(Vec<Vec<f64>>, u64), EngineError> {
        self.set(parameters, input)?;
        let moving = self.net.routes.iter_mut().filter(|route| route.tract.is_moving());
        let between: Vec<Vec<f64>> = moving.map(|route| route.tract.round_delays()).collect();
        let found = self.runner.samples(&self.net, input);
        let moving = self.net.routes.iter_mut().filter(|route| route.tract.is_moving());
        moving.zip(between).for_each(|(route, delays)| route.tract.set_delays(&delays));
        let (all, spikes) = found?;
        Ok((picked(&self.picked, &all).into_owned(), spikes))
    }

    /// The loss of all trials and its derivatives; `input` as above; `loss` gets what they read out, for each readout `[sample][trial][cell]`.
    pub fn gradient(
        &mut self,
        parameters: &[f64],
        input: &[Vec<f64>],
        loss: &mut dyn FnMut(&[Vec<f64>]) -> Loss,
    ) -> Result<Found, EngineError> {
        self.set(parameters, input)?;
        let of_picked = &self.picked;
        let mut of_all = |all: &[Vec<f64>]| {
            let mut loss = loss(&picked(of_picked, all));
            for (slopes, one) in loss.slopes.iter_mut().zip(of_picked) {
                if let Some(one) = one {
                    *slopes = one.spread(slopes);
                }
            }
            loss
        };
        let Slopes { loss, mut edges, parameters: of, spikes } = self.runner.slopes(&self.net, input, &mut of_all)?;
        let dt = self.model.dt;
        let slopes = |one: &Numbers| match one.of {
            Of::Weights(route) => {
                let mut all = std::mem::take(&mut edges[route].weights);
                for &other in &one.same {
                    all.iter_mut().zip(&edges[other].weights).for_each(|(sum, slope)| *sum += slope);
                }
                all.iter_mut().for_each(|slope| *slope *= one.unit);
                all
            }
            Of::Delays(route) => edges[route].delays.iter().map(|per_step| per_step / dt).collect(),
            Of::Cells(number) => {
                // What every trial contributes.
                let (values, cells) = (&of[self.moved.len() + number], self.cells[number].values.len());
                let of_cell = |cell: usize| values.iter().skip(cell).step_by(cells).sum::<f64>() * one.unit;
                (0..cells).map(of_cell).collect()
            }
        };
        let edges = self.numbers.iter().map(slopes).collect();
        let totals: Vec<f64> = of.iter().map(|values| values.iter().sum()).collect();
        let parameters = super::gradient::chained(&self.model, &self.moved, &totals, self.fitted.len())?;
        Ok(Found { loss, edges, parameters, spikes })
    }

    /// Gives parameters that learn values, and what cells begin with that follows them and what samples give.
    fn set(&mut self, values: &[f64], input: &[Vec<f64>]) -> Result<(), EngineError> {
        let runner = &mut self.runner;
        super::gradient::set(&mut self.model, &self.fitted, &self.moved, values, &mut |moved, x| {
            runner.set_uniform(moved.forward, moved.back, x)
        })?;
        self.followers.bring(&self.model, input, &mut self.net)
    }
}

/// Of all samples those that are read.
fn picked<'a>(of: &[Option<Picked>], all: &'a [Vec<f64>]) -> Cow<'a, [Vec<f64>]> {
    if of.iter().all(Option::is_none) {
        return Cow::Borrowed(all);
    }
    let own = |(one, all): (&Option<Picked>, &Vec<f64>)| one.map_or_else(|| all.clone(), |one| one.picked(all));
    of.iter().zip(all).map(own).collect::<Vec<_>>().into()
}

/// One trial, with all that cells and edges begin with.
struct Whole {
    experiment: Experiment,
    beginning: Interp,
}

impl Whole {
    fn new(model: &Model, checked: &Checked, options: &CompileOptions) -> Result<Whole, Vec<Diagnostic>> {
        let plain = CompileOptions { passes: Passes::Named(Vec::new()), ..options.clone() };
        let compiled = compile_flat(model.clone(), &checked.sources, &plain, &mut |_, _, _| {})?;
        let experiment = Experiment::new(compiled)?;
        let mut beginning = Interp::new(experiment.compiled.program.clone(), &experiment.setup).map_err(cannot)?;
        beginning.init().map_err(cannot)?;
        Ok(Whole { experiment, beginning })
    }

    /// The numbers of a file for the cells of a population.
    fn data(&self, population: usize, file: u32) -> Option<Vec<f64>> {
        let field = self.experiment.program().bound(Source::Data(population as u32, file))?;
        let (_, values) = self.experiment.setup.data.iter().find(|(id, _)| *id == field)?;
        Some(values.to_vec())
    }

    /// The first values of a field.
    fn values(&self, field: FieldId, count: usize) -> Result<Vec<f64>, Vec<Diagnostic>> {
        let mut values = Vec::new();
        self.beginning.read(field, 0..count, &mut values).map_err(cannot)?;
        Ok(values)
    }

    /// The edges of a projection with what they begin with.
    fn tract(&self, model: &Model, number: usize, learns: OfProjection) -> Result<Tract, Vec<Diagnostic>> {
        let (projection, space) = (&model.projections[number], projection_space(model, number));
        let program = self.experiment.program();
        let edges = self.experiment.setup.edges_of(space).ok_or_else(|| internal("a projection has no edges"))?;
        let count = edges.sources.len();
        let of_edges = |source: Source| program.bound(source).map(|field| self.values(field, count)).transpose();
        let delays = match projection.graded {
            Some(_) => vec![1.0; count],
            None => of_edges(Source::Delay(number as u32))?.ok_or_else(|| internal("a projection has no delays"))?,
        };
        let weights = match of_edges(Source::Weight(number as u32))? {
            Some(weights) => weights,
            None => match ode::evaluate(model, projection.weight) {
                Ok(step::Value::Real(weight)) => vec![weight; count],
                Ok(step::Value::Single(_) | step::Value::Mask(_)) | Err(_) => {
                    return refused(format!(
                        "the weight of `{}` changes in a run, so that it cannot learn",
                        projection.name
                    ));
                }
            },
        };
        let senders = self.experiment.extent.cells[projection.from];
        if let Some(range) = learns.delay {
            let steps = [range.low, range.high].map(|ms| ms / model.dt);
            begins_within(projection, &delays, steps, model.dt)?;
            return Ok(Tract::moving(edges, senders, &delays, &weights, steps));
        }
        let tract = Tract::new(edges, senders, &delays, &weights);
        let shared = simulate::shared(model, &self.experiment.extent, projection).map_err(|d| vec![d])?;
        Ok(match shared {
            Some(Shared { values, of, share }) => tract.sharing(values, &of, share),
            None => tract,
        })
    }
}

/// The programs of all trials, forward and back, with their set-ups.
struct Programs {
    /// Forward, before the passes.
    plain: Verified,
    forward: Experiment,
    backward: Experiment,
    trials: usize,
}

impl Programs {
    /// `of` is what the loss reads of states, `wrt` what is free.
    fn new(
        model: &Model,
        plain: Verified,
        (of, wrt): (Vec<FieldId>, Vec<FieldId>),
        whole: &Whole,
        options: &CompileOptions,
        trials: usize,
    ) -> Result<Programs, Vec<Diagnostic>> {
        let given: Vec<FieldId> = (0..model.projections.len() as u32)
            .filter_map(|projection| plain.program().bound(Source::Arrived(projection, 0)))
            .collect();
        let adjoints = given.iter().map(|field| Source::Adjoint(field.0)).collect();
        let wanted = Wanted { of, wrt, given, ..Wanted::default() };
        let back = differentiate::backward(&plain, &wanted).or_else(|why| refused(why.to_string()))?;
        // Programs whose events are carried have no projections.
        let bare = Model { projections: Vec::new(), ..model.clone() };
        let made = |plain: Verified, keep: Keep| -> Result<Experiment, Vec<Diagnostic>> {
            let names: Vec<&str> = match &options.passes {
                Passes::Level(level) => passes::pipeline(*level, options.backend).to_vec(),
                Passes::Named(names) => names.iter().map(String::as_str).collect(),
            };
            let pass_options = passes::Options { keep, ..passes::Options::default() };
            let program = passes::run(plain.clone(), &names, &pass_options, &mut |_, _, _| {}).map_err(internal)?;
            let extent = whole.experiment.extent.clone();
            let (mut setup, warnings) = simulate::setup(&bare, program.program(), &extent)?;
            repeat(&mut setup, program.program(), trials);
            let compiled = Compiled { ode: model.clone(), plain, program, warnings: Vec::new() };
            let recording = Recording { every: extent.grid.steps, fields: Vec::new() };
            Ok(Experiment { compiled, extent, setup, recording, warnings })
        };
        let forward = made(plain.clone(), Keep::AllStates)?;
        let mut backward = made(back, Keep::Only(adjoints))?;
        simulate::turn_edges(plain.program(), &mut backward.setup).map_err(internal)?;
        Ok(Programs { plain, forward, backward, trials })
    }

    /// What takes the steps of all trials.
    #[cfg_attr(not(feature = "xla"), allow(unused_variables))]
    fn runner(
        &self,
        net: &Net,
        lesson: &Lesson,
        choice: &dyn Fn() -> Result<EngineChoice, EngineError>,
    ) -> Result<Box<dyn Runner>, Vec<Diagnostic>> {
        #[cfg(feature = "xla")]
        if let EngineChoice::Xla(compiler, forms) = choice().map_err(cannot)? {
            let too_large = |route: &&Route| route.tract.is_moving() && route.tract.places_in_matrices() > MOST_PLACES;
            if let Some(route) = net.routes.iter().find(too_large) {
                let (places, delays) = (route.tract.places_in_matrices(), route.tract.delays().len());
                return refused(format!(
                    "on a device, delays that learn take a matrix for each of {delays} whole delays, here {places} numbers; \
                     natively they take one for each connection"
                ));
            }
            let [forward, back] = [&self.forward, &self.backward].map(|way| way.plan(lesson.precision));
            let (forward, back) = ((&forward?, &self.forward.setup), (&back?, &self.backward.setup));
            return Ok(Box::new(Device::new(net, forward, back, &compiler, &forms).map_err(cannot)?));
        }
        let forward = engine(&self.forward, choice, lesson.precision)?;
        let back = engine(&self.backward, choice, lesson.precision)?;
        Ok(match lesson.precision {
            Precision::F32 => Box::new(Host::<f32>::new(forward, back, lesson.threads)),
            Precision::F64 | Precision::Bf16 => Box::new(Host::<f64>::new(forward, back, lesson.threads)),
        })
    }

    fn there(&self) -> &Program {
        self.forward.program()
    }

    fn back(&self) -> &Program {
        self.backward.program()
    }

    /// How many values a field of the program that goes forward has.
    fn elements(&self, field: FieldId) -> usize {
        self.there().field(field).over.map_or(1, |space| self.forward.setup.sizes[space.0 as usize])
    }

    /// A field of both.
    fn both(&self, field: FieldId) -> Both {
        let (name, kind) = (&self.there().field(field).name, self.there().field(field).kind);
        let back = self.back().find_field(name).filter(|&f| self.back().field(f).kind == kind);
        Both { forward: field, back }
    }

    /// A state and its adjoint.
    fn with_adjoint(&self, field: FieldId) -> Both {
        // Adjoints name the fields of the program before the passes.
        let plain = self.plain.program().find_field(&self.there().field(field).name);
        Both { forward: field, back: plain.and_then(|plain| self.back().bound(Source::Adjoint(plain.0))) }
    }

    /// The states that going back reads.
    fn states(&self) -> Vec<(Both, usize)> {
        let step = self.back().function(Role::Step);
        let read = |op: &step::Op| match op.kind {
            OpKind::Field(field) | OpKind::Gather(field, _) => Some(field),
            _ => None,
        };
        let read: BTreeSet<FieldId> = step.into_iter().flat_map(|step| step.ops()).filter_map(read).collect();
        let states = self.there().fields_where(|f| f.kind == FieldKind::State).into_iter();
        let states = states.map(|field| (self.both(field), self.elements(field)));
        states.filter(|(both, _)| both.back.is_some_and(|field| read.contains(&field))).collect()
    }

    /// What cells and states begin with.
    fn begin(&self, model: &Model, whole: &Whole) -> Result<Vec<(Both, Vec<f64>)>, Vec<Diagnostic>> {
        let one = whole.experiment.program();
        let mut begin = Vec::new();
        for field in self.there().fields_where(|f| matches!(f.kind, FieldKind::Const | FieldKind::State)) {
            // What is made of one resistivity for all compartments may learn with it.
            if let Source::Axial(cable) | Source::Beside(cable) = self.there().field(field).source
                && resistivities(model, &model.cables[cable as usize]).is_none()
            {
                continue;
            }
            if let Source::Sent(..) = self.there().field(field).source {
                // It follows the states.
                begin.push((self.both(field), vec![0.0; self.elements(field)]));
                continue;
            }
            let known = one.find_field(&self.there().field(field).name);
            let Some(known) = known.filter(|&f| one.field(f).kind == self.there().field(field).kind) else { continue };
            let values = whole.values(known, self.elements(field) / self.trials)?;
            begin.push((self.both(field), values.repeat(self.trials)));
        }
        Ok(begin)
    }

    /// The populations that spike, with their numbers.
    fn spiking(&self, model: &Model, whole: &Whole) -> Vec<(usize, Spiking)> {
        let of_population = |population: usize| {
            let spiked = self.with_adjoint(self.there().bound(Source::Spiked(population as u32))?);
            Some((population, Spiking { cells: whole.experiment.extent.cells[population], spiked }))
        };
        (0..model.populations.len()).filter_map(of_population).collect()
    }

    /// The populations that pass on what they compute, in the order of [`Model::passed_on`].
    fn passing(&self, model: &Model, whole: &Whole) -> Result<Vec<Passing>, Vec<Diagnostic>> {
        let of_first = |(first, _): (usize, NodeId)| {
            let field = self.there().bound(Source::Sent(first as u32, 0));
            let passed = self.with_adjoint(field.ok_or_else(|| internal("what cells pass on is gone"))?);
            Ok(Passing { cells: whole.experiment.extent.cells[model.projections[first].from], passed })
        };
        model.passed_on().into_iter().map(of_first).collect()
    }

    fn routes(
        &self,
        model: &Model,
        whole: &Whole,
        spiking: &[(usize, Spiking)],
        learn: &[OfProjection],
    ) -> Result<Vec<Route>, Vec<Diagnostic>> {
        let route = |(number, projection): (usize, &ode::Projection)| {
            let arrived = self.there().bound(Source::Arrived(projection.arrives, 0));
            let from = match projection.graded {
                Some(graded) if model.stays(graded.sent) => {
                    let mut given = model.graded_given();
                    given.position(|(other, ..)| other == number).map(Origin::Given)
                }
                Some(graded) => {
                    let same = |&(first, sent): &(usize, NodeId)| {
                        (model.projections[first].from, sent) == (projection.from, graded.sent)
                    };
                    model.passed_on().iter().position(same).map(Origin::Passing)
                }
                None => {
                    let number = spiking.iter().position(|(population, _)| *population == projection.from);
                    number.map(Origin::Spiking)
                }
            };
            let (Some(arrived), Some(from)) = (arrived, from) else {
                return refused(format!("nothing spikes or arrives through `{}`", projection.name));
            };
            Ok(Route {
                tract: whole.tract(model, number, learn[number])?,
                from,
                arrived: self.with_adjoint(arrived),
                targets: self.elements(arrived),
                learns: learn[number].weight.or(learn[number].delay).is_some(),
            })
        };
        model.projections.iter().enumerate().map(route).collect()
    }

    /// What the loss reads, each with its number of cells.
    fn readouts(
        &self,
        read: &[Place],
        whole: &Whole,
        spiking: &[(usize, Spiking)],
    ) -> Result<Vec<(trials::Readout, usize)>, Vec<Diagnostic>> {
        let mut seeds = 0..;
        let readout = |found: &Place| match *found {
            Place::Count(population) | Place::Spikes(population) => {
                let number = spiking.iter().position(|(other, _)| *other == population);
                let number = number.ok_or_else(|| internal("cells that spike send nothing"))?;
                let readout = match found {
                    Place::Count(_) => trials::Readout::Count(number),
                    Place::Spikes(_) | Place::State(..) => trials::Readout::Spikes(number),
                };
                Ok((readout, whole.experiment.extent.cells[population]))
            }
            Place::State(state, _) => {
                let plain = self.plain.program();
                let field = plain.bound(Source::State(state.0)).map(|field| &plain.field(field).name);
                let field = field.and_then(|name| self.there().find_field(name));
                let field = field.ok_or_else(|| internal("what is read out is gone"))?;
                let seed = seeds.next().and_then(|seed| self.back().bound(Source::Seed(seed)));
                let count = self.elements(field);
                Ok((trials::Readout::State(Both { forward: field, back: seed }, count), count / self.trials))
            }
        };
        read.iter().map(readout).collect()
    }

    /// The fields of a gradient, in the order of the spaces.
    fn gradient(&self, parameter: u32) -> Vec<(FieldId, usize)> {
        let back = self.back();
        let of = |field: FieldId| match back.field(field).source {
            Source::Gradient(of, space) if of == parameter => {
                let count = back.field(field).over.map_or(1, |s| self.backward.setup.sizes[s.0 as usize]);
                Some((space, field, count))
            }
            _ => None,
        };
        let mut found: Vec<_> = (0..back.fields.len() as u32).map(FieldId).filter_map(of).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, field, count)| (field, count)).collect()
    }

    /// The parameter that samples give values to, if a step reads it.
    fn input(&self, name: &str) -> Option<Both> {
        let field = self.there().find_field(name);
        field.filter(|&f| self.there().field(f).kind == FieldKind::Const).map(|field| self.both(field))
    }
}

/// The resistivity of a cable's compartments, if it may differ from one to the next.
fn resistivities(model: &Model, cable: &ode::Cable) -> Option<ParamId> {
    match model.graph.node(cable.ra) {
        Node::Param(param) if model.param(param).population.is_some() => Some(param),
        _ => None,
    }
}

/// Refuses what compartments begin with, by way of others, and what would have to follow samples or what learns: `of`.
fn begins_alike(model: &Model, of: &BTreeSet<ParamId>) -> Result<(), Vec<Diagnostic>> {
    let wrong = |what: String| {
        let d = Diagnostic::without_place(Code::Unsupported, what);
        Err(vec![d.note("so far what begins between compartments neither learns nor follows samples")])
    };
    for cable in &model.cables {
        let cells = &model.populations[model.cells_of(cable.population)].name;
        if resistivities(model, cable).is_some_and(|ra| follows(model, model.param(ra).value, of)) {
            return wrong(format!(
                "the resistivity of `{cells}` differs from compartment to compartment, and would change"
            ));
        }
    }
    for place in model.seen_by_edges() {
        if follows(model, model.state(place.v).init, of) {
            let cells = &model.populations[model.cells_of(place.population)].name;
            return wrong(format!("what `{cells}` begins with at its gap junctions would change"));
        }
    }
    Ok(())
}

fn cannot(e: EngineError) -> Vec<Diagnostic> {
    vec![Diagnostic::without_place(Code::Unsupported, e.0)]
}

/// Refuses what trials cannot have.
fn suited(model: &Model) -> Result<(), Vec<Diagnostic>> {
    if model.populations.iter().any(|p| p.kind == Kind::Clock) {
        return refused("a drive brings spikes of a file; so far samples are all that differs in a step".into());
    }
    let given = |arrives: u32| model.graded_given().find(|(_, p, _)| p.arrives == arrives);
    let mixed =
        model.graded().find_map(|(_, p, graded)| (!model.stays(graded.sent)).then(|| Some((p, given(p.arrives)?)))?);
    if let Some((p, (_, other, _))) = mixed {
        let message =
            format!("what samples give through `{}` arrives where `{}` brings what cells compute", other.name, p.name);
        let d = Diagnostic::without_place(Code::Unsupported, message);
        return Err(vec![d.help("lead one of them to a receptor of its own: `via Synapse as other`")]);
    }
    if let (Some((_, p, _)), Method::Heun | Method::Rk4) = (model.graded().next(), model.method) {
        let message = format!(
            "with `method = {}` the graded synapses of `{}` act several times in a step, where networks learn once",
            model.method.name(),
            p.name
        );
        let d = Diagnostic::without_place(Code::Unsupported, message);
        return Err(vec![d.help("write `method = exp_euler`, or another method of one stage")]);
    }
    match model.projections.iter().find(|p| p.plasticity.is_some()) {
        Some(p) => refused(format!(
            "the synapses of `{}` remember what events do; so far these do not learn from a loss",
            p.name
        )),
        None => Ok(()),
    }
}

/// Gives what has no place one, if there is one.
fn at(span: Span, d: Diagnostic) -> Diagnostic {
    if span == Span::default() || !d.labels.is_empty() {
        return d;
    }
    Diagnostic { labels: Diagnostic::new(d.code, span, "", "here").labels, ..d }
}

/// The full name of the parameter of cells that samples give values to.
fn given(model: &Model, (name, span): &(String, Span)) -> Result<String, Vec<Diagnostic>> {
    let full = ode::full_name(model, name).map_err(|d| vec![at(*span, d)])?;
    match model.params.iter().find(|p| p.name == full) {
        Some(p) if p.home.is_some() || p.population.is_some() => Ok(full.to_string()),
        Some(_) | None => {
            let message = format!("`{full}` is no parameter of cells, so that samples cannot give it values");
            let d = Diagnostic::without_place(Code::BadTarget, message);
            Err(vec![at(*span, d.help("give the cells a `param` that their equations read"))])
        }
    }
}

/// What learns, with where it stays.
struct Learnt {
    /// What of each projection.
    projections: Vec<OfProjection>,
    /// The parameters that are one number.
    parameters: Vec<(Fitted, Range)>,
    /// Those that each cell has for itself.
    cells: Vec<(Fitted, Range)>,
}

/// What of each projection learns, and the parameters that do; samples give `input`.
fn learnt(model: &Model, learn: &[Learn], input: &(String, Span)) -> Result<Learnt, Vec<Diagnostic>> {
    let mut learns = vec![OfProjection::default(); model.projections.len()];
    let (mut errors, mut parameters): (Vec<Diagnostic>, Vec<(Fitted, Range)>) = (Vec::new(), Vec::new());
    for one in learn {
        // A parameter may be called `delay`, too.
        let named = of_projection(&one.name)
            .filter(|(of, _)| !projections(model, of).is_empty() || fitted(model, &one.name).is_err());
        let found = match named {
            Some(named) => named_projection(model, one, named).and_then(|number| {
                let (projection, known) = (&model.projections[number], &mut learns[number]);
                let (known, range) = match named.1 {
                    Which::Weights => (&mut known.weight, weight_range(projection, one)),
                    Which::Delays => (&mut known.delay, delay_range(model, projection, one)),
                };
                match known.replace(range?) {
                    Some(_) => Err(one.wrong(Code::BadValue, format!("`{}` learns twice", one.name))),
                    None => Ok(()),
                }
            }),
            None => parameter(model, one, &parameters).map(|found| parameters.push(found)),
        };
        errors.extend(found.err());
    }
    for (number, p) in model.projections.iter().enumerate() {
        learns[number] = p.place.map_or(learns[number], |place| learns[place.first]);
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let given = given(model, input).unwrap_or_default();
    if parameters.iter().any(|(one, _)| one.name == given) {
        let d = Diagnostic::without_place(Code::BadTarget, format!("samples give `{given}`, so that it cannot learn"));
        return Err(vec![at(place_of(learn, &given), d)]);
    }
    for (one, _) in &parameters {
        let alone = BTreeSet::from([one.param]);
        let mut given = model.graded_given();
        if let Some((_, p, _)) = given.find(|(.., graded)| follows(model, graded.sent, &alone)) {
            let d = Diagnostic::without_place(Code::Unsupported, format!("`{}` cannot learn", one.name));
            let d = d.note(format!("what the graded synapses of `{}` pass on depends on it", p.name));
            return Err(vec![at(place_of(learn, &one.name), d)]);
        }
    }
    let (cells, parameters) = parameters.into_iter().partition(|(one, _)| one.value.is_none());
    Ok(Learnt { projections: learns, parameters, cells })
}

/// Where it stands that something of this full name learns.
fn place_of(learn: &[Learn], name: &str) -> Span {
    let is_end = |end: &str, name: &str| name == end || name.ends_with(&format!(".{end}"));
    let is_end_but_for_places = |end: &str| is_end(&places::left_out(end), &places::left_out(name));
    let named = learn.iter().find(|one| is_end(&one.name, name));
    let named = named.or_else(|| learn.iter().find(|one| is_end_but_for_places(&one.name)));
    named.map_or(Span::default(), |named| named.span)
}

/// The projection that a name of something that learns names, and what of it.
fn of_projection(name: &str) -> Option<(&str, Which)> {
    let weights = name.strip_suffix(".weight").map(|of| (of, Which::Weights));
    weights.or_else(|| name.strip_suffix(".delay").map(|of| (of, Which::Delays)))
}

/// The projections that have this name, or end with it; if there are none, those that do but for the places that they lead to.
fn projections(model: &Model, of: &str) -> Vec<usize> {
    let fits = |name: &str, of: &str| name == of || name.strip_suffix(of).is_some_and(|rest| rest.ends_with('.'));
    let all = |fit: &dyn Fn(&ode::Projection) -> bool| -> Vec<usize> {
        (0..).zip(&model.projections).filter(|(_, p)| fit(p)).map(|(number, _)| number).collect()
    };
    let found = all(&|p| fits(&p.name, &places::called(model, p.to, of)));
    if found.is_empty() { all(&|p| fits(&places::left_out(&p.name), of)) } else { found }
}

/// The one projection that is named.
fn named_projection(model: &Model, learn: &Learn, (of, which): (&str, Which)) -> Result<usize, Diagnostic> {
    match projections(model, of)[..] {
        [one] => Ok(one),
        [] => {
            let named = model.projections.iter().filter(|p| p.is_first());
            let known: Vec<String> = named.map(|p| format!("{}.{}", p.name, which.key())).collect();
            let d = learn.wrong(Code::UnknownParameter, format!("there is no projection `{of}`"));
            let near = nearest(&learn.name, known.iter().map(String::as_str));
            let d = near.map_or(d.clone(), |near| d.help(format!("did you mean `{near}`?")));
            Err(d.note(format!("{}s that may learn are {}", which.key(), known.join(", "))))
        }
        ref fits => {
            let all: Vec<&str> = fits.iter().map(|&p| model.projections[p].name.as_str()).collect();
            let d = learn.wrong(Code::AmbiguousParameter, format!("`{}` fits several projections", learn.name));
            Err(d.note(format!("they are {}", all.join(", "))).help("write more of the name"))
        }
    }
}

impl Which {
    fn key(self) -> &'static str {
        match self {
            Which::Weights => "weight",
            Which::Delays => "delay",
        }
    }
}

impl Learn {
    fn wrong(&self, code: Code, message: String) -> Diagnostic {
        at(self.span, Diagnostic::without_place(code, message))
    }

    /// Where it stays.
    fn range(&self, dim: Dim, unit: &DisplayUnit) -> Result<Range, Diagnostic> {
        let Some((low, high)) = &self.range else { return Ok(Range::ANY) };
        let place = Some(self.span).filter(|span| *span != Span::default());
        let (low, high) = range((&self.name, dim, unit), (low, high), place)?;
        Ok(Range { low, high })
    }
}

fn weight_range(projection: &ode::Projection, learn: &Learn) -> Result<Range, Diagnostic> {
    learn.range(projection.dim, &projection.unit)
}

/// Where delays stay: they move from one step on.
fn delay_range(model: &Model, projection: &ode::Projection, learn: &Learn) -> Result<Range, Diagnostic> {
    let (name, dt) = (&projection.name, model.dt);
    if projection.share.is_some() {
        let message = format!("the connections of `{name}` share a kernel; so far their delays do not learn");
        return Err(learn.wrong(Code::Unsupported, message));
    }
    let at = model.projections.iter().position(|p| std::ptr::eq(p, projection));
    if at.is_some_and(|at| model.between_steps()[at]) {
        let message = format!("the delays of `{name}` do not learn, since what it brings arrives between two steps");
        let d = learn.wrong(Code::Unsupported, message);
        return Err(
            d.note("a connection without a delay leads to the same receptor, with `arrivals = after_threshold`")
        );
    }
    if learn.range.is_none() {
        let message = format!("it is not said between which bounds the delays of `{name}` learn");
        return Err(learn.wrong(Code::BadValue, message).help(format!("write `learn {} = {dt} .. 20 ms`", learn.name)));
    }
    let range = learn.range(Dim::TIME, &Dim::TIME.display_unit())?;
    if range.low < dt * (1.0 - 1e-9) {
        let message =
            format!("the delays of `{name}` may fall to {} ms, less than the time step of {dt} ms", range.low);
        return Err(learn
            .wrong(Code::OutOfDomain, message)
            .note("a spike arrives a step later at the earliest")
            .help(format!("write `learn {} = {dt} .. {} ms`", learn.name, range.high)));
    }
    if range.high > model.duration {
        let message =
            format!("the delays of `{name}` may grow to {} ms, but the run lasts {} ms", range.high, model.duration);
        return Err(learn
            .wrong(Code::OutOfDomain, message)
            .help("what arrives behind the end of a run teaches nothing"));
    }
    Ok(range)
}

/// Refuses delays, in steps, that begin outside of their range.
fn begins_within(p: &ode::Projection, delays: &[f64], [low, high]: [f64; 2], dt: f64) -> Result<(), Vec<Diagnostic>> {
    // They begin with the whole steps that a run takes, which are half a step off at most.
    let is_outside = |steps: &f64| *steps < low - 0.5 || *steps > high + 0.5;
    let Some(edge) = delays.iter().position(is_outside) else { return Ok(()) };
    let [begins, low, high] = [delays[edge], low, high].map(|steps| steps * dt);
    let message =
        format!("the delay of edge {edge} of `{}` begins at {begins} ms, but learns from {low} to {high} ms", p.name);
    let d = Diagnostic::new(Code::OutOfDomain, p.span, message, "delays begin with what is said here");
    Err(vec![d.help(format!("write `delay ~ uniform({low} ms, {high} ms)`, or other bounds in the `train` block"))])
}

/// A parameter that learns, and where it stays.
fn parameter(model: &Model, learn: &Learn, others: &[(Fitted, Range)]) -> Result<(Fitted, Range), Diagnostic> {
    let called = places::called_in_cells(model, &learn.name);
    let one = fitted(model, called.as_deref().unwrap_or(&learn.name)).map_err(|error| at(learn.span, error))?;
    let name = &one.name;
    if others.iter().any(|(other, _)| other.name == *name) {
        return Err(learn.wrong(Code::BadValue, format!("`{name}` learns twice")));
    }
    if decides_sizes(model, &one) {
        let message =
            format!("`{name}` says how many cells there are, who is connected or when events arrive, and cannot learn");
        return Err(learn.wrong(Code::Unsupported, message));
    }
    let range = learn.range(one.dim, &one.unit)?;
    match one.value {
        Some(value) => begins_in(&one, range, value).map_err(|d| at(learn.span, d))?,
        None if model.param(one.param).population.is_none() => {
            return Err(
                learn.wrong(Code::Unsupported, format!("`{name}` is no number that is known, and cannot learn"))
            );
        }
        // The values of cells are looked at when they are there.
        None => {
            let alone = BTreeSet::from([one.param]);
            let others = (0..).map(ParamId).zip(&model.params).filter(|(id, _)| *id != one.param);
            let of_params = others.map(|(_, p)| (p.value, &p.name));
            let of_states = model.states.iter().map(|s| (s.init, &s.name));
            if let Some((_, other)) = of_params.chain(of_states).find(|(value, _)| follows(model, *value, &alone)) {
                let message = format!("`{name}` differs from cell to cell, and `{other}` follows it");
                let d = learn.wrong(Code::Unsupported, message);
                return Err(d.note("so far what each cell has for itself learns where equations alone read it"));
            }
        }
    }
    Ok((one, range))
}

/// Refuses a parameter that begins outside of its range.
fn begins_in(one: &Fitted, range: Range, value: f64) -> Result<(), Diagnostic> {
    if value >= range.low && value <= range.high {
        return Ok(());
    }
    let [begins, low, high] = [value, range.low, range.high].map(|x| one.shown(x));
    let message = format!("`{}` begins at {begins}, but learns from {low} to {high}", one.name);
    Err(Diagnostic::without_place(Code::OutOfDomain, message))
}

/// A parameter that each cell has for itself, as the cells of a trial begin.
fn of_each_cell(one: &Fitted, range: Range, program: &Program, net: &Net) -> Result<OfCells, Diagnostic> {
    let field = program.bound(Source::Param(one.param.0));
    let begin = net.begin.iter().position(|(both, _)| Some(both.forward) == field);
    let Some(begin) = begin else {
        let message = format!("`{}` cannot learn: no step reads it", one.name);
        return Err(Diagnostic::without_place(Code::Unsupported, message));
    };
    let (_, all) = &net.begin[begin];
    let values = all[..all.len() / net.trials.max(1)].to_vec();
    values.iter().try_for_each(|&value| begins_in(one, range, value))?;
    Ok(OfCells { begin, values })
}

/// All that learns of projections, in their order.
fn numbers(model: &Model, learns: &[OfProjection]) -> Vec<Numbers> {
    let of_each = |(projection, (p, learns)): (usize, (&ode::Projection, &OfProjection))| {
        let both = [(Which::Weights, learns.weight), (Which::Delays, learns.delay)];
        both.map(|(which, range)| {
            let (name, range) = (format!("{}.{}", p.name, which.key()), range?);
            let same = model.same(projection).filter(|&other| other != projection).collect();
            let (of, unit) = match which {
                Which::Weights => (Of::Weights(projection), units::scale(1.0, p.unit.exponent)),
                Which::Delays => (Of::Delays(projection), 1.0),
            };
            Some(Numbers { name, of, same, range, unit })
        })
    };
    let all = model.projections.iter().zip(learns).enumerate();
    all.filter(|(_, (p, _))| p.is_first()).flat_map(of_each).flatten().collect()
}

/// Cells are numbered anew for each trial, so that a step must not ask for numbers.
fn numbered_cells(program: &Program) -> Result<(), Vec<Diagnostic>> {
    let asks = |role| program.function(role).is_some_and(|f| f.ops().any(|op| op.kind == OpKind::Index));
    match [Role::Step, Role::Observe].into_iter().any(asks) {
        true => refused("a step asks for the number of a cell; so far nothing learns where it does".into()),
        false => Ok(()),
    }
}

/// Gives the set-up of one trial as many.
fn repeat(setup: &mut Setup, program: &Program, trials: usize) {
    let sizes = setup.sizes.clone();
    setup.sizes.iter_mut().for_each(|size| *size *= trials);
    for (grid, &size) in setup.grids.iter_mut().zip(&setup.sizes) {
        *grid = vec![size];
    }
    setup.data.iter_mut().for_each(|(_, values)| *values = values.repeat(trials));
    for (space, edges) in &mut setup.edges {
        let SpaceKind::Relation { from, .. } = program.space(*space).kind else { continue };
        let senders = sizes[from.0 as usize] as u32;
        let mut all = Edges { offsets: vec![0], sources: Vec::new() };
        for trial in 0..trials as u32 {
            let begin = all.sources.len() as u32;
            all.offsets.extend(edges.offsets.iter().skip(1).map(|end| begin + end));
            all.sources.extend(edges.sources.iter().map(|source| trial * senders + source));
        }
        *edges = Arc::new(all);
    }
}

/// Refuses weights and delays that nothing which is read out depends on.
fn idle(
    model: &Model,
    learns: &[OfProjection],
    learn: &[Learn],
    reads: &[(Read, Span)],
) -> Result<(), Vec<Diagnostic>> {
    // Parts of cells reach each other.
    let cells = |population: usize| model.cells_of(population);
    let mut reached = vec![false; model.populations.len()];
    for read in reads {
        reached[cells(readout(model, read)?.population(model))] = true;
    }
    // Each round reaches one population more, at least.
    for _ in &model.populations {
        for p in &model.projections {
            reached[cells(p.from)] |= reached[cells(p.to)];
        }
        for c in &model.connections {
            let [here, there] = [c.here, c.there].map(|end| cells(end.population));
            reached[there] |= reached[here];
        }
    }
    let errors: Vec<Diagnostic> = numbers(model, learns)
        .into_iter()
        .filter_map(|one| {
            let (projection, what) = match one.of {
                Of::Weights(projection) => (projection, Which::Weights.key()),
                Of::Delays(projection) => (projection, Which::Delays.key()),
                Of::Cells(_) => return None,
            };
            let p = &model.projections[projection];
            let message = format!("the {what}s of `{}` cannot learn: nothing that is read out depends on them", p.name);
            let d = Diagnostic::without_place(Code::BadTarget, message);
            (!reached[cells(p.to)]).then(|| at(place_of(learn, &one.name), d))
        })
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}
