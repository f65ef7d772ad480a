//! Typing of expressions.
//!
//! In come syntax trees of expressions and the scope they stand in; out go typed expressions.
//! Never true here: a mistake that was not reported, or one that was reported twice.

use super::calls::Env;
use super::error::{ExprError, LimitError, MorphologyError};
use super::lower::Lowerer;
use super::scope::Scope;
use super::{Builtin, Expr, ExprKind, SymbolId, Ty};
use crate::operators::{self, Value, eval_binary, eval_unary};
use crate::source::Span;
use crate::syntax::ast::{self, BinaryOp, UnaryOp};
use crate::units::{Dim, Unit};
use std::sync::Arc;

/// How deeply expressions may contain each other through names and functions (not the height of one expression).
const MAX_DEPTH: usize = 400;

impl Expr {
    pub(crate) fn number(value: f64, dim: Dim, span: Span) -> Expr {
        Expr { kind: ExprKind::Number(value), ty: Ty::Real(dim), span }
    }

    pub(super) fn symbol(id: SymbolId, ty: Ty, span: Span) -> Expr {
        Expr { kind: ExprKind::Symbol(id), ty, span }
    }

    pub(super) fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
        let (x, y) = (a.ty.dim(), b.ty.dim());
        let ty = match op {
            BinaryOp::Add | BinaryOp::Sub => Ty::Real(x),
            BinaryOp::Mul => Ty::Real(x.times(y)),
            BinaryOp::Div => Ty::Real(x.over(y)),
            BinaryOp::Pow => Ty::Real(x),
            BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::And
            | BinaryOp::Or => Ty::Bool,
        };
        let span = if a.span.file == b.span.file { a.span.to(b.span) } else { a.span };
        Expr { kind: ExprKind::Binary(op, Arc::new(a), Arc::new(b)), ty, span }
    }

    /// Does the value of an edge differ from edge to edge?
    pub fn differs_among_edges(&self) -> bool {
        let mut differs = false;
        self.visit(&mut |e| differs |= matches!(e.kind, ExprKind::Draw(..) | ExprKind::File(_) | ExprKind::Distance));
        differs
    }

    /// Calls `f` on every node, parents first.
    pub fn visit(&self, f: &mut impl FnMut(&Expr)) {
        f(self);
        match &self.kind {
            ExprKind::Number(_)
            | ExprKind::Bool(_)
            | ExprKind::Symbol(_)
            | ExprKind::NetworkParam(_)
            | ExprKind::Time
            | ExprKind::StepLength
            | ExprKind::Xi(_)
            | ExprKind::SteadyState
            | ExprKind::Celsius
            | ExprKind::Index
            | ExprKind::Dv
            | ExprKind::Beyond
            | ExprKind::Distance
            | ExprKind::Measure(_)
            | ExprKind::Outward
            | ExprKind::Weight
            | ExprKind::Amount
            | ExprKind::OfEdge(_)
            | ExprKind::Draw(..)
            | ExprKind::File(_)
            | ExprKind::Series(_) => {}
            ExprKind::Unary(_, a) | ExprKind::Noise(_, a) | ExprKind::Wanders(_, a) | ExprKind::Chance(_, a) => {
                a.visit(f);
            }
            ExprKind::Binary(_, a, b) => {
                a.visit(f);
                b.visit(f);
            }
            ExprKind::If(c, a, b) => {
                c.visit(f);
                a.visit(f);
                b.visit(f);
            }
            ExprKind::Call(_, args) => args.iter().for_each(|a| a.visit(f)),
        }
    }

    /// Replaces symbols.
    pub(super) fn map_symbols(&self, f: &impl Fn(SymbolId) -> SymbolId) -> Expr {
        self.map_leaves(&|id| ExprKind::Symbol(f(id)))
    }

    /// Puts something else in the place of symbols.
    pub(super) fn map_leaves(&self, f: &impl Fn(SymbolId) -> ExprKind) -> Expr {
        self.map_leaf_kinds(&|kind| if let ExprKind::Symbol(id) = kind { Some(f(*id)) } else { None })
    }

    /// Puts something else in the place of leaves that `f` has an answer for.
    pub(super) fn map_leaf_kinds(&self, f: &impl Fn(&ExprKind) -> Option<ExprKind>) -> Expr {
        let sub = |e: &Expr| Arc::new(e.map_leaf_kinds(f));
        let kind = match &self.kind {
            ExprKind::Symbol(_)
            | ExprKind::Number(_)
            | ExprKind::Bool(_)
            | ExprKind::NetworkParam(_)
            | ExprKind::Time
            | ExprKind::StepLength
            | ExprKind::Xi(_)
            | ExprKind::SteadyState
            | ExprKind::Celsius
            | ExprKind::Index
            | ExprKind::Dv
            | ExprKind::Beyond
            | ExprKind::Distance
            | ExprKind::Measure(_)
            | ExprKind::Outward
            | ExprKind::Weight
            | ExprKind::Amount
            | ExprKind::OfEdge(_)
            | ExprKind::Draw(..)
            | ExprKind::File(_)
            | ExprKind::Series(_) => f(&self.kind).unwrap_or_else(|| self.kind.clone()),
            ExprKind::Unary(op, a) => ExprKind::Unary(*op, sub(a)),
            ExprKind::Noise(s, a) => ExprKind::Noise(*s, sub(a)),
            ExprKind::Chance(s, a) => ExprKind::Chance(*s, sub(a)),
            ExprKind::Wanders(s, a) => ExprKind::Wanders(*s, sub(a)),
            ExprKind::Binary(op, a, b) => ExprKind::Binary(*op, sub(a), sub(b)),
            ExprKind::If(c, a, b) => ExprKind::If(sub(c), sub(a), sub(b)),
            ExprKind::Call(b, args) => ExprKind::Call(*b, args.iter().map(|a| a.map_leaf_kinds(f)).collect()),
        };
        Expr { kind, ty: self.ty, span: self.span }
    }

    /// How many nodes it has.
    pub(super) fn size(&self) -> usize {
        let mut nodes = 0;
        self.visit(&mut |_| nodes += 1);
        nodes
    }

    /// How many nodes stand on top of each other.
    pub(super) fn height(&self) -> usize {
        1 + match &self.kind {
            ExprKind::Number(_)
            | ExprKind::Bool(_)
            | ExprKind::Symbol(_)
            | ExprKind::NetworkParam(_)
            | ExprKind::Time
            | ExprKind::StepLength
            | ExprKind::Xi(_)
            | ExprKind::SteadyState
            | ExprKind::Celsius
            | ExprKind::Dv
            | ExprKind::Beyond
            | ExprKind::Distance
            | ExprKind::Measure(_)
            | ExprKind::Outward
            | ExprKind::Weight
            | ExprKind::Amount
            | ExprKind::OfEdge(_)
            | ExprKind::Index
            | ExprKind::Draw(..)
            | ExprKind::File(_)
            | ExprKind::Series(_) => 0,
            ExprKind::Unary(_, a) | ExprKind::Noise(_, a) | ExprKind::Wanders(_, a) | ExprKind::Chance(_, a) => {
                a.height()
            }
            ExprKind::Binary(_, a, b) => a.height().max(b.height()),
            ExprKind::If(c, a, b) => c.height().max(a.height()).max(b.height()),
            ExprKind::Call(_, args) => args.iter().map(Expr::height).max().unwrap_or(0),
        }
    }
}

