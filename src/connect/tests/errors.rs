//! Each mistake once, with its sentence.

use super::*;

fn named(name: &str, arguments: &[(&str, f64)]) -> String {
    Rule::named(name, arguments).expect_err("a mistake").to_string()
}

fn junctions(rule: Rule, sizes: &[usize]) -> String {
    undirected(&rule, &Shape { sizes: sizes.to_vec() }, 0, 0).expect_err("a mistake").to_string()
}

fn entries(rule: Rule, source: &[usize], target: &[usize]) -> String {
    let (source, target) = (Shape { sizes: source.to_vec() }, Shape { sizes: target.to_vec() });
    directed(&rule, Ends::Between { source: &source, target: &target }, 0, 0).expect_err("a mistake").to_string()
}

fn convolution(stride: u64, padding: u64, pool: u64) -> Rule {
    Rule::Convolution { kernel: 3, stride, padding, pool, max_pool: 1, place: 0 }
}

fn torus(degree: f64, r_max: f64, width: f64) -> Rule {
    Rule::TorusRadial { degree, r_max, width }
}

#[test]
fn names_and_numbers() {
    let all = [
        named("torus_radia", &[]),
        named("x", &[]),
        named("probability", &[("q", 1.0)]),
        named("all_to_all", &[("p", 1.0)]),
        named("probability", &[]),
        named("probability", &[("p", 1.0), ("p", 1.0)]),
        named("probability", &[("p", f64::NAN)]),
        named("probability", &[("p", -0.1)]),
        named("distance", &[("p_max", 1.5), ("sigma", 1.0)]),
        named("distance", &[("p_max", 1.0), ("sigma", 0.0)]),
        named("fixed_in_degree", &[("n", 2.5)]),
        named("fixed_out_degree", &[("n", -1.0)]),
        named("torus_radial", &[("degree", -1.0), ("r_max", 4.0), ("width", 4.0)]),
        named("torus_radial", &[("degree", 1.0), ("r_max", 0.5), ("width", 4.0)]),
        named("torus_radial", &[("degree", 1.0), ("r_max", f64::INFINITY), ("width", 4.0)]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn populations_and_lists() {
    let edges = |list: &[Entry]| Rule::Edges(list.to_vec());
    let all = [
        junctions(torus(40.0, 4.0, 4.0), &[9, 9, 9]),
        junctions(torus(10.0, 4.0, 4.0), &[100]),
        junctions(torus(1.0, 1.0, 4.0), &[9]),
        junctions(torus(1.0, 4.0, 4.0), &[3]),
        junctions(torus(1.0, 4.0, 1e-3), &[9]),
        entries(torus(1.0, 4.0, 4.0), &[9, 9], &[81]),
        entries(Rule::Distance { p_max: 1.0, sigma: 1.0 }, &[4], &[5]),
        entries(Rule::OneToOne, &[4], &[5]),
        junctions(Rule::OneToOne, &[4]),
        junctions(convolution(1, 0, 1), &[4]),
        entries(convolution(1, 0, 1), &[8, 8], &[8, 8, 2]),
        entries(convolution(2, 1, 2), &[9], &[9]),
        entries(convolution(1, 0, 1), &[2, 2], &[1, 1]),
        entries(Rule::Pooling { kernel: 2, stride: 2, padding: 0 }, &[8, 8, 3], &[4, 4, 2]),
        entries(Rule::Pooling { kernel: 2, stride: 0, padding: 0 }, &[8, 8, 3], &[4, 4, 3]),
        junctions(Rule::FixedInDegree { n: 4, partners: Partners::default() }, &[4]),
        entries(Rule::FixedInDegree { n: 5, partners: Partners::default() }, &[4], &[10]),
        entries(Rule::FixedOutDegree { n: 11, partners: Partners::default() }, &[4], &[10]),
        junctions(Rule::AllToAll, &[]),
        junctions(Rule::AllToAll, &[2, 2, 2, 2]),
        junctions(Rule::AllToAll, &[4, 0]),
        junctions(Rule::AllToAll, &[70_000, 70_000]),
        junctions(Rule::AllToAll, &[1_000_000]),
        junctions(Rule::Probability { p: 0.5 }, &[1_000_000]),
        junctions(edges(&[(0, 1), (1, 4)]), &[4]),
        entries(edges(&[(0, 7), (4, 1)]), &[8], &[4]),
        junctions(edges(&[(0, 1), (2, 2)]), &[4]),
        directed_from_entries(&[(3, 3)], 4).expect_err("itself").to_string(),
        junctions(edges(&[(0, 1), (2, 1), (0, 1)]), &[4]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}
