//! Tests of: networks of junctions. Currents that cancel, whatever the rule; the same numbers from every engine and from a
//! simulation written here from the equations alone; what is said when a network cannot be.

use crate::olive::STATES;
use neuroc::codegen::plan::{PlanOptions, plan};
use neuroc::driver::{CompileOptions, Experiment, check_text, compile};
use neuroc::engine::native::{NativeEngine, NativeOptions};
use neuroc::engine::{Edges, Engine, Setup};
use neuroc::hir::Sources;
use neuroc::interp::Interp;
use neuroc::runtime::order::Arrangement;
use neuroc::step::{FieldId, Verified};
use std::fs;
use std::path::Path;

/// Every rule for junctions, with numbers that fit 125 cells and more; the last reads a file.
const RULES: &[&str] = &[
    "torus_radial(degree = 10, r_max = 4, width = 4)",
    "all_to_all",
    "probability(p = 0.05)",
    "fixed_in_degree(n = 4)",
    "fixed_out_degree(n = 4)",
    "fixed_total_number(n = 500)",
    "distance(p_max = 0.5, sigma = 1.5)",
    "edges(\"pairs.csv\")",
];

/// A model that can run.
struct Case {
    program: Verified,
    setup: Setup,
}

/// Compiles a model in a folder of its own, next to the olive's cell and a list of pairs among 125 cells.
fn case(text: &str, set: &[&str], seed: u64) -> Case {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("olive_cell.neuro"), include_str!("../../examples/inferior_olive/olive_cell.neuro"))
        .unwrap();
    // A ring, and every cell with one far away: each pair once.
    let ring = (0..125).map(|cell| format!("{cell},{}\n", (cell + 1) % 125));
    let far = (0..62).map(|cell| format!("{},{cell}\n", cell + 60));
    fs::write(folder.path().join("pairs.csv"), format!("src,tgt\n{}", ring.chain(far).collect::<String>())).unwrap();
    let checked = check_text("network.neuro", folder.path(), text.to_string(), &Sources);
    let say = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    assert!(checked.model.is_some(), "{say}");
    let options = CompileOptions {
        set: set.iter().map(|s| s.to_string()).collect(),
        seed: Some(seed),
        ..CompileOptions::default()
    };
    let compiled = compile(&checked, &options, &mut |_, _, _| {}).unwrap();
    let Experiment { compiled, setup, .. } = Experiment::new(compiled).unwrap();
    Case { program: compiled.program, setup }
}

impl Case {
    fn interpreter(&self) -> Interp {
        Interp::new(self.program.clone(), &self.setup).unwrap()
    }

    /// As many threads as asked for, however few cells there are.
    fn native(&self, threads: usize) -> NativeEngine {
        let sizes = Some(self.setup.sizes.clone());
        let mut plan = plan(&self.program, &PlanOptions { sizes, ..PlanOptions::default() }).unwrap();
        plan.min_cells = 1;
        let cache = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels"));
        let compile = neuroc::engine::rustc::CompileOptions { cache, ..Default::default() };
        let engine = NativeEngine::new(
            &plan,
            &self.setup,
            &NativeOptions { threads, arrangement: Arrangement::default(), compile },
        )
        .unwrap();
        assert_eq!(engine.threads(), threads);
        engine
    }

    fn field(&self, name: &str) -> FieldId {
        self.program.program().find_field(name).unwrap_or_else(|| panic!("there is no field {name}"))
    }

    fn read(&self, engine: &dyn Engine, name: &str) -> Vec<f64> {
        let mut values = Vec::new();
        engine.read(self.field(name), 0..self.setup.sizes[0], &mut values).unwrap();
        values
    }

    fn edges(&self) -> &Edges {
        let [(_, edges)] = &self.setup.edges[..] else { panic!("one network") };
        edges
    }
}

fn steps(engine: &mut dyn Engine, from: u64, count: u64) {
    let mut at = from;
    while at < from + count {
        let window = (from + count - at).min(40) as u32;
        engine.step(at, window, &mut Vec::new()).unwrap();
        at += u64::from(window);
    }
}

// ------------------------------------------------------------------------------------------------- currents that cancel

