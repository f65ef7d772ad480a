//! Values of many rows (cells or edges), computed where they are needed.
//!
//! In come operations, operands first; out goes the value of any of them in one row after the other. What all rows need is computed for many
//! at once; a branch of a selection, in the rows that choose it.
//! Never true here: a value depends on another row.

use super::{BinaryOp, Distribution, UnaryOp, Value, eval_binary, eval_fma, eval_unary};
use crate::runtime::lanes::Lanes;
use crate::runtime::math::approximate::{Function as Elementary, Tolerance};
use crate::runtime::rng::Draw;
use std::borrow::Cow;
use std::ops::Range;

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

impl Step<'_> {
    /// The places of its operands.
    fn operands(&self) -> Vec<usize> {
        match *self {
            Step::Same(_) | Step::Index | Step::Data(_) => Vec::new(),
            Step::Draw(_, _, a) | Step::Unary(_, a) | Step::Approximate(_, _, a) | Step::Positive(a) => vec![a],
            Step::Binary(_, a, b) => vec![a, b],
            Step::Fma(a, b, c) | Step::Select(a, b, c) => vec![a, b, c],
        }
    }
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
            Step::Unary(..)
            | Step::Approximate(..)
            | Step::Positive(_)
            | Step::Binary(..)
            | Step::Fma(..)
            | Step::Select(..) => step.operands().into_iter().any(|operand| self.varies(operand)),
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

/// One operation in many rows.
///
/// Of a draw that is repeated until it is within its limits, as many are drawn as it takes.
#[derive(Debug)]
pub struct Column<'s, 'a> {
    steps: &'s Steps<'a>,
    asked: usize,
    code: Vec<Do>,
    parts: Vec<Part>,
    /// Of every operation, what it is in one row, if that is the same in all or within a fork.
    values: Vec<Value>,
    /// And in the present rows, if these are computed together.
    together: Vec<Option<Values>>,
}

/// How many rows are computed together.
const ROWS: usize = 64;

/// The values of an operation in some rows.
#[derive(Debug)]
enum Values {
    Reals(Vec<f64>),
    Masks(Vec<bool>),
    Others(Vec<Value>),
}

impl Values {
    /// So many values, all of one type.
    #[inline(always)]
    fn new(rows: usize, value: impl Fn(usize) -> Option<Value>) -> Option<Values> {
        Some(match value(0)? {
            Value::Real(_) => {
                let mut all = vec![0.0; rows];
                for (row, x) in all.iter_mut().enumerate() {
                    *x = value(row)?.real()?;
                }
                Values::Reals(all)
            }
            Value::Mask(_) => {
                let mut all = vec![false; rows];
                for (row, x) in all.iter_mut().enumerate() {
                    *x = value(row)?.mask()?;
                }
                Values::Masks(all)
            }
            Value::Single(_) => Values::Others((0..rows).map(value).collect::<Option<_>>()?),
        })
    }

    fn at(&self, row: usize) -> Value {
        match self {
            Values::Reals(all) => Value::Real(all[row]),
            Values::Masks(all) => Value::Mask(all[row]),
            Values::Others(all) => all[row],
        }
    }
}

/// Standard draws of rows, made with the widest vectors that there are.
struct Fill<'v> {
    distribution: Distribution,
    draw: Draw,
    step: u64,
    first: usize,
    /// Whole groups of eight.
    values: &'v mut [f64],
}

impl pulp::NullaryFnOnce for Fill<'_> {
    type Output = ();

    // A closure would be too large to become part of the function that may use all vectors.
    #[inline(always)]
    fn call(self) {
        let Fill { distribution, draw, step, first, values } = self;
        for (first, values) in (first..).step_by(8).zip(values.chunks_exact_mut(8)) {
            let rows = std::array::from_fn(|i| (first + i) as u32);
            let [drawn] = match distribution {
                Distribution::Uniform => draw.uniform_lanes([rows], step),
                Distribution::Normal => draw.normal_lanes([rows], step),
                Distribution::Exponential => draw.exponential_lanes([rows], step),
            };
            drawn.store(values);
        }
    }
}

