//! The built-in functions and the reserved names.

use crate::operators::{Distribution, UnaryOp};

/// A built-in function of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // FUNCTIONS documents each
pub enum Builtin {
    Exp,
    Ln,
    Log10,
    Sqrt,
    Abs,
    Sin,
    Cos,
    Tan,
    Sinh,
    Cosh,
    Tanh,
    Floor,
    Ceil,
    Min,
    Max,
    Clamp,
    Heaviside,
    ExpRate,
    SigmoidRate,
    ExpLinearRate,
    Pulse,
    Train,
    Staircase,
    Sine,
    Ramp,
}

impl Builtin {
    /// What it does to one number, if that is an operation.
    pub fn operation(self) -> Option<UnaryOp> {
        Some(match self {
            Builtin::Exp => UnaryOp::Exp,
            Builtin::Ln => UnaryOp::Ln,
            Builtin::Log10 => UnaryOp::Log10,
            Builtin::Sqrt => UnaryOp::Sqrt,
            Builtin::Abs => UnaryOp::Abs,
            Builtin::Sin => UnaryOp::Sin,
            Builtin::Cos => UnaryOp::Cos,
            Builtin::Tan => UnaryOp::Tan,
            Builtin::Sinh => UnaryOp::Sinh,
            Builtin::Cosh => UnaryOp::Cosh,
            Builtin::Tanh => UnaryOp::Tanh,
            Builtin::Floor => UnaryOp::Floor,
            Builtin::Ceil => UnaryOp::Ceil,
            Builtin::Min
            | Builtin::Max
            | Builtin::Clamp
            | Builtin::Heaviside
            | Builtin::ExpRate
            | Builtin::SigmoidRate
            | Builtin::ExpLinearRate
            | Builtin::Pulse
            | Builtin::Train
            | Builtin::Staircase
            | Builtin::Sine
            | Builtin::Ramp => return None,
        })
    }
}

/// How a call is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionKind {
    /// Pure number to pure number.
    Pure(Builtin),
    /// One quantity to the same dimension.
    Same(Builtin),
    /// Square root.
    Root,
    /// Two or more quantities of one dimension.
    Variadic(Builtin),
    /// `clamp(x, low, high)`.
    Clamp,
    /// A quantity to 0 or 1.
    Step,
    /// `(v, rate, midpoint, scale)`.
    Rate(Builtin),
    /// A function of time that stands in inputs.
    Stimulus(Builtin),
    /// `noise(mean, sd, every)`.
    Noise,
    /// `white_noise(mean, sd, per)`.
    WhiteNoise,
    /// `xi()`.
    Xi,
    /// `ornstein_uhlenbeck(mean, sigma, tau)`.
    OrnsteinUhlenbeck,
    /// `poisson(rate)`: a condition that is true by chance.
    Chance,
    /// `series("file")`.
    Series,
    /// `file("name")`, `file("name.csv", column = "x")`.
    File,
    /// A random draw.
    Draw(Drawn),
}

/// What a random draw is drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drawn {
    /// `uniform(low, high)`, `normal(mean, sd)`: a standard draw, moved and stretched.
    Between(Distribution),
    /// `exponential(mean)`.
    Exponential,
    /// `lognormal(mean, sd)`, with the mean and standard deviation of the quantity itself.
    Lognormal,
    /// `gamma(shape, scale)`.
    Gamma,
    /// `truncated(draw, low, high)`: drawn again while it is outside.
    Truncated,
}

impl Builtin {
    /// What it is called in models.
    pub(super) fn name(self) -> &'static str {
        let is = |kind: FunctionKind| match kind {
            FunctionKind::Pure(b)
            | FunctionKind::Same(b)
            | FunctionKind::Variadic(b)
            | FunctionKind::Rate(b)
            | FunctionKind::Stimulus(b) => b == self,
            FunctionKind::Root => self == Builtin::Sqrt,
            FunctionKind::Clamp => self == Builtin::Clamp,
            FunctionKind::Step => self == Builtin::Heaviside,
            FunctionKind::Noise
            | FunctionKind::WhiteNoise
            | FunctionKind::Xi
            | FunctionKind::OrnsteinUhlenbeck
            | FunctionKind::Chance
            | FunctionKind::Series
            | FunctionKind::File
            | FunctionKind::Draw(_) => false,
        };
        FUNCTIONS.iter().find(|f| is(f.kind)).map_or("?", |f| f.name)
    }
}