/// Cells with nothing but junctions: what one loses another wins.
fn vessels(rule: &str) -> String {
    format!(
        "junction Gap {{
    param g = 0.05 mS/cm2
    current i = g * dv * (0.2 + 0.8 * exp(-(dv / 10 mV)^2))
}}
cell Vessel {{
    compartment soma {{ cm = 1 uF/cm2; v_init = -60 mV }}
}}
network main {{
    population io: Vessel[5, 5, 5]
    init io.soma.v ~ normal(-60 mV, 9 mV)
    connect io.soma -- io.soma via Gap {{ rule = {rule} }}
}}
run {{
    duration = 10 ms
    dt = 0.025 ms
    method = euler
    record io.soma.v
}}
"
    )
}

#[test]
fn junction_currents_cancel_for_every_rule() {
    for (at, rule) in RULES.iter().enumerate() {
        let case = case(&vessels(rule), &[], 7 + at as u64);
        let engines: [Box<dyn Engine>; 3] =
            [Box::new(case.interpreter()), Box::new(case.native(1)), Box::new(case.native(2))];
        for mut engine in engines {
            engine.init().unwrap();
            let mut before = case.read(engine.as_ref(), "io.soma.v");
            let first = before.clone();
            let total: f64 = first.iter().sum();
            for step in 0..100 {
                engine.step(step, 1, &mut Vec::new()).unwrap();
                let now = case.read(engine.as_ref(), "io.soma.v");
                let change: f64 = now.iter().zip(&before).map(|(a, b)| a - b).sum();
                // 125 roundings of numbers near 60, each to half of 2^-47 (their last place) or better.
                assert!(
                    change.abs() < 125.0 * 2f64.powi(-47),
                    "{rule}: the currents of step {step} leave {change:e} mV"
                );
                before = now;
            }
            let kept: f64 = before.iter().sum();
            assert!((kept / total - 1.0).abs() < 1e-13, "{rule}: {total} has become {kept}");
            let spread = |v: &[f64]| v.iter().map(|x| (x - total / 125.0).powi(2)).sum::<f64>();
            assert!(spread(&before) < 0.97 * spread(&first), "{rule}: nothing flows");
        }
    }
}

#[test]
fn every_rule_lists_each_junction_in_both_directions_once() {
    for (at, rule) in RULES.iter().enumerate() {
        let case = case(&vessels(rule), &[], 40 + at as u64);
        let Edges { offsets, sources } = case.edges();
        let of = |cell: usize| &sources[offsets[cell] as usize..offsets[cell + 1] as usize];
        assert!(!sources.is_empty());
        for cell in 0..125 {
            for &other in of(cell) {
                assert_ne!(other as usize, cell, "{rule}");
                let count = |list: &[u32], x: u32| list.iter().filter(|&&y| y == x).count();
                assert_eq!((count(of(cell), other), count(of(other as usize), cell as u32)), (1, 1), "{rule}");
            }
        }
    }
}

// ------------------------------------------------------------------------------- the olive, simulated by other means

/// `x / (1 - e^-x)`, 1 at 0.
fn rising(x: f64) -> f64 {
    if x.abs() < 1e-9 { 1.0 + x / 2.0 } else { x / (1.0 - (-x).exp()) }
}

