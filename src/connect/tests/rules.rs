//! What each rule promises.

use super::*;

fn between(source: &Shape, target: &Shape, rule: &Rule, seed: u64) -> Csr {
    let entries = directed(rule, Ends::Between { source, target }, seed, 1).expect("entries");
    Csr::from_entries(&entries, target.cells(), source.cells()).expect("lists")
}

fn within(shape: &Shape, rule: &Rule, seed: u64) -> Csr {
    let entries = directed(rule, Ends::Within(shape), seed, 1).expect("entries");
    directed_from_entries(&entries, shape.cells()).expect("lists without self")
}

#[test]
fn all_to_all_has_every_pair() {
    let shape = Shape { sizes: vec![3, 2] };
    let pairs = undirected(&Rule::AllToAll, &shape, 0, 0).expect("pairs");
    assert_eq!(pairs.len(), 15);
    assert_junctions(&pairs, 6);
    assert_eq!(within(&shape, &Rule::AllToAll, 0).sources.len(), 30);
    assert_eq!(between(&Shape::line(4), &shape, &Rule::AllToAll, 0).sources_of(5), [0, 1, 2, 3]);
    assert_eq!(undirected(&Rule::AllToAll, &Shape::line(1), 0, 0), Ok(vec![]));
}

#[test]
fn one_to_one_is_the_diagonal() {
    let (line, plane) = (Shape::line(6), Shape { sizes: vec![3, 2] });
    assert_eq!(between(&line, &plane, &Rule::OneToOne, 0).sources, [0, 1, 2, 3, 4, 5]);
    let within = directed(&Rule::OneToOne, Ends::Within(&line), 0, 0).expect("autapses");
    assert_eq!(within[5], (5, 5));
}

#[test]
fn probability_is_the_share_of_pairs() {
    let shape = Shape::line(1000);
    for (p, tolerance) in [(0.0, 0.0), (1e-4, 5e-5), (0.03, 1e-3), (0.5, 3e-3), (0.999, 2e-4), (1.0, 0.0)] {
        let rule = Rule::Probability { p };
        let pairs = undirected(&rule, &shape, 5, 1).expect("pairs");
        assert_junctions(&pairs, 1000);
        let share = |count: usize, of: f64| count as f64 / of;
        assert!((share(pairs.len(), 499_500.0) - p).abs() <= tolerance, "{p}: {}", pairs.len());
        let csr = within(&shape, &rule, 5);
        assert!((share(csr.sources.len(), 999_000.0) - p).abs() <= tolerance, "{p}: {}", csr.sources.len());
        let csr = between(&Shape::line(500), &shape, &rule, 6);
        assert!((share(csr.sources.len(), 500_000.0) - p).abs() <= tolerance, "{p}: {}", csr.sources.len());
    }
    let (_, _, mean, sd) = degrees(&within(&shape, &Rule::Probability { p: 0.03 }, 7));
    assert!((mean - 29.97).abs() < 0.6 && (sd - 5.39).abs() < 0.4, "{mean} {sd}");
    // Every source as often as every other: the gaps have no favourites.
    let mut out = vec![0u32; 1000];
    within(&shape, &Rule::Probability { p: 0.03 }, 7).sources.iter().for_each(|&s| out[s as usize] += 1);
    assert!(out.iter().all(|&n| (10..=55).contains(&n)));
}

#[test]
fn fixed_in_degree_gives_each_target_different_sources() {
    for n in [0, 1, 7, 99] {
        let csr = within(&Shape::line(100), &Rule::FixedInDegree { n, partners: Partners::default() }, 3);
        for t in 0..100 {
            let sources: HashSet<u32> = csr.sources_of(t).iter().copied().collect();
            assert_eq!((sources.len() as u64, csr.sources_of(t).len() as u64), (n, n));
            assert!(!sources.contains(&(t as u32)));
            assert!(csr.sources_of(t).is_sorted());
        }
    }
    let csr =
        between(&Shape::line(5), &Shape::line(8), &Rule::FixedInDegree { n: 5, partners: Partners::default() }, 3);
    assert_eq!(csr.sources_of(7), [0, 1, 2, 3, 4]);
}

#[test]
fn fixed_in_degree_has_no_favourites() {
    // Both ways of listing a set: by scanning (small pools) and by sorting (a large pool with few picks).
    for (pool, targets, n) in [(20, 20_000, 4), (10_000, 40_000, 10)] {
        let csr = between(
            &Shape::line(pool),
            &Shape::line(targets),
            &Rule::FixedInDegree { n, partners: Partners::default() },
            8,
        );
        let mut out = vec![0u32; pool];
        csr.sources.iter().for_each(|&s| out[s as usize] += 1);
        let mean = (targets as u64 * n) as f64 / pool as f64;
        let squares: f64 = out.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum();
        let variance = mean * (1.0 - n as f64 / pool as f64);
        let ratio = squares / variance / pool as f64;
        // Chi squared over its degrees of freedom: standard deviation sqrt(2 / pool).
        assert!((ratio - 1.0).abs() < 5.0 * (2.0 / pool as f64).sqrt(), "{pool}: {ratio}");
    }
}

