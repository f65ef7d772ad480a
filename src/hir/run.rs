//! The run block.

use super::lower::Lowerer;
use super::network::{Lowered, flatten};
use super::scope::{Scope, ScopeKind};
use super::{Method, Record, Run, SymbolKind};
use crate::diag::{Code, Diagnostic, nearest};
use crate::syntax::ast::{self, RunMember};
use crate::units::Dim;
use std::collections::HashMap;

const KEYS: &[&str] = &["duration", "dt", "method", "seed", "celsius", "network", "record"];

impl<'a> Lowerer<'a> {
    /// Lowers the run block of a network.
    ///
    /// Without a network (which has been said to be missing or wrong) the keys are still checked.
    pub(super) fn run(&mut self, run: &'a ast::Run, lowered: Option<&Lowered>) -> Option<Run> {
        let before = self.diagnostics.count();
        let mut keys: HashMap<&str, &'a ast::Let> = HashMap::new();
        let mut fine = true;
        for member in &run.members {
            if let RunMember::Key(l) = member {
                if !KEYS.contains(&l.name.text.as_str()) {
                    self.unknown_key(&l.name, "a run", KEYS);
                    fine = false;
                } else if let Some(first) = keys.insert(&l.name.text, l) {
                    self.duplicate_key(&l.name, first.name.span);
                    fine = false;
                }
            }
        }
        let duration = self.run_number(run, &keys, "duration", Dim::TIME, true, "duration = 100 ms");
        let dt = self.run_number(run, &keys, "dt", Dim::TIME, true, "dt = 0.025 ms");
        let celsius = self.run_number(run, &keys, "celsius", Dim::TEMPERATURE, false, "");
        let seed = self.run_number(run, &keys, "seed", Dim::ONE, false, "");
        let method = match keys.get("method") {
            None => Some(Method::ExpEuler),
            Some(l) => self.method(&l.value),
        };
        let seed = match seed {
            Some(Some(x)) if x < 0.0 || x.fract() != 0.0 || x > 9e15 => {
                let span = keys["seed"].value.span;
                let label = "a whole number from 0 on is needed";
                self.error(Diagnostic::new(Code::BadValue, span, format!("the seed cannot be {x}"), label));
                None
            }
            Some(Some(x)) => Some(x as u64),
            Some(None) => Some(0),
            None => None,
        };
        if let (Some(Some(duration)), Some(Some(dt))) = (duration, dt)
            && dt > duration
        {
            let (dt_at, duration_at) = (keys["dt"].value.span, keys["duration"].value.span);
            let d = Diagnostic::new(Code::BadValue, dt_at, "the time step is longer than the run", format!("{dt} ms"));
            self.error(d.see(duration_at, format!("{duration} ms")).help("was another unit meant, such as `us`?"));
        }
        let mut records: Vec<Record> = Vec::new();
        let mut spikes: Vec<usize> = Vec::new();
        let mut scope = Scope::new(ScopeKind::Network, 0);
        for symbol in lowered.iter().flat_map(|l| &l.network.params) {
            let entry = super::scope::Entry::ready(
                symbol.name.clone(),
                symbol.span,
                super::scope::Role::Param,
                Some(symbol.ty),
                None,
            );
            scope.add(entry).ok();
        }
        scope.poisoned.extend(lowered.iter().flat_map(|l| &l.unknown).cloned());
        let populations = lowered.map_or(&[][..], |l| &l.network.populations);
        let targets = run.members.iter().filter(|_| lowered.is_some());
        for member in targets {
            match member {
                RunMember::Key(_) => {}
                RunMember::RecordSpikes { target, span } => {
                    for flat in flatten(target) {
                        let Some(place) = self.place(&mut scope, populations, &flat) else { continue };
                        let definition = self.lowered_cell(populations[place.population].cell);
                        let cell = &definition.item;
                        if !place.rest.is_empty() || place.cells.is_some() {
                            let message = "spikes are recorded of whole populations";
                            let label = "name the population only";
                            let d = Diagnostic::new(Code::BadTarget, flat.span, message, label);
                            self.error(d.help(format!("write `record spikes of {}`", place.names[0].text)));
                        } else if cell.spike.is_none() && definition.sound {
                            let message = format!("cell `{}` has no spike rule", cell.name);
                            self.error(
                                Diagnostic::new(Code::BadTarget, *span, message, "there are no spikes to record").help(
                                    format!(
                                        "add `spike when {}v crosses 0 mV` to the cell",
                                        cell.compartments.first().map(|c| format!("{}.", c.name)).unwrap_or_default()
                                    ),
                                ),
                            );
                        } else if !spikes.contains(&place.population) {
                            spikes.push(place.population);
                        }
                    }
                }
                RunMember::Record { target, every, .. } => {
                    let every = match every {
                        None => None,
                        Some(e) => match self.constant_of_run(e, Dim::TIME, "the recording interval") {
                            Some(x) if x > 0.0 => Some(x),
                            Some(_) => {
                                let label = "a time above zero is needed";
                                let message = "the recording interval must be positive";
                                self.error(Diagnostic::new(Code::BadValue, e.span, message, label));
                                continue;
                            }
                            None => continue,
                        },
                    };
                    for flat in flatten(target) {
                        let Some(place) = self.place(&mut scope, populations, &flat) else { continue };
                        let definition = self.lowered_cell(populations[place.population].cell);
                        let cell = &definition.item;
                        let fits = |s: &super::Symbol| {
                            matches!(s.kind, SymbolKind::State { .. } | SymbolKind::Let(_) | SymbolKind::Param(_))
                        };
                        let symbol = cell.find(&place.rest).filter(|id| fits(cell.symbol(*id)));
                        let Some(symbol) = symbol else {
                            self.bad_target(&definition, &place, "quantity", fits);
                            continue;
                        };
                        let again = records
                            .iter()
                            .find(|r| r.population == place.population && r.symbol == symbol && r.cells == place.cells);
                        if let Some(first) = again {
                            let message = format!("`{}` is recorded twice", place.rest);
                            let d = Diagnostic::new(Code::DuplicateKey, flat.span, message, "again");
                            self.error(d.see(first.span, "first here"));
                            continue;
                        }
                        records.push(Record {
                            population: place.population,
                            cells: place.cells,
                            symbol,
                            every,
                            span: flat.span,
                        });
                    }
                }
            }
        }
        let wrong = self.diagnostics.since(before).iter().any(Diagnostic::is_error);
        if let Some(population) = populations.first()
            && !run.members.iter().any(|m| !matches!(m, RunMember::Key(_)))
            && !wrong
        {
            let definition = self.lowered_cell(population.cell);
            let compartment = definition.item.compartments.first();
            let v = compartment.map_or("v".to_string(), |c| format!("{}.v", c.name));
            let start = crate::source::Span { end: run.span.start + 3, ..run.span };
            self.error(
                Diagnostic::new(Code::NothingRecorded, start, "this run records nothing", "no `record` line")
                    .help(format!("add `record {}.{v} every 0.1 ms`", population.name)),
            );
        }
        if !fine {
            return None;
        }
        let span_of = |key: &str| keys.get(key).map_or(run.span, |l| l.value.span);
        Some(Run {
            duration: duration??,
            dt: dt??,
            method: method?,
            seed: seed?,
            celsius: celsius?,
            records,
            spikes,
            span: run.span,
            dt_span: span_of("dt"),
            duration_span: span_of("duration"),
        })
    }