/// The derivatives of a cell, per ms, with a current into the dendrite. The equations of De Gruijl et al. (2012) with the numbers
/// of Landsmeer et al. (2024).
fn derivatives(y: &[f64; 14], into_dendrite: f64) -> [f64; 14] {
    let [vs, k, l, hs, n, xs, va, ha, xa, vd, ca, r, s, q] = *y;
    let (g_int, p1, p2) = (0.13, 0.25, 0.15);
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let alpha_x = |v: f64| 1.3 * rising((v + 25.0) / 10.0);
    let beta_x = |v: f64| 1.69 * (-(v + 35.0) / 80.0).exp();

    let m = sigmoid((vs + 30.0) / 5.5);
    let soma = 0.016 * (vs - 10.0)
        + g_int / p1 * (vs - vd)
        + g_int / (1.0 - p2) * (vs - va)
        + 1.1 * k.powi(3) * l * (vs - 120.0)
        + 150.0 * m.powi(3) * hs * (vs - 55.0)
        + 9.0 * n.powi(4) * (vs + 75.0)
        + 5.0 * xs.powi(4) * (vs + 75.0);
    let tau_l = 35.0 + 20.0 * ((vs + 160.0) / 30.0).exp() / (1.0 + ((vs + 84.0) / 7.3).exp());
    let tau_hs = 3.0 * (-(vs + 40.0) / 33.0).exp();
    let tau_n = 5.0 + 47.0 * ((vs + 50.0) / 900.0).exp();

    let m_axon = sigmoid((va + 30.0) / 5.5);
    let axon = 0.016 * (va - 10.0)
        + g_int / p2 * (va - vs)
        + 240.0 * m_axon.powi(3) * ha * (va - 55.0)
        + 240.0 * xa.powi(4) * (va + 75.0);
    let tau_ha = 1.5 * (-(va + 40.0) / 33.0).exp();

    let i_cah = 4.5 * r * r * (vd - 120.0);
    let dendrite = 0.01532 * (vd - 10.0)
        + g_int / (1.0 - p1) * (vd - vs)
        + i_cah
        + 35.0 * s * (vd + 75.0)
        + 0.12 * q * (vd + 43.0);
    let alpha_r = 1.7 * sigmoid((vd - 5.0) / 13.9);
    // 0.02 x / (e^(x/5) - 1)
    let beta_r = 0.1 * rising(-(vd + 8.5) / 5.0);
    let alpha_s = (2e-5 * ca).min(0.01);
    let rate_q = (-0.086 * vd - 14.6).exp() + (0.070 * vd - 1.87).exp();

    [
        -soma,
        sigmoid((vs + 61.0) / 4.2) - k,
        (sigmoid(-(vs + 85.0) / 8.5) - l) / tau_l,
        (sigmoid(-(vs + 70.0) / 5.8) - hs) / tau_hs,
        (sigmoid((vs + 3.0) / 10.0) - n) / tau_n,
        alpha_x(vs) * (1.0 - xs) - beta_x(vs) * xs,
        -axon,
        (sigmoid(-(va + 60.0) / 5.8) - ha) / tau_ha,
        alpha_x(va) * (1.0 - xa) - beta_x(va) * xa,
        -dendrite + into_dendrite,
        -3.0 * i_cah - 0.075 * ca,
        0.2 * (alpha_r * (1.0 - r) - beta_r * r),
        alpha_s * (1.0 - s) - 0.015 * s,
        (sigmoid(-(vd + 80.0) / 4.0) - q) * rate_q,
    ]
}

/// Forward Euler, all from the states at the start of the step.
fn simulated(cells: &mut [[f64; 14]], edges: &Edges, steps: usize) {
    for _ in 0..steps {
        let currents: Vec<f64> = (0..cells.len())
            .map(|target| {
                let sources = &edges.sources[edges.offsets[target] as usize..edges.offsets[target + 1] as usize];
                let current = |&source: &u32| {
                    let d = cells[source as usize][9] - cells[target][9];
                    0.05 * d * (0.2 + 0.8 * (-d * d / 100.0).exp())
                };
                sources.iter().map(current).sum()
            })
            .collect();
        for (cell, current) in cells.iter_mut().zip(currents) {
            let slope = derivatives(cell, current);
            cell.iter_mut().zip(slope).for_each(|(y, dy)| *y += 0.025 * dy);
        }
    }
}

#[test]
fn the_simulation_written_here_has_the_published_derivatives() {
    let y = [
        -60.0, 0.7423159, 0.0321349, 0.3596066, 0.2369847, 0.1, -60.0, 0.9, 0.2369847, -60.0, 3.715, 0.0113, 0.0049291,
        0.0337836,
    ];
    // Computed once, from the same description, in another language.
    let listed = [
        3.289775962622953,
        -0.1830717026152072,
        3.26567968671931e-4,
        -0.03786969497034469,
        -0.004538594785628396,
        -0.1034868973976814,
        -10.23299252523497,
        -0.1454654836853983,
        -0.4393230358392058,
        -1.343030056,
        0.0316617,
        7.741358021613542e-4,
        -2.73212999998e-9,
        -6.476459732341567e-5,
    ];
    for (at, (got, want)) in derivatives(&y, 0.0).into_iter().zip(listed).enumerate() {
        assert!((got - want).abs() < 1e-9 * want.abs() + 1e-16, "{}: {got} for {want}", STATES[at]);
    }
}

/// The example with another rule.
fn olive(rule: &str) -> String {
    let example = include_str!("../../examples/inferior_olive/inferior_olive.neuro");
    let text = example.replace("torus_radial(degree = 10, r_max = 4, width = 4)", rule);
    assert!(text.contains(rule));
    text
}

