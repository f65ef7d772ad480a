//! One step of Rodas5P, a Rosenbrock method of order 5 with an error estimate of order 4 and dense output.
//!
//! In come the equations `M y' = f(t, y)`, their values and slopes at the start of a step, and its length; out go the values at its end, an estimate of
//! their error, and what is needed to interpolate between. Never true here: a length is chosen, or an equation iterated.
//!
//! G. Steinebach, Construction of Rosenbrock-Wanner method Rodas5P and numerical benchmarks within the Julia Differential Equations package, BIT Numer
//! Math 63:27 (2023). It is L-stable, of order 5 for equations without derivatives (`M` has zeros on its diagonal: nodes of cables, clamps) too, and
//! begins again after an event without a start-up.

/// The stages.
const STAGES: usize = 8;
/// What stands before the slopes.
pub const GAMMA: f64 = 0.21193756319429014;
/// Where stages look.
const A: [[f64; 7]; STAGES] = [
    [0.0; 7],
    [3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    [2.849394379747939, 0.45842242204463923, 0.0, 0.0, 0.0, 0.0, 0.0],
    [-6.954028509809101, 2.489845061869568, -10.358996098473584, 0.0, 0.0, 0.0, 0.0],
    [2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641, 0.0, 0.0, 0.0],
    LAST,
    [LAST[0], LAST[1], LAST[2], LAST[3], LAST[4], 1.0, 0.0],
    [LAST[0], LAST[1], LAST[2], LAST[3], LAST[4], 1.0, 1.0],
];
const LAST: [f64; 7] =
    [-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256, 0.030198172008377946, 0.0, 0.0];
/// What stages take over from earlier ones.
const C: [[f64; 7]; STAGES] = [
    [0.0; 7],
    [-14.155112264123755, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    [-17.97296035885952, -2.859693295451294, 0.0, 0.0, 0.0, 0.0, 0.0],
    [147.12150275711716, -1.41221402718213, 71.68940251302358, 0.0, 0.0, 0.0, 0.0],
    [165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306, 0.0, 0.0, 0.0],
    [24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125, -0.6610691825249471, 0.0, 0.0],
    [
        30.91273214028599,
        -3.1208243349937974,
        77.79954646070892,
        34.28646028294783,
        -19.097331116725623,
        -28.087943162872662,
        0.0,
    ],
    [
        37.80277123390563,
        -3.2571969029072276,
        112.26918849496327,
        66.9347231244047,
        -40.06618937091002,
        -54.66780262877968,
        -9.48861652309627,
    ],
];
/// When stages look.
const TIMES: [f64; STAGES] =
    [0.0, 0.6358126895828704, 0.4095798393397535, 0.9769306725060716, 0.4288403609558664, 1.0, 1.0, 1.0];
/// What stages take of the derivative in the time.
const D: [f64; STAGES] =
    [GAMMA, -0.42387512638858027, -0.3384627126235924, 1.8046452872882734, 2.325825639765069, 0.0, 0.0, 0.0];
/// The polynomials between start and end.
const H: [[f64; STAGES]; 3] = [
    [
        25.948786856663858,
        -2.5579724845846235,
        10.433815404888879,
        -2.3679251022685204,
        0.524948541321073,
        1.1241088310450404,
        0.4272876194431874,
        -0.17202221070155493,
    ],
    [
        -9.91568850695171,
        -0.9689944594115154,
        3.0438037242978453,
        -24.495224566215796,
        20.176138334709044,
        15.98066361424651,
        -6.789040303419874,
        -6.710236069923372,
    ],
    [
        11.419903575922262,
        2.8879645146136994,
        72.92137995996029,
        80.12511834622643,
        -52.072871366152654,
        -59.78993625266729,
        -0.15582684282751913,
        4.883087185713722,
    ],
];

/// The equations as a step sees them.
pub trait Equations {
    /// `f(t, y)`.
    fn rates(&mut self, t: f64, y: &[f64], f: &mut [f64]);
    /// Solves `(M / (GAMMA h) - J) x = right` for the length that was factored last.
    fn solve(&mut self, right: &mut [f64]);
    /// The diagonal of `M`.
    fn mass(&self) -> &[f64];
}

/// A step, and the room that it needs.
#[derive(Debug, Clone, Default)]
pub struct Step {
    /// When it begins.
    pub t: f64,
    /// Its length.
    pub h: f64,
    /// The values at its start.
    pub before: Vec<f64>,
    /// The values at its end.
    pub after: Vec<f64>,
    /// How far these may be off.
    pub error: Vec<f64>,
    stages: [Vec<f64>; STAGES],
    between: [Vec<f64>; 3],
}

impl Step {
    /// Room for so many values.
    pub fn new(size: usize) -> Step {
        let room = || vec![0.0; size];
        Step {
            t: 0.0,
            h: 0.0,
            before: room(),
            after: room(),
            error: room(),
            stages: std::array::from_fn(|_| room()),
            between: std::array::from_fn(|_| room()),
        }
    }

    /// Takes a step from `before` at `t`, where the rates are `rates` and their derivatives in the time, if they have some, `in_time`.
    pub fn take(&mut self, equations: &mut impl Equations, h: f64, rates: &[f64], in_time: Option<&[f64]>) {
        self.h = h;
        let size = rates.len();
        for stage in 0..STAGES {
            let (done, rest) = self.stages.split_at_mut(stage);
            let own = &mut rest[0];
            let point = &mut self.after;
            point.copy_from_slice(&self.before);
            for (j, k) in done.iter().enumerate() {
                let a = A[stage][j];
                if a != 0.0 {
                    point.iter_mut().zip(k).for_each(|(x, k)| *x += a * k);
                }
            }
            match stage {
                0 => own.copy_from_slice(rates),
                _ => equations.rates(self.t + TIMES[stage] * h, point, own),
            }
            let mass = equations.mass();
            for (j, k) in done.iter().enumerate() {
                let c = C[stage][j] / h;
                if c != 0.0 {
                    (0..size).for_each(|i| own[i] += c * mass[i] * k[i]);
                }
            }
            if let (Some(in_time), true) = (in_time, D[stage] != 0.0) {
                own.iter_mut().zip(in_time).for_each(|(x, slope)| *x += h * D[stage] * slope);
            }
            equations.solve(own);
        }
        let last = &self.stages[STAGES - 1];
        self.error.copy_from_slice(last);
        self.after.iter_mut().zip(last).for_each(|(x, k)| *x += k);
    }

    /// Gets ready to interpolate.
    pub fn prepare(&mut self) {
        for (between, weights) in self.between.iter_mut().zip(&H) {
            between.fill(0.0);
            for (k, weight) in self.stages.iter().zip(weights) {
                between.iter_mut().zip(k).for_each(|(x, k)| *x += weight * k);
            }
        }
    }

    /// The value of an unknown at a time within the step, once it is [prepared](Step::prepare).
    pub fn at(&self, unknown: usize, t: f64) -> f64 {
        let part = ((t - self.t) / self.h).clamp(0.0, 1.0);
        let rest = 1.0 - part;
        let [first, second, third] = [0, 1, 2].map(|k| self.between[k][unknown]);
        rest * self.before[unknown] + part * (self.after[unknown] + rest * (first + part * (second + part * third)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `x' = -x^2 + y + cos t, 0 = z - x y, y' = -50 (y - z)`, dense.
    struct Small {
        jacobian: [[f64; 3]; 3],
        h: f64,
    }

    impl Equations for Small {
        fn rates(&mut self, t: f64, y: &[f64], f: &mut [f64]) {
            f[0] = -y[0] * y[0] + y[1] + t.cos();
            f[1] = -50.0 * (y[1] - y[2]);
            f[2] = y[2] - y[0] * y[1] - 0.1 * t.sin();
        }

        fn solve(&mut self, right: &mut [f64]) {
            let mut m = [[0.0; 4]; 3];
            for (i, row) in m.iter_mut().enumerate() {
                (0..3).for_each(|j| row[j] = -self.jacobian[i][j]);
                row[i] += self.mass()[i] / (GAMMA * self.h);
                row[3] = right[i];
            }
            for i in 0..3 {
                for j in 0..3 {
                    if i != j {
                        let share = m[j][i] / m[i][i];
                        (0..4).for_each(|k| m[j][k] -= share * m[i][k]);
                    }
                }
            }
            (0..3).for_each(|i| right[i] = m[i][3] / m[i][i]);
        }

        fn mass(&self) -> &[f64] {
            &[1.0, 1.0, 0.0]
        }
    }

    fn run(steps: u32) -> [f64; 4] {
        let (mut equations, mut step) = (Small { jacobian: [[0.0; 3]; 3], h: 0.0 }, Step::new(3));
        let h = 1.0 / f64::from(steps);
        let mut y = vec![0.5, 0.3, 0.15];
        let mut middle = 0.0;
        for k in 0..steps {
            let t = f64::from(k) * h;
            equations.h = h;
            equations.jacobian = [[-2.0 * y[0], 1.0, 0.0], [0.0, -50.0, 50.0], [-y[1], -y[0], 1.0]];
            let mut f = vec![0.0; 3];
            equations.rates(t, &y, &mut f);
            step.t = t;
            step.before.copy_from_slice(&y);
            step.take(&mut equations, h, &f, Some(&[-t.sin(), 0.0, -0.1 * t.cos()]));
            step.prepare();
            if t <= 0.47013 && 0.47013 < t + h {
                middle = step.at(0, 0.47013);
            }
            y.copy_from_slice(&step.after);
        }
        [y[0], y[1], y[2], middle]
    }

    #[test]
    fn the_order_is_five_also_between_and_without_derivatives() {
        let exact = run(4000);
        let off = |steps: u32| -> [f64; 4] {
            let got = run(steps);
            std::array::from_fn(|i| (got[i] - exact[i]).abs())
        };
        let (coarse, fine) = (off(160), off(320));
        for i in 0..3 {
            let order = (coarse[i] / fine[i]).log2();
            assert!(order > 4.6, "unknown {i}: {} and {}, order {order}", coarse[i], fine[i]);
        }
        let between = (coarse[3] / fine[3]).log2();
        assert!(between > 3.6, "between: {} and {}", coarse[3], fine[3]);
    }
}
