//! Double-double arithmetic, slow and plain: the reference for errors in ulp. Good to about 100 bits.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// The unevaluated sum of two numbers, the second at most half a unit in the last place of the first.
#[derive(Clone, Copy, Debug)]
pub struct Dd(pub f64, pub f64);

const LN_2: Dd = Dd(std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17);
const LN_10: Dd = Dd(std::f64::consts::LN_10, -2.170_756_223_382_249_4e-16);
/// `pi / 2` in four parts.
const HALF_PI: [f64; 4] =
    [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17, -1.497_384_904_859_169_8e-33, 5.562_271_104_316_826e-50];

fn two_sum(a: f64, b: f64) -> Dd {
    let sum = a + b;
    let back = sum - a;
    Dd(sum, (a - (sum - back)) + (b - back))
}

impl Add for Dd {
    type Output = Dd;
    fn add(self, other: Dd) -> Dd {
        let head = two_sum(self.0, other.0);
        let tail = two_sum(self.1, other.1);
        let middle = two_sum(head.0, head.1 + tail.0);
        two_sum(middle.0, middle.1 + tail.1)
    }
}
impl Neg for Dd {
    type Output = Dd;
    fn neg(self) -> Dd {
        Dd(-self.0, -self.1)
    }
}
impl Sub for Dd {
    type Output = Dd;
    fn sub(self, other: Dd) -> Dd {
        self + -other
    }
}
impl Mul for Dd {
    type Output = Dd;
    fn mul(self, other: Dd) -> Dd {
        let head = self.0 * other.0;
        let tail = self.0.mul_add(other.0, -head) + (self.0 * other.1 + self.1 * other.0);
        two_sum(head, tail)
    }
}
impl Div for Dd {
    type Output = Dd;
    fn div(self, other: Dd) -> Dd {
        let q = self.0 / other.0;
        let rest = self - other * Dd(q, 0.0);
        let q1 = rest.0 / other.0;
        let rest = rest - other * Dd(q1, 0.0);
        two_sum(q, q1) + Dd(rest.0 / other.0, 0.0)
    }
}

impl Dd {
    const ONE: Dd = Dd(1.0, 0.0);

    fn times(self, power_of_two: f64) -> Dd {
        Dd(self.0 * power_of_two, self.1 * power_of_two)
    }

    /// `x^k / k!` summed from `k = first` in steps of `step`, with alternating signs if asked for.
    fn series(self, first: u32, step: u32, alternating: bool) -> Dd {
        let mut term = Dd::ONE;
        for k in 1..=first {
            term = term * self / Dd(f64::from(k), 0.0);
        }
        let mut sum = term;
        let mut k = first;
        while term.0.abs() > 1e-36 * sum.0.abs() {
            for _ in 0..step {
                k += 1;
                term = term * self / Dd(f64::from(k), 0.0);
            }
            if alternating {
                term = -term;
            }
            sum = sum + term;
        }
        sum
    }

    /// `e^x - 1` without scaling by powers of two: `n` and the rest, for `e^x = 2^n (rest + 1)`.
    fn reduced(self) -> (f64, Dd) {
        let n = (self.0 / LN_2.0).round();
        let r = (self - LN_2 * Dd(n, 0.0)).times(1.0 / 8.0);
        let mut less_one = r.series(1, 1, false);
        for _ in 0..3 {
            less_one = less_one * less_one + less_one.times(2.0);
        }
        (n, less_one)
    }

    pub fn exp(self) -> Dd {
        let (n, less_one) = self.reduced();
        let half = (n / 2.0).floor();
        (less_one + Dd::ONE).times(half.exp2()).times((n - half).exp2())
    }

    pub fn expm1(self) -> Dd {
        if self.0 == 0.0 {
            return self;
        }
        let (n, less_one) = self.reduced();
        if n == 0.0 { less_one } else { self.exp() - Dd::ONE }
    }

    pub fn exp2(self) -> Dd {
        // The integer part is exact; a product with ln 2 would lose its last bits.
        let n = self.0.round();
        let half = (n / 2.0).floor();
        let rest = ((self - Dd(n, 0.0)) * LN_2).exp();
        rest.times(half.exp2()).times((n - half).exp2())
    }

    pub fn exp2m1(self) -> Dd {
        if self.0.abs() < 0.5 { (self * LN_2).expm1() } else { self.exp2() - Dd::ONE }
    }

    pub fn exp2rel(self) -> Dd {
        if self.0 == 0.0 { LN_2 } else { self.exp2m1() / self }
    }

    pub fn ln(self) -> Dd {
        let e = self.0.log2().round();
        let half = (e / 2.0).floor();
        let m = self.times((-half).exp2()).times((half - e).exp2());
        let mut y = Dd(m.0.ln(), 0.0);
        for _ in 0..2 {
            // Newton: y + m e^-y - 1, with the product less one free of cancellation.
            y = y + (m - Dd::ONE + m * (-y).expm1());
        }
        y + LN_2 * Dd(e, 0.0)
    }

    pub fn log2(self) -> Dd {
        self.ln() / LN_2
    }

    pub fn log10(self) -> Dd {
        self.ln() / LN_10
    }

    pub fn pow(self, y: f64) -> Dd {
        (self.ln() * Dd(y, 0.0)).exp()
    }

    fn quadrant(self) -> (i64, Dd, Dd) {
        let n = (self.0 / HALF_PI[0]).round();
        let r = HALF_PI.iter().fold(self, |r, &part| {
            let product = n * part;
            r - Dd(product, n.mul_add(part, -product))
        });
        let sin = if r.0 == 0.0 { r } else { r.series(1, 2, true) };
        (n as i64 & 3, sin, r.series(0, 2, true))
    }

    pub fn sin(self) -> Dd {
        let (n, sin, cos) = self.quadrant();
        [sin, cos, -sin, -cos][n as usize]
    }

    pub fn cos(self) -> Dd {
        let (n, sin, cos) = self.quadrant();
        [cos, -sin, -cos, sin][n as usize]
    }

    pub fn tan(self) -> Dd {
        self.sin() / self.cos()
    }

    pub fn sinh(self) -> Dd {
        // e^-x - 1 = -h / (h + 1) with h = e^x - 1.
        let h = Dd(self.0.abs(), 0.0).expm1();
        let size = (h.times(0.5)) + (h / (h + Dd::ONE)).times(0.5);
        if self.0 < 0.0 { -size } else { size }
    }

    pub fn cosh(self) -> Dd {
        let e = Dd(self.0.abs(), 0.0).exp();
        e.times(0.5) + (Dd::ONE / e).times(0.5)
    }

    pub fn linoid(self) -> Dd {
        if self.0 == 0.0 { Dd(1.0, 0.0) } else { self / self.expm1() }
    }

    pub fn tanh(self) -> Dd {
        let h = self.times(2.0).expm1();
        h / (h + Dd(2.0, 0.0))
    }
}
