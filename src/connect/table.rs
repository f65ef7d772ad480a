//! The rules by name, as a model file writes them: `torus_radial(degree = 10, r_max = 4, width = 4)`.
//!
//! In come a name and named numbers; out goes a rule, or what is wrong with them.
//! Never true here: what stands for an argument that is left out depends on anything but the other arguments.

use super::{ConnectError, Partners, Rule};
use crate::diag::nearest;

/// An argument of a rule: a pure number, or whether something may be (1 or 0).
#[derive(Debug, Clone, Copy)]
pub struct ArgumentInfo {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// What it is where it is left out; none if it is needed.
    pub absent: Option<Absent>,
}

/// What stands for an argument that is left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Absent {
    /// A number.
    Number(f64),
    /// What another argument is, by its place.
    As(usize),
    /// That it may not be; such an argument is written `true` or `false`.
    No,
}

/// A rule that a model can name. Lists of edges come from files and have no entry here.
#[derive(Debug, Clone, Copy)]
pub struct RuleInfo {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Its arguments.
    pub arguments: &'static [ArgumentInfo],
    /// Do connections share their weights?
    pub shares: bool,
    /// Makes the rule of its arguments in this order.
    make: fn(&[f64]) -> Result<Rule, ConnectError>,
}

const fn argument(name: &'static str, doc: &'static str) -> ArgumentInfo {
    ArgumentInfo { name, doc, absent: None }
}

const fn optional(name: &'static str, doc: &'static str, absent: Absent) -> ArgumentInfo {
    ArgumentInfo { name, doc, absent: Some(absent) }
}

const AUTAPSES: ArgumentInfo = optional("autapses", "whether cells may be connected with themselves", Absent::No);
const MULTAPSES: ArgumentInfo = optional("multapses", "whether a pair may be connected several times", Absent::No);

/// All of them.
pub const RULES: &[RuleInfo] = &[
    RuleInfo {
        name: "torus_radial",
        doc: "neighbours on the wrapped grid nearer than r_max, each shell of equal distance r weighted by exp(-(r/width)^2) \
              times its thickness",
        shares: false,
        arguments: &[
            argument("degree", "mean number of connections of a cell"),
            argument("r_max", "neighbours are nearer than this many grid steps, and than half the grid; at least 1"),
            argument("width", "grid steps over which the weight falls"),
        ],
        make: |a| Ok(Rule::TorusRadial { degree: a[0], r_max: a[1], width: a[2] }),
    },
    RuleInfo {
        name: "all_to_all",
        doc: "every cell with every other",
        shares: false,
        arguments: &[],
        make: |_| Ok(Rule::AllToAll),
    },
    RuleInfo {
        name: "one_to_one",
        doc: "cell i with cell i of the other population",
        shares: false,
        arguments: &[],
        make: |_| Ok(Rule::OneToOne),
    },
    RuleInfo {
        name: "probability",
        doc: "every pair independently, with the same chance",
        shares: false,
        arguments: &[argument("p", "the chance, from 0 to 1")],
        make: |a| Ok(Rule::Probability { p: a[0] }),
    },
    RuleInfo {
        name: "fixed_in_degree",
        doc: "every target has the same number of sources, chosen uniformly; different ones, and not itself, if nothing else is said",
        shares: false,
        arguments: &[argument("n", "sources of each target"), AUTAPSES, MULTAPSES],
        make: |a| Ok(Rule::FixedInDegree { n: whole("n", a[0])?, partners: partners(a) }),
    },
    RuleInfo {
        name: "fixed_out_degree",
        doc: "every source has the same number of targets, chosen uniformly; different ones, and not itself, if nothing else is said",
        shares: false,
        arguments: &[argument("n", "targets of each source"), AUTAPSES, MULTAPSES],
        make: |a| Ok(Rule::FixedOutDegree { n: whole("n", a[0])?, partners: partners(a) }),
    },
    RuleInfo {
        name: "fixed_total_number",
        doc: "so many connections, each from any source to any target; pairs may come several times, and cells meet themselves",
        shares: false,
        arguments: &[argument("n", "connections in all")],
        make: |a| Ok(Rule::FixedTotalNumber { n: whole("n", a[0])? }),
    },
    RuleInfo {
        name: "distance",
        doc: "every pair independently, with the chance p_max * exp(-(d/sigma)^2) at the distance d on the wrapped grid",
        shares: false,
        arguments: &[
            argument("p_max", "the chance at distance 0, from 0 to 1"),
            argument("sigma", "grid steps over which the chance falls"),
        ],
        make: |a| Ok(Rule::Distance { p_max: a[0], sigma: a[1] }),
    },
    RuleInfo {
        name: "convolution",
        doc: "windows that move over a grid of width x height x channels, each with the same weights",
        shares: true,
        arguments: &[
            argument("kernel", "width and height of a window"),
            optional("stride", "how far apart windows are", Absent::Number(1.0)),
            optional("padding", "cells that are not there around the grid", Absent::Number(0.0)),
            optional("pool", "a target has the mean of so many outputs in each direction", Absent::Number(1.0)),
            optional("max_pool", "or the largest of them, of what arrives there in a step", Absent::Number(1.0)),
        ],
        make: |a| {
            let [kernel, stride, padding] = windows(a)?;
            let [pool, max_pool] = [whole("pool", a[3])?, whole("max_pool", a[4])?];
            Ok(Rule::Convolution { kernel, stride, padding, pool, max_pool, place: 0 })
        },
    },
    RuleInfo {
        name: "pooling",
        doc: "windows that move over each channel of a grid of width x height x channels",
        shares: false,
        arguments: &[
            argument("kernel", "width and height of a window"),
            optional("stride", "how far apart windows are; a window if it is left out", Absent::As(0)),
            optional("padding", "cells that are not there around the grid", Absent::Number(0.0)),
        ],
        make: |a| {
            let [kernel, stride, padding] = windows(a)?;
            Ok(Rule::Pooling { kernel, stride, padding })
        },
    },
];

