//! Values of many rows (cells or edges), computed where they are needed.
//!
//! In come operations, operands first; out goes the value of any of them in one row after the other.
//! Never true here: a value depends on another row.

use super::{BinaryOp, Distribution, UnaryOp, Value, eval_binary, eval_fma, eval_unary};
use crate::runtime::lanes::Lanes;
use crate::runtime::math::approximate::{Function as Elementary, Tolerance};
use crate::runtime::rng::Draw;
use std::borrow::Cow;

/// An operation; operands are named by their places among those before it.
#[derive(Debug, Clone)]
pub enum Step<'a> {
    /// What is the same in all rows.
    Same(Value),
    /// The number of the row.
    Index,
    /// A number for each row.
    Data(Cow<'a, [f64]>),
    /// A standard draw; the operand is the step that it is drawn in.
    Draw(Distribution, Draw, usize),
    /// One operand.
    Unary(UnaryOp, usize),
    /// A function with an error of at most the tolerance.
    Approximate(Elementary, Tolerance, usize),
    /// Whether a number is above 0.
    Positive(usize),
    /// Two operands.
    Binary(BinaryOp, usize, usize),
    /// `a * b + c`, rounded once.
    Fma(usize, usize, usize),
    /// The second operand where the first is true, the third elsewhere; the other one is not computed.
    Select(usize, usize, usize),
}

/// Operations in an order in which operands come first.
#[derive(Debug, Clone, Default)]
pub struct Steps<'a> {
    steps: Vec<Step<'a>>,
}

impl<'a> Steps<'a> {
    /// Appends an operation and gives its place. What is the same in all rows is computed at once.
    pub fn push(&mut self, step: Step<'a>) -> usize {
        let place = self.steps.len();
        let varies = match &step {
            Step::Same(_) => false,
            Step::Index | Step::Data(_) | Step::Draw(..) => true,
            Step::Unary(_, a) | Step::Approximate(_, _, a) | Step::Positive(a) => self.varies(*a),
            Step::Binary(_, a, b) => self.varies(*a) || self.varies(*b),
            Step::Fma(a, b, c) | Step::Select(a, b, c) => self.varies(*a) || self.varies(*b) || self.varies(*c),
        };
        self.steps.push(step);
        let same = |at: usize| if let Step::Same(value) = &self.steps[at] { *value } else { NOTHING };
        let settled = if varies { None } else { compute(&self.steps[place], same, 0) };
        if let Some(value) = settled {
            self.steps[place] = Step::Same(value);
        }
        place
    }

    /// Does the value of an operation differ from row to row?
    pub fn varies(&self, at: usize) -> bool {
        !matches!(self.steps[at], Step::Same(_))
    }
}

/// One operation in one row after the other.
///
/// Of a draw that is repeated until it is within its limits, as many are drawn as it takes.
#[derive(Debug)]
pub struct Column<'s, 'a> {
    steps: &'s Steps<'a>,
    asked: usize,
    code: Vec<Do>,
    values: Vec<Value>,
    blocks: Vec<Block>,
}

/// The draws of some rows, made together with the widest vectors that there are.
#[derive(Debug)]
struct Block {
    distribution: Distribution,
    draw: Draw,
    step: u64,
    /// Which rows, if any.
    of: Option<usize>,
    values: [f64; ROWS],
}

/// How many rows are drawn together.
const ROWS: usize = 64;

impl Block {
    #[inline]
    fn at(&mut self, row: u32) -> f64 {
        let (block, within) = (row as usize / ROWS, row as usize % ROWS);
        if self.of != Some(block) {
            self.fill(block);
        }
        self.values[within]
    }

    fn fill(&mut self, block: usize) {
        pulp::Arch::new().dispatch(Fill { block: &mut *self, first: block * ROWS });
        self.of = Some(block);
    }
}

/// Fills a block with the draws of rows.
struct Fill<'b> {
    block: &'b mut Block,
    first: usize,
}

impl pulp::NullaryFnOnce for Fill<'_> {
    type Output = ();

    // A closure would be too large to become part of the function that may use all vectors.
    #[inline(always)]
    fn call(self) {
        let Block { distribution, draw, step, values, .. } = self.block;
        for (first, values) in (self.first..).step_by(8).zip(values.chunks_exact_mut(8)) {
            let rows = std::array::from_fn(|i| (first + i) as u32);
            let drawn = match distribution {
                Distribution::Uniform => draw.uniform_lanes(rows, *step),
                Distribution::Normal => draw.normal_lanes(rows, *step),
                Distribution::Exponential => draw.exponential_lanes(rows, *step),
            };
            drawn.store(values);
        }
    }
}