/// `(rule, side, seed)`: all rules, and sizes and seeds that the reference data do not have.
fn olives() -> Vec<(&'static str, usize, u64)> {
    let rules = RULES.iter().enumerate().map(|(at, rule)| (*rule, 5, 11 + at as u64));
    rules.chain([(RULES[0], 7, 42), (RULES[0], 10, 3), (RULES[5], 7, 1)]).collect()
}

fn states(case: &Case, engine: &dyn Engine) -> Vec<[f64; 14]> {
    let columns = STATES.map(|name| case.read(engine, &format!("io.{name}")));
    (0..case.setup.sizes[0]).map(|cell| std::array::from_fn(|state| columns[state][cell])).collect()
}

#[test]
fn networks_of_all_rules_sizes_and_seeds_are_those_of_an_independent_simulation() {
    for (rule, side, seed) in olives() {
        let case = case(&olive(rule), &[&format!("side={side}")], seed);
        let mut results = Vec::new();
        for threads in [1, 2] {
            let mut engine = case.native(threads);
            engine.init().unwrap();
            let mut expected = states(&case, &engine);
            steps(&mut engine, 0, 4000);
            results.push(states(&case, &engine));
            if threads == 1 {
                simulated(&mut expected, case.edges(), 4000);
                results.push(expected);
            }
        }
        let [one, expected, two] = &results[..] else { unreachable!() };
        assert!(one == two, "{rule}, side {side}: two threads give other numbers than one");
        let mut worst: f64 = 0.0;
        for (got, want) in one.iter().flatten().zip(expected.iter().flatten()) {
            worst = worst.max((got - want).abs() / want.abs());
        }
        println!("{rule}, side {side}, seed {seed}: {worst:e}");
        assert!(worst < 1e-9, "{rule}, side {side}, seed {seed}: {worst:e}");
        // A network at rest would prove little.
        assert!(one.iter().flatten().all(|x| x.is_finite()) && one[0] != one[1]);
    }
}

#[test]
fn networks_of_all_rules_sizes_and_seeds_are_the_same_on_every_engine() {
    for (rule, side, seed) in olives() {
        let case = case(&olive(rule), &[&format!("side={side}")], seed);
        let mut interpreter = case.interpreter();
        interpreter.init().unwrap();
        steps(&mut interpreter, 0, 40);
        let expected = states(&case, &interpreter);
        for threads in [1, 2] {
            let mut engine = case.native(threads);
            engine.init().unwrap();
            steps(&mut engine, 0, 40);
            assert!(states(&case, &engine) == expected, "{rule}, side {side}, seed {seed}, {threads} threads");
        }
    }
}

// ------------------------------------------------------------------------------------------- what is said about mistakes

/// What a user reads who runs a model of five cells with this rule.
fn complaint(folder: &Path, rule: &str, set: &[&str]) -> String {
    let text = vessels(rule)
        .replace("Vessel[5, 5, 5]", "Vessel[n]")
        .replace("network main {", "network main {\n    param n = 5");
    let checked = check_text("network.neuro", folder, text, &Sources);
    let render = |diagnostics: &[neuroc::diag::Diagnostic]| {
        assert_eq!(diagnostics.len(), 1, "{rule}: one mistake, one message: {diagnostics:?}");
        neuroc::diag::render_human(&checked.sources, diagnostics, false)
    };
    if checked.model.is_none() {
        return render(&checked.diagnostics);
    }
    let options = CompileOptions { set: set.iter().map(|s| s.to_string()).collect(), ..CompileOptions::default() };
    let compiled = compile(&checked, &options, &mut |_, _, _| {}).unwrap();
    match Experiment::new(compiled) {
        Err(errors) => render(&errors),
        Ok(experiment) => format!("accepted: {} entries\n", experiment.setup.edges[0].1.sources.len()),
    }
}

