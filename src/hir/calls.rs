//! Calls in expressions: of built-in functions, of the model's own, of draws, stimuli and data.
//!
//! In come a function's name and its arguments; out goes an expression, the body of a model's own function put in place of its call.
//! Never true here: a call of a model's own function in the result.

use super::builtins::{self, Builtin, FunctionKind};
use super::dimension::shown;
use super::lower::{ItemKind, Lowerer};
use super::scope::{Scope, ScopeKind};
use super::{Expr, ExprKind, Ty};
use crate::diag::{Code, Diagnostic, nearest};
use crate::source::Span;
use crate::syntax::ast::{self, BinaryOp};
use crate::units::Dim;
use std::collections::HashMap;

/// Parameters of the function whose body is being lowered; `None` where nothing is known of the argument.
pub(super) type Env = HashMap<String, Option<Expr>>;

impl<'a> Lowerer<'a> {
    pub(super) fn call(
        &mut self,
        scope: &mut Scope<'a>,
        prefix: &str,
        name: &ast::Name,
        args: &[ast::Arg],
        env: Option<&Env>,
        span: Span,
    ) -> Option<Expr> {
        if let Some(item) = self.item(scope.file, &name.text)
            && let ItemKind::Function(function) = item.kind
        {
            let params: Vec<&str> = function.params.iter().map(|p| p.0.text.as_str()).collect();
            let args = self.arguments(&name.text, &params, args, span, |_| false, false)?;
            let values: Vec<Option<Expr>> = args.into_iter().map(|a| self.expr_in(scope, prefix, a?, env)).collect();
            let values: Vec<Expr> = values.into_iter().collect::<Option<_>>()?;
            return self.inline(scope, item, function, values, span);
        }
        let Some(info) = builtins::function(&name.text) else {
            let mut names: Vec<String> = builtins::FUNCTIONS.iter().map(|f| f.name.to_string()).collect();
            names.extend(self.function_names(scope.file));
            let mut d = Diagnostic::new(
                Code::UnknownFunction,
                name.span,
                format!("there is no function `{}`", name.text),
                "not a function",
            );
            if self.is_unknown_item(scope.file, &name.text) {
                return None;
            }
            if let Some(help) = function_help(&name.text, args.first().map(|a| self.text(a.value.span))) {
                d = d.help(help);
            } else if scope.not_values.contains_key(&name.text) {
                d = d.help(format!("`{}` is a compartment; its voltage is `{}.v`", name.text, name.text));
            } else if let Some(near) = nearest(&name.text, names.iter().map(String::as_str)) {
                d = d.help(format!("did you mean `{near}`?"));
            }
            self.error(d);
            return None;
        };
        let variadic = matches!(info.kind, FunctionKind::Variadic(_));
        let args =
            self.arguments(info.name, info.params, args, span, |param| builtins::optional(info.name, param), variadic)?;
        self.builtin(scope, prefix, info, &args, env, span)
    }