/// A built-in function as the language reference lists it.
#[derive(Debug, Clone, Copy)]
pub struct FunctionInfo {
    /// Its name.
    pub name: &'static str,
    /// The names of its parameters, in order.
    pub params: &'static [&'static str],
    /// How a call is checked.
    pub kind: FunctionKind,
    /// What it computes.
    pub doc: &'static str,
}

const fn f(name: &'static str, params: &'static [&'static str], kind: FunctionKind, doc: &'static str) -> FunctionInfo {
    FunctionInfo { name, params, kind, doc }
}

/// The names of the arguments of a function of time; none of other functions.
pub fn stimulus_params(builtin: Builtin) -> &'static [&'static str] {
    FUNCTIONS.iter().find(|f| f.kind == FunctionKind::Stimulus(builtin)).map_or(&[], |f| f.params)
}

/// Every built-in function.
pub const FUNCTIONS: &[FunctionInfo] = &[
    f("exp", &["x"], FunctionKind::Pure(Builtin::Exp), "e to the power x"),
    f("ln", &["x"], FunctionKind::Pure(Builtin::Ln), "natural logarithm"),
    f("log10", &["x"], FunctionKind::Pure(Builtin::Log10), "decimal logarithm"),
    f("sqrt", &["x"], FunctionKind::Root, "square root"),
    f("abs", &["x"], FunctionKind::Same(Builtin::Abs), "absolute value"),
    f("sin", &["x"], FunctionKind::Pure(Builtin::Sin), "sine of an angle in radians"),
    f("cos", &["x"], FunctionKind::Pure(Builtin::Cos), "cosine of an angle in radians"),
    f("tan", &["x"], FunctionKind::Pure(Builtin::Tan), "tangent of an angle in radians"),
    f("sinh", &["x"], FunctionKind::Pure(Builtin::Sinh), "hyperbolic sine"),
    f("cosh", &["x"], FunctionKind::Pure(Builtin::Cosh), "hyperbolic cosine"),
    f("tanh", &["x"], FunctionKind::Pure(Builtin::Tanh), "hyperbolic tangent"),
    f("floor", &["x"], FunctionKind::Pure(Builtin::Floor), "largest whole number not above x"),
    f("ceil", &["x"], FunctionKind::Pure(Builtin::Ceil), "smallest whole number not below x"),
    f("min", &["x", "y"], FunctionKind::Variadic(Builtin::Min), "the smallest of two or more"),
    f("max", &["x", "y"], FunctionKind::Variadic(Builtin::Max), "the largest of two or more"),
    f("clamp", &["x", "low", "high"], FunctionKind::Clamp, "x, but not below low and not above high"),
    f("heaviside", &["x"], FunctionKind::Step, "1 for x >= 0, else 0"),
    f(
        "exp_rate",
        &["v", "rate", "midpoint", "scale"],
        FunctionKind::Rate(Builtin::ExpRate),
        "rate * exp(x) with x = (v - midpoint) / scale (NeuroML HHExpRate)",
    ),
    f(
        "sigmoid_rate",
        &["v", "rate", "midpoint", "scale"],
        FunctionKind::Rate(Builtin::SigmoidRate),
        "rate / (1 + exp(-x)) with x = (v - midpoint) / scale (NeuroML HHSigmoidRate)",
    ),
    f(
        "exp_linear_rate",
        &["v", "rate", "midpoint", "scale"],
        FunctionKind::Rate(Builtin::ExpLinearRate),
        "rate * x / (1 - exp(-x)) with x = (v - midpoint) / scale, and rate at x = 0 (NeuroML HHExpLinearRate)",
    ),
    f(
        "pulse",
        &["delay", "duration", "amplitude"],
        FunctionKind::Stimulus(Builtin::Pulse),
        "amplitude from delay on, for duration; else 0",
    ),
    f(
        "train",
        &["delay", "duration", "amplitude", "period", "count"],
        FunctionKind::Stimulus(Builtin::Train),
        "pulses: amplitude for duration from delay on and again after each period, count times (without it: to the end); else 0",
    ),
    f(
        "staircase",
        &["delay", "duration", "start", "increment", "count"],
        FunctionKind::Stimulus(Builtin::Staircase),
        "start for duration from delay on, then start + increment for duration, and so on, count steps; else 0",
    ),
    f(
        "sine",
        &["delay", "duration", "amplitude", "period", "phase"],
        FunctionKind::Stimulus(Builtin::Sine),
        "amplitude * sin(2 pi (t - delay) / period + phase) from delay on, for duration; else 0",
    ),
    f(
        "ramp",
        &["delay", "duration", "start", "finish"],
        FunctionKind::Stimulus(Builtin::Ramp),
        "from start to finish, linearly, from delay on, for duration; else 0",
    ),
    f(
        "noise",
        &["mean", "sd", "every"],
        FunctionKind::Noise,
        "a normal number per cell, drawn anew after each interval `every`",
    ),
    f(
        "white_noise",
        &["mean", "sd", "per"],
        FunctionKind::WhiteNoise,
        "a normal number per cell and step, whose mean over a time `per` has the standard deviation sd at every dt",
    ),
    f(
        "xi",
        &[],
        FunctionKind::Xi,
        "white noise in an equation: of each cell, mean 0, variance 1 per time, one over the root of a time; Ito's",
    ),
    f(
        "ornstein_uhlenbeck",
        &["mean", "sigma", "tau"],
        FunctionKind::OrnsteinUhlenbeck,
        "noise per cell that forgets with the time constant tau, sigma its standard deviation at every dt",
    ),
    f("poisson", &["rate"], FunctionKind::Chance, "in `spike when`: true by chance in a step, so often in a time"),
    f(
        "series",
        &["file"],
        FunctionKind::Series,
        "a function of time from a file with two columns, time in ms and a pure number; linear between samples",
    ),
    f("file", &["name", "column"], FunctionKind::File, "a pure number per cell from an .npy or .csv file"),
    f(
        "uniform",
        &["low", "high"],
        FunctionKind::Draw(Drawn::Between(Distribution::Uniform)),
        "a draw between low and high",
    ),
    f(
        "normal",
        &["mean", "sd"],
        FunctionKind::Draw(Drawn::Between(Distribution::Normal)),
        "a draw from a normal distribution",
    ),
    f("exponential", &["mean"], FunctionKind::Draw(Drawn::Exponential), "a draw from an exponential distribution"),
    f(
        "lognormal",
        &["mean", "sd"],
        FunctionKind::Draw(Drawn::Lognormal),
        "a draw from a lognormal distribution with this mean and standard deviation",
    ),
    f(
        "gamma",
        &["shape", "scale"],
        FunctionKind::Draw(Drawn::Gamma),
        "a draw from a gamma distribution; its mean is shape * scale",
    ),
    f(
        "truncated",
        &["draw", "low", "high"],
        FunctionKind::Draw(Drawn::Truncated),
        "a draw that is drawn again while it is not between low and high",
    ),
];

/// Names that have a fixed meaning and cannot be defined.
pub const RESERVED: &[&str] = &["v", "t", "celsius", "pi", "index", "dt", "i_syn", "dv"];

/// The arguments of a function that may be left out.
pub(super) fn optional(function: &str) -> &'static [&'static str] {
    match function {
        "sine" => &["phase"],
        "train" => &["count"],
        "file" => &["column"],
        _ => &[],
    }
}

/// The function of a name.
pub(super) fn function(name: &str) -> Option<&'static FunctionInfo> {
    FUNCTIONS.iter().find(|f| f.name == name)
}
