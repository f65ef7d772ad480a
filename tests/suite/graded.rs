//! Tests of: graded synapses, with every method: the exact solution of a half centre, the same bits from the interpreter and from kernels, cells of one
//! population against the same cells of two, sums without a state, what is recorded, the pyloric rhythm.

use crate::events::native_run_with;
use crate::models::{Way, root, run};
#[cfg(feature = "xla")]
use neuroc::codegen::plan::GatherForm;
use neuroc::codegen::plan::Precision;
use neuroc::driver::{Checked, CompileOptions, check_text};
#[cfg(feature = "xla")]
use neuroc::driver::{EngineChoice, Experiment, compile};
#[cfg(feature = "xla")]
use neuroc::engine::xla::Forms;
use neuroc::hir::{Method, Sources};
use neuroc::results::{RunResult, Samples};
#[cfg(feature = "xla")]
use neuroc::simulate::{RunOptions, Unwatched};
use serde_json::Value;

/// The half centre of `tests/reference/graded_scipy.py`; `network` has its populations and connections, `record` what is recorded.
fn half_centre(network: &str, record: &str) -> Checked {
    let text = half_centre_text(network, record);
    let checked = check_text("half.neuro", &root(), text, &Sources);
    let say = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    assert!(checked.model.is_some() && checked.diagnostics.is_empty(), "{say}");
    checked
}

fn half_centre_text(network: &str, record: &str) -> String {
    format!(
        "synapse Slow {{
    param erev = -80 mV
    param half = -20 mV
    param scale = 8 mV
    let inf = 1 / (1 + exp((half - v_pre) / scale))
    state s = 0
    s' = (inf - s) / (20 ms * (1 - inf))
    sum g(weight: nS) = weight * s
    current i = g * (v - erev)
}}
synapse Fast {{
    param half = -20 mV
    sum g(weight: nS) = weight / (1 + exp((half - v_pre) / 8 mV))
    current i = g * (v + 80 mV)
}}
cell Oscillator {{
    param i_app = 105 pA
    let m_inf = 0.5 * (1 + tanh((v + 1.2 mV) / 18 mV))
    let w_inf = 0.5 * (1 + tanh((v - 2 mV) / 30 mV))
    let ionic = 2 nS * (v + 60 mV) + 4.4 nS * m_inf * (v - 120 mV) + 8 nS * w * (v + 84 mV)
    state v: mV = -20 mV
    v' = (i_app - ionic - i_syn) / 20 pF
    state w = 0.1
    w' = 0.04 /ms * (w_inf - w) * cosh((v - 2 mV) / 60 mV)
}}
network main {{ {network} }}
run {{ duration = 200 ms; dt = 0.1 ms; {record} }}"
    )
}

/// Each cell is a population.
const TWO: &str = "population a: Oscillator; population b: Oscillator
    param b.i_app = 100 pA; init b.v = -50 mV; init b.w = 0.05; init a.Slow.pre.s = 0.2
    connect a -> b via Slow { rule = all_to_all; weight = 0.8 nS }
    connect b -> a via Slow { rule = all_to_all; weight = 0.8 nS }
    connect a -> b via Fast { rule = all_to_all; weight = 0.25 nS }
    connect b -> a via Fast { rule = all_to_all; weight = 0.5 nS }";

fn with(method: Method, dt: f64) -> CompileOptions {
    CompileOptions { method: Some(method), dt: Some(dt), ..CompileOptions::default() }
}

