//! Random draws: what the distributions that a model names are in terms of standard ones.
//!
//! In come the arguments of a draw; out goes an expression of standard draws, each with a stream of its own.
//! Never true here: a number of draws that depends on what is drawn (the engines draw as many for each cell).

use super::builtins::{Builtin, Drawn};
use super::calls::Env;
use super::lower::Lowerer;
use super::scope::Scope;
use super::{Domain, Expr, ExprKind, Ty};
use crate::operators::Distribution;
use crate::source::Span;
use crate::syntax::ast::{self, BinaryOp, UnaryOp};
use crate::units::Dim;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How often `truncated` draws. What is outside then is put on the limit that is nearer.
const REDRAWS: usize = 16;

/// How many candidates `gamma` has. Each is taken with a chance of 0.95 at least; the last one is taken without a question.
const CANDIDATES: usize = 6;

impl<'a> Lowerer<'a> {
    /// A draw, with the arguments in the order of its parameters.
    pub(super) fn drawn(
        &mut self,
        scope: &Scope<'a>,
        function: &str,
        drawn: Drawn,
        values: Vec<Expr>,
        span: Span,
    ) -> Option<Expr> {
        match drawn {
            Drawn::Between(distribution) => {
                self.all_same(scope, function, &values)?;
                let [a, b] = <[Expr; 2]>::try_from(values).ok()?;
                let scale = match distribution {
                    Distribution::Uniform => Expr::binary(BinaryOp::Sub, b, a.clone()),
                    Distribution::Normal | Distribution::Exponential => {
                        self.not_in_degc(&b, b.span);
                        b
                    }
                };
                let draw = Expr::binary(BinaryOp::Mul, scale, self.standard(distribution, span));
                Some(Expr::binary(BinaryOp::Add, a, draw))
            }
            Drawn::Exponential => {
                let [mean] = <[Expr; 1]>::try_from(values).ok()?;
                Some(Expr::binary(BinaryOp::Mul, mean, self.standard(Distribution::Exponential, span)))
            }
            Drawn::Lognormal => {
                self.all_same(scope, function, &values)?;
                let [mean, sd] = <[Expr; 2]>::try_from(values).ok()?;
                self.not_in_degc(&sd, sd.span);
                Some(self.lognormal(mean, sd, span))
            }
            Drawn::Gamma => {
                let [shape, scale] = <[Expr; 2]>::try_from(values).ok()?;
                self.pure(scope, &shape, "`gamma`");
                let gamma = shape.ty.dim().is_one().then(|| self.gamma(shape, span))?;
                Some(Expr::binary(BinaryOp::Mul, scale, gamma))
            }
            // Its first argument is lowered more than once.
            Drawn::Truncated => None,
        }
    }

    /// A draw from a standard distribution.
    fn standard(&mut self, distribution: Distribution, span: Span) -> Expr {
        Expr { kind: ExprKind::Draw(distribution, self.stream()), ty: Ty::Real(Dim::ONE), span }
    }

    /// mean exp(s n - s^2 / 2) with s^2 = ln(1 + (sd / mean)^2).
    fn lognormal(&mut self, mean: Expr, sd: Expr, span: Span) -> Expr {
        let one = || Expr::number(1.0, Dim::ONE, span);
        let ratio = Expr::binary(BinaryOp::Div, sd, mean.clone());
        let square = Expr::binary(BinaryOp::Mul, ratio.clone(), ratio);
        let variance = call(Builtin::Ln, Expr::binary(BinaryOp::Add, one(), square));
        let normal = self.standard(Distribution::Normal, span);
        let moved = Expr::binary(BinaryOp::Mul, call(Builtin::Sqrt, variance.clone()), normal);
        let half = Expr::binary(BinaryOp::Mul, Expr::number(0.5, Dim::ONE, span), variance);
        Expr::binary(BinaryOp::Mul, mean, call(Builtin::Exp, Expr::binary(BinaryOp::Sub, moved, half)))
    }