impl RuleInfo {
    /// Its arguments as they are called, with what stands for those that may be left out: `kernel, stride = 1`.
    pub fn arguments_shown(&self) -> String {
        let shown = |argument: &ArgumentInfo| match argument.absent {
            None => argument.name.to_string(),
            Some(Absent::Number(x)) => format!("{} = {x}", argument.name),
            Some(Absent::As(other)) => format!("{} = {}", argument.name, self.arguments[other].name),
            Some(Absent::No) => format!("{} = false", argument.name),
        };
        self.arguments.iter().map(shown).collect::<Vec<_>>().join(", ")
    }
}

impl Rule {
    /// The rule of this name with these arguments, in any order.
    pub fn named(name: &str, arguments: &[(&str, f64)]) -> Result<Rule, ConnectError> {
        let Some(info) = RULES.iter().find(|r| r.name == name) else {
            let known: Vec<&str> = RULES.iter().map(|r| r.name).collect();
            let nearest = nearest(name, known.iter().copied());
            return Err(ConnectError::UnknownRule { name: name.to_owned(), nearest, known });
        };
        for (i, &(given, _)) in arguments.iter().enumerate() {
            let Some(known) = info.arguments.iter().find(|a| a.name == given) else {
                let known = info.arguments.iter().map(|a| a.name).collect();
                return Err(ConnectError::UnknownArgument { rule: info.name, name: given.to_owned(), known });
            };
            if arguments[..i].iter().any(|a| a.0 == given) {
                return Err(ConnectError::RepeatedArgument { rule: info.name, name: known.name });
            }
        }
        let mut values = Vec::new();
        for needed in info.arguments {
            values.push(match (arguments.iter().find(|a| a.0 == needed.name), needed.absent) {
                (Some(&(_, value)), _) | (None, Some(Absent::Number(value))) => value,
                (None, Some(Absent::As(other))) => values[other],
                (None, Some(Absent::No)) => 0.0,
                (None, None) => return Err(ConnectError::MissingArgument { rule: info.name, name: needed.name }),
            });
        }
        let rule = (info.make)(&values)?;
        rule.check()?;
        Ok(rule)
    }
}

/// What stands behind the number of a degree.
fn partners(a: &[f64]) -> Partners {
    Partners { autapses: a[1] != 0.0, multapses: a[2] != 0.0 }
}

/// Kernel, stride and padding.
fn windows(a: &[f64]) -> Result<[u64; 3], ConnectError> {
    Ok([whole("kernel", a[0])?, whole("stride", a[1])?, whole("padding", a[2])?])
}

fn whole(argument: &'static str, value: f64) -> Result<u64, ConnectError> {
    super::finite(argument, value)?;
    if value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value) {
        Ok(value as u64)
    } else {
        Err(ConnectError::NotWhole { argument, value })
    }
}
