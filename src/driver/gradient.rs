//! Runs whose losses are differentiated in parameters.
//!
//! In come a checked model and the names of parameters; out goes a [`Differentiable`] run: what it samples, and the gradient of a loss
//! of that, found backward or forward ([`Mode`]).
//! Never true here: a loss is chosen, or a parameter moves that decides how many cells there are or who is connected.

use super::{Checked, CompileOptions, Compiled, EngineChoice, Experiment, Passes, compile_flat, flatten};
use crate::codegen::plan::Precision;
use crate::diag::{Code, Diagnostic};
use crate::differentiate::{self, Wanted};
use crate::engine::{Engine, EngineError, Recording};
use crate::hir::{SET_FROM_OUTSIDE, Swept, SweptNumber, SweptValues};
use crate::ode::{self, Model, Node, NodeId, ParamId};
use crate::passes::{self, Backend, Keep};
use crate::simulate::{self, Along, Backward, Gradient, Loss, Record, Records, Sampled};
use crate::source::Span;
use crate::step::{FieldId, FieldKind, Program, Source, Value, Verified};
use crate::units::{Dim, DisplayUnit, Unit};

/// A parameter that is free.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// Its full name, such as `squid.soma.Na.gbar`.
    pub name: String,
    /// Its dimension.
    pub dim: Dim,
    /// The unit it is shown in.
    pub unit: DisplayUnit,
    /// The value that the model or the settings give it, in canonical units, if it is one number.
    pub value: Option<f64>,
    /// Where it is named, if in a file.
    pub span: Option<Span>,
    /// Which it is.
    pub(super) param: ParamId,
}

/// Which way derivatives are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Forward for few parameters and on XLA, else back.
    #[default]
    Auto,
    /// Back from the loss: all parameters at once, with states that are kept.
    Reverse,
    /// Beside the run: each parameter for itself, with nothing that is kept.
    Forward,
}

impl Mode {
    /// All with their names.
    pub const ALL: &'static [(Mode, &'static str)] =
        &[(Mode::Auto, "auto"), (Mode::Reverse, "reverse"), (Mode::Forward, "forward")];

    /// The mode of a name.
    pub fn named(name: &str) -> Option<Mode> {
        Mode::ALL.iter().find(|(_, known)| *known == name).map(|(mode, _)| *mode)
    }
}

/// So many parameters are few: a step of theirs forward takes no longer than one there and back.
const FEW: usize = 6;

/// How gradients are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ways {
    /// Which way.
    pub mode: Mode,
    /// At most so many bytes of states are kept to go back.
    pub memory: u64,
}

/// A uniform field of the programs that free parameters move.
pub(super) struct Moved {
    pub param: ParamId,
    pub forward: Option<FieldId>,
    pub back: Option<FieldId>,
    /// The derivatives in the free parameters, expressions of parameters; none where there is none.
    pub slopes: Vec<Option<NodeId>>,
}

/// What is known of a run with free parameters before it is done.
#[derive(Debug, Clone)]
pub struct Outline {
    /// The free parameters.
    pub fitted: Vec<Fitted>,
    /// What is recorded.
    pub records: Records,
    /// When each record is sampled, in ms.
    pub times: Vec<Vec<f64>>,
    /// How long the run is, in ms.
    pub duration: f64,
    /// The key of its random numbers.
    pub seed: u64,
}

impl Outline {
    /// That of an experiment.
    pub(super) fn new(experiment: &Experiment, fitted: &[Fitted]) -> Result<Outline, Vec<Diagnostic>> {
        let (grid, records) = (experiment.extent.grid, experiment.records()?);
        let times = records.series.iter().map(|r| {
            let steps = (0..=grid.steps).filter(|&step| r.has(step));
            steps.map(|step| step as f64 * grid.dt).collect()
        });
        Ok(Outline {
            fitted: fitted.to_vec(),
            times: times.collect(),
            duration: grid.steps as f64 * grid.dt,
            seed: experiment.compiled.ode.seed,
            records,
        })
    }
}