/// What is done for some rows.
#[derive(Debug)]
enum Part {
    /// An operation that every row needs.
    All(usize),
    /// A selection, each of whose branches is computed in the rows that choose it.
    Fork {
        at: usize,
        /// What it takes.
        code: Range<usize>,
        /// The values that this reads and all rows have.
        reads: Vec<usize>,
        /// The condition, and what is chosen where it is true, if that is there already.
        ready: Option<(usize, usize)>,
    },
}

/// What is done for a row.
#[derive(Debug, Clone, Copy)]
enum Do {
    Compute(usize),
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
        let together = values.iter().map(|_| None).collect();
        let parts = parts(steps, &code);
        Column { steps, asked, code, parts, values, together }
    }

    /// Tells its numbers in rows; `None` if something is ill-typed or not there.
    pub fn reals(&mut self, rows: Range<usize>, mut take: impl FnMut(usize, f64)) -> Option<()> {
        let end = rows.end;
        for first in rows.step_by(ROWS) {
            let count = ROWS.min(end - first);
            // Rows are told apart by 32 bits.
            u32::try_from(first + count - 1).ok()?;
            for at in 0..self.parts.len() {
                let (at, values) = match &self.parts[at] {
                    &Part::All(at) => (at, self.all(at, first, count)?),
                    Part::Fork { .. } => self.fork(at, first, count)?,
                };
                self.together[at] = Some(values);
            }
            for row in 0..count {
                take(first + row, self.value(self.asked, row).real()?);
            }
        }
        Some(())
    }

    /// The value of an operation in one of the present rows.
    #[inline(always)]
    fn value(&self, at: usize, row: usize) -> Value {
        self.together[at].as_ref().map_or(self.values[at], |values| values.at(row))
    }

    /// Its numbers in the present rows, if they are numbers of double precision.
    fn numbers(&self, at: usize, count: usize) -> Option<Cow<'_, [f64]>> {
        match &self.together[at] {
            Some(Values::Reals(all)) => Some(Cow::Borrowed(all)),
            Some(Values::Masks(_) | Values::Others(_)) => None,
            None => Some(Cow::Owned(vec![self.values[at].real()?; count])),
        }
    }

    /// The values of an operation in some rows.
    fn all(&self, at: usize, first: usize, count: usize) -> Option<Values> {
        match self.steps.steps[at] {
            Step::Data(ref values) => return Some(Values::Reals(values.get(first..first + count)?.to_vec())),
            Step::Draw(distribution, draw, step) if !self.steps.varies(step) => {
                let step = self.values[step].real()? as u64;
                let mut values = vec![0.0; count.next_multiple_of(8)];
                pulp::Arch::new().dispatch(Fill { distribution, draw, step, first, values: &mut values });
                values.truncate(count);
                return Some(Values::Reals(values));
            }
            Step::Binary(op, a, b) => {
                if let (Some(a), Some(b)) = (self.numbers(a, count), self.numbers(b, count)) {
                    return binary(op, &a, &b);
                }
            }
            Step::Same(_)
            | Step::Index
            | Step::Draw(..)
            | Step::Unary(..)
            | Step::Approximate(..)
            | Step::Positive(_)
            | Step::Fma(..)
            | Step::Select(..) => {}
        }
        Values::new(count, |row| compute(&self.steps.steps[at], |a| self.value(a, row), first + row))
    }

    /// What is selected in some rows.
    fn fork(&mut self, part: usize, first: usize, count: usize) -> Option<(usize, Values)> {
        let Column { steps, code, parts, values, together, .. } = self;
        let Part::Fork { at, code: range, reads, ready } = &parts[part] else { return None };
        let value = |values: &[Value], at: usize, row: usize| -> Value {
            together[at].as_ref().map_or(values[at], |values| values.at(row))
        };
        let mut chosen = Vec::with_capacity(count);
        for row in 0..count {
            if let &Some((condition, yes)) = ready
                && value(values, condition, row).mask()?
            {
                chosen.push(value(values, yes, row));
                continue;
            }
            for &read in reads {
                values[read] = value(values, read, row);
            }
            let mut next = range.start;
            while next < range.end {
                let what = code[next];
                next += 1;
                match what {
                    Do::Compute(at) => values[at] = compute(&steps.steps[at], |a| values[a], first + row)?,
                    Do::Unless(condition, other) if !values[condition].mask()? => next = other,
                    Do::Unless(..) => {}
                    Do::GoOn(other) => next = other,
                    Do::Take(at, from) => values[at] = values[from],
                }
            }
            chosen.push(values[*at]);
        }
        Some((*at, Values::new(count, |row| Some(chosen[row]))?))
    }
}

