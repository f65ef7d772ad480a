//! The runs of a sweep: which values are set in each.
//!
//! In come a model with its settings, and [`Sweep`]s as they are written; out goes a [`Design`], whose runs are settings as `--set` takes
//! them, or what is wrong with it.
//! Never true here: a run is another than one with these settings.

use super::Model;
use super::overrides;
use crate::diag::{Code, Diagnostic};
use crate::hir::{Spacing, Sweep, Swept, SweptNumber, SweptValues, Way};
use crate::runtime::math;
use crate::runtime::rng::Draw;
use crate::source::Span;
use crate::units::{Dim, Unit};

/// More axes have no place in the header of an array.
pub const MOST_AXES: usize = 8;
/// More runs are a mistake.
pub const MOST_RUNS: u64 = 100_000;
/// What the seed of the run is called.
const SEED: &str = "seed";

/// All runs of a sweep: every combination of the values of its axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// The axes; the last one is the fastest.
    pub axes: Vec<Axis>,
}

/// An axis: things that are set together, each with as many values.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// At least one, with at least one value.
    pub sets: Vec<Set>,
}

/// One thing and its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Set {
    /// The name as it is written.
    pub name: String,
    /// The full name of the parameter or state, or `seed`.
    pub parameter: String,
    /// The unit of `values`, as it is written.
    pub unit: String,
    /// The values.
    pub values: Vec<f64>,
    /// The same as settings, `120mS/cm2`.
    pub settings: Vec<String>,
}

