//! Optimizers: how numbers move against their slopes.
//!
//! In come numbers and slopes; out go the numbers a step further.
//! Never true here: it matters what the numbers stand for.

use crate::hir::Optimizer;

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

    /// Moves the numbers.
    pub fn step(&mut self, values: &mut [f64], slopes: &[f64]) {
        self.steps = self.steps.saturating_add(1);
        match self.how {
            Optimizer::Sgd { lr, momentum } => {
                for ((x, g), m) in values.iter_mut().zip(slopes).zip(&mut self.first) {
                    *m = momentum * *m + g;
                    *x -= lr * *m;
                }
            }
            Optimizer::Adam { lr, beta1, beta2, epsilon, weight_decay } => {
                let (of_first, of_second) = (1.0 - beta1.powi(self.steps), 1.0 - beta2.powi(self.steps));
                let both = self.first.iter_mut().zip(&mut self.second);
                for ((x, g), (m, v)) in values.iter_mut().zip(slopes).zip(both) {
                    *m = beta1 * *m + (1.0 - beta1) * g;
                    *v = beta2 * *v + (1.0 - beta2) * g * g;
                    *x -= lr * weight_decay * *x;
                    *x -= lr * (*m / of_first) / ((*v / of_second).sqrt() + epsilon);
                }
            }
        }
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
                moving.step(&mut x, &[slope]);
                assert!((x[0] - expected).abs() < 1e-14, "{how:?}: {}, not {expected}", x[0]);
            }
        }
    }

    const ADAM: [f64; 3] = [0.900000002, 0.8733662987078463, 0.8063015345291531];
    const ADAMW: [f64; 3] = [0.899000002, 0.8714672987058463, 0.8035310672284472];
}