    /// Puts arguments in the order of the parameters; missing optional ones are `None`.
    pub(super) fn arguments<'e>(
        &mut self,
        function: &str,
        params: &[&str],
        args: &'e [ast::Arg],
        span: Span,
        optional: impl Fn(&str) -> bool,
        variadic: bool,
    ) -> Option<Vec<Option<&'e ast::Expr>>> {
        let signature = format!("{function}({}{})", params.join(", "), if variadic { ", ..." } else { "" });
        let mut wrong = |at: Span, message: String, label: String| {
            self.error(
                Diagnostic::new(Code::WrongArguments, at, message, label)
                    .note(format!("the function is `{signature}`")),
            );
            None
        };
        let mut out: Vec<Option<&ast::Expr>> = vec![None; params.len()];
        let mut position = 0;
        for arg in args {
            let at = match &arg.name {
                Some(name) => match params.iter().position(|p| *p == name.text) {
                    Some(at) => at,
                    None => {
                        let message = format!("`{function}` has no argument `{}`", name.text);
                        return wrong(name.span, message, "unknown argument".into());
                    }
                },
                None => {
                    position += 1;
                    position - 1
                }
            };
            if at >= out.len() {
                if !variadic {
                    let message = format!(
                        "`{function}` takes {} argument{}, not {}",
                        params.len(),
                        if params.len() == 1 { "" } else { "s" },
                        args.len()
                    );
                    return wrong(arg.value.span, message, "one too many".into());
                }
                out.push(Some(&arg.value));
            } else if out[at].is_some() {
                let message = format!("argument `{}` of `{function}` is given twice", params[at]);
                return wrong(arg.value.span, message, "given again".into());
            } else {
                out[at] = Some(&arg.value);
            }
        }
        let missing: Vec<_> = params
            .iter()
            .zip(&out)
            .filter(|(p, a)| a.is_none() && !optional(p))
            .map(|(p, _)| format!("`{p}`"))
            .collect();
        if !missing.is_empty() {
            return wrong(span, format!("`{function}` needs {}", missing.join(" and ")), "argument missing".into());
        }
        Some(out)
    }

    fn builtin(
        &mut self,
        scope: &mut Scope<'a>,
        prefix: &str,
        info: &'static builtins::FunctionInfo,
        args: &[Option<&ast::Expr>],
        env: Option<&Env>,
        span: Span,
    ) -> Option<Expr> {
        self.allowed_here(scope, info, span)?;
        if let FunctionKind::File | FunctionKind::Series = info.kind {
            return self.data_call(info, args, span);
        }
        let values: Vec<Option<Expr>> = args
            .iter()
            .flatten()
            .map(|a| {
                let x = self.expr_in(scope, prefix, a, env)?;
                if x.ty == Ty::Bool {
                    return self.wrong_type(&x, &format!("`{}` needs numbers", info.name));
                }
                Some(x)
            })
            .collect();
        let values: Vec<Expr> = values.into_iter().collect::<Option<_>>()?;
        let dims: Vec<Dim> = values.iter().map(|v| v.ty.dim()).collect();
        let call = |builtin, values, dim| Some(Expr { kind: ExprKind::Call(builtin, values), ty: Ty::Real(dim), span });
        match info.kind {
            FunctionKind::Pure(b) => {
                self.pure(scope, &values[0], &format!("`{}`", info.name));
                call(b, values, Dim::ONE)
            }
            FunctionKind::Same(b) => call(b, values, dims[0]),
            FunctionKind::Root => match dims[0].root() {
                Some(dim) => call(Builtin::Sqrt, values, dim),
                None => {
                    let d = Diagnostic::new(
                        Code::BadPower,
                        values[0].span,
                        format!("{} has no square root", dims[0].describe()),
                        shown(dims[0]),
                    );
                    self.error(d.note(format!("the powers of [{}] are not all even", dims[0])));
                    None
                }
            },
            FunctionKind::Variadic(b) => {
                self.all_same(scope, info.name, &values)?;
                call(b, values, dims[0])
            }
            FunctionKind::Clamp => {
                self.all_same(scope, info.name, &values)?;
                call(Builtin::Clamp, values, dims[0])
            }
            FunctionKind::Step => call(Builtin::Heaviside, values, Dim::ONE),
            FunctionKind::Rate(b) => {
                let midpoint = self.same_dimension(scope, &values[0], &values[2], "`v` and `midpoint` must agree:");
                let scale = self.same_dimension(scope, &values[0], &values[3], "`v` and `scale` must agree:");
                midpoint.and(scale)?;
                let dim = dims[1];
                call(b, values, dim)
            }
            FunctionKind::Stimulus(b) => self.stimulus(scope, b, values, dims, span),
            FunctionKind::Noise => {
                self.same_dimension(scope, &values[0], &values[1], "`mean` and `sd` must agree:")?;
                self.expect(scope, values[2].clone(), Dim::TIME, "the interval `every`")?;
                let stream = self.stream();
                let [mean, sd, every] = <[Expr; 3]>::try_from(values).ok()?;
                let noise = Expr { kind: ExprKind::Noise(stream, Box::new(every)), ty: Ty::Real(Dim::ONE), span };
                Some(Expr::binary(BinaryOp::Add, mean, Expr::binary(BinaryOp::Mul, sd, noise)))
            }
            FunctionKind::Draw(distribution) => {
                self.all_same(scope, info.name, &values)?;
                let stream = self.stream();
                let draw = Expr { kind: ExprKind::Draw(distribution, stream), ty: Ty::Real(Dim::ONE), span };
                let [a, b] = <[Expr; 2]>::try_from(values).ok()?;
                let scale = match distribution {
                    crate::operators::Distribution::Uniform => Expr::binary(BinaryOp::Sub, b, a.clone()),
                    crate::operators::Distribution::Normal | crate::operators::Distribution::Exponential => b,
                };
                Some(Expr::binary(BinaryOp::Add, a, Expr::binary(BinaryOp::Mul, scale, draw)))
            }
            FunctionKind::DrawExponential => {
                let stream = self.stream();
                let kind = ExprKind::Draw(crate::operators::Distribution::Exponential, stream);
                let draw = Expr { kind, ty: Ty::Real(Dim::ONE), span };
                let [mean] = <[Expr; 1]>::try_from(values).ok()?;
                Some(Expr::binary(BinaryOp::Mul, mean, draw))
            }
            FunctionKind::File | FunctionKind::Series => None,
        }
    }

    fn allowed_here(&mut self, scope: &Scope<'a>, info: &builtins::FunctionInfo, span: Span) -> Option<()> {
        let (fine, where_) = match info.kind {
            FunctionKind::Draw(_) | FunctionKind::DrawExponential => (
                matches!(scope.kind, ScopeKind::PerCell | ScopeKind::Input),
                "random draws stand in `param` and `init` lines of a network and in the arguments of inputs",
            ),
            FunctionKind::File => (
                matches!(scope.kind, ScopeKind::PerCell | ScopeKind::Input),
                "values from files stand in `param` and `init` lines of a network and in the arguments of inputs",
            ),
            FunctionKind::Noise | FunctionKind::Series | FunctionKind::Stimulus(_) => {
                (scope.kind == ScopeKind::Input, "it stands in an `input` line of a network")
            }
            FunctionKind::Pure(_)
            | FunctionKind::Same(_)
            | FunctionKind::Root
            | FunctionKind::Variadic(_)
            | FunctionKind::Clamp
            | FunctionKind::Step
            | FunctionKind::Rate(_) => (true, ""),
        };
        if fine {
            return Some(());
        }
        let message = format!("`{}` cannot be used here", info.name);
        self.error(Diagnostic::new(Code::BadRandom, span, message, where_).help(match (info.kind, scope.kind) {
            (FunctionKind::Draw(_) | FunctionKind::DrawExponential, ScopeKind::Network) => {
                "a population's size and a parameter of the network are the same for all cells"
            }
            (FunctionKind::Draw(_) | FunctionKind::DrawExponential | FunctionKind::File, _) => {
                "give the cell a `param` with a fixed value and set it per cell in the network: `param cells.x ~ ...`"
            }
            _ => "give the cell an `input` port, and drive it from an `input` line of the network",
        }));
        None
    }

    /// Checks that `x` is a pure number; `what` is a function in backquotes, or an exponent.
    pub(super) fn pure(&mut self, scope: &Scope<'a>, x: &Expr, what: &str) {
        let dim = x.ty.dim();
        if dim.is_one() {
            return;
        }
        let factor = self.bare_factor(scope, x, Dim::ONE);
        if let Some((bare, missing)) = &factor
            && bare.name.is_some()
        {
            let d = self.missing_unit(bare, *missing, None);
            self.error(d);
            return;
        }
        let d = Diagnostic::new(
            Code::NotDimensionless,
            x.span,
            match what.starts_with('`') {
                true => format!("{what} takes a pure number, not {}", dim.describe()),
                false => format!("{what} must be a pure number, not {}", dim.describe()),
            },
            shown(dim),
        );
        let text = self.text(x.span);
        let help = match factor {
            Some((bare, missing)) => self.factor_help(&bare, missing),
            None if dim == Dim::VOLTAGE && text.len() < 40 && !text.contains('\n') => {
                let edit = format!("{} / 10 mV", super::advice::wrap_sum(text));
                let edit = match what.strip_prefix('`').and_then(|w| w.strip_suffix('`')) {
                    Some(function) => format!("{function}({edit})"),
                    None => format!("({edit})"),
                };
                format!("divide by a voltage first, for example `{edit}`")
            }
            None => "divide it by a quantity of the same dimension first".to_string(),
        };
        self.error(d.help(help));
    }

    pub(super) fn all_same(&mut self, scope: &Scope<'a>, function: &str, values: &[Expr]) -> Option<()> {
        for v in &values[1..] {
            self.same_dimension(scope, &values[0], v, &format!("the arguments of `{function}` must agree:"))?;
        }
        Some(())
    }

    fn stimulus(
        &mut self,
        scope: &Scope<'a>,
        b: Builtin,
        mut values: Vec<Expr>,
        dims: Vec<Dim>,
        span: Span,
    ) -> Option<Expr> {
        let mut fine = true;
        for (x, what) in values.iter().zip(["`delay`", "`duration`"]) {
            fine &= self.expect(scope, x.clone(), Dim::TIME, what).is_some();
        }
        if !fine {
            return None;
        }
        match b {
            Builtin::Sine => {
                self.expect(scope, values[3].clone(), Dim::TIME, "`period`")?;
                match values.get(4) {
                    Some(phase) => {
                        self.expect(scope, phase.clone(), Dim::ONE, "`phase` (in radians)")?;
                    }
                    None => values.push(Expr::number(0.0, Dim::ONE, span)),
                }
            }
            Builtin::Ramp => self.same_dimension(scope, &values[2], &values[3], "`start` and `finish` must agree:")?,
            _ => {}
        }
        Some(Expr { kind: ExprKind::Call(b, values), ty: Ty::Real(dims[2]), span })
    }

    fn data_call(&mut self, info: &builtins::FunctionInfo, args: &[Option<&ast::Expr>], span: Span) -> Option<Expr> {
        let mut texts = Vec::new();
        for arg in args {
            match arg.map(|a| (&a.kind, a.span)) {
                None => texts.push(None),
                Some((ast::ExprKind::Str(s), _)) => texts.push(Some(s.clone())),
                Some((_, at)) => {
                    let message = format!("`{}` needs a file name in quotes", info.name);
                    self.error(
                        Diagnostic::new(Code::WrongArguments, at, message, "not a text")
                            .help(format!("write `{}(\"values.npy\")`", info.name)),
                    );
                    return None;
                }
            }
        }
        let column = texts.get(1).cloned().flatten();
        let data = self.data_file(texts[0].clone()?, column, span);
        let kind = match info.kind {
            FunctionKind::Series => ExprKind::Series(data),
            _ => ExprKind::File(data),
        };
        Some(Expr { kind, ty: Ty::Real(Dim::ONE), span })
    }

    /// Lowers an expression that sees the names of `env` and constants only.
    pub(super) fn expr_with(&mut self, file: usize, e: &ast::Expr, env: &Env) -> Option<Expr> {
        let mut scope = Scope::new(ScopeKind::Constant, file);
        self.expr_in(&mut scope, "", e, Some(env))
    }

    /// Checks a function's body for given parameters.
    pub(super) fn check_body(&mut self, function: &'a ast::Function, env: Env) {
        let mut scope = Scope::new(ScopeKind::Constant, 0);
        self.function_stack.push(function);
        let body = self.expr_in(&mut scope, "", &function.body, Some(&env));
        self.function_stack.pop();
        if let (Some(body), Some(unit)) = (body, &function.unit)
            && let Some(unit) = self.unit(unit)
        {
            self.expect(&scope, body, unit.dim, &format!("the result of `{}`", function.name.text));
        }
    }

    /// A call of a user function: its body with the arguments in place of the parameters.
    fn inline(
        &mut self,
        scope: &Scope<'a>,
        item: super::lower::ItemRef<'a>,
        function: &'a ast::Function,
        values: Vec<Expr>,
        span: Span,
    ) -> Option<Expr> {
        if self.cyclic_functions.iter().any(|f| std::ptr::eq(*f, function)) {
            return None;
        }
        if let Some(at) = self.function_stack.iter().position(|f| std::ptr::eq(*f, function)) {
            let circle: Vec<&'a ast::Function> = self.function_stack[at..].to_vec();
            let names: Vec<(String, Span)> = circle.iter().map(|f| (f.name.text.clone(), f.name.span)).collect();
            self.cycle("function", &names, span, "functions cannot call themselves: there are no loops to end them");
            self.cyclic_functions.extend(circle);
            return None;
        }
        let mut env = Env::new();
        let mut fine = true;
        for ((name, unit), value) in function.params.iter().zip(values) {
            let value = match unit {
                Some(unit) => {
                    let why = format!("argument `{}` of `{}`", name.text, function.name.text);
                    self.unit(unit).and_then(|unit| self.expect(scope, value, unit.dim, &why))
                }
                None => Some(value),
            };
            fine &= value.is_some();
            env.insert(name.text.clone(), value);
        }
        if !fine {
            return None;
        }
        let before = self.diagnostics.count();
        self.function_stack.push(function);
        let mut inner = Scope::new(ScopeKind::Constant, item.file);
        let body = self.expr_in(&mut inner, "", &function.body, Some(&env));
        self.function_stack.pop();
        let body = match (&function.unit, body) {
            (Some(unit), Some(body)) => self.unit(unit).and_then(|unit| {
                self.expect(&inner, body, unit.dim, &format!("the result of `{}`", function.name.text))
            }),
            (_, body) => body,
        };
        // A mistake that depends on the arguments is a mistake of this call.
        if function.params.iter().any(|p| p.1.is_none()) {
            for d in self.diagnostics.since(before) {
                let inside = |s: Span| {
                    s.file == function.body.span.file
                        && s.start >= function.body.span.start
                        && s.end <= function.body.span.end
                };
                if d.labels.first().is_some_and(|l| inside(l.span)) && d.labels.iter().all(|l| l.span != span) {
                    d.labels.push(crate::diag::Label { span, message: "in this call".into(), primary: false });
                }
            }
        }
        let body = body?;
        self.not_too_high(Expr { span, ..body }, span)
    }
}

