//! What can be wrong with paths from a population to a quantity of its cells.

use crate::diag::{Code, Diagnostic, nearest};
use crate::hir::place::{Place, Wanted};
use crate::hir::{Cell, Part, Symbol, SymbolId, SymbolKind};
use crate::syntax::ast::Name;

/// A path that does not begin with a population.
pub(in crate::hir) struct UnknownPopulation<'e> {
    pub name: &'e Name,
    /// The names behind it, each with its dot.
    pub rest: String,
    pub meant: Meant<'e>,
    pub known: &'e [&'e str],
}

/// What is written instead of a population.
pub(in crate::hir) enum Meant<'e> {
    /// The cell model of this population.
    CellOf(&'e str),
    /// A compartment of this population's cells.
    CompartmentOf(&'e str),
    /// A receptor of this population's cells.
    ReceptorOf(&'e str),
    /// A new parameter of the network.
    Parameter,
    /// Nothing that is known.
    Unknown,
}

impl From<UnknownPopulation<'_>> for Diagnostic {
    fn from(error: UnknownPopulation<'_>) -> Diagnostic {
        let UnknownPopulation { name, rest, meant, known } = error;
        let name_text = &name.text;
        let message = format!("there is no population `{name_text}`");
        let d = Diagnostic::new(Code::BadTarget, name.span, message, "not a population of this network");
        if name_text == "spikes" && rest.is_empty() {
            return d.help(format!("write `record spikes of {}`", known.first().unwrap_or(&"cells")));
        }
        match (meant, nearest(name_text, known.iter().copied())) {
            (Meant::CellOf(population), _) => {
                d.help(format!("`{name_text}` is a cell model; write its population: `{population}{rest}`"))
            }
            (Meant::CompartmentOf(population), _) => {
                d.help(format!("`{name_text}` is a compartment; write its path: `{population}.{name_text}{rest}`"))
            }
            (Meant::ReceptorOf(population), _) => d.help(format!(
                "what each synapse has is named by the populations that it joins: `a.{population}.{name_text}{rest}`"
            )),
            (Meant::Parameter, _) => d.help(format!(
                "a parameter of a network is one number, `param {name_text} = ...`; a draw is one for each cell: `param {}.{name_text} ~ ...`",
                known.first().unwrap_or(&"cells")
            )),
            (Meant::Unknown, Some(near)) => d.did_you_mean(name_text, near),
            (Meant::Unknown, None) if known.is_empty() => d,
            (Meant::Unknown, None) => d.note(format!("it has {}", known.join(", "))),
        }
    }
}

/// A path that leads to nothing, or not to what is wanted.
pub(in crate::hir) struct BadTarget<'e> {
    pub cell: &'e Cell,
    pub place: &'e Place<'e>,
    pub wanted: Wanted,
}

impl From<BadTarget<'_>> for Diagnostic {
    fn from(target: BadTarget<'_>) -> Diagnostic {
        let d = Diagnostic::new(Code::BadTarget, target.place.rest_span, target.message(), target.label());
        target.advise(d)
    }
}

impl<'e> BadTarget<'e> {
    fn is_compartment(&self) -> bool {
        self.cell.compartments.iter().any(|c| c.name == self.place.rest)
    }