impl<'a> Lowerer<'a> {
    /// Lowers an expression; `None` if it is wrong (and that has been said).
    pub(super) fn expr(&mut self, scope: &mut Scope<'a>, prefix: &str, e: &ast::Expr) -> Option<Expr> {
        self.expr_in(scope, prefix, e, None)
    }

    /// Lowers an expression that must be a number of a dimension; `why` names what it is for.
    pub(super) fn expr_of(
        &mut self,
        scope: &mut Scope<'a>,
        prefix: &str,
        e: &ast::Expr,
        dim: Dim,
        why: &str,
    ) -> Option<Expr> {
        let x = self.expr(scope, prefix, e)?;
        self.expect(scope, x, dim, why)
    }

    pub(super) fn expr_in(
        &mut self,
        scope: &mut Scope<'a>,
        prefix: &str,
        e: &ast::Expr,
        env: Option<&Env>,
    ) -> Option<Expr> {
        if !self.spend(1, e.span) {
            return None;
        }
        if self.depth >= MAX_DEPTH {
            self.error(LimitError::Deep { span: e.span });
            return None;
        }
        self.depth += 1;
        let x = self.expr_inside(scope, prefix, e, env);
        self.depth -= 1;
        x
    }

    fn expr_inside(&mut self, scope: &mut Scope<'a>, prefix: &str, e: &ast::Expr, env: Option<&Env>) -> Option<Expr> {
        let span = e.span;
        match &e.kind {
            ast::ExprKind::Number { text, unit } => {
                self.units_or_values(scope, prefix, (text, unit.as_ref()), env)?;
                self.number(text, unit.as_ref(), false, span)
            }
            ast::ExprKind::Bool(b) => Some(Expr { kind: ExprKind::Bool(*b), ty: Ty::Bool, span }),
            ast::ExprKind::Str(_) => {
                self.error(ExprError::Text { span });
                None
            }
            ast::ExprKind::Path(path) => self.path(scope, prefix, path, env),
            ast::ExprKind::Unary(op, a) => {
                if let (UnaryOp::Neg, ast::ExprKind::Number { text, unit }) = (op, &a.kind) {
                    self.units_or_values(scope, prefix, (text, unit.as_ref()), env)?;
                    return self.number(text, unit.as_ref(), true, span);
                }
                let a = self.expr_in(scope, prefix, a, env)?;
                self.unary(*op, a, span)
            }
            ast::ExprKind::Binary(op, a, b) => {
                let left = self.expr_in(scope, prefix, a, env);
                let right = self.expr_in(scope, prefix, b, env);
                self.binary(scope, *op, left?, right?, span)
            }
            ast::ExprKind::If(c, a, b) => {
                let c = self.expr_in(scope, prefix, c, env);
                let a = self.expr_in(scope, prefix, a, env);
                let b = self.expr_in(scope, prefix, b, env);
                self.conditional(scope, c?, a?, b?, span)
            }
            ast::ExprKind::Call(name, args) => self.call(scope, prefix, name, args, env, span),
            ast::ExprKind::At(..) => {
                self.error(MorphologyError::NoPlaceHere { span });
                None
            }
        }
    }