/// A run, and what finds the derivatives of what it samples.
pub struct Differentiable {
    model: Model,
    outline: Outline,
    moved: Vec<Moved>,
    way: Way,
}

enum Way {
    Back { run: Backward, forward: Box<dyn Engine>, back: Box<dyn Engine> },
    Along { run: Along, engine: Box<dyn Engine>, tangents: Vec<MovedAlong> },
}

/// A parameter that moves along a direction: its number among those that move, the direction, and the field that says how fast.
struct MovedAlong {
    moved: usize,
    direction: usize,
    field: FieldId,
}

impl Differentiable {
    /// What parameters are called and what they are worth, before anything is compiled. A name may be the end of one.
    pub fn parameters(
        checked: &Checked,
        options: &CompileOptions,
        names: &[(String, Option<Span>)],
    ) -> Result<Vec<Fitted>, Vec<Diagnostic>> {
        let Some(model) = &checked.model else { return Err(checked.diagnostics.clone()) };
        let (flat, _) = flatten(model, options)?;
        let mut errors = Vec::new();
        let mut found: Vec<Fitted> = Vec::new();
        for (name, span) in names {
            match fitted(&flat, name, "fitted") {
                Ok(one) if found.iter().any(|other| other.param == one.param) => {
                    let message = format!("`{}` is free twice", one.name);
                    errors.push(placed(*span, Diagnostic::without_place(Code::BadValue, message)));
                }
                Ok(one) => found.push(Fitted { span: *span, ..one }),
                Err(error) => errors.push(placed(*span, error)),
            }
        }
        if errors.is_empty() { Ok(found) } else { Err(errors) }
    }

    /// Compiles a run with derivatives, with free parameters that begin with these values (in canonical units). Of what the run
    /// records the samples can be read.
    pub fn new(
        checked: &Checked,
        options: &CompileOptions,
        fitted: &[Fitted],
        values: &[f64],
        choice: &dyn Fn() -> Result<EngineChoice, EngineError>,
        ways: Ways,
    ) -> Result<Differentiable, Vec<Diagnostic>> {
        let (model, _) = Differentiable::checked(checked, options, fitted, values.iter().copied())?;
        for one in fitted {
            let why = if decides_sizes(&model, one) {
                "says how many cells there are, who is connected, how strongly or when events arrive"
            } else if ode::moves_a_switch(&model, one.param, false) {
                "moves the time at which something is switched"
            } else {
                continue;
            };
            let d = Diagnostic::without_place(Code::Unsupported, format!("`{}` {why}, and has no gradient", one.name));
            // No search tries whole numbers alone.
            let help = match decides(&model, one, &numbers(&model)) {
                true => format!("compare its values in runs: `--sweep {}=...`", one.name),
                false => "look for it without gradients: `search = nelder_mead`".into(),
            };
            return Err(vec![placed(one.span, d.help(help))]);
        }
        let options = CompileOptions { keep_all: true, ..options.clone() };
        let compiled = compile_flat(model, &checked.sources, &options, &mut |_, _, _| {})?;
        let forward = Experiment::new(compiled)?;
        smooth(&forward)?;
        let few = || fitted.len() <= FEW || options.backend == Backend::Xla;
        let draft = Draft { forward, options: &options, fitted, choice };
        match ways.mode {
            Mode::Reverse => draft.back(ways.memory),
            Mode::Forward => draft.along(),
            Mode::Auto if few() => draft.along(),
            // Some engines go forward where they cannot go back.
            Mode::Auto => draft.back(ways.memory).or_else(|errors| draft.along().map_err(|_| errors)),
        }
    }