/// What is done for a row.
#[derive(Debug, Clone, Copy)]
enum Do {
    Compute(usize),
    /// Takes a draw out of a block.
    Draw(usize, usize),
    /// Goes on elsewhere where a condition is false.
    Unless(usize, usize),
    GoOn(usize),
    /// The second value becomes the first.
    Take(usize, usize),
}

impl<'s, 'a> Column<'s, 'a> {
    /// What it takes to compute an operation.
    pub fn new(steps: &'s Steps<'a>, asked: usize) -> Column<'s, 'a> {
        let same = |step: &Step<'_>| if let Step::Same(value) = step { *value } else { NOTHING };
        let known: Vec<bool> = (0..steps.steps.len()).map(|at| !steps.varies(at)).collect();
        let mut code = Vec::new();
        if !lazily(steps, asked, known.clone(), &mut code) {
            // Branches that have much in common would say it again and again.
            code = (0..=asked).filter(|at| !known[*at]).map(Do::Compute).collect();
        }
        let values: Vec<Value> = steps.steps.iter().map(same).collect();
        let mut blocks = Vec::new();
        // What is drawn in every row is drawn for many at once, in a step that is the same for all.
        let mut end = 0;
        for (next, what) in code.iter_mut().enumerate() {
            match *what {
                Do::Unless(_, other) | Do::GoOn(other) => end = end.max(other),
                Do::Compute(at) if next >= end => {
                    let Step::Draw(distribution, draw, step) = steps.steps[at] else { continue };
                    let Some(step) = values[step].real().filter(|_| !steps.varies(step)) else { continue };
                    *what = Do::Draw(at, blocks.len());
                    blocks.push(Block { distribution, draw, step: step as u64, of: None, values: [0.0; ROWS] });
                }
                Do::Compute(_) | Do::Draw(..) | Do::Take(..) => {}
            }
        }
        Column { steps, asked, code, values, blocks }
    }

    /// Its value in a row; `None` if something is ill-typed or not there.
    #[inline]
    pub fn at(&mut self, row: usize) -> Option<Value> {
        let mut next = 0;
        while let Some(&what) = self.code.get(next) {
            next += 1;
            match what {
                Do::Compute(at) => self.values[at] = compute(&self.steps.steps[at], |a| self.values[a], row)?,
                Do::Draw(at, block) => self.values[at] = Value::Real(self.blocks[block].at(u32::try_from(row).ok()?)),
                Do::Unless(condition, other) if !self.values[condition].mask()? => next = other,
                Do::Unless(..) => {}
                Do::GoOn(other) => next = other,
                Do::Take(at, from) => self.values[at] = self.values[from],
            }
        }
        Some(self.values[self.asked])
    }
}

/// The value of an operation, `value` giving those of its operands.
#[inline]
fn compute(step: &Step<'_>, value: impl Fn(usize) -> Value, row: usize) -> Option<Value> {
    Some(match *step {
        Step::Same(value) => value,
        Step::Index => Value::Real(row as f64),
        Step::Data(ref values) => Value::Real(*values.get(row)?),
        Step::Draw(distribution, draw, step) => {
            Value::Real(distribution.draw(draw, u32::try_from(row).ok()?, value(step).real()? as u64))
        }
        Step::Unary(op, a) => eval_unary(op, value(a))?,
        Step::Approximate(function, tolerance, a) => Value::Real(function.of(tolerance, value(a).real()?)),
        Step::Positive(a) => Value::Mask(value(a).real()? > 0.0),
        Step::Binary(op, a, b) => eval_binary(op, value(a), value(b))?,
        Step::Fma(a, b, c) => eval_fma(value(a), value(b), value(c))?,
        Step::Select(condition, yes, no) => value(if value(condition).mask()? { yes } else { no }),
    })
}

/// What stands where no value is known.
const NOTHING: Value = Value::Mask(false);

/// Appends what computes an operation, each branch of a selection only where it is chosen. False if that is too long.
fn lazily(steps: &Steps<'_>, root: usize, mut known: Vec<bool>, code: &mut Vec<Do>) -> bool {
    for at in needed(steps, root, &known) {
        if code.len() > 16 * steps.steps.len() + 64 {
            return false;
        }
        known[at] = true;
        let Step::Select(condition, yes, no) = steps.steps[at] else {
            code.push(Do::Compute(at));
            continue;
        };
        let unless = code.len();
        code.push(Do::Unless(condition, 0));
        if !lazily(steps, yes, known.clone(), code) {
            return false;
        }
        code.push(Do::Take(at, yes));
        let goes_on = code.len();
        code.push(Do::GoOn(0));
        code[unless] = Do::Unless(condition, code.len());
        if !lazily(steps, no, known.clone(), code) {
            return false;
        }
        code.push(Do::Take(at, no));
        code[goes_on] = Do::GoOn(code.len());
    }
    true
}