    fn unary(&mut self, op: UnaryOp, a: Expr, span: Span) -> Option<Expr> {
        match (op, a.ty) {
            (UnaryOp::Neg, Ty::Real(_)) | (UnaryOp::Not, Ty::Bool) => {
                Some(Expr { ty: a.ty, kind: ExprKind::Unary(op, Arc::new(a)), span })
            }
            (UnaryOp::Neg, Ty::Bool) => self.wrong_type(&a, "`-` needs a number"),
            (UnaryOp::Not, Ty::Real(_)) => self.wrong_type(&a, "`not` needs a condition"),
        }
    }

    fn conditional(&mut self, scope: &Scope<'a>, c: Expr, a: Expr, b: Expr, span: Span) -> Option<Expr> {
        if c.ty != Ty::Bool {
            return self.wrong_type(&c, "`if` needs a condition");
        }
        self.same_dimension(scope, &a, &b, "the two branches of an `if` must agree:")?;
        Some(Expr { ty: a.ty, kind: ExprKind::If(Arc::new(c), Arc::new(a), Arc::new(b)), span })
    }

    /// Says that a number stands where a condition is needed, or the other way round; but not of what is wrong inside, which has been said.
    pub(super) fn wrong_type(&mut self, x: &Expr, message: &str) -> Option<Expr> {
        if self.diagnostics.has_error_in(x.span) {
            return None;
        }
        let text = self.text(x.span);
        let repeat = text.len() < 30 && !text.contains('\n') && self.literal(x).is_none();
        self.error(ExprError::WrongType { message, x, text: repeat.then_some(text) });
        None
    }