    /// The model with free parameters of these values, if it takes them, and what is probably wrong.
    fn checked(
        checked: &Checked,
        options: &CompileOptions,
        fitted: &[Fitted],
        values: impl Iterator<Item = f64>,
    ) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
        let Some(model) = &checked.model else { return Err(checked.diagnostics.clone()) };
        let mut options = options.clone();
        options.set.extend(fitted.iter().zip(values).map(|(one, x)| format!("{}={}", one.name, one.shown(x))));
        let (model, mut found) = flatten(model, &options)?;
        // Of files nothing is known here.
        let extent = simulate::extent(&model)?;
        found.extend(ode::domains::per_cell(&model, &extent.cells, &|_, _| None));
        if found.iter().any(Diagnostic::is_error) { Err(found) } else { Ok((model, found)) }
    }

    /// What the model demands of its parameters it demands of both bounds, `(low, high)` in canonical units. Out go warnings.
    pub fn within(
        checked: &Checked,
        options: &CompileOptions,
        fitted: &[Fitted],
        bounds: &[(f64, f64)],
    ) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        let told = |found: Vec<Diagnostic>| found.into_iter().filter_map(|d| at_a_bound(d, fitted));
        let all = |errors: Vec<Diagnostic>| match told(errors.clone()).collect::<Vec<_>>() {
            // What has nothing to do with the bounds is told as it is.
            none if none.is_empty() => errors,
            told => told,
        };
        let low =
            Differentiable::checked(checked, options, fitted, bounds.iter().map(|bounds| bounds.0)).map_err(all)?;
        let high =
            Differentiable::checked(checked, options, fitted, bounds.iter().map(|bounds| bounds.1)).map_err(all)?;
        Ok(told(low.1).chain(told(high.1)).collect())
    }

    /// What is known of it.
    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    /// How many bytes of states are kept at the same time, at most; none if derivatives go forward with the run.
    pub fn memory(&self) -> Option<u64> {
        match &self.way {
            Way::Back { run, .. } => Some(run.memory()),
            Way::Along { .. } => None,
        }
    }

    /// What the run samples of each record, `[sample][cell]`, with these values of the free parameters (in canonical units).
    pub fn samples(&mut self, values: &[f64]) -> Result<Vec<Vec<f64>>, EngineError> {
        self.set(values)?;
        match &mut self.way {
            Way::Back { run, forward, .. } => run.samples(forward.as_mut()),
            Way::Along { run, engine, .. } => run.samples(engine.as_mut()),
        }
    }

    /// The loss and its derivative in each free parameter, in canonical units; `loss` gets the samples of each record, `[sample][cell]`.
    pub fn gradient(
        &mut self,
        values: &[f64],
        loss: &mut dyn FnMut(&[Vec<f64>]) -> Loss,
    ) -> Result<(Gradient, Vec<f64>), EngineError> {
        self.set(values)?;
        let free = self.outline.fitted.len();
        match &mut self.way {
            Way::Back { run, forward, back } => {
                let found = run.run(forward.as_mut(), back.as_mut(), loss)?;
                let totals: Vec<f64> = (0..self.moved.len()).map(|number| found.total(number)).collect();
                let gradient = chained(&self.model, &self.moved, &totals, free)?;
                Ok((found, gradient))
            }
            Way::Along { run, engine, .. } => {
                let found = run.run(engine.as_mut(), loss)?;
                let gradient = (0..free).map(|direction| found.total(direction)).collect();
                Ok((found, gradient))
            }
        }
    }

    /// Does anything that is sampled depend on a free parameter?
    pub fn matters(&self, found: &Gradient, fitted: usize) -> bool {
        match &self.way {
            Way::Back { .. } => {
                let mut parts = self.moved.iter().zip(&found.parts);
                parts.any(|(moved, parts)| moved.slopes[fitted].is_some() && !parts.is_empty())
            }
            Way::Along { .. } => found.parts.get(fitted).is_some_and(|parts| !parts.is_empty()),
        }
    }

    /// Gives the free parameters values, from the start of the next run on.
    fn set(&mut self, values: &[f64]) -> Result<(), EngineError> {
        let way = &mut self.way;
        set(&mut self.model, &self.outline.fitted, &self.moved, values, &mut |moved, x| {
            let (forward, back) = match way {
                Way::Back { forward, back, .. } => (forward, Some(back)),
                Way::Along { engine, .. } => (engine, None),
            };
            if let Some(field) = moved.forward {
                forward.set_uniform(field, x)?;
            }
            if let (Some(field), Some(back)) = (moved.back, back) {
                back.set_uniform(field, x)?;
            }
            Ok(())
        })?;
        if let Way::Along { engine, tangents, .. } = way {
            for along in tangents {
                if let Some(slope) = self.moved[along.moved].slopes[along.direction] {
                    engine.set_uniform(along.field, real(&self.model, slope)?)?;
                }
            }
        }
        Ok(())
    }
}

