//! Optimizers: how numbers move against their slopes, and how fast in which epoch.
//!
//! In come numbers and slopes; out go the numbers a step further, or the function that moves those of a device ([`update`]).
//! Never true here: it matters what the numbers stand for, or a rule is written twice, for the host and for devices.
//!
//! On the host, what learns and what is remembered of it is in double precision, so that steps too small for single precision add up. On a device it has
//! the precision of the run. Either way a training that goes on from a file has the same bits.

use crate::codegen::stablehlo::builder::{
    Binary, Builder, Compare, Element, Function, Literal, TensorType, Unary, Value,
};
use crate::hir::{Optimizer, Schedule};
use crate::simulate::trials::{Gaps, Held};

impl Optimizer {
    /// The optimizer of delays: with a learning rate of their own, if they have one, and without decay, which would pull them to their least.
    pub fn of_delays(self, own: Option<f64>) -> Optimizer {
        match self {
            Optimizer::Sgd { lr, momentum } => Optimizer::Sgd { lr: own.unwrap_or(lr), momentum },
            Optimizer::Adam { lr, beta1, beta2, epsilon, .. } => {
                Optimizer::Adam { lr: own.unwrap_or(lr), beta1, beta2, epsilon, weight_decay: 0.0 }
            }
        }
    }

    /// How many lists of as many numbers as move are remembered.
    pub fn remembers(self) -> usize {
        match self {
            Optimizer::Sgd { .. } => 1,
            Optimizer::Adam { .. } => 2,
        }
    }

    /// What the rule computes with in a step, the first being 1, at a share of the learning rate.
    fn rates(self, step: i32, share: f64) -> Rates<f64> {
        match self {
            Optimizer::Sgd { lr, momentum } => {
                Rates { lr: lr * share, of_first: [momentum, 1.0, 1.0], ..Rates::default() }
            }
            Optimizer::Adam { lr, beta1, beta2, epsilon, weight_decay } => {
                let lr = lr * share;
                let of = |beta: f64| [beta, 1.0 - beta, 1.0 - beta.powi(step)];
                Rates { lr, decay: lr * weight_decay, epsilon, of_first: of(beta1), of_second: of(beta2) }
            }
        }
    }
}

/// What rules compute with: single numbers of the host, or whole arrays of a device.
trait Arithmetic {
    type Number: Copy;
    fn add(&mut self, a: Self::Number, b: Self::Number) -> Self::Number;
    fn subtract(&mut self, a: Self::Number, b: Self::Number) -> Self::Number;
    fn multiply(&mut self, a: Self::Number, b: Self::Number) -> Self::Number;
    fn divide(&mut self, a: Self::Number, b: Self::Number) -> Self::Number;
    fn sqrt(&mut self, a: Self::Number) -> Self::Number;
    /// `a` where it is less than `b`, otherwise `b`.
    fn least(&mut self, a: Self::Number, b: Self::Number) -> Self::Number;
}

/// Numbers of the host.
struct Doubles;

impl Arithmetic for Doubles {
    type Number = f64;

    #[inline(always)]
    fn add(&mut self, a: f64, b: f64) -> f64 {
        a + b
    }

    #[inline(always)]
    fn subtract(&mut self, a: f64, b: f64) -> f64 {
        a - b
    }

    #[inline(always)]
    fn multiply(&mut self, a: f64, b: f64) -> f64 {
        a * b
    }

    #[inline(always)]
    fn divide(&mut self, a: f64, b: f64) -> f64 {
        a / b
    }

    #[inline(always)]
    fn sqrt(&mut self, a: f64) -> f64 {
        a.sqrt()
    }

    #[inline(always)]
    fn least(&mut self, a: f64, b: f64) -> f64 {
        if a < b { a } else { b }
    }
}

impl Arithmetic for Builder {
    type Number = Value;

    fn add(&mut self, a: Value, b: Value) -> Value {
        self.binary(Binary::Add, a, b)
    }

    fn subtract(&mut self, a: Value, b: Value) -> Value {
        self.binary(Binary::Subtract, a, b)
    }

    fn multiply(&mut self, a: Value, b: Value) -> Value {
        self.binary(Binary::Multiply, a, b)
    }

    fn divide(&mut self, a: Value, b: Value) -> Value {
        self.binary(Binary::Divide, a, b)
    }

    fn sqrt(&mut self, a: Value) -> Value {
        self.unary(Unary::Sqrt, a)
    }

    fn least(&mut self, a: Value, b: Value) -> Value {
        let is_less = self.compare(Compare::Lt, a, b);
        self.select(is_less, a, b)
    }
}