    /// Says which word behind a number is a unit and could be a value besides: one that has the unit's dimension, or a pure number behind `*`.
    fn units_or_values(
        &mut self,
        scope: &mut Scope<'a>,
        prefix: &str,
        (number, unit): (&str, Option<&ast::UnitExpr>),
        env: Option<&Env>,
    ) -> Option<()> {
        let Some(unit) = unit else { return Some(()) };
        for (stem, _) in &unit.factors {
            let before = self.text(Span { end: stem.span.start, ..unit.span });
            let behind = self.text(Span { start: stem.span.start, ..unit.span });
            let end = behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(behind.len());
            let name = ast::Name {
                text: behind[..end].to_string(),
                span: Span { end: stem.span.start + end as u32, ..stem.span },
            };
            let product = before.ends_with('*');
            let Some(left) = before.strip_suffix(['*', '/']) else { continue };
            let dim = Unit::named(&stem.text).map(|unit| unit.dim);
            let Some((ty, value)) = self.value_called(scope, prefix, &name, env) else { continue };
            if Some(ty) == dim.map(Ty::Real) || product && ty == Ty::Real(Dim::ONE) {
                let number = format!("{number} {left}");
                let written = format!("{} {} {behind}", number.trim_end(), if product { '*' } else { '/' });
                self.error(ExprError::UnitOrValue { name: &name, value, written });
                return None;
            }
        }
        Some(())
    }

    fn number(&mut self, text: &str, unit: Option<&ast::UnitExpr>, negative: bool, span: Span) -> Option<Expr> {
        let unit = match unit {
            Some(u) => self.unit(u)?,
            None => Unit::ONE,
        };
        let signed = if negative { format!("-{text}") } else { text.to_string() };
        let value = unit.canonical(&signed);
        if value.is_none() {
            self.error(ExprError::TooLarge { span });
        }
        if let Some(kelvin) = value
            && unit.celsius
            && kelvin < 0.0
        {
            self.error(ExprError::TooCold { span });
        }
        Some(Expr::number(value?, unit.dim, span))
    }

    /// Says that a temperature is divided by one in degC, where only a difference can be meant: 10 degC are 283.15 K.
    fn no_difference(&mut self, scope: &Scope<'a>, x: &Expr, divisor: &Expr) {
        if x.ty != Ty::Real(Dim::TEMPERATURE) {
            return;
        }
        let difference = matches!(x.kind, ExprKind::Binary(BinaryOp::Sub, ..));
        let value = match divisor.kind {
            ExprKind::Number(_) => Some(divisor),
            // Arguments of functions belong to another scope.
            ExprKind::Symbol(id) if difference => scope.entries.get(id.0 as usize).and_then(|e| e.value.as_ref()),
            _ => None,
        };
        if let Some(written) = value {
            self.not_in_degc(written, divisor.span);
        }
    }

    /// Says that a number is written in degC, where it is read as a difference of temperatures.
    pub(super) fn not_in_degc(&mut self, written: &Expr, span: Span) {
        if let (ExprKind::Number(_), Some(number)) = (&written.kind, self.text(written.span).strip_suffix("degC")) {
            let (number, written) = (number.trim_end(), written.span);
            self.error(ExprError::NoDifference { number, written, span });
        }
    }

    fn binary(&mut self, scope: &Scope<'a>, op: BinaryOp, a: Expr, b: Expr, span: Span) -> Option<Expr> {
        if op == BinaryOp::Sub
            && let Some(unit) = self.power_without_sign(&a, &b)
        {
            self.error(ExprError::PowerWithoutSign { number: self.text(a.span), unit, power: self.text(b.span), span });
            return None;
        }
        // Two comparisons in a row have been complained of.
        if a.ty == Ty::Bool && a.span.end <= b.span.start && self.diagnostics.has_error_in(between(a.span, b.span)) {
            return None;
        }
        match op {
            BinaryOp::And | BinaryOp::Or => {
                for side in [&a, &b] {
                    if side.ty != Ty::Bool {
                        return self.wrong_type(side, "`and` and `or` need conditions");
                    }
                }
            }
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::Eq
            | BinaryOp::Ne => {
                let (x, y) = self.numbers(&a, &b)?;
                let message = match op {
                    BinaryOp::Add => format!("cannot add {} to {}", y.describe(), x.describe()),
                    BinaryOp::Sub => format!("cannot subtract {} from {}", y.describe(), x.describe()),
                    _ => format!("cannot compare {} with {}", x.describe(), y.describe()),
                };
                self.same_dimension(scope, &a, &b, &message)?;
                // A number that lacks its unit has been reported: go on with the dimension it should have.
                if x.is_one() {
                    return Some(Expr { span, ..Expr::binary(op, Expr { ty: b.ty, ..a }, b) });
                }
            }
            BinaryOp::Mul | BinaryOp::Div => {
                self.numbers(&a, &b)?;
                if op == BinaryOp::Div {
                    self.no_difference(scope, &a, &b);
                }
            }
            BinaryOp::Pow => return self.power(scope, a, b, span),
        }
        Some(Expr { span, ..Expr::binary(op, a, b) })
    }

