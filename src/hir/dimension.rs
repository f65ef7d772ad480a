//! Checking of dimensions and units, and what is said when they do not fit.
//!
//! In come units and typed expressions; out goes the same, or a message with both dimensions side by side and an edit.
//! Never true here: a conversion between two dimensions.

use super::error::DimensionError;
use super::lower::Lowerer;
use super::scope::Scope;
use super::{Expr, Ty};
use crate::diag::Diagnostic;
use crate::syntax::ast::{self};
use crate::units::{Dim, Unit};

impl<'a> Lowerer<'a> {
    /// The unit of a unit expression; `None` (and said) if it is not one.
    pub(super) fn unit(&mut self, unit: &ast::UnitExpr) -> Option<Unit> {
        let mut factors = Vec::new();
        for (name, power) in &unit.factors {
            match Unit::named(&name.text) {
                Some(u) => factors.push((u, *power)),
                None => {
                    self.error(DimensionError::UnknownUnit { name });
                    return None;
                }
            }
        }
        let product = Unit::product(factors);
        if product.is_none() {
            self.error(DimensionError::UnusableUnit { span: unit.span });
        }
        product
    }

    /// Checks that an expression is a number of a dimension.
    pub(super) fn expect(&mut self, scope: &Scope<'a>, x: Expr, dim: Dim, why: &str) -> Option<Expr> {
        match x.ty {
            Ty::Bool => {
                self.error(DimensionError::NotANumber { why, span: x.span });
                None
            }
            Ty::Real(got) if got == dim => Some(x),
            Ty::Real(got) => {
                self.wrong_dimension(scope, &x, got, dim, why);
                // What is needed is known: look on as if it were given.
                Some(Expr { ty: Ty::Real(dim), ..x })
            }
        }
    }

    /// Says that a quantity is not what is needed, or which number lacks a unit that would make it so.
    fn wrong_dimension(&mut self, scope: &Scope<'a>, x: &Expr, got: Dim, want: Dim, why: &str) {
        if let Some(bare) = self.bare(scope, x) {
            let d = self.missing_unit(&bare, want, Some(why));
            self.error(d);
            return;
        }
        if let Some((bare, dim)) = self.bare_factor(scope, x, want)
            && (bare.name.is_some() || self.blame(x).span == bare.value)
        {
            let d = self.missing_unit(&bare, dim, None);
            self.error(if bare.name.is_some() { d } else { d.note(format!("{why} must be {}", want.describe())) });
            return;
        }
        if let (true, Some(written)) = (got.is_one(), self.drawn_with_unit(x, want)) {
            let help = Some(format!("write the unit: `{written}`"));
            self.error(DimensionError::Unexpected { why, want, got, span: x.span, help });
            return;
        }
        let x = self.blame(x);
        let literal = self.literal(x).map(|l| self.with_unit(l, want));
        let help = match (want.is_one(), literal) {
            // Nothing to divide by is better than any other.
            (true, None) => None,
            (is_one, literal) => self.edit(scope, x, want).or_else(|| {
                literal.map(|value| match is_one {
                    true => format!("leave the unit out: `{value}`"),
                    false => format!("write {}, for example `{value}`", want.describe()),
                })
            }),
        };
        self.error(DimensionError::Unexpected { why, want, got, span: x.span, help });
    }

    /// Checks that two quantities agree; a message that ends with a colon goes on with what they are.
    pub(super) fn same_dimension(&mut self, scope: &Scope<'a>, a: &Expr, b: &Expr, message: &str) -> Option<()> {
        let (x, y) = match (a.ty, b.ty) {
            (Ty::Real(x), Ty::Real(y)) => (x, y),
            (Ty::Bool, Ty::Bool) => return Some(()),
            (Ty::Bool, Ty::Real(_)) | (Ty::Real(_), Ty::Bool) => {
                self.wrong_type(b, &format!("{message} one is a condition, the other a number"));
                return None;
            }
        };
        if x == y {
            return Some(());
        }
        if let Some((d, go_on)) = self.lacks_unit(scope, (a, x), (b, y)) {
            self.error(d);
            return go_on.then_some(());
        }
        let message = match message.ends_with(':') {
            true => format!("{message} {} and {}", x.describe(), y.describe()),
            false => message.to_string(),
        };
        let help = self.edit_pair(scope, a, b);
        self.error(DimensionError::Disagree { message: &message, left: (x, a.span), right: (y, b.span), help });
        None
    }

    /// The message for two quantities that would agree if a bare number had a unit, and whether they then do for sure.
    fn lacks_unit(&self, scope: &Scope<'a>, a: (&Expr, Dim), b: (&Expr, Dim)) -> Option<(Diagnostic, bool)> {
        let sides = [(a.0, b), (b.0, a)];
        for (side, (other, want)) in sides {
            if let Some(bare) = self.bare(scope, side) {
                let d = self.missing_unit(&bare, want, None);
                return Some((if bare.name.is_none() { d.see(other.span, shown(want)) } else { d }, true));
            }
        }
        sides.into_iter().find_map(|(side, (_, want))| {
            let (bare, dim) = self.bare_factor(scope, side, want)?;
            let named = bare.name.is_some() && dim.quantity().is_some();
            named.then(|| (self.missing_unit(&bare, dim, None), false))
        })
    }
}

/// How a label calls a quantity.
pub(super) fn shown(dim: Dim) -> String {
    if dim.is_one() {
        return dim.describe();
    }
    let unit = dim.display_unit().name;
    if dim.quantity().is_some() { format!("{} ({unit})", dim.describe()) } else { dim.describe() }
}