    fn found(&self) -> Option<&'e SymbolKind> {
        self.cell.find(&self.place.rest).map(|id| &self.cell.symbol(id).kind)
    }

    fn message(&self) -> String {
        let (what, rest) = (self.wanted.name(), &self.place.rest);
        if rest.is_empty() {
            format!("`{}` is a population; which {what} of it?", self.place.names[0].text)
        } else if self.is_compartment() {
            format!("`{rest}` is a compartment; which {what} of it?")
        } else if self.is_port() {
            format!("`{rest}` of cell `{}` cannot be recorded", self.cell.name)
        } else {
            format!("cell `{}` has no {what} `{rest}`", self.cell.name)
        }
    }

    /// Is it what comes from outside, where something is to be recorded?
    fn is_port(&self) -> bool {
        self.wanted == Wanted::Quantity && matches!(self.found(), Some(SymbolKind::Port(_)))
    }

    fn label(&self) -> &'static str {
        match self.found() {
            Some(SymbolKind::Param(_)) => "this is a parameter",
            Some(SymbolKind::Let(_)) => "this is a named expression",
            Some(SymbolKind::State { .. }) => "this is a state",
            Some(SymbolKind::Port(_)) => "this comes from outside",
            Some(SymbolKind::Voltage | SymbolKind::Pool) => "this is a channel's own",
            None if self.is_compartment() => "a compartment",
            None if self.place.rest.is_empty() => "a population",
            None => "not found",
        }
    }

    /// Adds what may be meant.
    fn advise(&self, d: Diagnostic) -> Diagnostic {
        let (population, rest) = (&self.place.names[0].text, self.place.rest.as_str());
        if let Some((kind, word)) = self.other_setter() {
            return d.help(format!("the {kind} is set with `{word} {population}.{rest} = ...`"));
        }
        if self.is_port() {
            let d = d.note("what is recorded are states, parameters and what `let` names");
            return d.help(format!("give it a name in the cell and record that: `let {rest}_in = {rest}`"));
        }
        if let Some(help) = self.section() {
            return d.help(help);
        }
        if let Some((_, key @ ("weight" | "delay"))) = rest.rsplit_once('.') {
            return d.help(format!(
                "it is a key of the line that connects: `connect a -> b via Synapse {{ {key} = ... }}`"
            ));
        }
        let compartments: Vec<&str> = self.cell.compartments.iter().map(|c| c.name.as_str()).collect();
        let head = rest.split('.').next().unwrap_or("");
        if rest.contains('.') && !compartments.is_empty() && !compartments.contains(&head) {
            // A path without its compartment.
            let suffix = format!(".{rest}");
            let names = self.fitting();
            let mut ends = names.iter().filter(|n| n.ends_with(&suffix));
            if let (Some(one), None) = (ends.next(), ends.next()) {
                return self.meant(d, one);
            }
            // A compartment that does not exist: the compartments are what matters.
            return match nearest(head, compartments.iter().copied()) {
                Some(near) => self.meant(d, &format!("{near}{}", &rest[head.len()..])),
                None => d.note(format!("its compartments are {}", compartments.join(", "))),
            };
        }
        let names = self.fitting();
        let inside = if rest.is_empty() { names.clone() } else { below(&names, rest) };
        if let Some(first) = inside.first() {
            let dot = if rest.is_empty() { "" } else { "." };
            return d
                .help(format!("for example `{population}.{rest}{dot}{first}`"))
                .note(format!("it has {}", listed(&inside)));
        }
        if rest.is_empty() {
            return d;
        }
        self.advise_spelling(d, &names)
    }

    /// Adds what may be meant behind the population.
    fn meant(&self, d: Diagnostic, path: &str) -> Diagnostic {
        let d = d.help(format!("did you mean `{}.{path}`?", self.place.names[0].text));
        d.fix(self.place.rest_span, &self.place.rest, path)
    }

    /// Adds which of the names may be meant by one that is not there.
    fn advise_spelling(&self, d: Diagnostic, names: &[&str]) -> Diagnostic {
        let rest = self.place.rest.as_str();
        let (parent, last) = rest.rsplit_once('.').unwrap_or(("", rest));
        let deeper: Vec<&&str> = names.iter().filter(|n| n.ends_with(&format!(".{rest}"))).collect();
        // One letter is not a misspelling of another.
        let near = nearest(rest, names.iter().copied())
            .filter(|n| last.chars().count() > 1 || n.rsplit_once('.').is_none_or(|n| n.0 != parent));
        let siblings = below(names, parent);
        // `ina` and `i_na` are what others call `Na.i`.
        let channel = last.to_lowercase().strip_prefix('i').map(|c| c.trim_start_matches('_').to_string());
        let current = channel.filter(|c| !c.is_empty()).and_then(|channel| {
            let of_channel = |n: &&&str| {
                let path = n.strip_suffix(".i").and_then(|n| n.strip_prefix(parent));
                path.is_some_and(|n| n.trim_start_matches('.').to_lowercase() == channel)
            };
            names.iter().find(of_channel)
        });
        // NEST's name, and others'.
        let is_voltage = matches!(last, "V_m" | "Vm" | "vm" | "v_m" | "V" | "voltage");
        let voltage = names.iter().find(|n| is_voltage && n.rsplit_once('.').unwrap_or(("", n)) == (parent, "v"));
        match (&deeper[..], near) {
            _ if voltage.is_some() => self.meant(d, voltage.unwrap_or(&"")),
            _ if current.is_some() => self.meant(d, current.unwrap_or(&"")),
            ([one], _) => self.meant(d, one),
            (_, Some(near)) => self.meant(d, near),
            _ if !siblings.is_empty() => d.note(format!("`{parent}` has {}", listed(&siblings))),
            _ if names.is_empty() => d.note(format!("it has no {} at all", self.wanted.name())),
            _ => d.note(format!("it has {}", listed(names))),
        }
    }

    /// How a quantity of a section is set, if the path names a section that is no region, or not the one that has it.
    fn section(&self) -> Option<String> {
        let morphology = self.cell.morphology.as_ref()?;
        let tree = &morphology.tree;
        let (population, (head, last)) = (&self.place.names[0].text, self.place.rest.split_once('.')?);
        let of_head = |name: &str| name == head || name.split('[').next() == Some(head);
        let section = |element: u32| &tree.sections[tree.section[element as usize] as usize].name;
        let has_it = |part: &&Part| {
            let there = part.find(self.cell, last);
            let fits = there.is_some_and(|id| self.wanted.fits(self.cell.symbol(id)));
            fits && part.elements.iter().any(|element| of_head(section(*element)))
        };
        if let Some(Part { region, .. }) = morphology.parts.iter().find(has_it) {
            let word = if self.wanted == Wanted::State { "init" } else { "param" };
            let at_a_place = last.split_once('.').filter(|_| region.ends_with(')'));
            return Some(match at_a_place {
                Some((synapse, key)) if self.wanted == Wanted::Parameter => {
                    format!(
                        "the line that leads to `{region}` says it, behind the synapse: `via {synapse}({key} = ...)`"
                    )
                }
                Some(_) => return None,
                None => format!("it is of region `{region}`: `{word} {population}.{region}.{last} = ...`"),
            });
        }
        let is_region = self.cell.symbols.iter().any(|s| s.name.strip_prefix(head).is_some_and(|n| n.starts_with('.')));
        if is_region && self.wanted == Wanted::Parameter || !tree.sections.iter().any(|s| of_head(&s.name)) {
            return None;
        }
        let key = match (self.wanted, last) {
            (Wanted::State, "v") => "v_init",
            (Wanted::Parameter, _) => last,
            (Wanted::State | Wanted::Quantity, _) => return None,
        };
        Some(format!(
            "what sections have stands in regions: with `region {head} {{ {key} = ... }}` in the cell it is `param {population}.{head}.{key}`"
        ))
    }

    /// What the quantity is set with that the path does lead to.
    fn other_setter(&self) -> Option<(&'static str, &'static str)> {
        match (self.wanted, self.found()?) {
            (Wanted::State, SymbolKind::Param(_)) => Some(("parameter", "param")),
            (Wanted::Parameter, SymbolKind::State { .. }) => Some(("initial value", "init")),
            _ => None,
        }
    }

    /// The names of all that could be meant, states first.
    fn fitting(&self) -> Vec<&'e str> {
        let derived = |at: usize| {
            let tree = self.cell.morphology.as_ref().filter(|_| self.wanted == Wanted::Parameter);
            tree.is_some_and(|m| m.is_derived(self.cell, SymbolId(at as u32)))
        };
        let fits = |(at, s): &(usize, &Symbol)| self.wanted.fits(s) && !s.name.contains(['<', '>']) && !derived(*at);
        let mut fitting: Vec<&Symbol> = self.cell.symbols.iter().enumerate().filter(fits).map(|(_, s)| s).collect();
        fitting.sort_by_key(|s| !matches!(s.kind, SymbolKind::State { .. }));
        fitting.iter().map(|s| s.name.as_str()).collect()
    }
}

/// The names directly inside of a path.
fn below<'n>(names: &[&'n str], path: &str) -> Vec<&'n str> {
    let inside = names.iter().filter_map(|n| n.strip_prefix(path)?.strip_prefix('.'));
    inside.filter(|n| !n.contains('.')).collect()
}

/// Some names of a list, if it is long.
fn listed(names: &[&str]) -> String {
    let shown: Vec<&str> = names.iter().take(12).copied().collect();
    format!("{}{}", shown.join(", "), if names.len() > 12 { ", ..." } else { "" })
}