#[test]
fn fixed_out_degree_gives_each_source_different_targets() {
    let entries =
        directed(&Rule::FixedOutDegree { n: 6, partners: Partners::default() }, Ends::Within(&Shape::line(50)), 3, 1)
            .expect("entries");
    assert_eq!(entries.iter().collect::<HashSet<_>>().len(), 300);
    for s in 0..50 {
        assert_eq!(entries.iter().filter(|e| e.1 == s).count(), 6);
    }
    assert!(entries.iter().all(|e| e.0 != e.1));
}

#[test]
fn junctions_of_picked_partners_are_there_once() {
    for rule in [
        Rule::FixedInDegree { n: 9, partners: Partners::default() },
        Rule::FixedOutDegree { n: 9, partners: Partners::default() },
    ] {
        let pairs = undirected(&rule, &Shape::line(20), 3, 1).expect("pairs");
        assert_junctions(&pairs, 20);
        let (least, ..) = degrees(&directed_csr(&pairs, 20).expect("lists"));
        assert!(least >= 9 && pairs.len() < 180);
    }
}

#[test]
fn distance_falls_as_a_gaussian_on_the_torus() {
    let shape = Shape { sizes: vec![30, 31] };
    let rule = Rule::Distance { p_max: 0.8, sigma: 3.0 };
    let nearer = |a: u32, b: u32, size: u32| a.abs_diff(b).min(size - a.abs_diff(b));
    let square = |a: u32, b: u32| nearer(a % 30, b % 30, 30).pow(2) + nearer(a / 30, b / 30, 31).pow(2);
    let mut possible = vec![0.0; 1000];
    (0..930).for_each(|a| (0..930).for_each(|b| possible[square(a, b) as usize] += 1.0));
    let junctions = undirected(&rule, &shape, 11, 1).expect("pairs");
    assert_junctions(&junctions, 930);
    let both = directed_csr(&junctions, 930).expect("lists");
    let one_way = within(&shape, &rule, 12);
    let two = between(&shape, &shape, &rule, 13);
    for (csr, closest) in [(both, 1), (one_way, 1), (two, 0)] {
        for d2 in [closest, 1, 2, 4, 9, 18, 25] {
            let count = csr.entries().filter(|&(t, s)| square(t, s) == d2).count() as f64;
            let (share, p) = (count / possible[d2 as usize], 0.8 * (-f64::from(d2) / 9.0).exp());
            // Junctions are half as many independent draws.
            let error = (2.0 * p * (1.0 - p) / possible[d2 as usize]).sqrt();
            assert!((share - p).abs() < 4.0 * error, "d^2 = {d2}: {share} and not {p}");
        }
        assert_eq!(csr.entries().filter(|&(t, s)| square(t, s) < closest).count(), 0);
    }
}

#[test]
fn distance_with_certainty_joins_all_once() {
    // An even size has displacements that are their own opposites.
    for sizes in [vec![2], vec![5], vec![4, 2], vec![4, 3, 2]] {
        let shape = Shape { sizes };
        let n = shape.cells();
        let rule = Rule::Distance { p_max: 1.0, sigma: 1e9 };
        let pairs = undirected(&rule, &shape, 1, 1).expect("pairs");
        assert_junctions(&pairs, n);
        assert_eq!(pairs.len(), n * (n - 1) / 2);
        assert_eq!(within(&shape, &rule, 1).sources.len(), n * (n - 1));
        assert_eq!(between(&shape, &shape, &rule, 1).sources.len(), n * n);
    }
}

#[test]
fn lists_belong_to_their_seed() {
    let shape = Shape { sizes: vec![12, 12] };
    let rules = [
        Rule::TorusRadial { degree: 4.0, r_max: 4.0, width: 2.0 },
        Rule::Probability { p: 0.1 },
        Rule::FixedInDegree { n: 5, partners: Partners::default() },
        Rule::FixedOutDegree { n: 5, partners: Partners::default() },
        Rule::Distance { p_max: 0.5, sigma: 2.0 },
    ];
    for rule in rules {
        let list = |seed| (undirected(&rule, &shape, seed, 4), directed(&rule, Ends::Within(&shape), seed, 4));
        assert_eq!(list(1), list(1));
        assert_ne!(list(1).0, list(2).0);
        assert_ne!(list(1).1, list(1 << 40).1);
        assert!(list(1).0.is_ok() && list(1).1.is_ok());
    }
}