/// Refuses runs that no way leads back from.
fn smooth(forward: &Experiment) -> Result<(), Vec<Diagnostic>> {
    if forward.is_adaptive() {
        let why = "a run with adaptive steps has no gradient so far; choose a method with steps of `dt`";
        return Err(refused(why.into()));
    }
    match forward.compiled.ode.records.iter().find(|record| record.probe.is_some()) {
        None => Ok(()),
        Some(record) => Err(refused(format!(
            "`{}` is a potential, through which no gradient goes so far; leave it out, or look for values without gradients",
            record.name
        ))),
    }
}

/// A step gone back through, for those who take steps by themselves.
pub struct StepBack {
    /// Its `fn step` takes what states and constants were before a step and the adjoints of the states behind it, and leaves the adjoints before it;
    /// those of constants are added to.
    pub experiment: Experiment,
    /// States and constants of the run, each with the name of its adjoint.
    pub adjoints: Vec<(String, String)>,
}

impl StepBack {
    /// That of a run.
    pub fn new(forward: Experiment, options: &CompileOptions) -> Result<StepBack, Vec<Diagnostic>> {
        smooth(&forward)?;
        let plain = &forward.compiled.plain;
        let program = plain.program();
        let wrt = program.fields_where(|f| f.kind == FieldKind::Const && f.over.is_some());
        let from = program.fields_where(|f| f.kind == FieldKind::State);
        let wanted = Wanted { wrt: wrt.clone(), from: from.clone(), ..Wanted::default() };
        let back = differentiate::backward(plain, &wanted).map_err(|why| refused(why.to_string()))?;
        let of_field = |&field: &FieldId| Some((field, back.program().bound(Source::Adjoint(field.0))?));
        let adjoints: Vec<(FieldId, FieldId)> = from.iter().chain(&wrt).filter_map(of_field).collect();
        let name = |program: &Program, field: FieldId| program.field(field).name.clone();
        let named = adjoints.iter().map(|&(of, adjoint)| (name(program, of), name(back.program(), adjoint))).collect();
        let keep = adjoints.iter().map(|(of, _)| Source::Adjoint(of.0)).collect();
        let mut experiment = beside(&forward, options, &forward.compiled.ode, back, keep)?;
        simulate::turn_edges(program, &mut experiment.setup).map_err(internal)?;
        Ok(StepBack { experiment, adjoints: named })
    }
}

/// What both ways begin with.
struct Draft<'a> {
    forward: Experiment,
    options: &'a CompileOptions,
    fitted: &'a [Fitted],
    choice: &'a dyn Fn() -> Result<EngineChoice, EngineError>,
}

fn refused(what: String) -> Vec<Diagnostic> {
    vec![Diagnostic::without_place(Code::Unsupported, what)]
}

fn internal(what: String) -> Vec<Diagnostic> {
    vec![Diagnostic::without_place(Code::Internal, what)]
}

