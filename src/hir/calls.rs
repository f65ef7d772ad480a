//! Calls in expressions: of built-in functions, of the model's own, of draws, stimuli and data.
//!
//! In come a function's name and its arguments; out goes an expression, the body of a model's own function put in place of its call.
//! Never true here: a call of a model's own function in the result.

use super::advice::EVENT_RATE;
use super::builtins::{self, Builtin, Drawn, FunctionInfo, FunctionKind};
use super::domain::Domain;
use super::error::{CallError, DimensionError, Signature, Wrong};
use super::items::{ItemKind, ItemRef, Kind};
use super::lower::Lowerer;
use super::scope::{Scope, ScopeKind};
use super::{DataId, Expr, ExprKind, Ty};
use crate::diag::{Code, Diagnostic, Label};
use crate::source::Span;
use crate::syntax::ast::{self, BinaryOp};
use crate::units::Dim;
use std::collections::HashMap;
use std::sync::Arc;

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
            let signature = Signature { function: &name.text, params: &params, optional: &[], variadic: false };
            self.note(name.span, function.name.span);
            self.note_arguments(
                args.iter().filter_map(|a| a.name.as_ref()),
                function.params.iter().map(|p| (p.0.text.as_str(), p.0.span)),
            );
            let args = self.arguments(&signature, args, span)?;
            let values: Vec<Option<Expr>> = args.into_iter().map(|a| self.expr_in(scope, prefix, a?, env)).collect();
            let values: Vec<Expr> = values.into_iter().collect::<Option<_>>()?;
            return self.inline(scope, item, function, values, span);
        }
        let Some(info) = builtins::function(&name.text) else {
            self.unknown_function(scope, name, args);
            return None;
        };
        let variadic = matches!(info.kind, FunctionKind::Variadic(_));
        let optional = builtins::optional(info.name);
        let args =
            self.arguments(&Signature { function: info.name, params: info.params, optional, variadic }, args, span)?;
        if !stands_in(info.kind, scope.kind) {
            self.error(CallError::NotHere { function: info, place: scope.kind, span });
            return None;
        }
        if let FunctionKind::File | FunctionKind::Series = info.kind {
            return self.data_call(info, &args, span);
        }
        if info.kind == FunctionKind::Draw(Drawn::Truncated) {
            let [draw, low, high] = args[..] else { return None };
            return self.truncated(scope, prefix, [draw?, low?, high?], env, span);
        }
        if info.kind == FunctionKind::Xi {
            self.sources_of_noise += 1;
            let kind = ExprKind::Xi(self.sources_of_noise);
            return Some(Expr { kind, ty: Ty::Real(Dim::WHITE), span });
        }
        let values: Vec<Option<Expr>> =
            args.into_iter().flatten().map(|a| self.number_argument(scope, prefix, info.name, a, env)).collect();
        self.builtin(scope, info, values.into_iter().collect::<Option<_>>()?, span)
    }

    fn unknown_function(&mut self, scope: &Scope<'a>, name: &ast::Name, args: &[ast::Arg]) {
        if self.is_unknown_item(scope.file, &name.text) {
            return;
        }
        let mut known: Vec<String> = builtins::FUNCTIONS.iter().map(|f| f.name.to_string()).collect();
        known.extend(self.names_of(scope.file, Kind::Function));
        let arguments = [0, 1].map(|at| args.get(at).map(|a| self.text(a.value.span)));
        let compartment = scope.not_values.contains_key(&name.text);
        let modules = super::items::library_modules("function", &name.text);
        self.error(CallError::Unknown { name, arguments, compartment, known: &known, modules: &modules });
    }

    /// Puts arguments in the order of the parameters; missing optional ones are `None`.
    pub(super) fn arguments<'e>(
        &mut self,
        signature: &Signature<'_>,
        args: &'e [ast::Arg],
        span: Span,
    ) -> Option<Vec<Option<&'e ast::Expr>>> {
        match in_order(signature, args, span) {
            Ok(values) => Some(values),
            Err((wrong, span)) => {
                let comma = args.windows(2).find_map(|pair| self.decimal_comma(&pair[0], &pair[1]));
                let mut d = Diagnostic::from(CallError::Arguments { signature, wrong, span });
                if let Some(number) = comma {
                    d.help.insert(0, format!("a decimal point is a `.`, not a `,`: write `{number}`"));
                }
                self.error(d);
                None
            }
        }
    }

    /// The number that is meant if two arguments are the parts of `0,07`.
    fn decimal_comma(&self, a: &ast::Arg, b: &ast::Arg) -> Option<String> {
        let number = |arg: &ast::Arg| matches!(arg.value.kind, ast::ExprKind::Number { .. }) && arg.name.is_none();
        let (whole, rest) = (self.text(a.value.span), self.text(b.value.span));
        let touch = self.text(Span { start: a.value.span.end, end: b.value.span.start, ..a.value.span }) == ",";
        (number(a) && number(b) && touch && whole.bytes().all(|c| c.is_ascii_digit()))
            .then(|| format!("{whole}.{rest}"))
    }

    pub(super) fn number_argument(
        &mut self,
        scope: &mut Scope<'a>,
        prefix: &str,
        function: &str,
        argument: &ast::Expr,
        env: Option<&Env>,
    ) -> Option<Expr> {
        let x = self.expr_in(scope, prefix, argument, env)?;
        match x.ty {
            Ty::Bool => self.wrong_type(&x, &format!("`{function}` needs numbers")),
            Ty::Real(_) => Some(x),
        }
    }

    /// A call of a built-in function with numbers, at least one, in the order of its parameters.
    fn builtin(
        &mut self,
        scope: &Scope<'a>,
        info: &'static FunctionInfo,
        values: Vec<Expr>,
        span: Span,
    ) -> Option<Expr> {
        let dim = values[0].ty.dim();
        self.demand_arguments(info.name, info.params, &values);
        if let (["v", "rate", "midpoint", "scale"], [_, _, _, scale]) = (info.params, &values[..]) {
            let what = format!("scale` of `{}", info.name);
            self.demand_now(&what, scale, Domain::NotZero, "voltages are divided by it");
        }
        let call = |builtin, values, dim| Some(Expr { kind: ExprKind::Call(builtin, values), ty: Ty::Real(dim), span });
        match info.kind {
            FunctionKind::Pure(b) => {
                self.pure(scope, &values[0], &format!("`{}`", info.name));
                call(b, values, Dim::ONE)
            }
            FunctionKind::Same(b) => call(b, values, dim),
            FunctionKind::Root => {
                let root = dim.root();
                if root.is_none() {
                    self.error(CallError::NoRoot { dim, span: values[0].span });
                }
                call(Builtin::Sqrt, values, root?)
            }
            FunctionKind::Variadic(b) => {
                self.all_same(scope, info.name, &values)?;
                call(b, values, dim)
            }
            FunctionKind::Clamp => {
                self.all_same(scope, info.name, &values)?;
                call(Builtin::Clamp, values, dim)
            }
            FunctionKind::Step => call(Builtin::Heaviside, values, Dim::ONE),
            FunctionKind::Rate(b) => {
                let midpoint = self.same_dimension(scope, &values[0], &values[2], "`v` and `midpoint` must agree:");
                let scale = self.same_dimension(scope, &values[0], &values[3], "`v` and `scale` must agree:");
                midpoint.and(scale)?;
                let rate = values[1].ty.dim();
                call(b, values, rate)
            }
            FunctionKind::Stimulus(b) => self.stimulus(scope, b, values, span),
            FunctionKind::Noise => self.noise(scope, values, span),
            FunctionKind::WhiteNoise => self.white_noise(scope, values, span),
            FunctionKind::OrnsteinUhlenbeck => self.ornstein_uhlenbeck(scope, values, span),
            FunctionKind::Chance => {
                let [rate] = <[Expr; 1]>::try_from(values).ok()?;
                let rate = self.expect(scope, rate, Dim::RATE, EVENT_RATE)?;
                Some(Expr { kind: ExprKind::Chance(self.stream(), Arc::new(rate)), ty: Ty::Bool, span })
            }
            FunctionKind::Draw(drawn) => self.drawn(scope, info.name, drawn, values, span),
            FunctionKind::File | FunctionKind::Series | FunctionKind::Xi => None,
        }
    }

    fn noise(&mut self, scope: &Scope<'a>, values: Vec<Expr>, span: Span) -> Option<Expr> {
        let [mean, sd, every] = <[Expr; 3]>::try_from(values).ok()?;
        self.same_dimension(scope, &mean, &sd, "`mean` and `sd` must agree:")?;
        self.not_in_degc(&sd, sd.span);
        self.expect(scope, every.clone(), Dim::TIME, "the interval `every`")?;
        let noise = ExprKind::Noise(self.stream(), Arc::new(every));
        let noise = Expr { kind: noise, ty: Ty::Real(Dim::ONE), span };
        Some(Expr::binary(BinaryOp::Add, mean, Expr::binary(BinaryOp::Mul, sd, noise)))
    }

    /// mean + sd sqrt(per / dt) n, drawn anew in every step.
    fn white_noise(&mut self, scope: &Scope<'a>, values: Vec<Expr>, span: Span) -> Option<Expr> {
        let [mean, sd, per] = <[Expr; 3]>::try_from(values).ok()?;
        self.same_dimension(scope, &mean, &sd, "`mean` and `sd` must agree:")?;
        self.not_in_degc(&sd, sd.span);
        self.expect(scope, per.clone(), Dim::TIME, "the time `per`")?;
        let step = || Expr { kind: ExprKind::StepLength, ty: Ty::Real(Dim::TIME), span };
        let noise = Expr { kind: ExprKind::Noise(self.stream(), Arc::new(step())), ty: Ty::Real(Dim::ONE), span };
        let ratio = Expr::binary(BinaryOp::Div, per, step());
        let scale = Expr { kind: ExprKind::Call(Builtin::Sqrt, vec![ratio]), ty: Ty::Real(Dim::ONE), span };
        let noise = Expr::binary(BinaryOp::Mul, scale, noise);
        Some(Expr::binary(BinaryOp::Add, mean, Expr::binary(BinaryOp::Mul, sd, noise)))
    }

    /// mean + sigma z, z a process of its own for each cell, of mean 0 and variance 1.
    fn ornstein_uhlenbeck(&mut self, scope: &Scope<'a>, values: Vec<Expr>, span: Span) -> Option<Expr> {
        let [mean, sigma, tau] = <[Expr; 3]>::try_from(values).ok()?;
        self.same_dimension(scope, &mean, &sigma, "`mean` and `sigma` must agree:")?;
        self.not_in_degc(&sigma, sigma.span);
        self.expect(scope, tau.clone(), Dim::TIME, "the time constant `tau`")?;
        let process = ExprKind::Wanders([self.stream(), self.stream()], Arc::new(tau));
        let process = Expr { kind: process, ty: Ty::Real(Dim::ONE), span };
        Some(Expr::binary(BinaryOp::Add, mean, Expr::binary(BinaryOp::Mul, sigma, process)))
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
        let text = self.text(x.span);
        let help = match factor {
            Some((bare, missing)) => self.factor_help(&bare, missing),
            None if dim == Dim::VOLTAGE && text.len() < 40 && !text.contains('\n') => divided_by_voltage(text, what),
            None => "divide it by a quantity of the same dimension first".to_string(),
        };
        self.error(DimensionError::NotPure { what, dim, span: x.span, help });
    }

    pub(super) fn all_same(&mut self, scope: &Scope<'a>, function: &str, values: &[Expr]) -> Option<()> {
        for v in &values[1..] {
            self.same_dimension(scope, &values[0], v, &format!("the arguments of `{function}` must agree:"))?;
        }
        Some(())
    }

    fn stimulus(&mut self, scope: &Scope<'a>, b: Builtin, mut values: Vec<Expr>, span: Span) -> Option<Expr> {
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
            Builtin::Train => {
                self.expect(scope, values[3].clone(), Dim::TIME, "`period`")?;
                match values.get(4) {
                    Some(count) => {
                        self.expect(scope, count.clone(), Dim::ONE, "`count`")?;
                    }
                    None => values.push(Expr::number(f64::INFINITY, Dim::ONE, span)),
                }
            }
            Builtin::Staircase => {
                self.same_dimension(scope, &values[2], &values[3], "`start` and `increment` must agree:")?;
                self.expect(scope, values[4].clone(), Dim::ONE, "`count`")?;
            }
            _ => {}
        }
        let ty = values[2].ty;
        Some(Expr { kind: ExprKind::Call(b, values), ty, span })
    }

    /// `file("name")`, `series("name")`: data by the name of a file, and which of its columns.
    fn data_call(&mut self, info: &'static FunctionInfo, args: &[Option<&ast::Expr>], span: Span) -> Option<Expr> {
        let data = self.data_named(info.name, args, span)?;
        let kind = match info.kind {
            FunctionKind::Series => ExprKind::Series(data),
            _ => ExprKind::File(data),
        };
        Some(Expr { kind, ty: Ty::Real(Dim::ONE), span })
    }

    /// A data file by what a function is called with: its name, and which of its columns.
    pub(super) fn data_named(
        &mut self,
        function: &'static str,
        args: &[Option<&ast::Expr>],
        span: Span,
    ) -> Option<DataId> {
        let mut texts = Vec::new();
        for arg in args {
            match arg.map(|a| (&a.kind, a.span)) {
                None => texts.push(None),
                Some((ast::ExprKind::Str(text), _)) => texts.push(Some(text.clone())),
                Some((_, span)) => {
                    self.error(CallError::NotAFile { function, span });
                    return None;
                }
            }
        }
        let column = texts.get(1).cloned().flatten();
        Some(self.data_file(texts[0].clone()?, column, span))
    }

    /// Lowers an expression that sees the names of `env` and constants only.
    pub(super) fn expr_with(&mut self, file: usize, e: &ast::Expr, env: &Env) -> Option<Expr> {
        let mut scope = Scope::new(ScopeKind::Constant, file);
        self.expr_in(&mut scope, "", e, Some(env))
    }

    /// Checks a function's body for given parameters. Whether it may draw depends on who calls it.
    pub(super) fn check_body(&mut self, function: &'a ast::Function, env: Env) {
        let mut scope = Scope::new(ScopeKind::Body, 0);
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
        item: ItemRef<'a>,
        function: &'a ast::Function,
        values: Vec<Expr>,
        span: Span,
    ) -> Option<Expr> {
        if self.calls_itself(function, span) {
            return None;
        }
        let env = self.bind(scope, function, values)?;
        let before = self.diagnostics.count();
        self.function_stack.push(function);
        let mut inner = Scope::new(body_kind(scope.kind), item.file);
        let body = self.expr_in(&mut inner, "", &function.body, Some(&env));
        self.function_stack.pop();
        let body = match (&function.unit, body) {
            (Some(unit), Some(body)) => self.unit(unit).and_then(|unit| {
                self.expect(&inner, body, unit.dim, &format!("the result of `{}`", function.name.text))
            }),
            (_, body) => body,
        };
        // A mistake that depends on the arguments, and a draw where there are none, is a mistake of this call.
        let of_call = inner.kind == ScopeKind::Constant || function.params.iter().any(|p| p.1.is_none());
        for d in self.diagnostics.since(before).iter_mut().filter(|d| of_call || d.code == Code::BadRandom) {
            point_at_call(d, function.body.span, span);
        }
        self.not_too_high(Expr { span, ..body? }, span)
    }

    /// Is a function called by its own body, by way of others or not? That is said once.
    fn calls_itself(&mut self, function: &'a ast::Function, call: Span) -> bool {
        if self.cyclic_functions.iter().any(|f| std::ptr::eq(*f, function)) {
            return true;
        }
        let Some(at) = self.function_stack.iter().position(|f| std::ptr::eq(*f, function)) else { return false };
        let circle: Vec<&'a ast::Function> = self.function_stack[at..].to_vec();
        let names: Vec<(String, Span)> = circle.iter().map(|f| (f.name.text.clone(), f.name.span)).collect();
        let help = "functions cannot call themselves: there are no loops to end them";
        self.cycle("the function ", &names, call, help);
        self.cyclic_functions.extend(circle);
        true
    }

    /// Would the arguments of a function fit in another order? If only so, says it.
    fn in_another_order(&mut self, function: &'a ast::Function, values: &[Expr]) -> bool {
        let wanted = |unit: &Option<ast::UnitExpr>| {
            crate::units::Unit::parse(self.text(unit.as_ref()?.span).trim()).map(|u| u.dim)
        };
        let Some(mut wanted) = function.params.iter().map(|p| wanted(&p.1)).collect::<Option<Vec<Dim>>>() else {
            return false;
        };
        let mut given: Vec<Dim> = values.iter().map(|x| x.ty.dim()).collect();
        if given == wanted {
            return false;
        }
        wanted.sort_by_key(|dim| format!("{dim:?}"));
        given.sort_by_key(|dim| format!("{dim:?}"));
        if given != wanted {
            return false;
        }
        let params: Vec<&str> = function.params.iter().map(|p| p.0.text.as_str()).collect();
        let span = values.iter().map(|x| x.span).reduce(|a, b| if a.file == b.file { a.to(b) } else { a });
        let Some(span) = span else { return false };
        self.error(CallError::Order { function: &function.name.text, params: &params, span });
        true
    }

    /// The parameters of a function with the values they are given.
    fn bind(&mut self, scope: &Scope<'a>, function: &'a ast::Function, values: Vec<Expr>) -> Option<Env> {
        if self.in_another_order(function, &values) {
            return None;
        }
        let mut env = Env::new();
        for ((name, unit), value) in function.params.iter().zip(values) {
            let value = match unit {
                Some(unit) => {
                    let why = format!("argument `{}` of `{}`", name.text, function.name.text);
                    self.unit(unit).and_then(|unit| self.expect(scope, value, unit.dim, &why))
                }
                None => Some(value),
            };
            env.insert(name.text.clone(), value);
        }
        env.values().all(Option::is_some).then_some(env)
    }
}

