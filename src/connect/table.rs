//! The rules by name, as a model file writes them: `torus_radial(degree = 10, r_max = 4, width = 4)`.
//!
//! In come a name and named numbers; out goes a rule, or what is wrong with them.
//! Never true here: that an argument has a default.

use super::{ConnectError, Rule};
use crate::diag::nearest;

/// An argument of a rule: a pure number.
#[derive(Debug, Clone, Copy)]
pub struct ArgumentInfo {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
}

/// A rule that a model can name. Lists of edges come from files and have no entry here.
#[derive(Debug, Clone, Copy)]
pub struct RuleInfo {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Its arguments, all needed.
    pub arguments: &'static [ArgumentInfo],
    /// Makes the rule of its arguments in this order.
    make: fn(&[f64]) -> Result<Rule, ConnectError>,
}

const fn argument(name: &'static str, doc: &'static str) -> ArgumentInfo {
    ArgumentInfo { name, doc }
}

/// All of them.
pub const RULES: &[RuleInfo] = &[
    RuleInfo {
        name: "torus_radial",
        doc: "neighbours on the wrapped grid nearer than r_max, each shell of equal distance r weighted by exp(-(r/width)^2) \
              times its thickness",
        arguments: &[
            argument("degree", "mean number of connections of a cell"),
            argument("r_max", "neighbours are nearer than this many grid steps, and than half the grid; at least 1"),
            argument("width", "grid steps over which the weight falls"),
        ],
        make: |a| Ok(Rule::TorusRadial { degree: a[0], r_max: a[1], width: a[2] }),
    },
    RuleInfo { name: "all_to_all", doc: "every cell with every other", arguments: &[], make: |_| Ok(Rule::AllToAll) },
    RuleInfo {
        name: "one_to_one",
        doc: "cell i with cell i of the other population",
        arguments: &[],
        make: |_| Ok(Rule::OneToOne),
    },
    RuleInfo {
        name: "probability",
        doc: "every pair independently, with the same chance",
        arguments: &[argument("p", "the chance, from 0 to 1")],
        make: |a| Ok(Rule::Probability { p: a[0] }),
    },
    RuleInfo {
        name: "fixed_in_degree",
        doc: "every target has the same number of different sources, chosen uniformly",
        arguments: &[argument("n", "sources of each target")],
        make: |a| Ok(Rule::FixedInDegree { n: whole("n", a[0])? }),
    },
    RuleInfo {
        name: "fixed_out_degree",
        doc: "every source has the same number of different targets, chosen uniformly",
        arguments: &[argument("n", "targets of each source")],
        make: |a| Ok(Rule::FixedOutDegree { n: whole("n", a[0])? }),
    },
    RuleInfo {
        name: "fixed_total_number",
        doc: "so many connections, each from any source to any target; pairs may come several times, and cells meet themselves",
        arguments: &[argument("n", "connections in all")],
        make: |a| Ok(Rule::FixedTotalNumber { n: whole("n", a[0])? }),
    },
    RuleInfo {
        name: "distance",
        doc: "every pair independently, with the chance p_max * exp(-(d/sigma)^2) at the distance d on the wrapped grid",
        arguments: &[
            argument("p_max", "the chance at distance 0, from 0 to 1"),
            argument("sigma", "grid steps over which the chance falls"),
        ],
        make: |a| Ok(Rule::Distance { p_max: a[0], sigma: a[1] }),
    },
];

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
        let values = info
            .arguments
            .iter()
            .map(|needed| match arguments.iter().find(|a| a.0 == needed.name) {
                Some(&(_, value)) => Ok(value),
                None => Err(ConnectError::MissingArgument { rule: info.name, name: needed.name }),
            })
            .collect::<Result<Vec<f64>, ConnectError>>()?;
        let rule = (info.make)(&values)?;
        rule.check()?;
        Ok(rule)
    }
}

fn whole(argument: &'static str, value: f64) -> Result<u64, ConnectError> {
    super::finite(argument, value)?;
    if value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value) {
        Ok(value as u64)
    } else {
        Err(ConnectError::NotWhole { argument, value })
    }
}
