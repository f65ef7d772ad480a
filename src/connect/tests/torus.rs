//! The benchmark's topology: numbers of its description, and of its network of 64 cells.

use super::*;

const RULE: Rule = Rule::TorusRadial { degree: 10.0, r_max: 4.0, width: 4.0 };

fn network(side: usize, seed: u64) -> (Vec<Entry>, Csr) {
    let pairs = undirected(&RULE, &cube(side), seed, 1).expect("a network");
    let csr = directed_csr(&pairs, cube(side).cells()).expect("lists");
    (pairs, csr)
}

#[test]
fn connections_per_offset_of_64_cells_are_the_benchmarks() {
    let offsets = torus_radial::weighted_offsets(4.0, 4.0, &cube(4), true).expect("offsets");
    let counts = torus_radial::counts(10.0, 320.0, &offsets, 64).expect("counts");
    let counts: Vec<u32> = counts.iter().map(|c| c.1).collect();
    assert_eq!(counts, [16, 14, 14, 58, 16, 14, 58, 58, 14, 16, 14, 14, 14]);
}

#[test]
fn a_half_space_has_the_benchmarks_number_of_offsets() {
    for (side, count) in [(4, 13), (5, 13), (6, 46), (7, 46), (8, 125), (20, 125)] {
        let offsets = torus_radial::weighted_offsets(4.0, 4.0, &cube(side), true).expect("offsets");
        assert_eq!(offsets.len(), count, "side {side}");
        let whole = torus_radial::weighted_offsets(4.0, 4.0, &cube(side), false).expect("offsets");
        assert_eq!(whole.len(), 2 * count);
        assert!((whole.iter().map(|o| o.1).sum::<f64>() - 1.0).abs() < 1e-14);
    }
}

#[test]
fn shells_have_the_benchmarks_probabilities() {
    let offsets = torus_radial::weighted_offsets(4.0, 4.0, &cube(20), true).expect("offsets");
    let shells = [1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14];
    let listed =
        [0.2735, 0.1330, 0.1000, 0.0808, 0.0677, 0.0838, 0.0687, 0.0392, 0.0349, 0.0312, 0.0281, 0.0254, 0.0338];
    let (pairs, _) = network(20, 3);
    let nearer = |d: i64| (d + 10).rem_euclid(20) - 10;
    let place = |cell: u32| [cell % 20, cell / 20 % 20, cell / 400].map(i64::from);
    for (square, listed) in shells.into_iter().zip(listed) {
        let weight: f64 =
            offsets.iter().filter(|o| o.0.iter().map(|d| d * d).sum::<i64>() == square).map(|o| o.1).sum();
        assert!((weight - listed).abs() < 5.1e-5, "r^2 = {square}: {weight}");
        let at = |&&(a, b): &&Entry| {
            let (a, b) = (place(a), place(b));
            (0..3).map(|d| nearer(a[d] - b[d]).pow(2)).sum::<i64>() == square
        };
        let share = pairs.iter().filter(at).count() as f64 / pairs.len() as f64;
        assert!((share - listed).abs() < 1e-3, "r^2 = {square}: {share} of the list");
    }
}

#[test]
fn degrees_are_spread_as_in_the_benchmark() {
    // (side, entries, sd, smallest and largest degree in the benchmark's own networks)
    for (side, entries, sd, low, high) in [(4, 640, 1.99, 6, 15), (9, 7298, 2.80, 3, 19), (20, 80000, 2.90, 1, 21)] {
        let mut spread = 0.0;
        for seed in 0..8 {
            let (pairs, csr) = network(side, seed);
            assert_eq!(csr.sources.len(), 2 * pairs.len());
            // Rounded per offset, so the total may differ from 10 per cell by a few.
            assert!(csr.sources.len().abs_diff(entries) <= 8, "{side}: {}", csr.sources.len());
            let (least, most, mean, deviation) = degrees(&csr);
            assert!((mean - 10.0).abs() < 0.02);
            assert!(least + 3 >= low && least <= low + 4, "{side}: {least}");
            assert!(most <= high + 4 && most + 4 >= high, "{side}: {most}");
            spread += deviation / 8.0;
        }
        assert!((spread - sd).abs() < 0.2, "{side}: {spread}");
    }
}

#[test]
fn totals_are_the_benchmarks() {
    for (side, entries) in [(4, 640), (9, 7298), (10, 10002)] {
        assert_eq!(network(side, 42).1.sources.len(), entries);
    }
}

#[test]
fn a_network_is_symmetric_without_doubles_and_belongs_to_its_seed_and_stream() {
    for side in [4, 5, 7, 9] {
        let (pairs, csr) = network(side, 42);
        assert_junctions(&pairs, cube(side).cells());
        assert!(csr.is_symmetric());
        assert_eq!(network(side, 42).0, pairs);
        assert_ne!(network(side, 43).0, pairs);
        assert_ne!(undirected(&RULE, &cube(side), 42, 2).expect("a network"), pairs);
    }
}

#[test]
fn the_list_of_seed_42_stays_what_it_is() {
    let (pairs, _) = network(4, 42);
    let sum: u64 = pairs.iter().map(|&(a, b)| u64::from(a) * u64::from(b)).sum();
    assert_eq!((&pairs[..4], sum), (&[(3, 62), (4, 51), (6, 49), (16, 15)][..], 359_620));
}

