//! Numbers of a Poisson distribution, by the sum of [`crate::runtime::math::poisson`].
//!
//! In come a uniform number and a mean of every element; out go the first terms of the sum, a loop over the others, and its whole numbers.
//! Never true here: a round of the loop is taken when no element needs it but the one that finds this out, or terms are added in another order.

use super::builder::{Binary, Builder, Compare, Element, Literal, Unary, Value};
use crate::runtime::math::Coefficients;

/// The number of every element; so many terms are added before anybody asks who needs more. XLA has an exponential of its own and may round a product and a sum once, so that in rare cases,
/// where a uniform number is as good as a sum, it is one more or less than elsewhere.
pub(super) fn poisson(b: &mut Builder, u: Value, mean: Value, ahead: u32) -> Value {
    let known = known(b, u, mean);
    let minus = b.unary(Unary::Negate, mean);
    let first = b.unary(Unary::Exponential, minus);
    let (zero, one) = (like(b, u, 0.0), like(b, u, 1.0));
    let begin = vec![known, zero, one, first, first, u, mean];
    let carried = (0..ahead).fold(begin, |given, _| round(b, &given));
    let after = b.repeat(&carried, |b, given| any(b, given[0]), round);
    let nan = like(b, u, f64::NAN);
    b.select(known, after[1], nan)
}

/// Which elements have a number.
fn known(b: &mut Builder, u: Value, mean: Value) -> Value {
    let highest = match b.of(mean).element {
        Element::F64 => f64::POISSON_HIGH,
        Element::F32 | Element::Bf16 => f64::from(f32::POISSON_HIGH),
        Element::I32 | Element::U32 | Element::U64 | Element::Bool => panic!("a mean is real"),
    };
    let (lowest, highest) = (like(b, mean, 0.0), like(b, mean, highest));
    let number = b.compare(Compare::Eq, u, u);
    let above = b.compare(Compare::Ge, mean, lowest);
    let below = b.compare(Compare::Le, mean, highest);
    let within = b.binary(Binary::And, above, below);
    b.binary(Binary::And, number, within)
}

/// One term more: which elements go on, their numbers, the next number, the term, the sum; the uniform numbers and the means.
fn round(b: &mut Builder, given: &[Value]) -> Vec<Value> {
    let &[active, count, next, term, sum, u, mean] = given else { panic!("the loop carries seven values") };
    let ratio = b.binary(Binary::Divide, mean, next);
    let term = b.binary(Binary::Multiply, term, ratio);
    let more = b.binary(Binary::Add, sum, term);
    let not_yet = b.compare(Compare::Ge, u, sum);
    let changes = b.compare(Compare::Gt, more, sum);
    let goes_on = b.binary(Binary::And, not_yet, changes);
    let active = b.binary(Binary::And, active, goes_on);
    let count = b.select(active, next, count);
    let one = like(b, next, 1.0);
    let next = b.binary(Binary::Add, next, one);
    vec![active, count, next, term, more, u, mean]
}

/// Is one of the elements true?
fn any(b: &mut Builder, mut mask: Value) -> Value {
    while !b.dims(mask).is_empty() {
        mask = b.reduce(Binary::Or, mask, 0);
    }
    mask
}

/// A number like `x`, and as many.
fn like(b: &mut Builder, x: Value, number: f64) -> Value {
    let ty = b.of(x).clone();
    b.constant(Literal::Real(number), ty.element, &ty.dims)
}
