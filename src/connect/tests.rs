//! What has to stay true of connectivity.

use super::*;
use std::collections::HashSet;

mod errors;
mod files;
mod lists;
mod rules;
mod torus;
mod windows;

fn cube(side: usize) -> Shape {
    Shape { sizes: vec![side; 3] }
}

/// Every unordered pair of different cells at most once.
fn assert_junctions(pairs: &[Entry], cells: usize) {
    let mut seen = HashSet::new();
    for &(a, b) in pairs {
        assert!(a != b && (a as usize) < cells && (b as usize) < cells, "({a}, {b})");
        assert!(seen.insert((a.min(b), a.max(b))), "({a}, {b}) twice");
    }
}

/// Smallest, largest, mean and standard deviation of how many sources a target has.
fn degrees(csr: &Csr) -> (u32, u32, f64, f64) {
    let all: Vec<u32> = csr.offsets.windows(2).map(|w| w[1] - w[0]).collect();
    let n = all.len() as f64;
    let mean = all.iter().copied().map(f64::from).sum::<f64>() / n;
    let variance = all.iter().map(|&d| (f64::from(d) - mean).powi(2)).sum::<f64>() / n;
    (*all.iter().min().expect("cells"), *all.iter().max().expect("cells"), mean, variance.sqrt())
}