/// What a step computes with besides numbers, their slopes and what is remembered.
#[derive(Debug, Clone, Copy, Default)]
struct Rates<N> {
    lr: N,
    /// The learning rate times the decay of weights.
    decay: N,
    epsilon: N,
    /// Of the first list: what stays of it, what comes of a slope, and what it is divided by, since it began at 0.
    of_first: [N; 3],
    /// Of the second.
    of_second: [N; 3],
}

impl<N: Copy> Rates<N> {
    const COUNT: usize = 9;

    fn from([lr, decay, epsilon, a, b, c, d, e, f]: [N; Rates::<()>::COUNT]) -> Rates<N> {
        Rates { lr, decay, epsilon, of_first: [a, b, c], of_second: [d, e, f] }
    }

    fn list(self) -> [N; Rates::<()>::COUNT] {
        let ([a, b, c], [d, e, f]) = (self.of_first, self.of_second);
        [self.lr, self.decay, self.epsilon, a, b, c, d, e, f]
    }
}

/// Gradient descent with momentum: a number and what is remembered, a step further.
#[inline(always)]
fn sgd<A: Arithmetic>(on: &mut A, rates: &Rates<A::Number>, [x, slope, first]: [A::Number; 3]) -> [A::Number; 2] {
    let kept = on.multiply(rates.of_first[0], first);
    let first = on.add(kept, slope);
    let by = on.multiply(rates.lr, first);
    [on.subtract(x, by), first]
}

/// Adam, with decay that knows nothing of slopes.
#[inline(always)]
fn adam<A: Arithmetic>(
    on: &mut A,
    rates: &Rates<A::Number>,
    [x, slope, first, second]: [A::Number; 4],
) -> [A::Number; 3] {
    let ([stays, comes, of_first], [stays_too, comes_too, of_second]) = (rates.of_first, rates.of_second);
    let (kept, new) = (on.multiply(stays, first), on.multiply(comes, slope));
    let first = on.add(kept, new);
    let (kept, new) = (on.multiply(stays_too, second), on.multiply(comes_too, slope));
    let new = on.multiply(new, slope);
    let second = on.add(kept, new);
    let decayed = on.multiply(rates.decay, x);
    let x = on.subtract(x, decayed);
    let mean = on.divide(first, of_first);
    let above = on.multiply(rates.lr, mean);
    let below = on.divide(second, of_second);
    let below = on.sqrt(below);
    let below = on.add(below, rates.epsilon);
    let by = on.divide(above, below);
    [on.subtract(x, by), first, second]
}

/// What slopes are scaled by so that the norm of all of them, of which the squares are given, is at most so large, as `clip_grad_norm_` of PyTorch does.
fn scale<A: Arithmetic>(on: &mut A, most: A::Number, squares: A::Number, [tiny, one]: [A::Number; 2]) -> A::Number {
    let norm = on.sqrt(squares);
    let norm = on.add(norm, tiny);
    let scale = on.divide(most, norm);
    on.least(scale, one)
}

/// What keeps a norm from 0, and what slopes that are short enough are scaled by.
const OF_SCALE: [f64; 2] = [1e-6, 1.0];

/// An optimizer of one list of numbers, with what it remembers.
#[derive(Debug, Clone, PartialEq)]
pub struct Moving {
    how: Optimizer,
    /// Means of slopes, or the last step.
    first: Vec<f64>,
    /// Means of their squares.
    second: Vec<f64>,
    steps: i32,
}

impl Moving {
    /// For so many numbers.
    pub fn new(how: Optimizer, count: usize) -> Moving {
        Moving { how, first: vec![0.0; count], second: vec![0.0; count], steps: 0 }
    }

    /// How many steps have been made, and what is remembered of them: two lists of as many numbers as move.
    pub fn memory(&self) -> (i32, [&[f64]; 2]) {
        (self.steps, [&self.first, &self.second])
    }

    /// How many lists of numbers its rule keeps.
    pub fn remembers(&self) -> usize {
        self.how.remembers()
    }

    /// Remembers what another one of as many numbers did.
    pub fn remember(&mut self, steps: i32, lists: [&[f64]; 2]) {
        self.steps = steps;
        self.first.copy_from_slice(lists[0]);
        self.second.copy_from_slice(lists[1]);
    }

    /// The last argument of [`update`] for the step to come: at a share of the learning rate; the norm of all slopes is at most so large; the squares of
    /// slopes that are not on the device add up to so much.
    pub fn numbers(&self, share: f64, most: Option<f64>, squares: f64) -> Vec<f64> {
        let rates = self.how.rates(self.steps.saturating_add(1), share).list();
        rates.into_iter().chain([most.unwrap_or(f64::INFINITY), squares]).collect()
    }