    /// The value of a key; `Some(None)` if it is absent and need not be there, `None` if something is wrong.
    fn run_number(
        &mut self,
        run: &'a ast::Run,
        keys: &HashMap<&str, &'a ast::Let>,
        key: &str,
        dim: Dim,
        needed: bool,
        example: &str,
    ) -> Option<Option<f64>> {
        let Some(l) = keys.get(key) else {
            if needed {
                let message = format!("the run has no `{key}`");
                let start = crate::source::Span { end: run.span.start + 3, ..run.span };
                let d = Diagnostic::new(Code::MissingKey, start, message, "in this block");
                self.error(d.help(format!("add `{example}`")));
                return None;
            }
            return Some(None);
        };
        let x = self.constant_of_run(&l.value, dim, &format!("`{key}`"))?;
        if dim == Dim::TIME && x <= 0.0 {
            let message = format!("`{key}` must be a time above zero");
            let label = if x == 0.0 { "this is zero" } else { "this is negative" };
            let d = Diagnostic::new(Code::BadValue, l.value.span, message, label);
            self.error(d.help(format!("for example `{example}`")));
            return None;
        }
        if key == "celsius" {
            let value = super::Expr::number(x, dim, l.value.span);
            self.warn_magnitude("celsius", &value, dim);
        }
        Some(Some(x))
    }

    fn constant_of_run(&mut self, e: &ast::Expr, dim: Dim, why: &str) -> Option<f64> {
        let mut scope = Scope::new(ScopeKind::Constant, 0);
        let x = self.expr_of(&mut scope, "", e, dim, why)?;
        let value = super::expr::constant_of(&x);
        if value.is_some_and(|v| !v.is_finite()) {
            let message = format!("{why} is not a finite number");
            self.error(Diagnostic::new(Code::BadValue, e.span, message, "a division by zero, or too large"));
            return None;
        }
        if value.is_none() {
            let message = format!("{why} must be a number");
            self.error(
                Diagnostic::new(Code::NotConstant, e.span, message, "not known before the run")
                    .help("use numbers and constants only; `neuroc run` can override it from outside"),
            );
        }
        value
    }

    fn method(&mut self, e: &ast::Expr) -> Option<Method> {
        let name = match &e.kind {
            ast::ExprKind::Path(path) => super::names::join(path),
            _ => self.text(e.span).to_string(),
        };
        let method = Method::named(&name);
        if method.is_none() {
            let names: Vec<&str> = Method::ALL.iter().map(|m| m.1).collect();
            let message = format!("there is no integration method `{name}`");
            let mut d = Diagnostic::new(Code::UnknownMethod, e.span, message, "not a method");
            let known = match name.to_lowercase().replace(['_', '-'], "").as_str() {
                "exponentialeuler" | "expeuler" => Some("exp_euler"),
                "derivimplicit" | "backwardeuler" | "implicit" | "impliciteuler" => Some("cnexp"),
                "forwardeuler" | "eulerforward" => Some("euler"),
                "rungekutta" | "rungekutta4" | "rk" => Some("rk4"),
                _ => None,
            };
            if let Some(near) = known.or_else(|| nearest(&name, names.iter().copied())) {
                d = d.help(format!("did you mean `{near}`?"));
            }
            self.error(d.note(format!("the methods are {}", names.join(", "))));
        }
        method
    }
}
