//! Optimizers: how numbers move against their slopes, and how fast in which epoch.
//!
//! In come numbers and slopes; out go the numbers a step further.
//! Never true here: it matters what the numbers stand for, or in which precision a network runs: what learns and what is remembered of it is in double
//! precision, so that steps too small for single precision add up, and a training that goes on from a file has the same bits.

use crate::hir::{Optimizer, Schedule};

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
}

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

    /// Remembers what another one of as many numbers did.
    pub fn remember(&mut self, steps: i32, lists: [&[f64]; 2]) {
        self.steps = steps;
        self.first.copy_from_slice(lists[0]);
        self.second.copy_from_slice(lists[1]);
    }

    /// Moves the numbers, at a share of the learning rate.
    pub fn step(&mut self, values: &mut [f64], slopes: &[f64], share: f64) {
        self.steps = self.steps.saturating_add(1);
        match self.how {
            Optimizer::Sgd { lr, momentum } => {
                let lr = lr * share;
                let all = values.iter_mut().zip(slopes).zip(&mut self.first);
                pulp::Arch::new().dispatch(|| {
                    for ((x, g), m) in all {
                        *m = momentum * *m + g;
                        *x -= lr * *m;
                    }
                });
            }
            Optimizer::Adam { lr, beta1, beta2, epsilon, weight_decay } => {
                let lr = lr * share;
                let (of_first, of_second) = (1.0 - beta1.powi(self.steps), 1.0 - beta2.powi(self.steps));
                let both = self.first.iter_mut().zip(&mut self.second);
                let all = values.iter_mut().zip(slopes).zip(both);
                pulp::Arch::new().dispatch(|| {
                    for ((x, g), (m, v)) in all {
                        *m = beta1 * *m + (1.0 - beta1) * g;
                        *v = beta2 * *v + (1.0 - beta2) * g * g;
                        *x -= lr * weight_decay * *x;
                        *x -= lr * (*m / of_first) / ((*v / of_second).sqrt() + epsilon);
                    }
                });
            }
        }
    }
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

/// Scales slopes so that the norm of all of them is at most so large, as `clip_grad_norm_` of PyTorch does.
pub fn clip(slopes: &mut [&mut [f64]], most: f64) {
    let norm = slopes.iter().flat_map(|one| one.iter()).map(|g| g * g).sum::<f64>().sqrt();
    let scale = (most / (norm + 1e-6)).min(1.0);
    if scale < 1.0 {
        slopes.iter_mut().flat_map(|one| one.iter_mut()).for_each(|g| *g *= scale);
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