    /// Gamma with scale 1 (Marsaglia and Tsang 2000): d c^3 with c = 1 + n / (3 sqrt(d)), d = shape - 1/3, is taken if
    /// ln(u) < n^2 / 2 + d (1 - c^3 + ln(c^3)). A shape below 1 is one more, times u^(1 / shape).
    fn gamma(&mut self, shape: Expr, span: Span) -> Expr {
        let number = |x: f64| Expr::number(x, Dim::ONE, span);
        let op = Expr::binary;
        let small = op(BinaryOp::Lt, shape.clone(), number(1.0));
        let larger = op(BinaryOp::Add, shape.clone(), number(1.0));
        let d = op(BinaryOp::Sub, select(&small, larger, shape.clone()), number(1.0 / 3.0));
        let candidates: Vec<(Expr, Expr)> = (0..CANDIDATES)
            .map(|_| {
                let normal = self.standard(Distribution::Normal, span);
                // The logarithm of a uniform number is a negative exponential one.
                let ln_u = negative(self.standard(Distribution::Exponential, span));
                let step =
                    op(BinaryOp::Div, normal.clone(), op(BinaryOp::Mul, number(3.0), call(Builtin::Sqrt, d.clone())));
                let c = op(BinaryOp::Add, number(1.0), step);
                let cube = op(BinaryOp::Mul, op(BinaryOp::Mul, c.clone(), c.clone()), c.clone());
                let positive = op(BinaryOp::Gt, c.clone(), number(0.0));
                let ln_cube = op(BinaryOp::Mul, number(3.0), call(Builtin::Ln, select(&positive, c, number(1.0))));
                let inside = op(BinaryOp::Add, op(BinaryOp::Sub, number(1.0), cube.clone()), ln_cube);
                let half = op(BinaryOp::Mul, op(BinaryOp::Mul, number(0.5), normal.clone()), normal);
                let limit = op(BinaryOp::Add, half, op(BinaryOp::Mul, d.clone(), inside));
                let taken = op(BinaryOp::And, positive.clone(), op(BinaryOp::Lt, ln_u, limit));
                let value = op(BinaryOp::Mul, d.clone(), select(&positive, cube, number(0.0)));
                (taken, value)
            })
            .collect();
        let value = first_taken(candidates);
        let exponent = op(BinaryOp::Div, self.standard(Distribution::Exponential, span), shape);
        let factor = select(&small, call(Builtin::Exp, negative(exponent)), number(1.0));
        op(BinaryOp::Mul, value, factor)
    }

    /// `truncated(draw, low, high)`.
    pub(super) fn truncated(
        &mut self,
        scope: &mut Scope<'a>,
        prefix: &str,
        [draw, low, high]: [&ast::Expr; 3],
        env: Option<&Env>,
        span: Span,
    ) -> Option<Expr> {
        let first = self.number_argument(scope, prefix, "truncated", draw, env);
        let low = self.number_argument(scope, prefix, "truncated", low, env);
        let high = self.number_argument(scope, prefix, "truncated", high, env);
        let (first, low, high) = (first?, low?, high?);
        self.all_same(scope, "truncated", &[first.clone(), low.clone(), high.clone()])?;
        self.demand_arguments("truncated", &["draw", "low", "high"], &[first.clone(), low.clone(), high.clone()]);
        let ty = first.ty;
        // It is drawn again with streams of its own, those of what stands for an argument of a function, too.
        if !self.spend(first.size() * (REDRAWS - 1), span) {
            return None;
        }
        let mut streams = BTreeSet::new();
        first.visit(&mut |e| {
            if let ExprKind::Draw(_, stream) = e.kind {
                streams.insert(stream);
            }
        });
        let mut draws = vec![first];
        for _ in 1..REDRAWS {
            let fresh: BTreeMap<u64, u64> = streams.iter().map(|&stream| (stream, self.stream())).collect();
            draws.push(draws[0].map_leaf_kinds(&|kind| match kind {
                ExprKind::Draw(distribution, stream) => Some(ExprKind::Draw(*distribution, fresh[stream])),
                _ => None,
            }));
        }
        let inside = |x: &Expr| {
            let above = Expr::binary(BinaryOp::Ge, x.clone(), low.clone());
            Expr::binary(BinaryOp::And, above, Expr::binary(BinaryOp::Le, x.clone(), high.clone()))
        };
        let candidates = draws.into_iter().map(|x| (inside(&x), x)).collect();
        let taken = first_taken(candidates);
        let clamped = vec![taken.clone(), low, high];
        let clamped = Expr { kind: ExprKind::Call(Builtin::Clamp, clamped), ty, span };
        let outside = Expr { span, ..Expr::binary(BinaryOp::Sub, taken, clamped.clone()) };
        self.demand("truncated".into(), outside, Domain::WithinLimits, "drawn 16 times");
        Some(clamped)
    }
}

/// The first candidate that is taken, or the last one.
fn first_taken(mut candidates: Vec<(Expr, Expr)>) -> Expr {
    let (_, last) = candidates.pop().expect("there is a candidate");
    candidates.into_iter().rev().fold(last, |otherwise, (taken, value)| select(&taken, value, otherwise))
}

fn call(builtin: Builtin, x: Expr) -> Expr {
    let (ty, span) = (x.ty, x.span);
    Expr { kind: ExprKind::Call(builtin, vec![x]), ty, span }
}

fn negative(x: Expr) -> Expr {
    let (ty, span) = (x.ty, x.span);
    Expr { kind: ExprKind::Unary(UnaryOp::Neg, Arc::new(x)), ty, span }
}

fn select(condition: &Expr, a: Expr, b: Expr) -> Expr {
    let (ty, span) = (a.ty, a.span);
    Expr { kind: ExprKind::If(Arc::new(condition.clone()), Arc::new(a), Arc::new(b)), ty, span }
}