impl Draft<'_> {
    /// Derivatives that go back from the loss. At most so many bytes of states are kept.
    fn back(&self, budget: u64) -> Result<Differentiable, Vec<Diagnostic>> {
        let Draft { forward, fitted, choice, .. } = self;
        if self.options.backend == Backend::Xla {
            return Err(refused("so far gradients go forward on XLA; leave the mode out, or write `forward`".into()));
        }
        let (mut model, plain) = (forward.compiled.ode.clone(), &forward.compiled.plain);
        let (mut moved, wrt) = moved(&mut model, plain.program(), fitted);
        // The same records in both programs, which number fields differently.
        let in_plain = simulate::records(&model, plain.program(), &forward.extent)?;
        let outline = Outline::new(forward, fitted)?;
        let of = in_plain.series.iter().map(|r| r.field).collect();
        let wanted = Wanted { of, wrt, ..Wanted::default() };
        let back = differentiate::backward(plain, &wanted).map_err(|why| refused(why.to_string()))?;
        let mut backward = beside(forward, self.options, &model, back, Vec::new())?;
        simulate::turn_edges(plain.program(), &mut backward.setup).map_err(internal)?;
        let run = Backward::new(
            forward.program(),
            backward.program(),
            &forward.setup.sizes,
            sampled(&outline.records, forward.extent.grid.steps),
            moved.len(),
            forward.extent.grid.steps,
            budget,
        )
        .map_err(|what| vec![Diagnostic::without_place(Code::BadValue, what)])?;
        for one in &mut moved {
            one.forward = forward.program().bound(Source::Param(one.param.0));
            one.back = backward.program().bound(Source::Param(one.param.0));
        }
        let [forward, back] = [engine(forward, choice, Precision::F64)?, engine(&backward, choice, Precision::F64)?];
        Ok(Differentiable { model, outline, moved, way: Way::Back { run, forward, back } })
    }

    /// Derivatives beside the run.
    fn along(&self) -> Result<Differentiable, Vec<Diagnostic>> {
        let Draft { forward, fitted, choice, .. } = self;
        let (mut model, plain) = (forward.compiled.ode.clone(), &forward.compiled.plain);
        let (mut moved, wrt) = moved(&mut model, plain.program(), fitted);
        let directions: Vec<Vec<FieldId>> = (0..fitted.len())
            .map(|one| {
                wrt.iter().zip(&moved).filter(|(_, moved)| moved.slopes[one].is_some()).map(|(f, _)| *f).collect()
            })
            .collect();
        let along = differentiate::forward(plain, &directions).map_err(|why| refused(why.to_string()))?;
        let in_plain = simulate::records(&model, plain.program(), &forward.extent)?;
        let tangent = |direction: usize, field: FieldId| Source::Tangent(field.0, direction as u32);
        let read: Vec<FieldId> = in_plain.series.iter().map(|r| r.field).collect();
        let of_directions = (0..directions.len()).flat_map(|d| read.iter().map(move |&field| tangent(d, field)));
        let of_directions = of_directions.filter(|&source| along.program().bound(source).is_some());
        let keep = read.iter().map(|&field| plain.program().field(field).source).chain(of_directions).collect();
        let ready = beside(forward, self.options, &model, along, keep)?;
        let (program, steps) = (ready.program(), ready.extent.grid.steps);
        let outline = Outline::new(&ready, fitted)?;
        let tangents: Vec<Vec<Option<FieldId>>> = (0..directions.len())
            .map(|d| read.iter().map(|&field| program.bound(tangent(d, field))).collect())
            .collect();
        let run = Along::new(program, sampled(&outline.records, steps), &tangents, steps);
        for one in &mut moved {
            one.forward = program.bound(Source::Param(one.param.0));
        }
        let speed = |(moved, field): (usize, FieldId), direction: usize| {
            let field = program.bound(tangent(direction, field))?;
            Some(MovedAlong { moved, direction, field })
        };
        let parameters = || wrt.iter().copied().enumerate();
        let tangents = (0..directions.len()).flat_map(|d| parameters().filter_map(move |one| speed(one, d))).collect();
        let engine = engine(&ready, choice, Precision::F64)?;
        Ok(Differentiable { model, outline, moved, way: Way::Along { run, engine, tangents } })
    }
}