/// A column of a series.
fn column(result: &RunResult, name: &str, cell: usize) -> Vec<f64> {
    let series = result.series.iter().find(|series| series.name == name).unwrap_or_else(|| panic!("no {name}"));
    match &series.values {
        Samples::F64(values) => values.column(cell).to_vec(),
        Samples::F32(values) => values.column(cell).iter().map(|&x| f64::from(x)).collect(),
    }
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    assert!(a.len() == b.len() && a.len() > 1, "{} and {} values", a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// A column of the reference, as far as the runs here go.
fn exact(at: &str) -> Vec<f64> {
    let text = std::fs::read_to_string(root().join("tests/reference/graded_scipy.json")).expect("a file");
    let all: Value = serde_json::from_str(&text).expect("json");
    let values = all.pointer(at).and_then(Value::as_array).unwrap_or_else(|| panic!("no {at}"));
    values.iter().take(11).filter_map(Value::as_f64).collect()
}

/// How far a run is from the exact solution: voltages and what is released.
fn off(method: Method, dt: f64) -> [f64; 2] {
    let checked = half_centre(TWO, "record a.{v, Slow.pre.s} every 20 ms; record b.{v, Slow.pre.s} every 20 ms");
    let result = run(&checked, &with(method, dt), Way::Native);
    let both = |name: &str, key: &str| {
        let of = |p: &str| apart(&column(&result, &format!("{p}.{name}"), 0), &exact(&format!("/{p}/{key}")));
        of("a").max(of("b"))
    };
    [both("v", "v_mV"), both("Slow.pre.s", "s")]
}

#[test]
fn half_centres_converge_to_the_exact_solution_with_the_order_of_the_method() {
    // Of order 1 with a step that is halved: half the error; of order 4: a sixteenth.
    let cases = [
        (Method::Rk4, 0.05, 16.0, 1e-3),
        (Method::Heun, 0.02, 4.0, 0.1),
        (Method::Euler, 0.005, 2.0, 1.0),
        (Method::ExpEuler, 0.01, 2.0, 1.0),
        (Method::Cnexp, 0.01, 2.0, 1.0),
        (Method::CrankNicolson, 0.01, 2.0, 1.0),
    ];
    for (method, dt, ratio, most) in cases {
        let (coarse, fine) = (off(method, dt), off(method, dt / 2.0));
        println!("{}: {coarse:?} with {dt} ms, {fine:?} with half", method.name());
        assert!(coarse[0] < most && coarse[1] < most / 20.0, "{}: {coarse:?}", method.name());
        let found = coarse[0] / fine[0];
        assert!((found / ratio - 1.0).abs() < 0.25, "{}: {found} times nearer, not {ratio}", method.name());
    }
}

/// Cells that send and receive in one population, and between two of other sizes, with rules.
const MANY: &str = "population a: Oscillator[37]; population b: Oscillator[60]; population idle: Oscillator[3]
    init a.v ~ uniform(-60 mV, 20 mV); init b.v ~ uniform(-60 mV, 20 mV)
    param a.i_app ~ uniform(90 pA, 110 pA); param b.Slow.pre.half ~ normal(-20 mV, 1 mV)
    connect a -> b via Slow { rule = probability(p = 0.1); weight = 0.1 nS }
    connect b -> a via Slow { rule = fixed_in_degree(n = 3); weight = 0.2 nS }
    connect a -> a via Slow(scale = 9 mV) { rule = probability(p = 0.2); weight = 0.05 nS }
    connect a -> a via Fast { rule = fixed_out_degree(n = 4); weight = 0.1 nS }
    connect b -> b via Fast(half = -10 mV) { rule = one_to_one; weight = 0.1 nS }
    connect b -> a via Fast { rule = fixed_total_number(n = 50); weight = 0.1 nS }";

#[test]
fn kernels_and_interpreter_give_the_same_bits() {
    let checked = half_centre(
        MANY,
        "record a.{v, Slow.pre.s, Slow_2.pre.s, Slow.i, Fast.i}; record b.{v, Fast.g}; record idle.v",
    );
    for method in [Method::ExpEuler, Method::CrankNicolson, Method::Rk4] {
        let options = CompileOptions { duration: Some(5.0), every: Some(0.5), ..with(method, 0.01) };
        let [first, second] = [Way::Optimized, Way::Native].map(|way| run(&checked, &options, way));
        let apart = |name: &str, cell: usize| apart(&column(&first, name, cell), &column(&second, name, cell));
        let own = [("a.v", 37), ("a.Slow.pre.s", 37), ("a.Slow_2.pre.s", 37), ("b.v", 60), ("idle.v", 3)];
        for (name, cells) in own.into_iter().chain([("a.Slow.i", 37), ("a.Fast.i", 37), ("b.Fast.g", 60)]) {
            assert!((0..cells).all(|cell| apart(name, cell) == 0.0), "{name} with {}", method.name());
        }
        assert!(apart("a.v", 0) == 0.0 && self::apart(&column(&first, "a.v", 0), &column(&first, "a.v", 1)) > 1.0);
    }
}

/// Each edge has a weight of its own: drawn, from a file, by the distance of its cells. With every number of threads and in single precision, too.
#[test]
fn edges_have_weights_of_their_own_in_kernels() {
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let edges: String = (0..90)
        .map(|k| format!("{},{},{}\n", (7 * k + k / 37) % 37, (11 * k) % 60, 0.05 + 0.01 * f64::from(k % 7)))
        .collect();
    std::fs::write(folder.path().join("edges.csv"), format!("source,target,weight\n{edges}"))
        .unwrap_or_else(|e| panic!("{e}"));
    let network = "population a: Oscillator[37] { spacing = 10 um }; population b: Oscillator[60] { spacing = 10 um }
        init {a, b}.v ~ uniform(-60 mV, 20 mV)
        connect a -> b via Slow { rule = probability(0.2); weight ~ uniform(0.02 nS, 0.2 nS) }
        connect b -> b via Slow { rule = fixed_in_degree(n = 3); weight = 0.3 nS * exp(-distance / 100 um) }
        connect a -> b via Fast { rule = edges(\"edges.csv\"); weight = file(\"edges.csv\", column = \"weight\") * 1 nS }
        connect b -> a via Fast { rule = fixed_total_number(n = 50); weight ~ lognormal(0.1 nS, 0.05 nS) }
        connect b -> a via Slow { rule = all_to_all; weight = 0.01 nS }";
    let text = half_centre_text(network, "record a.v; record b.{v, Slow.pre.s, Slow.g, Fast.i}");
    let checked = check_text("half.neuro", folder.path(), text, &Sources);
    let say = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    assert!(checked.model.is_some() && checked.diagnostics.is_empty(), "{say}");
    for method in [Method::ExpEuler, Method::Heun] {
        let options = CompileOptions { duration: Some(5.0), every: Some(0.5), ..with(method, 0.01) };
        let [plain, first] = [Way::Plain, Way::Optimized].map(|way| run(&checked, &options, way));
        for threads in [1, 2, 3] {
            let second = native_run_with(&checked, &options, Precision::F64, threads);
            let of_b = ["b.v", "b.Slow.pre.s", "b.Slow.g", "b.Fast.i"].map(|name| (name, 60));
            for (name, cells) in of_b.into_iter().chain([("a.v", 37)]) {
                for cell in 0..cells {
                    let [plain, first, second] = [&plain, &first, &second].map(|result| column(result, name, cell));
                    assert!(apart(&first, &second) == 0.0, "{name}[{cell}] with {}, {threads} threads", method.name());
                    assert!(apart(&plain, &first) < 1e-9, "{name}[{cell}]");
                }
            }
        }
        #[cfg(feature = "xla")]
        if crate::pjrt::cpu().is_some() {
            crate::events::close(&first, &run(&checked, &options, Way::Xla), 1e-9, "slabs");
            // As accelerators have it.
            let padded = |form: &GatherForm| matches!(form, GatherForm::Padded { .. });
            crate::events::close(&first, &gathered(&checked, &options, padded), 1e-9, "a padded list");
            let by_row = |form: &GatherForm| matches!(form, GatherForm::Rows { .. });
            crate::events::close(&first, &gathered(&checked, &options, by_row), 1e-9, "rows");
        }
        let single = native_run_with(&checked, &options, Precision::F32, 2);
        assert!((0..60).all(|cell| apart(&column(&first, "b.v", cell), &column(&single, "b.v", cell)) < 0.05));
        // What they weigh matters.
        let other = half_centre_text(&network.replace("0.2 nS)", "0.1 nS)"), "record a.v; record b.{v, Slow.pre.s}");
        let other = run(&check_text("half.neuro", folder.path(), other, &Sources), &options, Way::Native);
        assert!(apart(&column(&first, "b.v", 5), &column(&other, "b.v", 5)) > 1e-3);
    }
}

/// A run on XLA with one form of gathers.
#[cfg(feature = "xla")]
fn gathered(checked: &Checked, options: &CompileOptions, form: fn(&GatherForm) -> bool) -> RunResult {
    let options = CompileOptions { backend: neuroc::passes::Backend::Xla, ..options.clone() };
    let compiled = compile(checked, &options, &mut |_, _, _| {}).unwrap_or_else(|d| panic!("{d:?}"));
    let experiment = Experiment::new(compiled).unwrap_or_else(|d| panic!("{d:?}"));
    let plan = experiment.plan(Precision::F64).unwrap_or_else(|d| panic!("{d:?}"));
    let client = crate::pjrt::cpu().unwrap_or_else(|| panic!("it was there a moment ago"));
    let choice = EngineChoice::Xla(client.into(), Forms { gather: Some(form), unroll: None });
    let mut engine = experiment.engine(&plan, choice).unwrap_or_else(|e| panic!("{e}")).engine;
    let outcome = experiment.run(engine.as_mut(), &RunOptions::default(), &mut Unwatched);
    outcome.unwrap_or_else(|e| panic!("{e:?}")).0
}

#[test]
fn cells_of_one_population_are_joined_as_those_of_two() {
    let one = "population c: Oscillator[2]; param c[1].i_app = 100 pA
        init c[1].v = -50 mV; init c[1].w = 0.05; init c[0].Slow.pre.s = 0.2
        connect c -> c via Slow { rule = all_to_all; weight = 0.8 nS }
        connect c -> c via Fast { rule = all_to_all; weight = 0.25 nS }";
    let two = TWO.replace("0.5 nS", "0.25 nS");
    let together = run(&half_centre(one, "record c.v"), &with(Method::ExpEuler, 0.1), Way::Native);
    let each = run(&half_centre(&two, "record a.v; record b.v"), &with(Method::ExpEuler, 0.1), Way::Native);
    for (name, cell) in [("a.v", 0), ("b.v", 1)] {
        // The sums are added up in other orders.
        assert!(apart(&column(&each, name, 0), &column(&together, "c.v", cell)) < 1e-9);
    }
}

#[test]
fn what_arrives_is_the_sum_of_weights_and_what_is_released() {
    let network = "population a: Oscillator[5]; population b: Oscillator[4]; init a.v ~ uniform(-60 mV, 20 mV)
        connect a -> b via Slow { rule = all_to_all; weight ~ uniform(0.1 nS, 0.3 nS) }
        connect b -> b via Slow { rule = all_to_all; weight = 0.05 nS }";
    let checked = half_centre(network, "record a.Slow.pre.s; record b.{v, Slow.pre.s, Slow.g, Slow.i}");
    let options = CompileOptions { duration: Some(40.0), every: Some(1.0), ..with(Method::ExpEuler, 0.1) };
    let result = run(&checked, &options, Way::Optimized);
    let sent: Vec<Vec<f64>> = (0..5).map(|cell| column(&result, "a.Slow.pre.s", cell)).collect();
    let back: Vec<Vec<f64>> = (0..4).map(|cell| column(&result, "b.Slow.pre.s", cell)).collect();
    for cell in 0..4 {
        let [g, i, v] = ["g", "i", "v"]
            .map(|what| column(&result, &format!("b.{}{what}", if what == "v" { "" } else { "Slow." }), cell));
        let outward: Vec<f64> = g.iter().zip(&v).map(|(g, v)| g * (v + 80.0)).collect();
        // nS mV are pA, whatever units results have.
        let scale = i[20] / outward[20];
        assert!(apart(&i, &outward.iter().map(|x| x * scale).collect::<Vec<_>>()) <= 1e-12 * i[20].abs().max(1.0));
        // Least squares is exact where there are as many equations as weights: here the sum lies between those of the least and the largest weights.
        for at in 5..40 {
            let of_a: f64 = sent.iter().map(|s| s[at]).sum();
            let of_b: f64 = (0..4).filter(|&other| other != cell).map(|other| back[other][at]).sum();
            let from_a = g[at] - 0.05 * of_b;
            assert!(0.1 * of_a < from_a && from_a < 0.3 * of_a, "cell {cell} at {at}: {from_a} of {of_a}");
        }
    }
}

/// Branched cells that send from places and receive at places and in sections; with cells that have none.
const BRANCHED: &str = "use std.channels.hh.{Leak, Na, K}
use std.synapses.{Graded}
synapse Fast { param half = -50 mV; sum g(weight: nS) = weight / (1 + exp((half - v_pre) / 8 mV)); current i = g * v }
cell Branched {
    section soma { length = 20 um; diam = 20 um; compartments = 1 }
    section dend { from soma(1); length = 100 um; diam = 2 um; compartments = 3 }
    section apic { from soma(0); length = 200 um; diam = 3 um; compartments = 5 }
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -60 mV; insert Leak }
    region soma { insert Na, K }
}
cell Point { compartment c { area = 500 um2; cm = 1 uF/cm2; insert Leak, Na, K; v_init = -50 mV } }
network main {
    population a: Branched[13]
    population b: Branched[7]
    population p: Point[5]
    input stim: 0.3 nA -> a.soma(0.5)
    init a.v ~ uniform(-70 mV, -50 mV)
    connect a.soma(0.5) -> b.dend(0.5) via Graded { rule = fixed_in_degree(n = 3); weight = 0.5 nS }
    connect a.apic(0.9) -> b.dend(0.5) via Fast { rule = all_to_all; weight = 0.1 nS }
    connect b.dend(0.9) -> a.apic via Graded(midpoint = -55 mV) { rule = all_to_all; weight = 0.2 nS }
    connect b.apic(0.1) -> p via Fast as F { rule = all_to_all; weight ~ uniform(0.1 nS, 0.3 nS) }
    connect p -> {a, b}.soma(0.5) via Fast as F { rule = probability(p = 0.5); weight = 0.3 nS }
}
run {
    duration = 20 ms; dt = 0.025 ms; method = cnexp; celsius = 6.3 degC
    record a.soma(0.5).{v, F.g} every 1 ms
    record {b.dend(0.5).{v, Graded.i, Fast.g}} every 1 ms
    record a.soma(0.5).Graded.pre.s every 1 ms
    record a.apic.Graded.i every 1 ms
    record p.c.{v, F.g} every 1 ms
}";

#[test]
fn branched_cells_send_and_receive_natively_as_in_the_interpreter() {
    let checked = crate::cables::checked(BRANCHED);
    for method in [Method::Cnexp, Method::CrankNicolson] {
        let options = CompileOptions { method: Some(method), ..CompileOptions::default() };
        let first = run(&checked, &options, Way::Optimized);
        // What arrives in the first step is that of the beginning.
        let begin = column(&first, "b.dend(0.5).Fast.g", 0)[0];
        assert!(begin > 1e-3 && column(&first, "a.soma(0.5).Graded.pre.s", 3)[20] > 1e-3, "{begin}");
        crate::events::close(&run(&checked, &options, Way::Plain), &first, 1e-9, "before passes");
        for threads in [1, 2, 3] {
            let second = native_run_with(&checked, &options, Precision::F64, threads);
            crate::events::close(&first, &second, 0.0, &format!("{threads} threads"));
        }
        crate::events::close(&first, &native_run_with(&checked, &options, Precision::F32, 2), 1e-2, "f32");
        #[cfg(feature = "xla")]
        if crate::pjrt::cpu().is_some() {
            crate::events::close(&first, &run(&checked, &options, Way::Xla), 1e-9, "xla");
        }
    }
}

/// Two branched cells that excite each other, beside the same cells of compartments that are coupled by hand.
const BESIDE: &str = "use std.channels.hh.{Leak, Na, K}
use std.synapses.{Graded}
synapse Fast { sum g(weight: nS) = weight / (1 + exp((-50 mV - v_pre) / 8 mV)); current i = g * v }
cell Branched {
    section soma { length = 20 um; diam = 20 um; compartments = 1 }
    section dend { from soma(1); length = 100 um; diam = 2 um; compartments = 3 }
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -60 mV; insert Leak }
    region soma { insert Na, K }
}
cell Coupled {
    param g_soma = 1 / (100 ohm*cm * (10 um / (pi * 100 um2) + 100 um / 6 / (pi * 1 um2)))
    param g_dend = 1 / (100 ohm*cm * 100 um / 3 / (pi * 1 um2))
    param a_soma = pi * 400 um2
    param a_dend = pi * 200 um2 / 3
    compartment soma { area = a_soma; cm = 1 uF/cm2; v_init = -60 mV; insert Leak, Na, K }
    compartment near { area = a_dend; cm = 1 uF/cm2; v_init = -60 mV; insert Leak }
    compartment mid { area = a_dend; cm = 1 uF/cm2; v_init = -60 mV; insert Leak }
    compartment tip { area = a_dend; cm = 1 uF/cm2; v_init = -60 mV; insert Leak }
    couple soma <- near: g_soma / a_soma
    couple near <- soma: g_soma / a_dend
    couple near <- mid: g_dend / a_dend
    couple mid <- near: g_dend / a_dend
    couple mid <- tip: g_dend / a_dend
    couple tip <- mid: g_dend / a_dend
}
network main { NETWORK }
run { duration = 10 ms; dt = 0.01 ms; celsius = 6.3 degC; record b.SOMA.v every 1 ms; record b.TIP.v every 1 ms }";

#[test]
fn places_send_and_receive_as_compartments_that_are_coupled_by_hand() {
    let text = |cell: &str, [soma, near, mid, tip]: [&str; 4]| {
        let network = format!(
            "population a: {cell}; population b: {cell}; input stimulus: 0.1 nA -> a.{soma}
            connect a.{tip} -> b.{mid} via Graded {{ rule = all_to_all; weight = 2 nS }}
            connect b.{soma} -> a.{near} via Fast {{ rule = all_to_all; weight = 0.5 nS }}"
        );
        BESIDE.replace("NETWORK", &network).replace("SOMA", soma).replace("TIP", tip)
    };
    let ran = |text: &str, method: Method, dt: f64| {
        let options = CompileOptions { method: Some(method), dt: Some(dt), ..CompileOptions::default() };
        let result = run(&crate::cables::checked(text), &options, Way::Native);
        [0, 1].map(|at| column(&result, &result.series[at].name, 0))
    };
    let (by_hand, places) = (["soma", "near", "mid", "tip"], ["soma(0.5)", "dend(0.1)", "dend(0.5)", "dend(0.9)"]);
    // What goes to the second cell is a state of the first one: it is known in the middle of steps, as gates are.
    for (method, ratio) in [(Method::Cnexp, 2.0), (Method::CrankNicolson, 4.0)] {
        let exact = ran(&text("Coupled", by_hand), Method::Rk4, 0.001);
        let off = |dt: f64| {
            let found = ran(&text("Branched", places), method, dt);
            apart(&found[0], &exact[0]).max(apart(&found[1], &exact[1]))
        };
        let (coarse, fine) = (off(0.02), off(0.01));
        println!("{}: {coarse} and {fine} mV", method.name());
        assert!(fine < 0.05 && (coarse / fine / ratio - 1.0).abs() < 0.2, "{}: {coarse}, {fine}", method.name());
    }
}

/// When the bursts of a cell begin: spikes after a silence.
fn bursts(result: &RunResult, population: &str) -> Vec<f64> {
    let spikes = result.spikes.iter().find(|spikes| spikes.population == population).expect("spikes");
    let times = spikes.t.to_vec();
    let begins = |at: &usize| *at == 0 || times[*at] - times[at - 1] > 300.0;
    (0..times.len()).filter(begins).map(|at| times[at]).collect()
}

#[test]
fn pyloric_cells_take_turns() {
    let path = root().join("examples/pyloric.neuro");
    let text = std::fs::read_to_string(&path).expect("the example");
    let checked = check_text("pyloric.neuro", &root(), text, &Sources);
    let result = run(&checked, &CompileOptions::default(), Way::Native);
    let [pd, lp, py] = ["pd", "lp", "py"].map(|population| bursts(&result, population));
    println!("pd {pd:?}, lp {lp:?}, py {py:?}");
    assert_eq!((pd.len(), lp.len(), py.len()), (4, 3, 3));
    for cycle in 0..3 {
        assert!(pd[cycle] < lp[cycle] && lp[cycle] < py[cycle] && py[cycle] < pd[cycle + 1]);
    }
    let period = pd[3] - pd[2];
    assert!((1000.0..2000.0).contains(&period), "{period} ms");
}
