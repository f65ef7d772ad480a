//! What all engines share, tried by `neuroc verify`: smaller steps, another method, moved states.
//!
//! In comes a model, and a run of it; out go the other runs, on one engine, or why they were not tried.
//! Never true here: a comparison that cannot mean anything is made.

use super::super::settings::{AccuracyName, EngineName, PassSettings, PrecisionName};
use super::super::{Exit, complain, say};
use super::engines::{EngineColumn, stores};
use super::runs::{Change, Ended, Job, Parts, Problem, Runner};
use super::{Column, words};
use crate::adaptive;
use crate::compare::judge;
use crate::hir::Method;
use crate::ode::{self, noise_intervals};
use crate::passes::OptLevel;
use crate::results::RunResult;
use crate::step::Value;

/// The model's own method, another one and moved states, on one engine.
pub struct Extras {
    /// The engine of all of them.
    pub engine: &'static str,
    pub base: RunResult,
    /// At a half and at a quarter of the step; or why not.
    pub halved: Result<[Column; 2], String>,
    /// With another method at the same steps; or why not.
    pub other: Result<(Method, [Column; 2]), String>,
    /// The model's own method and the other one at a sixteenth of the step, where there is doubt.
    pub finest: [Option<Ended>; 2],
    pub moved: Column,
}

/// What all engines share, tried on the native engine if it is at hand, or else on the interpreter.
pub fn extras<'a>(
    runner: &'a Runner<'a>,
    exact: &PassSettings,
    reference: &RunResult,
    engines: &[EngineColumn],
) -> Result<Result<(Tried<'a>, Extras), String>, Exit> {
    let native = Tried { runner, engine: EngineName::Native, passes: exact.clone() };
    let name = format!("{} {}", EngineName::Native.name(), PrecisionName::F64.name());
    let known = engines.iter().find(|e| e.name == name && runner.args.opt.accuracy == AccuracyName::Exact);
    let base = match known {
        Some(known) => match &known.column.ended {
            Ended::Done(result) => Ok(Ended::Done(result.clone())),
            Ended::NotFinite(diagnostic) => Ok(Ended::NotFinite(diagnostic.clone())),
        },
        None => native.run("native f64", Change::None),
    };
    match base {
        Ok(Ended::Done(base)) => native.extras(base).map(|extras| Ok((native, extras))),
        Ok(Ended::NotFinite(diagnostic)) => Ok(Err(format!("not tried, because natively {}", diagnostic.message))),
        Err(Problem::Said(exit)) => Err(exit),
        Err(Problem::Engine(error)) => {
            // Where an engine of that name was asked for, why there is none has been said.
            if !runner.args.precision.iter().any(|&precision| stores(EngineName::Native, precision)) {
                say(error);
            }
            say("the native engine is not at hand, so the interpreter does the other runs, too");
            let passes = PassSettings { level: OptLevel::O0, ..exact.clone() };
            let interpreter = Tried { runner, engine: EngineName::Interp, passes };
            interpreter.extras(reference.clone()).map(|extras| Ok((interpreter, extras)))
        }
    }
}

/// The engine that the extra runs use, and its passes.
pub struct Tried<'a> {
    runner: &'a Runner<'a>,
    engine: EngineName,
    passes: PassSettings,
}