    /// Moves the numbers, at a share of the learning rate.
    pub fn step(&mut self, values: &mut [f64], slopes: &[f64], share: f64) {
        self.steps = self.steps.saturating_add(1);
        let rates = self.how.rates(self.steps, share);
        match self.how {
            Optimizer::Sgd { .. } => {
                let all = values.iter_mut().zip(slopes).zip(&mut self.first);
                pulp::Arch::new().dispatch(|| {
                    for ((x, g), m) in all {
                        [*x, *m] = sgd(&mut Doubles, &rates, [*x, *g, *m]);
                    }
                });
            }
            Optimizer::Adam { .. } => {
                let both = self.first.iter_mut().zip(&mut self.second);
                let all = values.iter_mut().zip(slopes).zip(both);
                pulp::Arch::new().dispatch(|| {
                    for ((x, g), (m, v)) in all {
                        [*x, *m, *v] = adam(&mut Doubles, &rates, [*x, *g, *m, *v]);
                    }
                });
            }
        }
    }
}

/// A step of numbers that live on a device. Arguments: of each array its numbers and the lists that are remembered, all of which are given to the results
/// of the same places; the masks of those that have some; the slopes of each; and [`Moving::numbers`]. With `clips` the last result is what slopes were
/// scaled by, those elsewhere too.
pub fn update(how: Optimizer, clips: bool, held: &[Held]) -> Function {
    let mut b = Builder::new("main");
    let lists = 1 + how.remembers();
    let mut place = 0..;
    let all: Vec<Vec<Value>> =
        held.iter().map(|one| (0..lists).map(|_| b.argument(one.ty.clone(), place.next())).collect()).collect();
    let mask = |b: &mut Builder, one: &Held| b.argument(TensorType::new(Element::Bool, &one.ty.dims), None);
    let masks: Vec<Option<Value>> =
        held.iter().map(|one| (one.gaps == Gaps::Masked).then(|| mask(&mut b, one))).collect();
    let slopes: Vec<Value> = held.iter().map(|one| b.argument(one.slopes(), None)).collect();
    let numbers = b.argument(TensorType::new(Element::F64, &[Rates::<()>::COUNT + 2]), None);
    let numbers: Vec<Value> = (0..b.dims(numbers)[0])
        .map(|at| {
            let one = b.slice(numbers, &[at], &[at + 1]);
            b.reshape(one, &[])
        })
        .collect();
    let slopes: Vec<Value> = (slopes.into_iter().zip(held).zip(&masks))
        .map(|((slopes, one), mask)| {
            let filled = one.filled(&mut b, slopes, *mask);
            one.times(&mut b, filled, one.unit)
        })
        .collect();
    let scale = clips.then(|| {
        let [most, mut squares] = [numbers[Rates::<()>::COUNT], numbers[Rates::<()>::COUNT + 1]];
        for &slopes in &slopes {
            let doubles = b.convert(slopes, Element::F64);
            let mut own = b.multiply(doubles, doubles);
            while !b.dims(own).is_empty() {
                own = b.reduce(Binary::Add, own, b.dims(own).len() - 1);
            }
            squares = b.add(squares, own);
        }
        let constants = OF_SCALE.map(|x| b.constant(Literal::Real(x), Element::F64, &[]));
        scale(&mut b, most, squares, constants)
    });
    let mut results = Vec::new();
    for (((lists, one), mask), mut slopes) in all.iter().zip(held).zip(&masks).zip(slopes) {
        let everywhere = |b: &mut Builder, number: Value| {
            let number = b.convert(number, one.ty.element);
            b.broadcast(number, &one.ty.dims, &[])
        };
        if let Some(scale) = scale {
            let scale = everywhere(&mut b, scale);
            slopes = b.multiply(slopes, scale);
        }
        let rates = Rates::from(std::array::from_fn(|at| everywhere(&mut b, numbers[at])));
        let mut lists = lists.clone();
        lists[0] = one.times(&mut b, lists[0], 1.0 / one.unit);
        let mut moved = match (how, &lists[..]) {
            (Optimizer::Sgd { .. }, &[x, first]) => sgd(&mut b, &rates, [x, slopes, first]).to_vec(),
            (Optimizer::Adam { .. }, &[x, first, second]) => adam(&mut b, &rates, [x, slopes, first, second]).to_vec(),
            (how, lists) => panic!("{how:?} remembers other than {} lists", lists.len() - 1),
        };
        let moved_there = one.times(&mut b, moved[0], one.unit);
        let held = one.held(&mut b, moved_there);
        moved[0] = one.only(&mut b, held, *mask);
        results.extend(moved);
    }
    results.extend(scale);
    b.finish(results)
}