/// A binary operation in some rows. In each loop the operation is known.
fn binary(op: BinaryOp, a: &[f64], b: &[f64]) -> Option<Values> {
    macro_rules! of_op {
        ($($op:ident)*) => {
            match op {
                $(BinaryOp::$op => {
                    Values::new(a.len().min(b.len()), |row| {
                        eval_binary(BinaryOp::$op, Value::Real(a[row]), Value::Real(b[row]))
                    })
                })*
            }
        };
    }
    of_op!(Add Sub Mul Div Pow Min Max Lt Le Gt Ge Eq Ne And Or Poisson)
}

/// What of the code all rows go through, and where they part.
fn parts(steps: &Steps<'_>, code: &[Do]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut together = vec![false; steps.steps.len()];
    let mut next = 0;
    while let Some(&what) = code.get(next) {
        let at = match what {
            Do::Compute(at) => {
                parts.push(Part::All(at));
                next += 1;
                at
            }
            Do::Unless(condition, no) => {
                // The branch of those who choose it ends with a jump behind the other one, whose last words say what is selected.
                let (Do::GoOn(end), Do::Take(at, yes)) = (code[no - 1], code[no - 2]) else { return parts };
                let mut reads: Vec<usize> = code[next..end].iter().flat_map(|what| what.reads(steps)).collect();
                reads.sort_unstable();
                reads.dedup();
                reads.retain(|&read| together[read]);
                let is_there = |at: usize| together[at] || !steps.varies(at);
                let ready = (next + 3 == no && is_there(yes)).then_some((condition, yes));
                parts.push(Part::Fork { at, code: next..end, reads, ready });
                next = end;
                at
            }
            // They stand inside of forks.
            Do::GoOn(_) | Do::Take(..) => return parts,
        };
        together[at] = true;
    }
    parts
}

impl Do {
    /// The operations whose values it reads.
    fn reads(self, steps: &Steps<'_>) -> Vec<usize> {
        match self {
            Do::Compute(at) => steps.steps[at].operands(),
            Do::Unless(read, _) | Do::Take(_, read) => vec![read],
            Do::GoOn(_) => Vec::new(),
        }
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
            // Of what is selected it needs one.
            Step::Select(condition, ..) => waiting.push(condition),
            ref step => waiting.extend(step.operands()),
        }
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAW: Draw = Draw { seed: 3, stream: 5 };

    /// The number in a row, alone; and with those around it, which is the same.
    fn at(column: &mut Column<'_, '_>, row: usize) -> Option<f64> {
        let mut found = None;
        column.reals(row..row + 1, |_, x| found = Some(x))?;
        let mut among = None;
        let around = row.saturating_sub(70)..row + 1;
        column.reals(around, |other, x| {
            if other == row {
                among = Some(x)
            }
        })?;
        assert_eq!(found, among, "row {row}");
        found
    }

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
            assert_eq!(at(&mut column, row), Some(expected + expected), "row {row}");
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
            assert_eq!(at(&mut column, row), Some(a), "row {row}");
        }
    }

    #[test]
    fn what_is_ill_typed_or_not_there_has_no_value() {
        let mut steps = Steps::default();
        let data = steps.push(Step::Data(Cow::Owned(vec![1.0, 2.0])));
        let not = steps.push(Step::Unary(UnaryOp::Not, data));
        assert_eq!(at(&mut Column::new(&steps, not), 0), None);
        let mut column = Column::new(&steps, data);
        assert_eq!([at(&mut column, 1), at(&mut column, 2)], [Some(2.0), None]);
    }
}