/// A program beside a run, of the run's model or one with more expressions, with what it begins with; of its states these are kept.
fn beside(
    forward: &Experiment,
    options: &CompileOptions,
    model: &Model,
    plain: Verified,
    keep: Vec<Source>,
) -> Result<Experiment, Vec<Diagnostic>> {
    let names: Vec<&str> = match &options.passes {
        Passes::Level(level) => passes::pipeline(*level, options.backend).to_vec(),
        Passes::Named(names) => names.iter().map(String::as_str).collect(),
    };
    let pass_options = passes::Options { keep: Keep::Only(keep), ..passes::Options::default() };
    let program =
        passes::run(plain.clone(), &names, &pass_options, &mut |_, _, _| {}).map_err(|e| internal(e.to_string()))?;
    let compiled = Compiled { ode: model.clone(), plain, program, warnings: Vec::new() };
    let extent = forward.extent.clone();
    let (setup, _) = simulate::setup(model, compiled.program.program(), &extent)?;
    let recording = Recording { every: extent.grid.steps, fields: Vec::new() };
    Ok(Experiment { compiled, extent, setup, recording, warnings: Vec::new() })
}

/// What is read of a run of so many steps for its records.
fn sampled(records: &Records, steps: u64) -> Vec<Sampled> {
    let of = |r: &Record| Sampled {
        field: r.field,
        cells: r.cells.clone(),
        steps: (0..=steps).filter(|&s| r.has(s)).collect(),
    };
    records.series.iter().map(of).collect()
}

/// The uniform fields of a program that free parameters move. They are what its gradients are taken in, in their order.
pub(super) fn moved(model: &mut Model, program: &Program, fitted: &[Fitted]) -> (Vec<Moved>, Vec<FieldId>) {
    let (mut moved, mut wrt) = (Vec::new(), Vec::new());
    for param in (0..model.params.len() as u32).map(ParamId) {
        let Some(field) = program.bound(Source::Param(param.0)) else { continue };
        if program.field(field).kind != FieldKind::Uniform {
            continue;
        }
        let read = model.graph.add(Node::Param(param));
        let slopes: Vec<Option<NodeId>> =
            fitted.iter().map(|one| ode::derivative_in_param(model, read, one.param)).collect();
        if slopes.iter().any(Option::is_some) {
            wrt.push(field);
            moved.push(Moved { param, forward: None, back: None, slopes });
        }
    }
    (moved, wrt)
}

/// From the derivatives in uniform fields to those in the free parameters.
pub(super) fn chained(model: &Model, moved: &[Moved], totals: &[f64], free: usize) -> Result<Vec<f64>, EngineError> {
    let mut gradient = vec![0.0; free];
    for (moved, total) in moved.iter().zip(totals) {
        for (slope, sum) in moved.slopes.iter().zip(&mut gradient) {
            if let Some(slope) = slope {
                *sum += total * real(model, *slope)?;
            }
        }
    }
    Ok(gradient)
}

/// Gives free parameters values, in the model and, by `give`, in what runs.
pub(super) fn set(
    model: &mut Model,
    fitted: &[Fitted],
    moved: &[Moved],
    values: &[f64],
    give: &mut dyn FnMut(&Moved, f64) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    for (one, &x) in fitted.iter().zip(values) {
        let dim = model.param(one.param).dim;
        model.params[one.param.0 as usize].value = model.graph.number(x, dim);
    }
    for moved in moved {
        let x = real(model, model.param(moved.param).value)?;
        give(moved, x)?;
    }
    Ok(())
}

impl Fitted {
    /// A value in canonical units with its unit, as `--set` takes it.
    pub fn shown(&self, x: f64) -> String {
        shown(x, &self.unit)
    }