/// The share of the learning rate that is left in an epoch, the first being 0: what PyTorch's schedulers of these names give that are stepped after each
/// epoch. A cosine stays at its floor after the last of the epochs.
pub fn share(schedule: Schedule, epoch: u64, epochs: usize) -> f64 {
    match schedule {
        Schedule::Constant => 1.0,
        Schedule::Cosine { floor } => {
            let phase = std::f64::consts::PI * (epoch as f64 / epochs as f64).min(1.0);
            floor + (1.0 - floor) * (1.0 + phase.cos()) / 2.0
        }
        Schedule::Step { every, factor } => factor.powf((epoch as f64 / every).floor()),
        Schedule::Exponential { factor } => factor.powf(epoch as f64),
    }
}

/// The sum of the squares of slopes.
pub fn squares(slopes: &[&mut [f64]]) -> f64 {
    slopes.iter().flat_map(|one| one.iter()).map(|g| g * g).sum()
}

/// Scales slopes so that the norm of all of them is at most so large.
pub fn clip(slopes: &mut [&mut [f64]], most: f64) {
    shrink(slopes, scale(&mut Doubles, most, squares(slopes), OF_SCALE));
}

/// Scales slopes.
pub fn shrink(slopes: &mut [&mut [f64]], by: f64) {
    if by < 1.0 {
        slopes.iter_mut().flat_map(|one| one.iter_mut()).for_each(|g| *g *= by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three steps of a number that begins at 1, with the slopes 0.5, -0.25 and 2: by PyTorch 2.15's `torch.optim` in double precision.
    #[test]
    fn steps_are_those_of_pytorch() {
        let adam = |weight_decay| Optimizer::Adam { lr: 0.1, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay };
        let cases = [
            (Optimizer::Sgd { lr: 0.1, momentum: 0.0 }, [0.95, 0.975, 0.775]),
            (Optimizer::Sgd { lr: 0.1, momentum: 0.9 }, [0.95, 0.93, 0.712]),
            (adam(0.0), ADAM),
            (adam(0.01), ADAMW),
        ];
        for (how, expected) in cases {
            let mut moving = Moving::new(how, 1);
            let mut x = [1.0];
            for (slope, expected) in [0.5, -0.25, 2.0].into_iter().zip(expected) {
                moving.step(&mut x, &[slope], 1.0);
                assert!((x[0] - expected).abs() < 1e-14, "{how:?}: {}, not {expected}", x[0]);
            }
        }
    }

    /// The first five learning rates by PyTorch's `torch.optim.lr_scheduler`, from 1, in double precision.
    #[test]
    fn schedules_are_those_of_pytorch() {
        let cases = [
            (Schedule::Constant, [1.0; 5]),
            (Schedule::Cosine { floor: 0.1 }, COSINE),
            (Schedule::Step { every: 2.0, factor: 0.5 }, [1.0, 1.0, 0.5, 0.5, 0.25]),
            (Schedule::Exponential { factor: 0.9 }, [1.0, 0.9, 0.81, 0.729, 0.6561]),
        ];
        for (schedule, expected) in cases {
            for (epoch, expected) in (0..).zip(expected) {
                let found = share(schedule, epoch, 4);
                assert!((found - expected).abs() < 1e-15, "{schedule:?} in epoch {epoch}: {found}, not {expected}");
            }
        }
        assert_eq!(share(Schedule::Cosine { floor: 0.1 }, 7, 4), share(Schedule::Cosine { floor: 0.1 }, 4, 4));
    }

    /// `torch.nn.utils.clip_grad_norm_` of two lists, in double precision.
    #[test]
    fn slopes_are_clipped_as_by_pytorch() {
        let clipped = |most: f64| {
            let (mut a, mut b) = ([3.0, 0.0], [-4.0]);
            clip(&mut [&mut a, &mut b], most);
            [a[0], a[1], b[0]]
        };
        assert_eq!(clipped(6.0), [3.0, 0.0, -4.0]);
        for (found, expected) in clipped(1.0).into_iter().zip(CLIPPED) {
            assert!((found - expected).abs() < 1e-15, "{found}, not {expected}");
        }
    }

    const COSINE: [f64; 5] = [1.0, 0.8681980515339464, 0.55, 0.2318019484660536, 0.1];
    const CLIPPED: [f64; 3] = [0.599999880000024, 0.0, -0.799999840000032];
    const ADAM: [f64; 3] = [0.900000002, 0.8733662987078463, 0.8063015345291531];
    const ADAMW: [f64; 3] = [0.899000002, 0.8714672987058463, 0.8035310672284472];
}
