//! Tests of: gap junctions between populations and compartments, with every method, on every engine: closed forms, charge that is
//! kept, orders of convergence, one population against the same cells as two, currents that differ by direction.

use crate::models::{Way, run};
use ndarray::Array2;
use neuroc::codegen::plan::Precision;
use neuroc::driver::{Checked, CompileOptions, EngineChoice, Experiment, check_text, check_whole, compile};
use neuroc::engine::native::NativeOptions;
use neuroc::engine::rustc;
use neuroc::hir::{Method, Sources};
use neuroc::results::{RunResult, Samples, Series};
use neuroc::simulate::{RunOptions, Unwatched};
use std::fs;
use std::path::Path;

/// Every engine that is here.
fn ways() -> Vec<Way> {
    #[allow(unused_mut)]
    let mut ways = vec![Way::Optimized, Way::Native, Way::Single];
    #[cfg(feature = "xla")]
    if crate::pjrt::cpu().is_some() {
        ways.extend([Way::Xla, Way::XlaSingle]);
    }
    ways
}

const METHODS: [Method; 5] = [Method::Euler, Method::ExpEuler, Method::Cnexp, Method::Heun, Method::Rk4];

fn checked(folder: &Path, text: &str) -> Checked {
    let checked = check_text("junctions.neuro", folder, text.to_string(), &Sources);
    let say = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    assert!(checked.model.is_some(), "{say}");
    checked
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn with(method: Method, dt: f64) -> CompileOptions {
    CompileOptions { method: Some(method), dt: Some(dt), ..CompileOptions::default() }
}

/// The values of a series, cell after cell, at the end.
fn last(result: &RunResult, name: &str) -> Vec<f64> {
    let series = result.series.iter().find(|series| series.name == name).unwrap_or_else(|| panic!("no {name}"));
    let values = numbers(series);
    values.row(values.nrows() - 1).to_vec()
}

/// The samples of a series in double precision.
fn numbers(series: &Series) -> Array2<f64> {
    match &series.values {
        Samples::F64(values) => values.clone(),
        Samples::F32(values) => values.mapv(f64::from),
    }
}

/// Squid axons of two kinds; edges between populations, between compartments of one cell, and within a population.
const THREE_WAYS: &str = "
use std.channels.hh.{Na, K, Leak}
junction Gap { param g = 20 uS/cm2;  let x = dv / 20 mV;  current i = g * dv * (0.3 + 0.7 * exp(-x^2)) }
junction Gj { param g = 0.5 nS;  current i = g * dv }
junction Rectifier { param g = 10 uS/cm2;  current i = if dv > 0 mV then g * dv else 0.1 * g * dv }
cell A { compartment soma { area = 1000 um2; cm = 1 uF/cm2; v_init = -65 mV; insert Na, K, Leak } }
cell B {
    compartment soma { area = 500 um2; cm = 1 uF/cm2; v_init = -60 mV; insert Na, K, Leak }
    compartment dend { area = 2000 um2; cm = 1 uF/cm2; v_init = -70 mV; insert Leak }
    spike when soma.v crosses 0 mV
}
network main {
    population a: A[60]
    population alone: A[3]
    population b: B[37]
    connect a -- b.dend via Gap { rule = probability(p = 0.05) }
    connect b.soma -- b.dend via Gj { rule = one_to_one }
    connect a -- a via Gap(g = 5 uS/cm2) { rule = fixed_in_degree(n = 2) }
    connect b.soma -- a via Rectifier { rule = fixed_out_degree(n = 1) }
    connect a -- a via Rectifier { rule = probability(p = 0.02) }
    input drive: pulse(delay = 0.1 ms, duration = 2 ms, amplitude = 30 uA/cm2) -> a[0..30].soma
    init b.soma.v ~ normal(-60 mV, 5 mV)
}
run {
    duration = 2.4 ms
    dt = 0.02 ms
    celsius = 6.3 degC
    record a.soma.v every 0.4 ms
    record alone.soma.v every 0.4 ms
    record b.{soma, dend}.v every 0.4 ms
    record {a.soma, b.soma, b.dend}.i_gap every 0.4 ms
    record spikes of b
}
";

#[test]
fn engines_agree_on_junctions_between_everything() {
    let checked = checked(here(), THREE_WAYS);
    for method in METHODS {
        let options = with(method, 0.02);
        let expected = run(&checked, &options, Way::Plain);
        // Methods are discretized before engines see anything: one of one stage and one of several will do for compiled code.
        let interpreted = |way: &Way| matches!(way, Way::Plain | Way::Optimized | Way::Reread);
        let here = |way: &Way| interpreted(way) || [Method::ExpEuler, Method::Heun].contains(&method);
        for way in ways().into_iter().filter(here) {
            let found = run(&checked, &options, way);
            // Exponentials differ in their last places, and a spike makes more of that.
            let within = match way {
                Way::Plain | Way::Optimized | Way::Reread | Way::Native => 1e-9,
                Way::Single => 2e-2,
                #[cfg(feature = "xla")]
                Way::Xla => 1e-9,
                #[cfg(feature = "xla")]
                Way::XlaSingle => 2e-2,
            };
            for series in &expected.series {
                let other = found.series.iter().find(|other| other.name == series.name).expect("the same records");
                let difference = (numbers(series) - numbers(other)).iter().fold(0.0f64, |most, x| most.max(x.abs()));
                assert!(difference <= within, "{method:?} {way:?}: {} differs by {difference:e} mV", series.name);
            }
            assert_eq!(expected.spikes, found.spikes, "{method:?} {way:?}");
        }
    }
}

#[test]
fn threads_give_the_same_bits() {
    let checked = checked(here(), THREE_WAYS);
    for method in [Method::ExpEuler, Method::Rk4] {
        let results = [1, 2, 3].map(|threads| {
            let compiled =
                compile(&checked, &with(method, 0.02), &mut |_, _, _| {}).unwrap_or_else(|d| panic!("{d:?}"));
            let experiment = Experiment::new(compiled).unwrap_or_else(|d| panic!("{d:?}"));
            let mut plan = experiment.plan(Precision::F64).unwrap_or_else(|d| panic!("{d:?}"));
            plan.min_cells = 1;
            let cache = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels"));
            let compile = rustc::CompileOptions { cache, ..Default::default() };
            let options = NativeOptions { threads, arrangement: Default::default(), compile };
            let mut engine =
                experiment.engine(&plan, EngineChoice::Native(options)).unwrap_or_else(|e| panic!("{e}")).engine;
            let (result, _) = experiment.run(engine.as_mut(), &RunOptions::default(), &mut Unwatched).unwrap();
            (result.series, result.spikes)
        });
        assert!(results.iter().all(|result| *result == results[0]), "{method:?}");
    }
}

/// Two cells of different size and a junction: the difference decays with the time constant of both in series.
const PAIR: &str = "
channel Nothing { param g = 0 mS/cm2; current i = g * v }
junction Gj { param g = 2 nS;  current i = g * dv }
cell A { compartment soma { area = 1000 um2; cm = 1 uF/cm2; v_init = -30 mV; insert Nothing } }
cell B { compartment soma { area = 3000 um2; cm = 2 uF/cm2; v_init = -70 mV; insert Nothing } }
network main {
    population a: A
    population b: B
    connect a -- b via Gj { rule = one_to_one }
}
run { duration = 8 ms; dt = 0.1 ms; record a.soma.v every 8 ms; record b.soma.v every 8 ms }
";

#[test]
fn two_cells_of_different_size_meet_where_no_charge_is_lost() {
    let checked = checked(here(), PAIR);
    // Capacitances in nF, conductance in uS, times in ms.
    let (ca, cb, g) = (0.01, 0.06, 0.002);
    let tau = ca * cb / (ca + cb) / g;
    let end = (ca * -30.0 + cb * -70.0) / (ca + cb);
    let decayed = (-8.0f64 / tau).exp();
    let closed = [end + (-30.0 - end) * decayed, end + (-70.0 - end) * decayed];
    let error = |method: Method, dt: f64| {
        let result = run(&checked, &with(method, dt), Way::Native);
        let [a, b] = ["a.soma.v", "b.soma.v"].map(|name| last(&result, name)[0]);
        let charge = ca * a + cb * b - (ca * -30.0 + cb * -70.0);
        assert!(charge.abs() < 1e-12, "{method:?}: a charge of {charge:e} pC came or went");
        (a - closed[0]).abs().max((b - closed[1]).abs())
    };
    for (method, order) in [(Method::Euler, 1.0), (Method::Heun, 2.0), (Method::Rk4, 4.0)] {
        let (coarse, fine) = (error(method, 0.4), error(method, 0.2));
        let measured = (coarse / fine).log2();
        assert!((measured - order).abs() < 0.2, "{method:?} converges with order {measured}: {coarse:e}, {fine:e}");
    }
    assert!(error(Method::Rk4, 0.1) < 1e-7);
}

/// What an experiment with two electrodes measures: the current that holds one cell is that of its channels and of its junctions, whose conductance it
/// tells. What flows out of some cells flows into the others.
#[test]
fn currents_through_junctions_are_recorded() {
    let text = "
channel Leak { param g = 0.1 mS/cm2; param e = -65 mV; current i = g * (v - e) }
junction Gap { param g = 0.05 mS/cm2; current i = g * dv }
junction Gj { param g = 2 nS; current i = g * dv }
cell C { compartment soma { cm = 1 uF/cm2; area = 1000 um2; v_init = -65 mV; insert Leak } }
cell D { compartment soma { cm = 1 uF/cm2; area = 2000 um2; v_init = -50 mV; insert Leak } }
network main {
    population a: C[2]
    population b: D
    connect a.soma -- a.soma via Gap { rule = all_to_all }
    connect a.soma -- b.soma via Gj { rule = all_to_all }
    clamp hold: -40 mV -> a[0].soma
}
run { duration = 4 ms; dt = 0.1 ms; record a.soma.{v, i_clamp, i_gap, Leak.i}; record b.soma.{v, i_gap} }";
    let checked = checked(here(), text);
    for method in METHODS {
        for way in ways().into_iter().filter(|way| !format!("{way:?}").contains("Single")) {
            let result = run(&checked, &with(method, 0.1), way);
            let of = |name: &str| numbers(result.series.iter().find(|s| s.name == name).expect("a record"));
            let [v, clamp, gap, leak] = ["v", "i_clamp", "i_gap", "Leak.i"].map(|what| of(&format!("a.soma.{what}")));
            let (other, back) = (of("b.soma.v"), of("b.soma.i_gap"));
            assert!(v.nrows() == 41 && v[[40, 1]] > -64.0, "{method:?} {way:?}");
            for row in 0..41 {
                let near = |a: f64, b: f64, what: &str| {
                    assert!((a - b).abs() < 1e-9 * b.abs().max(1e-3), "{method:?} {way:?} {row}: {what}, {a} and {b}");
                };
                // 2 nS of 1000 um2 are 0.2 mS/cm2.
                let expected = 0.05 * (v[[row, 0]] - v[[row, 1]]) + 0.2 * (v[[row, 0]] - other[[row, 0]]);
                near(gap[[row, 0]], expected, "what flows out of the cell that is held");
                near(clamp[[row, 0]], leak[[row, 0]] + gap[[row, 0]], "what holds it");
                near(back[[row, 0]] * 2.0, -(gap[[row, 0]] + gap[[row, 1]]), "what flows into the other");
            }
        }
    }
}

/// Compartments joined to cells with sections, whose voltages come from there.
#[test]
fn currents_from_dendrites_are_recorded() {
    let text = "
use std.channels.hh.{Leak}
junction Gap { param g = 1 nS; current i = g * dv }
cell S {
    section soma { length = 20 um; diam = 20 um }
    section dend { from soma(1); length = 200 um; diam = 2 um; compartments = 3 }
    region all { cm = 1 uF/cm2; ra = 100 ohm*cm; v_init = -65 mV; insert Leak }
}
cell P { compartment soma { cm = 1 uF/cm2; area = 1000 um2; v_init = -50 mV; insert Leak } }
network main {
    population s: S[3]
    population p: P[4]
    connect s.dend(0.5) -- p.soma via Gap { rule = all_to_all }
}
run { duration = 2 ms; dt = 0.1 ms; celsius = 6.3 degC; method = cnexp; record p.soma.{v, i_gap}; record s.dend(0.5).{v, i_gap} }";
    let checked = checked(here(), text);
    let [expected, native] = [Way::Optimized, Way::Native].map(|way| run(&checked, &CompileOptions::default(), way));
    assert_eq!(expected.series, native.series);
    #[cfg(feature = "xla")]
    if crate::pjrt::cpu().is_some() {
        crate::events::close(&expected, &run(&checked, &CompileOptions::default(), Way::Xla), 1e-12, "xla");
    }
    let of = |name: &str| numbers(native.series.iter().find(|s| s.name == name).expect("a record"));
    let (gap, v, there) = (of("p.soma.i_gap"), of("p.soma.v"), of("s.dend(0.5).v"));
    for row in 0..21 {
        // Three of 1 nS, of 1000 um2: 0.3 mS/cm2.
        let closed = 0.3 * (v[[row, 2]] - there[[row, 1]]);
        assert!((gap[[row, 2]] - closed).abs() < 1e-9 && closed > 0.1, "{row}: {} and {closed}", gap[[row, 2]]);
        // And back, in nA: four of 1 nS.
        let back = (0..4).map(|cell| 1e-3 * (there[[row, 1]] - v[[row, cell]])).sum::<f64>();
        let found = of("s.dend(0.5).i_gap")[[row, 1]];
        assert!((found - back).abs() < 1e-12, "{row}: {found} and {back}");
    }
    // A density, of the area of the compartment.
    let density = text.replace("g = 1 nS", "g = 1 mS/cm2");
    let result = run(&self::checked(here(), &density), &CompileOptions::default(), Way::Native);
    let of = |name: &str| numbers(result.series.iter().find(|s| s.name == name).expect("a record"));
    let area = std::f64::consts::PI * 2e-4 * 200e-4 / 3.0;
    let (v, there) = (of("p.soma.v"), of("s.dend(0.5).v"));
    for row in 0..21 {
        let back = (0..4).map(|cell| area * 1e3 * (there[[row, 1]] - v[[row, cell]])).sum::<f64>();
        let found = of("s.dend(0.5).i_gap")[[row, 1]];
        assert!((found - back).abs() < 1e-9, "{row}: {found} and {back}");
    }
}

#[test]
fn a_rectifier_lets_current_flow_from_left_to_right() {
    let model = |left: f64, right: f64| {
        PAIR.replace("current i = g * dv", "current i = if dv > 0 mV then g * dv else 0 nA")
            .replace("1 uF/cm2; v_init = -30 mV", &format!("1 uF/cm2; v_init = {left} mV"))
            .replace("2 uF/cm2; v_init = -70 mV", &format!("2 uF/cm2; v_init = {right} mV"))
    };
    let voltages = |left: f64, right: f64| {
        let result = run(&checked(here(), &model(left, right)), &with(Method::Rk4, 0.05), Way::Native);
        ["a.soma.v", "b.soma.v"].map(|name| last(&result, name)[0])
    };
    let linear = run(&checked(here(), PAIR), &with(Method::Rk4, 0.05), Way::Native);
    assert_eq!(voltages(-30.0, -70.0), ["a.soma.v", "b.soma.v"].map(|name| last(&linear, name)[0]));
    assert_eq!(voltages(-70.0, -30.0), [-70.0, -30.0]);
}

/// Two point neurons and a compartment, without spikes: the potentials of the pair meet with the time constant of both leaks and the junction, those of the
/// ball and a neuron keep their charge, and what flows out of one flows into the other.
#[test]
fn point_neurons_are_joined() {
    let text = "
junction Gap { param g = 3 nS; current i = g * dv }
channel Rest { param gbar = 0.2 mS/cm2; current i = gbar * (v - -60 mV) }
cell Point { param c = 200 pF; state v: mV = -60 mV; v' = (10 nS * (-60 mV - v) - i_syn) / c }
cell Ball { compartment soma { area = 5000 um2; cm = 2 uF/cm2; v_init = -60 mV; insert Rest } }
network main {
    population p: Point[2]
    population q: Point
    population ball: Ball
    init p[0].v = -50 mV
    init ball.soma.v = -40 mV
    param q.c = 100 pF
    connect p -- p via Gap { rule = all_to_all }
    connect ball.soma -- q via Gap { rule = one_to_one }
}
run { duration = 20 ms; dt = 0.02 ms; method = rk4; record {p, q}.{v, i_gap} every 1 ms; record ball.soma.{v, i_gap} every 1 ms }";
    let checked = checked(here(), text);
    assert!(checked.diagnostics.is_empty(), "{:?}", checked.diagnostics);
    for way in ways().into_iter().chain([Way::Plain]) {
        let within = match way {
            Way::Single => 1e-4,
            #[cfg(feature = "xla")]
            Way::XlaSingle => 1e-4,
            _ => 1e-8,
        };
        let close = |what: &str, found: f64, expected: f64| {
            assert!(
                (found - expected).abs() < within * expected.abs().max(1.0),
                "{way:?} {what}: {found}, not {expected}"
            );
        };
        let result = run(&checked, &CompileOptions::default(), way);
        let series = |name: &str| {
            let found = result.series.iter().find(|series| series.name == name);
            numbers(found.unwrap_or_else(|| {
                panic!("no {name}: {:?}", result.series.iter().map(|s| &s.name).collect::<Vec<_>>())
            }))
        };
        let (v, flow) = (series("p.v"), series("p.i_gap"));
        let [one, ball] =
            ["q", "ball.soma"].map(|name| (series(&format!("{name}.v")), series(&format!("{name}.i_gap"))));
        for row in 0..v.nrows() {
            let t = row as f64;
            // ms, nS and pF: 10 nS of 200 pF are 1 / 20 ms.
            close("mean", v[[row, 0]] + v[[row, 1]], -120.0 + 10.0 * (-t / 20.0).exp());
            close("difference", v[[row, 0]] - v[[row, 1]], 10.0 * (-t * 16.0 / 200.0).exp());
            // 3 nS times mV are pA, in nA.
            close("current", flow[[row, 0]], 0.003 * (v[[row, 0]] - v[[row, 1]]));
            close("current back", flow[[row, 1]], -flow[[row, 0]]);
            close("current of one", one.1[[row, 0]], 0.003 * (one.0[[row, 0]] - ball.0[[row, 0]]));
            // uA/cm2 of 5000 um2 are 0.05 nA.
            close("current of the ball", ball.1[[row, 0]] * 0.05, -one.1[[row, 0]]);
            // 100 pF each, and 10 nS.
            close("charge", one.0[[row, 0]] + ball.0[[row, 0]], -120.0 + 20.0 * (-t / 10.0).exp());
        }
    }
}

/// Neurons that reset, some of them joined in a ring, others at random: the same bits natively, in any number of parts, and in the interpreter.
#[test]
fn point_neurons_that_spike_are_joined() {
    let text = "
junction Gap { param g = 0.4 nS; current i = g * dv }
cell Lif {
    param i_app = 0 pA
    state v: mV = -60 mV
    v' = (10 nS * (-60 mV - v) + i_app - i_syn) / 200 pF
    spike when v > -50 mV { v = -60 mV; refractory 2 ms }
}
network main {
    population a: Lif[200]
    population b: Lif[90]
    param {a, b}.i_app ~ uniform(80 pA, 180 pA)
    connect a -- a via Gap { rule = torus_radial(degree = 2, r_max = 3, width = 2) }
    connect a -- b via Gap(g = 0.2 nS) { rule = fixed_in_degree(n = 5) }
}
run { duration = 60 ms; dt = 0.1 ms; method = exp_euler; seed = 3; record {a, b}.v every 1 ms; record spikes of a; record spikes of b }";
    let checked = checked(here(), text);
    let expected = run(&checked, &CompileOptions::default(), Way::Optimized);
    assert!(
        expected.spikes.iter().all(|spikes| spikes.t.len() > 50),
        "{:?}",
        expected.spikes.iter().map(|s| s.t.len()).collect::<Vec<_>>()
    );
    for threads in [1, 2, 3] {
        let found = crate::events::native_run(&checked, Precision::F64, threads);
        crate::events::same(&expected, &found, &format!("{threads} threads"));
    }
    #[cfg(feature = "xla")]
    if crate::pjrt::cpu().is_some() {
        crate::events::close(&expected, &run(&checked, &CompileOptions::default(), Way::Xla), 1e-9, "XLA");
    }
}

/// Twenty passive cells in a ring of junctions, as one population and as two of ten: the lists say the same junctions.
#[test]
fn one_population_is_two_joined_at_the_seam() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, pairs: &[(u32, u32)]| {
        let rows: String = pairs.iter().map(|(a, b)| format!("{a},{b}\n")).collect();
        fs::write(folder.path().join(name), format!("src,tgt\n{rows}")).unwrap();
    };
    let ring: Vec<(u32, u32)> = (0..20).map(|cell| (cell, (cell + 1) % 20)).collect();
    let line: Vec<(u32, u32)> = (0..9).map(|cell| (cell, cell + 1)).collect();
    write("ring.csv", &ring);
    write("line.csv", &line);
    write("seam.csv", &[(9, 0), (0, 9)]);
    let model = |network: &str, record: &str| {
        format!(
            "use std.channels.hh.{{Leak}}
             junction Gap {{ param g = 50 uS/cm2;  current i = g * dv }}
             cell A {{ compartment soma {{ cm = 1 uF/cm2; v_init = -65 mV; insert Leak }} }}
             network main {{ {network} }}
             run {{ duration = 10 ms; dt = 0.05 ms; {record} }}"
        )
    };
    let one = model(
        "population all: A[20]
         connect all -- all via Gap { rule = edges(\"ring.csv\") }
         init all.soma.v = -80 mV + 3 mV * index",
        "record all.soma.v every 10 ms",
    );
    let two = model(
        "population low: A[10]  population high: A[10]
         connect low -- low via Gap { rule = edges(\"line.csv\") }
         connect high -- high via Gap { rule = edges(\"line.csv\") }
         connect low -- high via Gap { rule = edges(\"seam.csv\") }
         init low.soma.v = -80 mV + 3 mV * index
         init high.soma.v = -50 mV + 3 mV * index",
        "record low.soma.v every 10 ms; record high.soma.v every 10 ms",
    );
    let (one, two) = (checked(folder.path(), &one), checked(folder.path(), &two));
    for method in METHODS {
        let whole = last(&run(&one, &with(method, 0.05), Way::Native), "all.soma.v");
        let halves = run(&two, &with(method, 0.05), Way::Native);
        let joined = ["low.soma.v", "high.soma.v"].map(|name| last(&halves, name)).concat();
        let difference = whole.iter().zip(&joined).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(difference < 1e-12, "{method:?}: {difference:e} mV");
    }
}

/// Between populations of different sizes a file is looked at for what each of its columns names.
#[test]
fn pairs_of_two_populations_are_right_before_a_run_too() {
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    fs::write(folder.path().join("pairs.csv"), "source,target\n59,3\n40,2\n").unwrap_or_else(|e| panic!("{e}"));
    let text = |left: usize| {
        format!(
            "use std.channels.hh.{{Leak}}
junction Gap {{ param g = 1 nS; current i = g * dv }}
cell A {{ compartment s {{ area = 1000 um2; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }} }}
network main {{
    population a: A[{left}]
    population b: A[10]
    connect a -- b via Gap {{ rule = edges(\"pairs.csv\") }}
}}
run {{ duration = 1 ms; dt = 0.1 ms; record a.s.v }}"
        )
    };
    let fine = check_whole(checked(folder.path(), &text(60)));
    assert!(fine.diagnostics.is_empty(), "{:?}", fine.diagnostics);
    let wrong = check_whole(checked(folder.path(), &text(50)));
    let [error] = &wrong.diagnostics[..] else { panic!("{:?}", wrong.diagnostics) };
    assert!(error.labels[0].message.contains("source 59"), "{error:?}");
}