/// What is not known of an operation and all that it needs in any case, in order.
fn needed(steps: &Steps<'_>, root: usize, known: &[bool]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut seen = known.to_vec();
    let mut waiting = vec![root];
    while let Some(at) = waiting.pop() {
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        found.push(at);
        match steps.steps[at] {
            Step::Same(_) | Step::Index | Step::Data(_) => {}
            Step::Draw(_, _, a)
            | Step::Unary(_, a)
            | Step::Approximate(_, _, a)
            | Step::Positive(a)
            | Step::Select(a, _, _) => waiting.push(a),
            Step::Binary(_, a, b) => waiting.extend([a, b]),
            Step::Fma(a, b, c) => waiting.extend([a, b, c]),
        }
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAW: Draw = Draw { seed: 3, stream: 5 };

    /// `truncated(normal, -0.5, 0.5)` with so many draws.
    fn truncated(steps: &mut Steps<'_>, draws: u32) -> usize {
        let zero = steps.push(Step::Same(Value::Real(0.0)));
        let [low, high] = [-0.5, 0.5].map(|x| steps.push(Step::Same(Value::Real(x))));
        let drawn: Vec<usize> = (0..draws)
            .map(|i| steps.push(Step::Draw(Distribution::Normal, Draw { stream: DRAW.stream + i, ..DRAW }, zero)))
            .collect();
        let inside: Vec<usize> = drawn
            .iter()
            .map(|&x| {
                let above = steps.push(Step::Binary(BinaryOp::Ge, x, low));
                let below = steps.push(Step::Binary(BinaryOp::Le, x, high));
                steps.push(Step::Binary(BinaryOp::And, above, below))
            })
            .collect();
        let last = drawn[drawn.len() - 1];
        drawn.iter().zip(inside).rev().fold(last, |rest, (&x, inside)| steps.push(Step::Select(inside, x, rest)))
    }

    #[test]
    fn a_draw_is_repeated_until_it_fits() {
        let mut steps = Steps::default();
        let chosen = truncated(&mut steps, 16);
        let twice = steps.push(Step::Binary(BinaryOp::Add, chosen, chosen));
        let mut column = Column::new(&steps, twice);
        for row in 0..1000 {
            let fits = |x: &f64| (-0.5..=0.5).contains(x);
            let stream = |i: u32| Draw { stream: DRAW.stream + i, ..DRAW }.normal(row as u32, 0);
            let expected = (0..16).map(stream).find(fits).unwrap_or(stream(15));
            assert_eq!(column.at(row), Some(Value::Real(expected + expected)), "row {row}");
        }
    }

    #[test]
    fn what_branches_share_is_the_same_in_both() {
        // Selections of selections of the same values: as code with branches it would double with each.
        let mut steps = Steps::default();
        let index = steps.push(Step::Index);
        let mut both = [index, steps.push(Step::Same(Value::Real(-1.0)))];
        for i in 0..40 {
            let limit = steps.push(Step::Same(Value::Real(f64::from(i))));
            let less = steps.push(Step::Binary(BinaryOp::Lt, index, limit));
            let sum = steps.push(Step::Binary(BinaryOp::Add, both[0], both[1]));
            both = [steps.push(Step::Select(less, both[0], sum)), steps.push(Step::Select(less, both[1], both[0]))];
        }
        let mut column = Column::new(&steps, both[0]);
        for row in 0..50 {
            let (mut a, mut b) = (row as f64, -1.0);
            for i in 0..40 {
                (a, b) = if row < i { (a, b) } else { (a + b, a) };
            }
            assert_eq!(column.at(row), Some(Value::Real(a)), "row {row}");
        }
    }

    #[test]
    fn what_is_ill_typed_or_not_there_has_no_value() {
        let mut steps = Steps::default();
        let data = steps.push(Step::Data(Cow::Owned(vec![1.0, 2.0])));
        let not = steps.push(Step::Unary(UnaryOp::Not, data));
        assert_eq!(Column::new(&steps, not).at(0), None);
        let mut column = Column::new(&steps, data);
        assert_eq!([column.at(1), column.at(2)], [Some(Value::Real(2.0)), None]);
    }
}