#[test]
fn every_rule_has_a_name() {
    let names: Vec<&str> = RULES.iter().map(|r| r.name).collect();
    assert_eq!(
        names,
        [
            "torus_radial",
            "all_to_all",
            "one_to_one",
            "probability",
            "fixed_in_degree",
            "fixed_out_degree",
            "fixed_total_number",
            "distance",
            "convolution",
            "pooling"
        ]
    );
    for info in RULES {
        let arguments: Vec<(&str, f64)> = info.arguments.iter().rev().map(|a| (a.name, 1.0)).collect();
        assert!(Rule::named(info.name, &arguments).is_ok());
        assert!(!info.doc.is_empty() && info.arguments.iter().all(|a| !a.doc.is_empty()));
    }
    let arguments = [("width", 3.0), ("degree", 10.0), ("r_max", 4.0)];
    let rule = Rule::TorusRadial { degree: 10.0, r_max: 4.0, width: 3.0 };
    assert_eq!(Rule::named("torus_radial", &arguments), Ok(rule));
}

#[test]
fn fixed_total_number_has_no_favourites() {
    let (source, target) = (Shape::line(50), Shape::line(80));
    let n = 400_000;
    let csr = between(&source, &target, &Rule::FixedTotalNumber { n }, 4);
    assert_eq!(csr.sources.len() as u64, n);
    let mut pairs = vec![0u32; 50 * 80];
    csr.entries().for_each(|(t, s)| pairs[t as usize * 50 + s as usize] += 1);
    // Every pair comes a Poisson number of times, about; sources and targets are drawn independently.
    let squares: f64 = pairs.iter().map(|&x| (f64::from(x) - 100.0).powi(2)).sum();
    let variance = squares / 4000.0;
    assert!((variance - 100.0).abs() < 5.0 * 100.0 * (2.0f64 / 4000.0).sqrt(), "{variance}");
    let other = between(&source, &target, &Rule::FixedTotalNumber { n }, 5);
    assert_ne!(csr, other);
    let entries = directed(&Rule::FixedTotalNumber { n: 1000 }, Ends::Within(&source), 3, 1).expect("entries");
    assert!(entries.iter().any(|(t, s)| t == s), "cells meet themselves");
    let pairs = undirected(&Rule::FixedTotalNumber { n: 1000 }, &source, 3, 1).expect("pairs");
    assert_junctions(&pairs, 50);
    assert_eq!(directed(&Rule::FixedTotalNumber { n: 0 }, Ends::Within(&source), 3, 1), Ok(vec![]));
}

/// Degrees stay what they are; every source, oneself and those that have been drawn are as likely as all others.
#[test]
fn fixed_degrees_may_repeat() {
    let shape = Shape::line(200);
    let made = |autapses, multapses, n, seed| {
        let partners = Partners { autapses, multapses };
        let entries = directed(&Rule::FixedInDegree { n, partners }, Ends::Within(&shape), seed, 1).expect("entries");
        Csr::from_entries(&entries, 200, 200).expect("lists")
    };
    for (autapses, multapses) in [(false, false), (true, false), (false, true), (true, true)] {
        let (mut selves, mut again) = (0, 0);
        for seed in 0..20 {
            let csr = made(autapses, multapses, 50, seed);
            for t in 0..200 {
                let sources = csr.sources_of(t);
                assert!(sources.len() == 50 && sources.is_sorted());
                selves += sources.iter().filter(|&&s| s as usize == t).count();
                again += 50 - sources.iter().collect::<HashSet<_>>().len();
            }
        }
        // 4000 sets of 50 out of 200: with oneself 1000 times; with repetitions 50 - 200 (1 - (199/200)^50) of each set are some again.
        let [many, repeated] = [1000.0, 4000.0 * (50.0 - 200.0 * (1.0 - 0.995f64.powi(50)))];
        assert_eq!(autapses, selves > 0);
        assert_eq!(multapses, again > 0);
        assert!(!autapses || (f64::from(selves as u32) - many).abs() < 5.0 * many.sqrt(), "{selves}");
        assert!(!multapses || (f64::from(again as u32) / repeated - 1.0).abs() < 0.05, "{again}, not {repeated}");
    }
    // More than there are.
    assert_eq!(made(false, true, 300, 1).sources_of(3).len(), 300);
    assert!(!made(false, true, 300, 1).sources_of(3).contains(&3));
    let partners = Partners { autapses: true, multapses: true };
    let entries = directed(&Rule::FixedOutDegree { n: 300, partners }, Ends::Within(&shape), 3, 1).expect("entries");
    assert!((0..200).all(|s| entries.iter().filter(|e| e.1 == s).count() == 300));
    for rule in [Rule::FixedInDegree { n: 3, partners }, Rule::FixedOutDegree { n: 3, partners }] {
        assert_eq!(undirected(&rule, &shape, 3, 1), Err(ConnectError::JunctionsOnce { argument: "autapses" }));
    }
    let arguments = [("n", 3.0), ("multapses", 1.0)];
    let partners = Partners { autapses: false, multapses: true };
    assert_eq!(Rule::named("fixed_in_degree", &arguments), Ok(Rule::FixedInDegree { n: 3, partners }));
}