    /// The ends of a range as it is written, in canonical units. A number without a unit has that of the last.
    pub fn range(&self, free: &Swept) -> Result<(f64, f64), Diagnostic> {
        match &free.values {
            SweptValues::Range(first, last) => range((&self.name, self.dim, &self.unit), (first, last), free.span),
            SweptValues::List(_) => {
                let message = format!("`{}` is free in a range, `1 .. 5 mV`", free.name);
                Err(wrong(free.span, Code::BadValue, message, "no range".into()))
            }
        }
    }
}

/// A value in canonical units with its unit.
fn shown(x: f64, unit: &DisplayUnit) -> String {
    let number = crate::units::scale(x, -unit.exponent);
    if unit.name == "1" { number.to_string() } else { format!("{number} {}", unit.name) }
}

fn wrong(span: Option<Span>, code: Code, message: String, label: String) -> Diagnostic {
    match span {
        Some(span) => Diagnostic::new(code, span, message, label),
        None => Diagnostic::without_place(code, message),
    }
}

/// The ends of a range as it is written, in canonical units, for something of this name and dimension. A number without a unit has that of the last.
pub(super) fn ends(
    (name, dim): (&str, Dim),
    (first, last): (&SweptNumber, &SweptNumber),
    of: Option<Span>,
) -> Result<[f64; 2], Diagnostic> {
    let end = |end: &SweptNumber| {
        let span = end.span.or(of);
        let text = end.unit.as_ref().or(last.unit.as_ref()).map_or("", String::as_str);
        let unit = if text.is_empty() { Some(Unit::ONE) } else { Unit::parse(text) };
        let Some(unit) = unit else {
            return Err(wrong(span, Code::UnknownUnit, format!("there is no unit `{text}`"), "no unit".into()));
        };
        if unit.dim != dim {
            let (is, got) = (dim.describe(), unit.dim.describe());
            let message = format!("`{name}` is {is}, but `{}{text}` is {got}", end.number);
            return Err(wrong(span, Code::DimensionMismatch, message, got));
        }
        unit.canonical(&end.number).filter(|x| x.is_finite()).ok_or_else(|| {
            let message = format!("`{}` is too large a number", end.number);
            wrong(span, Code::BadValue, message, "this".into())
        })
    };
    // The unit stands behind the last one.
    let high = end(last)?;
    Ok([end(first)?, high])
}

/// The same for ends of which the first is the lesser one.
pub(super) fn range(
    (name, dim, unit): (&str, Dim, &DisplayUnit),
    (first, last): (&SweptNumber, &SweptNumber),
    of: Option<Span>,
) -> Result<(f64, f64), Diagnostic> {
    let [low, high] = ends((name, dim), (first, last), of)?;
    if low < high {
        return Ok((low, high));
    }
    let [low, high] = [low, high].map(|x| shown(x, unit));
    let message = format!("`{name}` cannot lie between {low} and {high}: the first bound must be less than the second");
    Err(wrong(of, Code::BadValue, message, "no range".into()))
}

/// With the place of a parameter that is free, if it has one.
fn placed(span: Option<Span>, d: Diagnostic) -> Diagnostic {
    match span {
        Some(span) if d.labels.is_empty() => {
            Diagnostic { labels: Diagnostic::new(d.code, span, "", "free here").labels, ..d }
        }
        Some(_) | None => d,
    }
}

/// With the place where it is said that a parameter is free, if it is a bound of one that this is about.
fn at_a_bound(mut d: Diagnostic, fitted: &[Fitted]) -> Option<Diagnostic> {
    let one = fitted.iter().find(|one| d.message.contains(&format!("`{}`", one.name)))?;
    // It is a bound that is set here.
    d.notes.retain(|note| !note.starts_with(SET_FROM_OUTSIDE));
    Some(match one.span {
        Some(span) => d.see(span, format!("a bound of `{}`", one.name)),
        None => d.note(format!("this is a bound of `{}`, which is free", one.name)),
    })
}