/// The arguments in the order of the parameters, or what is wrong with them, and where.
fn in_order<'e, 's>(
    signature: &Signature<'s>,
    args: &'e [ast::Arg],
    call: Span,
) -> Result<Vec<Option<&'e ast::Expr>>, (Wrong<'s>, Span)>
where
    'e: 's,
{
    let params = signature.params;
    let mut out: Vec<Option<&ast::Expr>> = vec![None; params.len()];
    let mut position = 0;
    for arg in args {
        let at = match &arg.name {
            Some(name) => match params.iter().position(|p| *p == name.text) {
                Some(at) => at,
                None => return Err((Wrong::Unknown(&name.text), name.span)),
            },
            None => {
                position += 1;
                position - 1
            }
        };
        match out.get_mut(at) {
            Some(Some(_)) => return Err((Wrong::Twice(params[at]), arg.value.span)),
            Some(free) => *free = Some(&arg.value),
            None if signature.variadic => out.push(Some(&arg.value)),
            None => return Err((Wrong::TooMany(args.len()), arg.value.span)),
        }
    }
    let absent = params.iter().zip(&out).filter(|(_, value)| value.is_none()).map(|(param, _)| *param);
    let missing: Vec<&str> = absent.filter(|param| !signature.optional.contains(param)).collect();
    if missing.is_empty() { Ok(out) } else { Err((Wrong::Missing(missing), call)) }
}

