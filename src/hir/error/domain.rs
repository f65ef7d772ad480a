//! What is outside of its domain.

use crate::diag::{Code, Diagnostic};
use crate::hir::domain::{Demand, Domain, Whose};
use crate::units::DisplayUnit;

/// How the note on a value begins that does not stand in the file.
pub const SET_FROM_OUTSIDE: &str = "it is set from outside: ";

impl<T> Demand<T> {
    /// What is said of a value that the demand does not allow. `whose` names the cell that has it, and `set` is how the value was given
    /// where it does not stand in the file.
    pub fn outside(&self, x: f64, whose: Option<&str>, set: Option<&str>) -> Diagnostic {
        let (what, value) = (&self.what, shown(x, &self.unit));
        let of = whose.map(|cell| format!(" of {cell}")).unwrap_or_default();
        let set_to = |d: Diagnostic| match set {
            Some(set) => d.note(format!("{SET_FROM_OUTSIDE}{set}")),
            None => d,
        };
        if self.domain == Domain::Finite {
            let message = format!("`{what}`{of} is {}", if x.is_nan() { "not a number" } else { "infinite" });
            return set_to(Diagnostic::new(Code::BadValue, self.span, message, self.why));
        }
        let message = match (self.code, self.domain) {
            (Code::GateRange, _) if what.ends_with(".inf") => format!("`{what}`{of} is {value}, outside [0, 1]"),
            (Code::GateRange, _) => format!("gate `{what}`{of} starts at {value}, outside [0, 1]"),
            (_, Domain::Steps) => format!("`{what}`{of} is {value}, which is not a whole number of steps"),
            (_, Domain::Whole) => format!("the states of `{what}`{of} sum to {value} at the start, not to 1"),
            (_, Domain::BeforeTheEnd) => format!("`{what}`{of} is {value}, after the end of the run"),
            (_, Domain::DelayOrNone) if x == 0.0 => format!("`{what}`{of} is {value}"),
            (_, Domain::StepAtLeast | Domain::Delay | Domain::DelayOrNone) => {
                format!("`{what}`{of} is {value}, less than the time step")
            }
            _ => format!("`{what}`{of} is {value}"),
        };
        let d = set_to(Diagnostic::new(self.code, self.span, message, self.why));
        match (self.code, self.domain) {
            (Code::GateRange, _) if what.ends_with(".inf") => d,
            (Code::GateRange, _) => d.help("leave `init` out to start at the steady state"),
            (Code::SuspiciousMagnitude, _) if x < 0.0 && whose.is_none() => d.help("remove the sign"),
            (_, Domain::BeforeTheEnd) if matches!(self.whose, Whose::Edges(_)) => {
                d.help("make it shorter, or run longer: `duration = ...`")
            }
            (_, Domain::BeforeTheEnd) if what.starts_with("start of the last") => {
                d.help("make `count` less, or run longer: `duration = ...`")
            }
            (_, Domain::BeforeTheEnd) => d.help("begin it earlier, or run longer: `duration = ...`"),
            (_, Domain::DelayOrNone) if x == 0.0 => d.help(
                "make it a step at least, or write `arrivals = after_threshold` in the `run` block: then spikes without a delay arrive between two steps, as in Brian2",
            ),
            (_, Domain::Delay | Domain::DelayOrNone) => {
                d.help("make the delay longer, or `dt` shorter: a spike is known at the end of the step that made it")
            }
            (_, Domain::StepAtLeast) => {
                d.help("every value would be drawn once only: make `every` longer, or `dt` shorter")
            }
            (_, Domain::Steps) => d.help("make it whole steps, or `dt` shorter"),
            (_, Domain::Drawable) => d.help("lower it, or make `dt` shorter"),
            (_, Domain::Whole) => d.help("set all of them, or none to begin in the steady state"),
            _ => d,
        }
    }

    /// What is said of draws that miss their limits by `x` at last: those of one cell or edge, or those of all if it has no name.
    pub fn not_within(&self, x: f64, whose: Option<&str>, count: usize, one: &str) -> Diagnostic {
        let by = shown(x.abs(), &self.unit);
        let side = if x > 0.0 { "above the upper" } else { "below the lower" };
        match whose {
            None => {
                let message = "no draw is within its limits";
                Diagnostic::new(self.code, self.span, message, self.why)
                    .note(format!("the last one is {by} {side} limit"))
                    .help("what is drawn lies elsewhere: look at the limits, and at the mean")
            }
            Some(whose) => {
                let message = format!("no draw of {whose} is within its limits");
                let d = Diagnostic::new(Code::CutOff, self.span, message, self.why)
                    .note(format!("the last one is {by} {side} limit, on which it is put"));
                let d = match count - 1 {
                    0 => d,
                    1 => d.note(format!("so is that of another {one}")),
                    more => d.note(format!("so are those of {more} other {one}s")),
                };
                d.help("limits that few draws meet make a heap on one of them: widen them, or draw nearer")
            }
        }
    }
}

/// A value in its unit, without the noise of binary fractions.
pub fn shown(x: f64, unit: &DisplayUnit) -> String {
    let rounded: f64 = format!("{:.11e}", unit.show(x)).parse().unwrap_or(x);
    let number = match rounded != 0.0 && rounded.is_finite() && !(1e-5..1e16).contains(&rounded.abs()) {
        true => format!("{rounded:e}"),
        false => rounded.to_string(),
    };
    if unit.name == "1" { number } else { format!("{number} {}", unit.name) }
}