impl Axis {
    /// How many values it has.
    pub fn len(&self) -> usize {
        self.sets.first().map_or(0, |set| set.values.len())
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Design {
    /// How many values each axis has.
    pub fn shape(&self) -> Vec<usize> {
        self.axes.iter().map(Axis::len).collect()
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.shape().iter().product()
    }

    /// What is set in a run, and to which of its values.
    fn of(&self, run: usize) -> Vec<(&Set, usize)> {
        let mut rest = run;
        let mut all = Vec::new();
        for axis in self.axes.iter().rev() {
            let at = rest % axis.len();
            rest /= axis.len();
            all.splice(0..0, axis.sets.iter().map(|set| (set, at)));
        }
        all
    }

    /// The settings of a run, `name=value`, and its seed if that is swept.
    pub fn settings(&self, run: usize) -> (Vec<String>, Option<u64>) {
        let of = self.of(run);
        let set = of.iter().filter(|(set, _)| set.parameter != SEED);
        let set = set.map(|(set, at)| format!("{}={}", set.name, set.settings[*at])).collect();
        let seed = of.iter().find(|(set, _)| set.parameter == SEED).map(|(set, at)| set.values[*at] as u64);
        (set, seed)
    }

    /// The values of a run in words.
    pub fn told(&self, run: usize) -> String {
        let one = |(set, at): &(&Set, usize)| {
            let unit = if set.unit == "1" { String::new() } else { format!(" {}", set.unit) };
            format!("{} = {}{unit}", set.name, set.values[*at])
        };
        self.of(run).iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// The runs of a sweep of a model. What is set anyway (`set`, and `seed` if the run's is) is not swept.
pub fn design(model: &Model, sweeps: &[Sweep], set: &[String], seed: bool) -> Result<Design, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let mut axes = Vec::new();
    let fixed: Vec<(String, &String)> = set
        .iter()
        .filter_map(|text| {
            let name = overrides::parse_override(text).ok()?.name;
            Some((overrides::full_name(model, &name).ok()?.to_owned(), text))
        })
        .collect();
    let mut known: Vec<(String, Option<Span>)> = Vec::new();
    for (number, sweep) in sweeps.iter().enumerate() {
        match axis(model, sweep, number as u32) {
            Ok(axis) => {
                for (set, swept) in axis.sets.iter().zip(&sweep.swept) {
                    let name = &set.parameter;
                    let other = fixed.iter().find(|(full, _)| full == name).map(|(_, text)| format!("`--set {text}`"));
                    let other = other.or_else(|| (seed && name == SEED).then(|| "`--seed`".to_owned()));
                    if let Some(other) = other {
                        let message = format!("`{name}` is swept, and {other} sets it");
                        errors.push(
                            at(swept.span, Code::DuplicateKey, message, "swept here").help("leave one of them out"),
                        );
                    }
                    if let Some((_, first)) = known.iter().find(|(other, _)| other == name) {
                        let message = format!("`{name}` is swept twice");
                        let d = at(swept.span, Code::DuplicateKey, message, "again");
                        errors.push(first.iter().fold(d, |d, &first| d.see(first, "first here")));
                    }
                    known.push((name.clone(), swept.span));
                }
                axes.push(axis);
            }
            Err(found) => errors.extend(found),
        }
    }
    let design = Design { axes };
    let last = sweeps.last().and_then(|s| s.span);
    if errors.is_empty() && design.axes.len() > MOST_AXES {
        let message = format!("a sweep has {MOST_AXES} axes at most, not {}", design.axes.len());
        errors.push(
            at(last, Code::BadValue, message, "too many")
                .help("set several things together: `sweep a = [1, 2] mV, b = [3, 4] mV`"),
        );
    }
    let runs = design.axes.iter().fold(1.0, |n, axis| n * axis.len() as f64);
    if errors.is_empty() && runs > MOST_RUNS as f64 {
        let message = format!("this sweep has {runs} runs, more than {MOST_RUNS}");
        errors.push(at(last, Code::BadValue, message, "too many combinations"));
    }
    if errors.is_empty() { Ok(design) } else { Err(errors) }
}

/// A diagnostic with a place, if there is one.
fn at(span: Option<Span>, code: Code, message: impl Into<String>, label: &str) -> Diagnostic {
    match span {
        Some(span) => Diagnostic::new(code, span, message, label),
        None => Diagnostic::without_place(code, message),
    }
}

fn axis(model: &Model, sweep: &Sweep, number: u32) -> Result<Axis, Vec<Diagnostic>> {
    if let Some(spacing) = &sweep.spacing {
        spaced(spacing, sweep.span).map_err(|d| vec![d])?;
    }
    let mut errors = Vec::new();
    let mut sets: Vec<Set> = Vec::new();
    for swept in &sweep.swept {
        match set(model, sweep, swept, (number, sets.len() as u32)) {
            Ok(set) => sets.push(set),
            Err(error) => errors.push(error),
        }
    }
    if let Some(first) = sets.first().filter(|_| errors.is_empty())
        && let Some(other) = sets.iter().find(|set| set.values.len() != first.values.len())
    {
        let (a, b) = (first.values.len(), other.values.len());
        let message =
            format!("what is set together has as many values: `{}` has {a}, `{}` has {b}", first.name, other.name);
        errors.push(
            at(sweep.span, Code::BadValue, message, "one axis")
                .help("for every combination of them, write one `sweep` for each"),
        );
    }
    if errors.is_empty() { Ok(Axis { sets }) } else { Err(errors) }
}

fn spaced(spacing: &Spacing, span: Option<Span>) -> Result<(), Diagnostic> {
    let (least, what) = match spacing.way {
        Way::Steps => (2, "from one end to the other there are 2 steps at least"),
        Way::LatinHypercube | Way::Random => (1, "there is 1 sample at least"),
    };
    if spacing.count < least {
        let message = format!("{what}, not {}", spacing.count);
        return Err(at(spacing.span.or(span), Code::BadValue, message, "too few").help(
            "both ends are among the values: `80 .. 160 mS/cm2 in 5 steps` are 80, 100, 120, 140 and 160 mS/cm2",
        ));
    }
    if spacing.count > MOST_RUNS {
        let message = format!("a sweep has {MOST_RUNS} runs at most");
        return Err(at(spacing.span.or(span), Code::BadValue, message, "too many"));
    }
    Ok(())
}

/// One thing with its values; `which` names its random numbers.
fn set(model: &Model, sweep: &Sweep, swept: &Swept, which: (u32, u32)) -> Result<Set, Diagnostic> {
    let placed = |d: Diagnostic, label: &str| match swept.span {
        Some(span) if d.labels.is_empty() => {
            Diagnostic { labels: Diagnostic::new(d.code, span, "", label).labels, ..d }
        }
        _ => d,
    };
    let of_run = |name: &&&str| **name == swept.name;
    if let Some(key) = ["dt", "duration", "every", "method"].iter().find(of_run)
        && overrides::full_name(model, key).is_err()
    {
        let message = format!("`{key}` cannot be swept: the runs of a sweep have the same times");
        return Err(at(swept.span, Code::BadValue, message, "a key of the run").help("run the model once for each"));
    }
    let seed = swept.name == SEED && overrides::full_name(model, SEED).is_err();
    let (name, dim, unit) = if seed {
        (SEED.to_owned(), Dim::ONE, Dim::ONE.display_unit())
    } else {
        let wrong = |d: Diagnostic| match d.code {
            Code::AmbiguousParameter => placed(d, "which one?"),
            _ => placed(d, "nothing that can be set"),
        };
        let found = overrides::target(model, &swept.name).map_err(wrong)?;
        (found.0.to_owned(), found.1, found.2.clone())
    };
    let numbers: Vec<&SweptNumber> = match &swept.values {
        SweptValues::Range(low, high) => vec![low, high],
        SweptValues::List(values) => values.iter().collect(),
    };
    // Numbers without a unit have that of the last.
    let text = numbers.last().and_then(|n| n.unit.clone()).unwrap_or_default();
    let parsed = if text.is_empty() { Some(Unit::ONE) } else { Unit::parse(&text) };
    let span_of = |n: &SweptNumber| n.span.or(swept.span);
    for n in &numbers {
        let span = span_of(n);
        let Some(parsed) = parsed else {
            return Err(at(span, Code::UnknownUnit, format!("there is no unit `{text}`"), "not a unit"));
        };
        if n.unit.as_ref().is_some_and(|unit| *unit != text) {
            let message = format!("all values of `{}` have the same unit", swept.name);
            let label = if text.is_empty() { "the last one has none".to_owned() } else { format!("not in {text}") };
            return Err(at(span, Code::BadValue, message, &label).help("numbers without a unit have that of the last"));
        }
        if parsed.dim != dim {
            let (is, got) = (dim.describe(), parsed.dim.describe());
            let message = format!("`{name}` is {is}, but `{}` is {got}", format!("{} {text}", n.number).trim());
            let d = at(span, Code::DimensionMismatch, message, &got);
            return Err(match (text.is_empty(), unit.name.as_str()) {
                (_, "1") => d.help("write numbers without a unit"),
                (true, unit) => d.help(format!("write the unit behind the last number, such as {unit}")),
                (false, unit) => d.help(format!("write the numbers in {unit}")),
            });
        }
        if parsed.canonical(&n.number).is_none_or(|x| !x.is_finite()) {
            return Err(at(span, Code::BadValue, format!("`{}` is too large a number", n.number), "this"));
        }
    }
    let written = |n: &SweptNumber| n.number.parse::<f64>().unwrap_or(f64::NAN);
    let (values, texts): (Vec<f64>, Vec<String>) = match (&swept.values, &sweep.spacing) {
        (SweptValues::List(list), Some(spacing)) if spacing.way != Way::Steps || spacing.count != list.len() as u64 => {
            let message = format!("`{}` has a list of {} values", swept.name, list.len());
            let d = at(spacing.span.or(swept.span), Code::BadValue, message, "of a range");
            return Err(d.help("leave this out, or write a range: `1 .. 5 mV`"));
        }
        (SweptValues::List(list), _) => list.iter().map(|n| (written(n), n.number.clone())).unzip(),
        (SweptValues::Range(low, high), _) => {
            let values = between(model, sweep, swept, [written(low), written(high)], which)?;
            values.into_iter().map(|x| (x, x.to_string())).unzip()
        }
    };
    if let Some(&x) = values.iter().find(|&&x| seed && (x < 0.0 || x.fract() != 0.0 || x > 9e15)) {
        let message = format!("the seed cannot be {x}");
        return Err(at(swept.span, Code::BadValue, message, "a whole number from 0 on is needed"));
    }
    let settings = texts.into_iter().map(|number| number + &text).collect();
    let unit = if text.is_empty() { "1".to_owned() } else { text };
    Ok(Set { name: swept.name.clone(), parameter: name, unit, values, settings })
}

/// To 15 digits, which hide the rounding of logarithms.
fn rounded(x: f64) -> f64 {
    format!("{x:.14e}").parse().unwrap_or(x)
}

/// The values between two ends.
fn between(
    model: &Model,
    sweep: &Sweep,
    swept: &Swept,
    [low, high]: [f64; 2],
    (axis, place): (u32, u32),
) -> Result<Vec<f64>, Diagnostic> {
    let span = swept.span.or(sweep.span);
    if !(low.is_finite() && high.is_finite()) {
        return Err(at(span, Code::BadValue, "a number of this range is too large", "this"));
    }
    if low == high {
        let message = format!("`{}` goes from {low} to {high}, which is no way", swept.name);
        return Err(at(span, Code::BadValue, message, "the ends are the same"));
    }
    let Some(Spacing { count, log, way, .. }) = sweep.spacing else {
        let whole = low.fract() == 0.0 && high.fract() == 0.0 && low < high;
        let unit = match &swept.values {
            SweptValues::Range(_, last) => last.unit.is_some(),
            SweptValues::List(_) => false,
        };
        if !whole || unit {
            let message = format!("it is not said how many values `{}` has between {low} and {high}", swept.name);
            return Err(at(span, Code::BadValue, message, "how many?")
                .help("write `in 11 steps` behind it (`:11` on the command line); only whole numbers without a unit go without"));
        }
        if high - low >= MOST_RUNS as f64 {
            let message = format!("a sweep has {MOST_RUNS} runs at most");
            return Err(at(span, Code::BadValue, message, "too many"));
        }
        return Ok((0..=(high - low) as u64).map(|k| low + k as f64).collect());
    };
    if log && !(low > 0.0 && high > 0.0) {
        let message = format!("steps by a factor do not lead from {low} to {high}");
        return Err(at(span, Code::BadValue, message, "both ends must be above zero"));
    }
    // Where a value lies between the ends, 0 to 1.
    let lies = |x: f64| match log {
        false => low + x * (high - low),
        true => rounded(math::exp(math::ln(low) + x * (math::ln(high) - math::ln(low)))),
    };
    let n = count as usize;
    // The seed of the run says what is drawn; each axis and each thing on it has a stream of its own.
    let draw = Draw { seed: model.seed, stream: SWEEP.wrapping_add(axis << 8 | place) };
    Ok(match way {
        Way::Steps => {
            // As NumPy's linspace: the last value is the end itself.
            let step = (high - low) / (n - 1) as f64;
            let value = |k: usize| match k {
                _ if k + 1 == n => high,
                0 => low,
                _ if log => lies(k as f64 / (n - 1) as f64),
                _ => low + k as f64 * step,
            };
            (0..n).map(value).collect()
        }
        Way::Random => (0..n as u32).map(|k| lies(draw.uniform(k, 0))).collect(),
        Way::LatinHypercube => {
            let mut order: Vec<u32> = (0..n as u32).collect();
            order.sort_by(|&a, &b| draw.uniform(a, 1).total_cmp(&draw.uniform(b, 1)).then(a.cmp(&b)));
            (0..n as u32).zip(order).map(|(k, part)| lies((f64::from(part) + draw.uniform(k, 0)) / n as f64)).collect()
        }
    })
}

/// The first stream of sweeps.
const SWEEP: u32 = 0x5357_0000;