#[test]
fn what_is_said_about_networks_that_cannot_be() {
    use ndarray::{Array1, array};
    use ndarray_npy::{NpzWriter, WritableElement, write_npy};
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fn archive<T: WritableElement + Clone>(path: &Path, vectors: &[(&str, &[T])]) {
        let mut npz = NpzWriter::new(fs::File::create(path).unwrap());
        for (name, vector) in vectors {
            npz.add_array(*name, &Array1::from(vector.to_vec())).unwrap();
        }
        npz.finish().unwrap();
    }
    let text = [
        ("target_out_of_range.csv", "src,tgt\n0,1\n# a remark\n1,5\n"),
        ("negative.csv", "src,tgt\n0,1\n-1,2\n"),
        ("fraction.csv", "0,1\n1.5,2\n"),
        ("nan.csv", "0,1\nnan,2\n"),
        ("larger_than_32_bits.csv", "0,1\n99999999999999,2\n"),
        ("word.csv", "0,1\nsoma,2\n"),
        ("itself.csv", "0,1\n2,2\n"),
        ("twice.csv", "0,1\n1,2\n\n0,1\n"),
        ("twice_in_both_directions.csv", "0,1\n1,0\n0,1\n1,0\n"),
        ("three_columns.csv", "0,1,2\n"),
        ("one_column.csv", "0\n1\n"),
        ("short_line.csv", "src,tgt\n0,1\n2\n"),
        ("empty.csv", ""),
        ("heading_only.csv", "src,tgt\n"),
        ("other_heading.csv", "left,right\n0,1\n"),
        ("text.npz", "0,1\n"),
        ("text.npy", "0,1\n"),
        // What is right, and accepted.
        ("once.csv", "0,1\n1,2\n"),
        ("target_first.csv", "To,From,weight\n1,0,3\n2,1,4\n"),
        ("sonata.csv", "target_node_id,source_node_id\n1,0\n2,1\n"),
        ("both_directions.csv", "0,1\n1,0\n1,2\n2,1\n"),
    ];
    text.iter().for_each(|(name, text)| fs::write(at.join(name), text).unwrap());
    archive(&at.join("other_names.npz"), &[("a", &[0, 1]), ("b", &[1, 2])]);
    archive(&at.join("no_target.npz"), &[("src", &[0, 1]), ("b", &[1, 2])]);
    archive(&at.join("lengths.npz"), &[("src", &[0, 1, 2][..]), ("tgt", &[1, 2])]);
    archive(&at.join("source_out_of_range.npz"), &[("src", &[0, 1, 7]), ("tgt", &[1, 2, 3])]);
    archive(&at.join("negative.npz"), &[("src", &[0, -1]), ("tgt", &[1, 2])]);
    archive(&at.join("itself.npz"), &[("src", &[0, 1]), ("tgt", &[1, 1])]);
    archive(&at.join("fractions.npz"), &[("src", &[0.0, 1.5]), ("tgt", &[1.0, 2.0])]);
    archive::<i64>(&at.join("empty.npz"), &[("src", &[]), ("tgt", &[])]);
    archive(&at.join("two_lists.npz"), &[("a_src", &[0]), ("a_tgt", &[1]), ("b_src", &[0]), ("b_tgt", &[2])]);
    write_npy(at.join("three_columns.npy"), &array![[0, 1, 2]]).unwrap();
    write_npy(at.join("vector.npy"), &array![0, 1, 2]).unwrap();
    write_npy(at.join("fractions.npy"), &array![[0.0, 1.5]]).unwrap();
    write_npy(at.join("empty.npy"), &ndarray::Array2::<i32>::zeros((0, 2))).unwrap();

    let mut names: Vec<String> =
        fs::read_dir(at).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let mut rules: Vec<(String, &[&str])> = names.iter().map(|name| (format!("edges(\"{name}\")"), &[][..])).collect();
    let others: [(&str, &[&str]); 16] = [
        ("edges(\"two_lists.npz\", column = \"b\")", &[]),
        ("edges(\"two_lists.npz\", column = \"c\")", &[]),
        ("edges()", &[]),
        ("edges(pairs.csv)", &[]),
        ("edges(file(\"once.csv\"))", &[]),
        ("one_to_one()", &[]),
        ("torus_radial(degree = 40, r_max = 2, width = 4)", &[]),
        ("torus_radial(degree = 2, r_max = 2, width = 4)", &["n=2"]),
        ("fixed_in_degree(n = 5)", &[]),
        ("fixed_in_degree(n = 1)", &["n=1"]),
        ("fixed_out_degree(n = 1.5)", &[]),
        ("probability(p = -0.5)", &[]),
        ("probability(p = 0 / 0)", &[]),
        ("all_to_all()", &["n=0"]),
        ("all_to_all()", &["n=-3"]),
        ("all_to_all()", &["n=2.5"]),
    ];
    rules.extend(others.iter().map(|(rule, set)| (rule.to_string(), *set)));
    let said: Vec<String> = rules
        .iter()
        .map(|(rule, set)| format!("=== {rule} {}\n{}", set.join(" "), complaint(at, rule, set)).trim_end().to_string())
        .collect();
    insta::assert_snapshot!(said.join("\n\n"));
}
