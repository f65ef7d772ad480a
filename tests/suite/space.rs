//! Tests of: weights and delays that depend on how far cells are from each other. Closed forms of distances on wrapped grids, on every engine and with
//! every number of threads; what is said where there is no distance.

use crate::events::{checked, column, native_run, plain, same, series, ways};
use crate::models::{Way, run};
use neuroc::codegen::plan::Precision;

const CELLS: &str = "
cell Relay { state v: mV = 0 mV; v' = -v / 1 ms; spike when v >= 10 mV { v = 0 mV } }
cell Sum { state v: mV = 0 mV; v' = 0 /ms * v }
synapse Kick { on event(weight: mV) { v += weight } }
";

/// How far two cells are from each other: the cells of a grid stand in the middle of equal parts of the same space, which is wrapped.
fn apart(from: (usize, [usize; 3]), to: (usize, [usize; 3]), extent: [f64; 3]) -> f64 {
    let place = |(cell, [x, y, z]): (usize, [usize; 3])| [(cell % x, x), (cell / x % y, y), (cell / x / y, z)];
    let ways = place(from).into_iter().zip(place(to)).zip(extent).map(|(((a, many), (b, sizes)), extent)| {
        let [a, b] = [(a, many), (b, sizes)].map(|(at, of)| (at as f64 + 0.5) / of as f64 * extent);
        let way = (a - b).abs();
        way.min(extent - way)
    });
    ways.map(|way| way * way).sum::<f64>().sqrt()
}

/// One cell spikes at 1 ms, and every cell of another population hears of it once, as much as it is near and as late as it is far.
#[test]
fn weights_and_delays_follow_the_distance() {
    struct Case {
        from: [usize; 3],
        to: [usize; 3],
        /// In um, or in steps of the grid.
        spacing: Option<[f64; 2]>,
        sender: usize,
        within: bool,
    }
    let cases = [
        Case { from: [8, 5, 1], to: [8, 5, 1], spacing: Some([50.0, 50.0]), sender: 0, within: false },
        Case { from: [8, 5, 1], to: [8, 5, 1], spacing: None, sender: 21, within: false },
        Case { from: [4, 6, 1], to: [8, 12, 1], spacing: Some([100.0, 50.0]), sender: 7, within: false },
        Case { from: [9, 3, 6], to: [3, 1, 2], spacing: Some([20.0, 60.0]), sender: 100, within: false },
        Case { from: [40, 1, 1], to: [40, 1, 1], spacing: Some([50.0, 50.0]), sender: 3, within: true },
    ];
    for Case { from, to, spacing, sender, within } in cases {
        let sizes = |sizes: [usize; 3]| {
            let dimensions = if from[2] > 1 {
                3
            } else if from[1] > 1 {
                2
            } else {
                1
            };
            sizes[..dimensions].iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
        };
        let spaced = spacing.map(|s| s.map(|s| format!("{{ spacing = {s} um }}"))).unwrap_or_default();
        let (scale, speed) = if spacing.is_some() { ("100 um", "0.05 m/s") } else { ("2", "1 /ms") };
        // Within one population, cells that listen are cells that could spike, far below what makes them.
        let [name, sums] = if within { ["a", ""] } else { ["b", "population b: Sum"] };
        let sums = if within { String::new() } else { format!("{sums}[{}] {}", sizes(to), spaced[1]) };
        let leak = if within { "0 /ms * v" } else { "-v / 1 ms" };
        let text = format!(
            "{}
            network main {{
                population a: Relay[{}] {}
                {sums}
                drive a[{sender}] via Kick from times(1 ms) {{ weight = 20 mV }}
                connect a -> {name} via Kick {{
                    rule = all_to_all()
                    weight = 3 mV * exp(-distance / ({scale}))
                    delay = 0.5 ms + distance / ({speed})
                }}
            }}
            run {{ duration = 30 ms; dt = 0.1 ms; record {name}.v }}",
            CELLS.replace("-v / 1 ms", leak),
            sizes(from),
            spaced[0],
        );
        let checked = checked(&text);
        let extent = std::array::from_fn(|d| to[d] as f64 * spacing.map_or(1.0, |s| s[1]));
        for way in ways() {
            let result = run(&checked, &plain(), way);
            for cell in 0..to.iter().product::<usize>() {
                if within && cell == sender {
                    continue;
                }
                let d = apart((sender, from), (cell, to), extent);
                let (weight, delay) = match spacing {
                    Some(_) => (3.0 * (-d / 100.0).exp(), 0.5 + d / 50.0),
                    None => (3.0 * (-d / 2.0).exp(), 0.5 + d),
                };
                let arrival = 10 + (delay / 0.1 + 0.5).floor() as usize;
                let v = column(&result, &format!("{name}.v"), cell);
                assert_eq!(v[arrival - 1], 0.0, "{way:?}: {from:?} to {to:?}, cell {cell}");
                assert!((v[arrival] - weight).abs() < 1e-12, "{way:?}: cell {cell}: {} is not {weight}", v[arrival]);
            }
        }
    }
}

/// Distances and draws multiply, edges of lists and of random rules have them too; the same bits everywhere.
#[test]
fn the_same_bits_with_any_rule() {
    for rule in [
        "probability(p = 0.2)",
        "distance(p_max = 0.9, sigma = 2)",
        "fixed_in_degree(n = 4)",
        "torus_radial(degree = 6, r_max = 3, width = 2)",
    ] {
        let text = format!(
            "{CELLS}
            network main {{
                population a: Relay[6, 7] {{ spacing = 40 um }}
                population b: Sum[6, 7] {{ spacing = 40 um }}
                drive a via Kick from poisson(rate = 200 Hz) {{ weight = 20 mV }}
                connect a -> b via Kick {{
                    rule = {rule}
                    weight ~ normal(1 mV, 0.1 mV) * exp(-(distance / 80 um)^2)
                    delay ~ uniform(0.1 ms, 1 ms) + distance / (0.1 m/s)
                }}
            }}
            run {{ duration = 60 ms; dt = 0.1 ms; record b.v every 1 ms; record spikes of a }}"
        );
        let checked = checked(&text);
        let optimized = run(&checked, &plain(), Way::Optimized);
        assert!(series(&optimized, "b.v").values.get(60, 0) > 0.0, "{rule}");
        for threads in [1, 3] {
            same(&optimized, &native_run(&checked, Precision::F64, threads), &format!("{rule}, {threads} threads"));
        }
    }
}

/// A synapse that is spread over a section has the distance of its cell.
#[test]
fn cells_with_sections_stand_where_their_population_has_them() {
    let text = "
        use std.cells.generators.{Relay}
        use std.synapses.{Delta, ExpCond}
        cell Branched {
            section soma { length = 20 um; diam = 20 um; compartments = 1 }
            section dend { from soma(1); length = 200 um; diam = 2 um; compartments = 5 }
            region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV }
        }
        network main {
            population a: Relay[6] { spacing = 30 um }
            population b: Branched[3] { spacing = 60 um }
            drive a[0] via Delta from times(1 ms) { weight = 1 mV }
            connect a -> b.dend via ExpCond(tau = 1 s) { rule = all_to_all(); weight = 1 nS * distance / 1 um; delay = 1 ms }
        }
        run { duration = 100 ms; dt = 0.1 ms; method = cnexp; record b.dend.ExpCond.g every 2.1 ms }";
    let checked = checked(text);
    for way in [Way::Optimized, Way::Native] {
        let result = run(&checked, &plain(), way);
        let g = series(&result, "b.dend.ExpCond.g");
        for cell in 0..3 {
            // One of the five compartments of the cell has it.
            let sum: f64 = (0..5).map(|element| g.values.get(1, 5 * cell + element)).sum();
            let d = apart((0, [6, 1, 1]), (cell, [3, 1, 1]), [180.0, 1.0, 1.0]);
            let expected = d * (-0.1f64 / 1000.0).exp();
            assert!((sum - expected).abs() < 1e-9, "{way:?}: cell {cell}: {sum}, not {expected}");
        }
    }
}