/// Can a function stand in an expression of a kind of places?
pub(super) fn stands_in(function: FunctionKind, place: ScopeKind) -> bool {
    match function {
        FunctionKind::Draw(_) => {
            matches!(
                place,
                ScopeKind::PerCell | ScopeKind::PerEdge(_) | ScopeKind::Input | ScopeKind::Drawing | ScopeKind::Body
            )
        }
        FunctionKind::File => matches!(place, ScopeKind::PerCell | ScopeKind::PerEdge(_) | ScopeKind::Input),
        FunctionKind::Noise
        | FunctionKind::WhiteNoise
        | FunctionKind::OrnsteinUhlenbeck
        | FunctionKind::Series
        | FunctionKind::Stimulus(_) => place == ScopeKind::Input,
        FunctionKind::Xi => {
            matches!(place, ScopeKind::Channel | ScopeKind::Cell | ScopeKind::Function | ScopeKind::Body)
        }
        FunctionKind::Chance => place == ScopeKind::Spiking,
        FunctionKind::Pure(_)
        | FunctionKind::Same(_)
        | FunctionKind::Root
        | FunctionKind::Variadic(_)
        | FunctionKind::Clamp
        | FunctionKind::Step
        | FunctionKind::Rate(_) => true,
    }
}

/// What a function's body sees where it is called.
fn body_kind(caller: ScopeKind) -> ScopeKind {
    match caller {
        ScopeKind::Constant => ScopeKind::Constant,
        ScopeKind::Body => ScopeKind::Body,
        ScopeKind::Function | ScopeKind::Channel | ScopeKind::Cell | ScopeKind::Spiking | ScopeKind::Network => {
            ScopeKind::Function
        }
        ScopeKind::Drawing | ScopeKind::PerCell | ScopeKind::PerEdge(_) | ScopeKind::Input => ScopeKind::Drawing,
    }
}

/// An edit that makes a voltage a pure number.
fn divided_by_voltage(text: &str, what: &str) -> String {
    let quotient = format!("{} / 10 mV", super::advice::wrap_sum(text));
    let function = what.strip_prefix('`').and_then(|w| w.strip_suffix('`')).unwrap_or("");
    format!("divide by a voltage first, for example `{function}({quotient})`")
}

/// Adds the place of a call to what was found in the body of the function.
fn point_at_call(d: &mut Diagnostic, body: Span, call: Span) {
    let inside = |s: Span| s.file == body.file && s.start >= body.start && s.end <= body.end;
    if d.labels.first().is_some_and(|l| inside(l.span)) && d.labels.iter().all(|l| l.span != call) {
        d.labels.push(Label { span: call, message: "in this call".into(), primary: false });
    }
}
