//! Stands in for the runtime's functions until the runtime is here; removed then.
#![allow(missing_docs, dead_code)]
pub mod math {
    pub fn exp(x: f64) -> f64 {
        x.exp()
    }
    pub fn exp2(x: f64) -> f64 {
        x.exp2()
    }
    pub fn expm1(x: f64) -> f64 {
        x.exp_m1()
    }
    pub fn exp2m1(x: f64) -> f64 {
        (x * std::f64::consts::LN_2).exp_m1()
    }
    pub fn ln(x: f64) -> f64 {
        x.ln()
    }
    pub fn log2(x: f64) -> f64 {
        x.log2()
    }
    pub fn log10(x: f64) -> f64 {
        x.log10()
    }
    pub fn pow(x: f64, y: f64) -> f64 {
        x.powf(y)
    }
    pub fn sin(x: f64) -> f64 {
        x.sin()
    }
    pub fn cos(x: f64) -> f64 {
        x.cos()
    }
    pub fn tan(x: f64) -> f64 {
        x.tan()
    }
    pub fn sinh(x: f64) -> f64 {
        x.sinh()
    }
    pub fn cosh(x: f64) -> f64 {
        x.cosh()
    }
    pub fn tanh(x: f64) -> f64 {
        x.tanh()
    }
}
pub mod rng {
    pub struct Draw {
        pub seed: u64,
        pub stream: u32,
    }
    impl Draw {
        pub fn uniform(&self, index: u32, step: u64) -> f64 {
            let mut x = self.seed ^ (u64::from(self.stream) << 32 | u64::from(index)) ^ step.rotate_left(17);
            for _ in 0..3 {
                x = (x ^ (x >> 30)).wrapping_mul(0xbf58476d1ce4e5b9).wrapping_add(0x9e3779b97f4a7c15);
            }
            (x >> 11) as f64 * f64::EPSILON * 0.5
        }
        pub fn normal(&self, index: u32, step: u64) -> f64 {
            let u = self.uniform(index, step);
            (-2.0 * (1.0 - u).ln()).sqrt() * (self.uniform(index, !step) * std::f64::consts::TAU).cos()
        }
        pub fn exponential(&self, index: u32, step: u64) -> f64 {
            -(1.0 - self.uniform(index, step)).ln()
        }
    }
}