#[test]
fn other_grids_have_neighbours_along_the_sizes_that_they_have() {
    for (sizes, offsets) in [(vec![40], 3), (vec![40, 40], 22), (vec![40, 40, 1], 22), (vec![40, 40, 3], 67)] {
        let shape = Shape { sizes };
        let found = torus_radial::weighted_offsets(4.0, 4.0, &shape, true).expect("offsets");
        assert_eq!(found.len(), offsets, "{shape:?}");
        let rule = Rule::TorusRadial { degree: 2.0, r_max: 4.0, width: 4.0 };
        let pairs = undirected(&rule, &shape, 1, 1).expect("a network");
        assert!(pairs.len().abs_diff(shape.cells()) <= offsets);
        assert_junctions(&pairs, shape.cells());
    }
}

#[test]
fn directed_entries_have_the_degree_and_both_sides() {
    let entries = directed(&RULE, Ends::Within(&cube(10)), 1, 1).expect("entries");
    assert!(entries.len().abs_diff(10_000) <= 125, "{}", entries.len());
    assert_eq!(entries.iter().collect::<HashSet<_>>().len(), entries.len());
    let csr = directed_from_entries(&entries, 1000).expect("lists");
    assert!(!csr.is_symmetric());
    let up = entries.iter().filter(|e| (e.1 + 1000 - e.0) % 1000 < 500).count() as f64 / entries.len() as f64;
    assert!((up - 0.5).abs() < 0.05, "{up}");
}

/// Every size of the benchmark, against its description (`degree` 10, `r_max` 4, `width` 4).
#[test]
fn every_size_has_the_described_degrees_and_shells() {
    const SEEDS: u64 = 6;
    let listed = [
        (1, 0.2735),
        (2, 0.1330),
        (3, 0.1000),
        (4, 0.0808),
        (5, 0.0677),
        (6, 0.0838),
        (8, 0.0687),
        (9, 0.0392),
        (10, 0.0349),
        (11, 0.0312),
        (12, 0.0281),
        (13, 0.0254),
        (14, 0.0338),
    ];
    for side in 4..=20usize {
        let (cells, s) = ((side * side * side) as f64, side as i64);
        let offsets = torus_radial::weighted_offsets(4.0, 4.0, &cube(side), true).expect("offsets");
        // A cell is chosen for one offset in `c` of `cells` cases, and once more as the partner: a sum of independent chances.
        let chance = |share: f64| 5.0 * share;
        let variance: f64 = offsets.iter().map(|o| 2.0 * chance(o.1) * (1.0 - chance(o.1))).sum();
        let mut deviations = Vec::new();
        for seed in 0..SEEDS {
            let (pairs, csr) = network(side, 1000 * side as u64 + seed);
            assert_junctions(&pairs, cube(side).cells());
            assert!(csr.is_symmetric());
            assert!(csr.entries().all(|(target, source)| target != source));
            // Half a junction per offset is lost or won by rounding, but the last offset makes up for what is missing.
            let (_, _, mean, deviation) = degrees(&csr);
            assert!((mean - 10.0).abs() <= offsets.len() as f64 / cells, "side {side}: {mean}");
            deviations.push(deviation);
            if side < 8 {
                continue;
            }
            let nearer = |d: i64| (d + s / 2).rem_euclid(s) - s / 2;
            let place = |cell: u32| [i64::from(cell) % s, i64::from(cell) / s % s, i64::from(cell) / (s * s)];
            let square = |&(a, b): &Entry| {
                let (a, b) = (place(a), place(b));
                (0..3).map(|d| nearer(a[d] - b[d]).pow(2)).sum::<i64>()
            };
            assert!(pairs.iter().all(|pair| listed.iter().any(|shell| shell.0 == square(pair))));
            for (r2, probability) in listed {
                // Of the junctions wanted; rounding makes a few more or fewer.
                let share = pairs.iter().filter(|pair| square(pair) == r2).count() as f64 / (5.0 * cells);
                // Counts are exact up to their rounding: half a junction for each offset of the half space.
                let of_shell = offsets.iter().filter(|o| o.0.iter().map(|d| d * d).sum::<i64>() == r2).count();
                // What all the others' rounding left over goes to the last offset.
                let left = if offsets.last().is_some_and(|o| o.0.iter().map(|d| d * d).sum::<i64>() == r2) {
                    offsets.len() as f64 / 2.0
                } else {
                    0.0
                };
                let room = (of_shell as f64 / 2.0 + left) / (5.0 * cells) + 6e-5;
                assert!((share - probability).abs() <= room, "side {side}, r^2 = {r2}: {share} for {probability}");
            }
        }
        let deviation = deviations.iter().sum::<f64>() / SEEDS as f64;
        // Of a sample of `n` the deviation is off by itself over the root of 2 n; four of those are never seen.
        let room = 4.0 * variance.sqrt() / (2.0 * cells * SEEDS as f64).sqrt();
        assert!((deviation - variance.sqrt()).abs() < room + 0.02, "side {side}: {deviation} for {}", variance.sqrt());
        if side >= 9 {
            assert!((2.75..2.95).contains(&deviation), "side {side}: {deviation}");
        }
    }
}
