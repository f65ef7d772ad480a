//! What can be wrong with a call of a function.

use crate::diag::{Code, Diagnostic, nearest};
use crate::hir::advice::wrap;
use crate::hir::builtins::{FunctionInfo, FunctionKind};
use crate::hir::dimension::shown;
use crate::hir::scope::ScopeKind;
use crate::source::Span;
use crate::syntax::ast::Name;
use crate::units::Dim;

/// What is wrong with a call.
pub(in crate::hir) enum CallError<'e> {
    /// No function has the name; the first two arguments as they are written.
    Unknown {
        name: &'e Name,
        arguments: [Option<&'e str>; 2],
        compartment: bool,
        known: &'e [String],
        modules: &'e [String],
    },
    /// The arguments are not those of the function.
    Arguments { signature: &'e Signature<'e>, wrong: Wrong<'e>, span: Span },
    /// The function cannot stand here.
    NotHere { function: &'e FunctionInfo, place: ScopeKind, span: Span },
    /// A quantity that is no square has no root.
    NoRoot { dim: Dim, span: Span },
    /// Arguments of a model's own function that would fit in another order.
    Order { function: &'e str, params: &'e [&'e str], span: Span },
    /// An argument is not the name of a file.
    NotAFile { function: &'static str, span: Span },
}

/// What a function is called with.
pub(in crate::hir) struct Signature<'e> {
    pub function: &'e str,
    pub params: &'e [&'e str],
    /// Parameters that may be left out.
    pub optional: &'e [&'static str],
    /// May there be more arguments than parameters?
    pub variadic: bool,
}

/// What is wrong with arguments.
pub(in crate::hir) enum Wrong<'e> {
    /// There is no such parameter.
    Unknown(&'e str),
    /// There are so many, which is more than parameters.
    TooMany(usize),
    /// A parameter has two.
    Twice(&'e str),
    /// Parameters have none.
    Missing(Vec<&'e str>),
}

impl From<CallError<'_>> for Diagnostic {
    fn from(error: CallError<'_>) -> Diagnostic {
        use CallError as E;
        match error {
            E::Unknown { name, arguments, compartment, known, modules } => {
                unknown(name, arguments, compartment, known, modules)
            }
            E::Arguments { signature, wrong, span } => arguments(signature, &wrong, span),
            E::NotHere { function, place, span } => {
                let message = format!("`{}` cannot be used here", function.name);
                Diagnostic::new(Code::BadRandom, span, message, where_it_stands(function.kind))
                    .help(instead_of(function.kind, place))
            }
            E::NoRoot { dim, span } => {
                let message = format!("{} has no square root", dim.describe());
                Diagnostic::new(Code::BadPower, span, message, shown(dim))
                    .note(format!("the powers of [{dim}] are not all even (that of a time may be odd)"))
            }
            E::Order { function, params, span } => {
                let message = format!("the arguments of `{function}` are in another order");
                Diagnostic::new(Code::WrongArguments, span, message, "each of these fits another parameter")
                    .help(format!("write `{function}({})`, or give them by name", params.join(", ")))
            }
            E::NotAFile { function, span } => {
                let message = format!("`{function}` needs a file name in quotes");
                Diagnostic::new(Code::WrongArguments, span, message, "not a text")
                    .help(format!("write `{function}(\"values.npy\")`"))
            }
        }
    }
}

fn unknown(
    name: &Name,
    arguments: [Option<&str>; 2],
    compartment: bool,
    known: &[String],
    modules: &[String],
) -> Diagnostic {
    let name_text = &name.text;
    let message = format!("there is no function `{name_text}`");
    let d = Diagnostic::new(Code::UnknownFunction, name.span, message, "not a function");
    // A slope of spikes has another name, too, that of a draw elsewhere.
    if name_text == "gaussian"
        && let [Some(mean), Some(sd)] = arguments
        && mean.chars().any(char::is_alphabetic)
        && sd.chars().any(char::is_alphabetic)
    {
        return d.help(format!("a number that is drawn is written `normal({mean}, {sd})`"));
    }
    if let Some(module) = modules.first() {
        let line = format!("use {module}.{{{name_text}}}");
        return d.help(format!("the standard library has it: `{line}`")).fix_by_use([line]);
    }
    if name_text == "clip" {
        return d.did_you_mean(name_text, "clamp");
    }
    if let Some(help) = elsewhere(name_text, arguments) {
        return d.help(help);
    }
    if compartment {
        return d.help(format!("`{name_text}` is a compartment; its voltage is `{name_text}.v`"));
    }
    match nearest(name_text, known.iter().map(String::as_str)) {
        Some(near) => d.did_you_mean(name_text, near),
        None => d,
    }
}

/// What is written here instead of a function of another language.
fn elsewhere(name: &str, [first, second]: [Option<&str>; 2]) -> Option<String> {
    let is_short = |a: &&str| a.len() < 30 && !a.contains('\n');
    let (arg, second) = (first.filter(is_short).unwrap_or("x"), second.filter(is_short));
    Some(match name {
        "log" => format!("write `ln({arg})` for the natural and `log10({arg})` for the decimal logarithm"),
        "pow" | "power" => format!("write `{} ^ {}`", wrap(arg), second.map_or("y".into(), wrap)),
        "fabs" => format!("write `abs({arg})`"),
        "sqr" | "square" => format!("write `{}^2`", wrap(arg)),
        "exprel" => format!("write the quotient as it is, `(exp({arg}) - 1) / {}`: the compiler makes it safe at zero", wrap(arg)),
        "vtrap" | "efun" | "linoid" => {
            "write the quotient as it is, `x / (exp(x) - 1)`: the compiler makes it safe at zero; or use `exp_linear_rate`"
                .into()
        }
        "IClamp" | "iclamp" | "step" | "current_clamp" => {
            "write `pulse(delay = 10 ms, duration = 50 ms, amplitude = 10 uA/cm2)`".into()
        }
        "dc" | "constant" | "dc_generator" | "tonic" => {
            format!("what is constant is its value alone: `{}`", first.filter(is_short).unwrap_or("10 uA/cm2"))
        }
        "ac" | "ac_generator" | "sinusoid" | "SinClamp" => {
            "write `sine(delay = 0 ms, duration = 1 s, amplitude = 1 uA/cm2, period = 100 ms)`".into()
        }
        "rand" | "random" | "randn" | "gauss" | "gaussian" => {
            "draws are written `uniform(low, high)`, `normal(mean, sd)`, `exponential(mean)`, `lognormal(mean, sd)` and `gamma(shape, scale)`".into()
        }
        "round" | "nint" | "rint" => format!("write `floor({arg} + 0.5)`"),
        "int" | "trunc" | "fix" => {
            format!("`{name}` cuts towards 0: write `floor({arg})` where that is not negative, `ceil({arg})` where it is")
        }
        "sign" | "sgn" | "signum" => format!("write `(if {arg} > 0 then 1 else -1)`"),
        "exp2" => format!("write `2^{}`", wrap(arg)),
        "exp10" => format!("write `10^{}`", wrap(arg)),
        "expm1" => format!("write `exp({arg}) - 1`"),
        "log2" => format!("write `ln({arg}) / ln(2)`"),
        "log1p" => format!("write `ln(1 + {arg})`"),
        "cbrt" => format!("write `{}^(1/3)`, where that is not negative", wrap(arg)),
        "hypot" => format!("write `sqrt({}^2 + {}^2)`", wrap(arg), second.map_or("y".into(), wrap)),
        "fmod" | "mod" | "rem" => {
            let by = second.map_or("y".into(), wrap);
            let arg = wrap(arg);
            format!("write `{arg} - {by} * floor({arg} / {by})`, which is never below 0")
        }
        "asin" | "acos" | "atan" | "atan2" | "arcsin" | "arccos" | "arctan" | "arctan2" | "asinh" | "acosh" | "atanh" => {
            "there are no inverses of `sin`, `cos`, `tan` and their like".into()
        }
        "sec" => format!("write `1 / cos({arg})`"),
        "csc" => format!("write `1 / sin({arg})`"),
        "cot" => format!("write `1 / tan({arg})`"),
        "sinc" => format!("write `sin({arg}) / {}`: the compiler makes it safe at zero", wrap(arg)),
        "mean" | "average" => "write the sum over the number of terms: `(a + b) / 2`".into(),
        "where" | "ifelse" => "write `if condition then a else b`".into(),
        "sigmoid" | "boltzmann" | "logistic" => "write `1 / (1 + exp(-(v - mid) / slope))`, or use `sigmoid_rate`".into(),
        _ => return None,
    })
}

fn arguments(signature: &Signature<'_>, wrong: &Wrong<'_>, span: Span) -> Diagnostic {
    let Signature { function, params, variadic, .. } = signature;
    let (message, label) = match wrong {
        Wrong::Unknown(name) => (format!("`{function}` has no argument `{name}`"), "unknown argument"),
        Wrong::TooMany(count) => {
            let plural = if params.len() == 1 { "" } else { "s" };
            (format!("`{function}` takes {} argument{plural}, not {count}", params.len()), "one too many")
        }
        Wrong::Twice(param) => (format!("argument `{param}` of `{function}` is given twice"), "given again"),
        Wrong::Missing(params) => {
            let names: Vec<String> = params.iter().map(|p| format!("`{p}`")).collect();
            (format!("`{function}` needs {}", names.join(" and ")), "argument missing")
        }
    };
    let more = if *variadic { ", ..." } else { "" };
    let d = Diagnostic::new(Code::WrongArguments, span, message, label)
        .note(format!("the function is `{function}({}{more})`", params.join(", ")));
    let Wrong::Unknown(name) = wrong else { return d };
    let meant = |param: &&str| params.contains(param);
    match (argument(name).filter(meant), nearest(name, params.iter().copied())) {
        (Some("duration"), _) if matches!(*name, "stop" | "end" | "t_end" | "t_stop") => {
            d.help("`duration` says how long it lasts, not when it ends")
        }
        (Some(param), _) | (None, Some(param)) => d.help(format!("did you mean `{param}`?")),
        (None, None) => d,
    }
}

/// What an argument of other simulators is called here.
fn argument(name: &str) -> Option<&'static str> {
    Some(match name {
        "start" | "onset" | "del" | "t0" | "t_start" | "begin" => "delay",
        "dur" | "width" | "length" | "stop" | "end" | "t_end" | "t_stop" => "duration",
        "amp" | "i" | "current" | "strength" => "amplitude",
        "freq" | "frequency" | "f" => "rate",
        "std" | "sigma" | "stdev" | "scale" => "sd",
        "mu" | "average" | "loc" => "mean",
        "min" | "lower" => "low",
        "max" | "upper" => "high",
        "prob" | "probability" => "p",
        "k" | "count" | "degree" | "indegree" | "outdegree" => "n",
        "interval" | "every" => "period",
        "size" | "kernel_size" => "kernel",
        "strides" => "stride",
        "pad" => "padding",
        _ => return None,
    })
}

/// Where a function stands that cannot stand everywhere.
fn where_it_stands(kind: FunctionKind) -> &'static str {
    match kind {
        FunctionKind::Draw(_) => {
            "random draws stand behind `~` in a network, in the arguments of inputs, and in functions called there"
        }
        FunctionKind::File => {
            "values from files stand in `param` and `init` lines of a network and in the arguments of inputs"
        }
        FunctionKind::Noise
        | FunctionKind::WhiteNoise
        | FunctionKind::OrnsteinUhlenbeck
        | FunctionKind::Series
        | FunctionKind::Stimulus(_) => "it stands in an `input` line of a network",
        FunctionKind::Xi => {
            "white noise stands in equations of cells, channels and synapses, and in what they name by `let`"
        }
        FunctionKind::Chance => {
            "it stands in the condition of a cell's spikes, `spike when poisson(rate)`, and in `drive` lines of a network"
        }
        FunctionKind::Pure(_)
        | FunctionKind::Same(_)
        | FunctionKind::Root
        | FunctionKind::Variadic(_)
        | FunctionKind::Clamp
        | FunctionKind::Step
        | FunctionKind::Rate(_) => "",
    }
}

/// What is written in a place where a function cannot stand.
fn instead_of(kind: FunctionKind, place: ScopeKind) -> &'static str {
    match (kind, place) {
        (FunctionKind::Draw(_), ScopeKind::Network) => {
            "a population's size and a parameter of the network are the same for all cells"
        }
        (FunctionKind::Draw(_) | FunctionKind::File, _) => {
            "give the cell a `param` with a fixed value and set it per cell in the network: `param cells.x ~ ...`"
        }
        (FunctionKind::Xi, ScopeKind::Input) => "an input has `white_noise(mean, sd, per)`",
        (FunctionKind::Xi, _) => "numbers that differ from cell to cell are drawn by `~ normal(mean, sd)` in a network",
        (FunctionKind::WhiteNoise, ScopeKind::Channel | ScopeKind::Cell | ScopeKind::Function) => {
            "an equation has `xi()`, white noise of the variance 1 per time: write `sd * sqrt(per) * xi()`"
        }
        (FunctionKind::Chance, _) => {
            "a population of cells that spike by chance is one of `std.cells.generators.Poisson`"
        }
        _ => "give the cell an `input` port, and drive it from an `input` line of the network",
    }
}