impl Tried<'_> {
    fn run(&self, label: &str, change: Change) -> Result<Ended, Problem> {
        let job = Job { label, engine: self.engine, precision: PrecisionName::F64, passes: &self.passes, change };
        self.runner.run(&job)
    }

    /// As [`Tried::run`]; the engine has run already.
    fn again(&self, label: &str, change: Change) -> Result<Ended, Exit> {
        self.run(label, change).map_err(|problem| match problem {
            Problem::Said(exit) => exit,
            Problem::Engine(error) => {
                complain(error);
                Exit::Model
            }
        })
    }

    /// A run of the model's own method: that it became not finite is told at once.
    fn own(&self, label: &str, change: Change) -> Result<Ended, Exit> {
        let ended = self.again(label, change)?;
        if let Ended::NotFinite(diagnostic) = &ended {
            say(format!("{label}:"));
            self.runner.tell(diagnostic);
        }
        Ok(ended)
    }

    fn extras(&self, base: RunResult) -> Result<Extras, Exit> {
        let own = self.runner.model.method;
        let moved = Column::new(&base, self.own("states moved by 1e-9", Change::Moved)?);
        let (halved, other) = match frequent_noise(&self.runner.model) {
            Some(why) => (Err(why.clone()), Err(why)),
            None => {
                let halved = self.at_smaller_steps(own, &base)?;
                let other = match halved.iter().any(|column| column.ended.failure().is_some()) {
                    true => Err("not tried, because the smaller steps fail".into()),
                    false => self.other(&base)?,
                };
                (Ok(halved), other)
            }
        };
        Ok(Extras { engine: self.engine.name(), base, halved, other, finest: [None, None], moved })
    }

    fn at_smaller_steps(&self, method: Method, base: &RunResult) -> Result<[Column; 2], Exit> {
        let half = self.divided(method, Parts::Two)?;
        let quarter = self.divided(method, Parts::Four)?;
        Ok([half, quarter].map(|ended| Column::new(base, ended)))
    }

    fn divided(&self, method: Method, parts: Parts) -> Result<Ended, Exit> {
        let label = format!("{} at {} ms", method.name(), words::step(&self.runner.model, parts));
        let change = Change::Method(method, parts);
        // Another method may be unstable where the model's own is not.
        if method == self.runner.model.method { self.own(&label, change) } else { self.again(&label, change) }
    }

    /// The method and the other one, if there is one, at the smallest step.
    pub fn finest(&self, extras: &Extras) -> Result<[Option<Ended>; 2], Exit> {
        let own = self.divided(self.runner.model.method, Parts::Sixteen)?;
        let other = match &extras.other {
            Ok((method, _)) => Some(self.divided(*method, Parts::Sixteen)?),
            Err(_) => None,
        };
        Ok([Some(own), other])
    }

    /// The first other method that stays finite.
    fn other(&self, base: &RunResult) -> Result<Result<(Method, [Column; 2]), String>, Exit> {
        let cables = !self.runner.model.cables.is_empty();
        let asked: Vec<Method> = self.runner.args.other.into_iter().collect();
        let methods = if asked.is_empty() { others(self.runner.model.method, cables) } else { &asked[..] };
        for &method in methods {
            let model = ode::Model { method, ..self.runner.model.clone() };
            let noise = ode::not_noise(&model).into_iter();
            match ode::not_solved(&model).into_iter().chain(noise).chain(adaptive::refused(&model)).next() {
                Some(refused) if !asked.is_empty() => return Ok(Err(format!("not tried: {}", refused.message))),
                Some(_) => continue,
                None => {}
            }
            let columns = self.at_smaller_steps(method, base)?;
            if columns.iter().all(|column| column.ended.failure().is_none()) {
                return Ok(Ok((method, columns)));
            }
        }
        Ok(Err("no other method stays finite at these steps".into()))
    }
}

/// Methods to compare one with, the best first: accurate ones, and ones that share no formula with it. Few solve cables.
fn others(method: Method, cables: bool) -> &'static [Method] {
    match method {
        Method::CrankNicolson if cables => &[Method::Cnexp],
        _ if cables => &[Method::CrankNicolson],
        Method::Euler => &[Method::Rk4, Method::Heun, Method::ExpEuler, Method::Cnexp],
        Method::ExpEuler => &[Method::Rk4, Method::Heun, Method::Euler, Method::Cnexp],
        Method::Cnexp => &[Method::Rk4, Method::Heun, Method::Euler, Method::ExpEuler],
        Method::CrankNicolson => &[Method::Rk4, Method::Heun, Method::ExpEuler, Method::Cnexp],
        // These take every model.
        Method::Exact => &[Method::Rk4, Method::Heun, Method::ExpEuler, Method::Cnexp, Method::Euler],
        Method::Heun => &[Method::Rk4, Method::ExpEuler, Method::Cnexp, Method::Euler],
        Method::Rk4 => &[Method::Heun, Method::ExpEuler, Method::Cnexp, Method::Euler],
        Method::Adaptive => &[Method::Rk4, Method::Heun, Method::ExpEuler, Method::Cnexp],
    }
}

/// Why runs with other steps see other noise, if they do.
fn frequent_noise(model: &ode::Model) -> Option<String> {
    noise_intervals(model).into_iter().find_map(|interval| match interval {
        Ok(Value::Real(0.0)) => {
            Some("not tried: noise is drawn anew in every step, so runs with smaller steps see other numbers".into())
        }
        // An interval is a step at least.
        Ok(Value::Real(_)) => None,
        Ok(Value::Single(_) | Value::Mask(_)) | Err(_) => {
            Some("not tried: noise is drawn anew at intervals that are not known before the run".into())
        }
    })
}

impl Extras {
    /// As they are judged.
    pub fn runs<'r>(&'r self, model: &ode::Model) -> judge::Runs<'r> {
        fn both(columns: &[Column; 2]) -> Option<[&RunResult; 2]> {
            Some([columns[0].ended.done()?, columns[1].ended.done()?])
        }
        judge::Runs {
            dt: model.dt,
            duration: model.duration,
            base: &self.base,
            halved: self.halved.as_ref().ok().and_then(both),
            other: self.other.as_ref().ok().and_then(|(_, columns)| both(columns)),
            finest: self.finest[0].as_ref().and_then(Ended::done),
            finest_other: self.finest[1].as_ref().and_then(Ended::done),
            moved: self.moved.ended.done(),
        }
    }

    /// Runs of the model itself that did not come to their end.
    pub fn failed(&self) -> bool {
        let columns = self.halved.iter().flatten().chain([&self.moved]).map(|column| &column.ended);
        columns.chain(&self.finest[0]).any(|ended| ended.failure().is_some())
    }
}