    /// The unit of `0.1 ms-1`, where 1 is no number of a difference but a power.
    fn power_without_sign(&self, a: &Expr, b: &Expr) -> Option<&'a str> {
        let numbers = matches!((&a.kind, &b.kind), (ExprKind::Number(_), ExprKind::Number(_)));
        let text = self.text(a.span);
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || "+-.eE".contains(c)).trim_start();
        let whole = self.text(b.span).bytes().all(|c| c.is_ascii_digit());
        let touch = a.span.file == b.span.file && self.text(between(a.span, b.span)) == "-";
        (numbers && touch && whole && !unit.is_empty() && b.ty == Ty::Real(Dim::ONE)).then_some(unit)
    }

    pub(super) fn numbers(&mut self, a: &Expr, b: &Expr) -> Option<(Dim, Dim)> {
        for side in [a, b] {
            if side.ty == Ty::Bool {
                self.wrong_type(side, "arithmetic needs numbers, not conditions");
                return None;
            }
        }
        Some((a.ty.dim(), b.ty.dim()))
    }

    fn power(&mut self, scope: &Scope<'a>, a: Expr, b: Expr, span: Span) -> Option<Expr> {
        let (x, y) = self.numbers(&a, &b)?;
        if !y.is_one() {
            self.pure(scope, &b, "an exponent");
            return None;
        }
        let dim = match constant_of(&b) {
            _ if x.is_one() => Some(Dim::ONE),
            Some(n) if n.fract() == 0.0 && n.abs() <= 9.0 => Some(x.power(n as i32)),
            Some(0.5) => x.root(),
            Some(_) | None => None,
        };
        if dim.is_none() {
            let (base, exponent) = (self.text(a.span), self.text(b.span));
            self.error(ExprError::Power { base: (&a, base), exponent: (&b, exponent) });
        }
        let ty = Ty::Real(dim?);
        Some(Expr { kind: ExprKind::Binary(BinaryOp::Pow, Arc::new(a), Arc::new(b)), ty, span })
    }
}

/// What stands between two places, the first of which comes first.
fn between(a: Span, b: Span) -> Span {
    Span { start: a.end.min(b.start), end: b.start, ..a }
}

/// The value of an expression of numbers only.
pub(super) fn constant_of(e: &Expr) -> Option<f64> {
    match &e.kind {
        ExprKind::Number(x) => Some(*x),
        ExprKind::Unary(UnaryOp::Neg, a) => constant_of(a).map(|x| -x),
        ExprKind::Binary(op, a, b) => {
            let (a, b) = (constant_of(a)?, constant_of(b)?);
            match op {
                BinaryOp::Add => Some(a + b),
                BinaryOp::Sub => Some(a - b),
                BinaryOp::Mul => Some(a * b),
                BinaryOp::Div => Some(a / b),
                BinaryOp::Pow => Some(a.powf(b)),
                _ => None,
            }
        }
        ExprKind::If(c, a, b) => constant_of(if truth_of(c)? { a } else { b }),
        ExprKind::Call(builtin, args) => {
            let args = args.iter().map(|arg| constant_of(arg).map(Value::Real)).collect::<Option<Vec<_>>>()?;
            let (&first, rest) = args.split_first()?;
            let extreme = |op| rest.iter().try_fold(first, |x, &y| eval_binary(op, x, y));
            let value = match builtin {
                Builtin::Min => extreme(operators::BinaryOp::Min),
                Builtin::Max => extreme(operators::BinaryOp::Max),
                _ => eval_unary(builtin.operation()?, first),
            };
            value?.real()
        }
        _ => None,
    }
}

/// Whether a condition between numbers that are known is true.
fn truth_of(e: &Expr) -> Option<bool> {
    match &e.kind {
        ExprKind::Bool(x) => Some(*x),
        ExprKind::Binary(op, a, b) => {
            let (a, b) = (constant_of(a)?, constant_of(b)?);
            Some(match op {
                BinaryOp::Lt => a < b,
                BinaryOp::Le => a <= b,
                BinaryOp::Gt => a > b,
                BinaryOp::Ge => a >= b,
                _ => return None,
            })
        }
        _ => None,
    }
}