/// What is written here instead of a function of another language.
fn function_help(name: &str, arg: Option<&str>) -> Option<String> {
    let arg = arg.filter(|a| a.len() < 30 && !a.contains('\n')).unwrap_or("x");
    Some(match name {
        "log" => format!("write `ln({arg})` for the natural and `log10({arg})` for the decimal logarithm"),
        "pow" | "power" => format!("write `{arg} ^ y`"),
        "fabs" => format!("write `abs({arg})`"),
        "sqr" | "square" => format!("write `{}^2`", super::advice::wrap(arg)),
        "exprel" | "vtrap" | "efun" | "linoid" => {
            "write the quotient as it is, `x / (exp(x) - 1)`: the compiler makes it safe at zero; or use `exp_linear_rate`"
                .into()
        }
        "IClamp" | "iclamp" | "step" | "current_clamp" => {
            "write `pulse(delay = 10 ms, duration = 50 ms, amplitude = 10 uA/cm2)`".into()
        }
        "rand" | "random" | "randn" | "gauss" | "gaussian" => {
            "draws are written `uniform(low, high)`, `normal(mean, sd)` and `exponential(mean)`".into()
        }
        "int" | "round" => format!("write `floor({arg} + 0.5)`"),
        "where" | "ifelse" => "write `if condition then a else b`".into(),
        "sigmoid" | "boltzmann" | "logistic" => "write `1 / (1 + exp(-(v - mid) / slope))`, or use `sigmoid_rate`".into(),
        _ => return None,
    })
}