/// The parameter that a name, or the end of one, stands for; `done` is what is done with it.
pub(super) fn fitted(model: &Model, name: &str, done: &str) -> Result<Fitted, Diagnostic> {
    let full = ode::full_name(model, name)?;
    let Some(at) = model.params.iter().position(|p| p.name == full) else {
        let message = format!("`{full}` is an initial value; so far parameters alone are {done}");
        let begins = if is_of_compartment(model, full) { "v_init = v0" } else { "state x = x0" };
        let help = format!("give the cell a parameter, and begin with it: `{begins}`");
        return Err(Diagnostic::without_place(Code::Unsupported, message).help(help));
    };
    let p = &model.params[at];
    let value = match ode::evaluate(model, p.value) {
        Ok(Value::Real(x)) => Some(x),
        Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => None,
    };
    Ok(Fitted { name: p.name.clone(), dim: p.dim, unit: p.unit.clone(), value, span: None, param: ParamId(at as u32) })
}

/// Is this state the voltage of a compartment, such as `cells.soma.v`, of which no equation is written?
fn is_of_compartment(model: &Model, full: &str) -> bool {
    let Some(state) = model.states.iter().find(|s| s.name == full && s.edges.is_none()) else { return false };
    let whole = &model.populations[model.cells_of(state.population)].name;
    let own = full.strip_prefix(whole.as_str()).and_then(|rest| rest.strip_prefix('.')).unwrap_or(full);
    own.ends_with(".v") && state.dim == Dim::VOLTAGE
}

/// Does a parameter decide about cells, edges or delays?
pub(super) fn decides_sizes(model: &Model, one: &Fitted) -> bool {
    let mut roots = numbers(model);
    roots.extend(model.connections.iter().flat_map(|c| c.rule.arguments()));
    roots.extend(model.projections.iter().flat_map(|p| p.rule.arguments()));
    roots.extend(model.projections.iter().flat_map(|p| [p.weight, p.delay]));
    let plasticity = model.projections.iter().filter_map(|p| p.plasticity.as_ref());
    roots.extend(plasticity.filter_map(|plasticity| plasticity.dendritic).map(|(part, _)| part));
    decides(model, one, &roots)
}

/// How many cells there are, and which ones lines name: whole numbers.
fn numbers(model: &Model) -> Vec<NodeId> {
    let sizes = model.populations.iter().flat_map(|p| p.sizes.clone());
    sizes.chain(model.ranges.iter().flat_map(|range| [range.first, range.end])).collect()
}

/// Does a parameter change one of these?
fn decides(model: &Model, one: &Fitted, roots: &[NodeId]) -> bool {
    let mut model = model.clone();
    roots.iter().any(|&root| ode::derivative_in_param(&mut model, root, one.param).is_some())
}

fn real(model: &Model, node: NodeId) -> Result<f64, EngineError> {
    match ode::evaluate(model, node) {
        Ok(Value::Real(x)) => Ok(x),
        Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => {
            Err(EngineError("internal error: a parameter that is the same for all cells has no value".into()))
        }
    }
}

/// An engine.
pub(super) fn engine(
    experiment: &Experiment,
    choice: &dyn Fn() -> Result<EngineChoice, EngineError>,
    precision: Precision,
) -> Result<Box<dyn Engine>, Vec<Diagnostic>> {
    let cannot = |e: EngineError| vec![Diagnostic::without_place(Code::Unsupported, e.0)];
    let choice = choice().map_err(cannot)?;
    let ready = match experiment.plan_for(&choice, precision) {
        Ok(plan) => experiment.engine(&plan, choice),
        Err(_) if experiment.needs_no_plan(&choice) => experiment.interpreter(),
        Err(errors) => return Err(errors),
    };
    Ok(ready.map_err(cannot)?.engine)
}
