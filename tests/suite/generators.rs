//! Tests of: cells that spike without equations of a neuron: rates and intervals within bands of confidence, trains that several projections share,
//! plastic synapses from them, the same bits on every engine and with every number of threads.

#[cfg(feature = "xla")]
use crate::events::close;
use crate::events::{checked, column, compiled_ways, native_run, numbers, plain, reference, same, series, ways};
use crate::models::{Way, run};
use neuroc::codegen::plan::Precision;
use neuroc::results::RunResult;

const CELLS: &str = "
use std.cells.generators.{Poisson, PoissonDead, Regular, Relay}
use std.plasticity.{Stdp}
use std.synapses.{Delta}
cell Sum { state v: mV = 0 mV; v' = 0 /ms * v }
";

/// The times of a population's spikes, cell by cell.
fn trains(result: &RunResult, population: &str, cells: usize) -> Vec<Vec<f64>> {
    let spikes = result.spikes.iter().find(|s| s.population == population).unwrap();
    let mut trains = vec![Vec::new(); cells];
    spikes.t.iter().zip(&spikes.i).for_each(|(&t, &cell)| trains[cell as usize].push(t));
    trains
}

fn counts(trains: &[Vec<f64>], from: f64, to: f64) -> f64 {
    trains.iter().flatten().filter(|&&t| t > from && t <= to).count() as f64
}

/// The mean of the intervals of trains, and their standard deviation as a part of it.
fn intervals(trains: &[Vec<f64>]) -> (f64, f64) {
    let all: Vec<f64> = trains.iter().flat_map(|t| t.windows(2).map(|pair| pair[1] - pair[0])).collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let variance = all.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / all.len() as f64;
    (mean, variance.sqrt() / mean)
}

#[test]
fn trains_have_the_rates_and_the_intervals_that_they_should() {
    let text = format!(
        "{CELLS}
        network main {{
            population a: Poisson[400]
            population b: Poisson[400]
            population d: PoissonDead[400]
            population fast: Poisson[3]
            population r: Regular[2]
            population odd: Regular[1]
            population k: Relay[3]
            param {{a, b}}.rate = 50 Hz
            param d.rate = 200 Hz
            param d.dead = 5 ms
            param fast.rate = 12000 Hz
            param r.interval = 7 ms
            param r[1].first = 3 ms
            param odd.interval = 0.25 ms
            input up: pulse(delay = 1 s, duration = 1 s, amplitude = 100 Hz) -> b.more
            drive k[1 .. 3] via Delta from times(3 ms, 7.54 ms) {{ weight = 1 mV }}
        }}
        run {{ duration = 2 s; dt = 0.1 ms; seed = 3; record spikes of {{a, b, d, fast, r, odd, k}} }}"
    );
    let checked = checked(&text);
    // The interpreter has the same numbers, as other tests say, and takes long for so many.
    for way in compiled_ways() {
        let result = run(&checked, &plain(), way);
        let [a, b, d] = ["a", "b", "d"].map(|p| trains(&result, p, 400));
        // Four standard deviations of a sum of independent steps, each with the chance p.
        let near = |count: f64, steps: f64, p: f64| {
            let (mean, sd) = (steps * p, (steps * p * (1.0 - p)).sqrt());
            assert!((count - mean).abs() < 4.0 * sd, "{way:?}: {count} spikes, not {mean} with a deviation of {sd}");
        };
        near(counts(&a, 0.0, 2000.0), 400.0 * 20_000.0, 0.005);
        near(counts(&b, 0.0, 1000.0), 400.0 * 10_000.0, 0.005);
        near(counts(&b, 1000.05, 2000.0), 400.0 * 10_000.0, 0.015);
        // Geometric intervals: a mean of 1/p steps and the variance (1 - p) / p^2.
        let (mean, cv) = intervals(&a);
        assert!((mean - 20.0).abs() < 0.5, "{way:?}: {mean}");
        assert!((cv - 0.995f64.sqrt()).abs() < 0.02, "{way:?}: {cv}");
        // 5 ms on average, and 5 ms in which nothing happens.
        let (mean, cv) = intervals(&d);
        assert!((mean - 10.0).abs() < 0.1, "{way:?}: {mean}");
        assert!((cv - 0.5).abs() < 0.02, "{way:?}: {cv}");
        assert!(d.iter().all(|t| t.windows(2).all(|pair| pair[1] - pair[0] > 5.05)), "{way:?}");
        // Cells and populations have draws of their own.
        assert!(a[0] != a[1] && a[0] != b[0], "{way:?}");
        assert!(trains(&result, "fast", 3).iter().all(|t| t.len() == 20_000), "{way:?}");
        for (train, first) in trains(&result, "r", 2).iter().zip([10.0, 3.0]) {
            let due = (0..).map(|k| first + 7.0 * f64::from(k)).take_while(|t| *t < 2000.05);
            assert!(train.iter().zip(due.clone()).all(|(t, due)| (t - due).abs() < 1e-9), "{way:?}: {train:?}");
            assert_eq!(train.len(), due.count(), "{way:?}");
        }
        // What is due between the ends of steps comes at the next.
        let odd = &trains(&result, "odd", 1)[0];
        assert_eq!(odd.len(), 7961, "{way:?}");
        for (k, t) in odd.iter().enumerate() {
            let due = ((10.0 + 0.25 * k as f64) * 10.0 - 1e-6).ceil() / 10.0;
            assert!((t - due).abs() < 1e-9, "{way:?}: {t} is not {due}");
        }
        let relayed = [vec![], vec![3.0, 7.5], vec![3.0, 7.5]];
        let found = trains(&result, "k", 3);
        let found: Vec<Vec<f64>> = found.iter().map(|t| t.iter().map(|t| (t * 1e6).round() / 1e6).collect()).collect();
        assert_eq!(found, relayed, "{way:?}");
    }
}

/// What two projections lead away from is one train.
#[test]
fn several_projections_see_the_same_trains() {
    let text = format!(
        "{CELLS}
        network main {{
            population inputs: Poisson[20]
            population a: Sum[20]
            population b: Sum[20]
            param inputs.rate ~ uniform(10 Hz, 200 Hz)
            connect inputs -> a via Delta {{ rule = one_to_one(); weight = 1 mV; delay = 1 ms }}
            connect inputs -> b via Delta {{ rule = one_to_one(); weight = 2 mV; delay = 5 ms }}
        }}
        run {{ duration = 500 ms; dt = 0.1 ms; record {{a, b}}.v; record spikes of inputs }}"
    );
    let checked = checked(&text);
    for way in ways() {
        let result = run(&checked, &plain(), way);
        for (cell, train) in trains(&result, "inputs", 20).iter().enumerate() {
            let [a, b] = ["a.v", "b.v"].map(|name| column(&result, name, cell));
            let until = |t: f64| train.iter().filter(|s| **s <= t + 1e-6).count() as f64;
            for (row, t) in series(&result, "a.v").t.iter().enumerate() {
                assert_eq!((a[row], b[row]), (until(t - 1.0), 2.0 * until(t - 5.0)), "{way:?}: cell {cell} at {t}");
            }
        }
    }
}

const LIF: &str = "
cell Lif {
    state v: mV = -70 mV
    v' = (10 nS * (-70 mV - v) - i_syn) / 200 pF
    spike when v > -54 mV { v = -60 mV }
}
";

const PLASTIC: &str = "
        network main {
            population inputs: Poisson[60]
            population others: PoissonDead[7]
            population neuron: Lif[3]
            param inputs.rate ~ uniform(10 Hz, 100 Hz)
            input wave: sine(delay = 0 ms, duration = 500 ms, amplitude = 8 Hz, period = 50 ms) -> inputs.more
            connect inputs -> neuron via Stdp(w_max = 2 nS) { rule = all_to_all(); weight ~ uniform(0 nS, 2 nS); delay ~ uniform(0.1 ms, 2 ms) }
            connect others -> neuron via Delta { rule = all_to_all(); weight = 4 mV; delay = 1 ms }
        }
        run { duration = 300 ms; dt = 0.1 ms; seed = 5; record inputs.neuron.Stdp.weight every 100 ms; record neuron.v; record spikes of {inputs, others, neuron} }
";

#[test]
fn every_engine_and_every_number_of_threads_has_the_same_trains() {
    let remembers = checked(&format!("{CELLS}{LIF}{PLASTIC}"));
    let optimized = run(&remembers, &plain(), Way::Optimized);
    same(&run(&remembers, &plain(), Way::Reread), &optimized, "read again");
    assert!(optimized.spikes.iter().all(|spikes| spikes.i.len() > 10));
    let weights = series(&optimized, "inputs.neuron.Stdp.weight");
    assert!((0..180).any(|edge| weights.values.get(0, edge) != weights.values.get(3, edge)));
    for threads in [1, 2, 3] {
        same(&optimized, &native_run(&remembers, Precision::F64, threads), &format!("{threads} threads"));
    }
    same(&native_run(&remembers, Precision::F32, 1), &native_run(&remembers, Precision::F32, 3), "single precision");
}

/// What XLA runs: it has elementary functions of its own.
#[cfg(feature = "xla")]
#[test]
fn xla_has_the_same_trains() {
    if crate::pjrt::cpu().is_none() {
        return;
    }
    let text = format!("{CELLS}{LIF}{PLASTIC}").replace("Stdp(w_max = 2 nS)", "Delta");
    let text = text.replace("weight ~ uniform(0 nS, 2 nS)", "weight ~ uniform(0 mV, 0.5 mV)");
    let fixed = checked(&text.replace("record inputs.neuron.Stdp.weight every 100 ms;", ""));
    close(&run(&fixed, &plain(), Way::Optimized), &run(&fixed, &plain(), Way::Xla), 1e-9, "XLA");
}

/// Song, Miller and Abbott 2000: of inputs that differ in nothing some become strong and most weak, and few stay between.
#[test]
fn weights_part_to_both_bounds() {
    let example = include_str!("../../examples/stdp_bimodal.neuro");
    let result = run(&checked(example), &plain(), Way::Native);
    let weights = series(&result, "inputs.neuron.Stdp.weight");
    let count = |row: usize, from: f64, to: f64| {
        let inside = |edge: &usize| (from..to).contains(&(weights.values.get(row, *edge) / 0.15));
        (0..1000).filter(inside).count()
    };
    let last = weights.t.len() - 1;
    let (weak, between, strong) = (count(last, 0.0, 0.1), count(last, 0.45, 0.55), count(last, 0.9, 1.1));
    assert!(count(0, 0.45, 0.55) > 80 && count(0, 0.0, 0.1) < 130, "they begin anywhere");
    assert!(weak > 250 && strong > 90 && between < 70, "{weak} weak, {between} between, {strong} strong");
    let rate = |from: f64, to: f64| result.spikes[0].t.iter().filter(|t| **t > from && **t <= to).count() as f64;
    assert!(rate(90e3, 100e3) < 0.6 * rate(0.0, 10e3), "the cell comes to fire less");
}

/// Thresholds that jump and decay, with constant and with synaptic currents: every spike and every potential of NEST.
#[test]
fn adaptive_thresholds_are_those_of_nest() {
    let reference = reference("point_cells_nest.json");
    let mat = &reference["mat"];
    let arrivals = mat["arrivals"].as_array().expect("a list");
    // Of two receptors, one for each sign; a drive has a weight of its own.
    let drive = |of: &serde_json::Value| {
        let weight = of["weight_pA"].as_f64().expect("a number");
        let times: Vec<String> = numbers(&of["times_ms"]).iter().map(|t| format!("{t} ms")).collect();
        let (name, tau) = if weight > 0.0 { ("ex", 2) } else { ("inh", 3) };
        format!(
            "drive m[3] via ExpCurr as {name}(tau = {tau} ms) from times({}) {{ weight = {weight} pA; delay = 1 ms }}\n",
            times.join(", ")
        )
    };
    let drives: String = arrivals.iter().map(drive).collect();
    let currents: String = (0..)
        .zip(numbers(&mat["I_e_pA"]))
        .map(|(at, i): (usize, f64)| format!("param m[{at}].I_e = {i} pA\n"))
        .collect();
    let text = format!(
        "use std.cells.mat.{{Mat2}}
        use std.synapses.{{ExpCurr}}
        network main {{
            population m: Mat2[4]
            {currents}{drives}
        }}
        run {{ duration = 1000 ms; dt = 0.1 ms; method = exact; record m.{{v, threshold}} every 0.1 ms; record spikes of m }}"
    );
    let checked = checked(&text);
    for way in compiled_ways().into_iter().chain([Way::Optimized]) {
        let result = run(&checked, &plain(), way);
        let found = trains(&result, "m", 4);
        for (cell, found) in found.iter().enumerate() {
            let expected = numbers(&mat["spike_steps"][cell]);
            let found: Vec<f64> = found.iter().map(|t| (t / 0.1).round()).collect();
            assert_eq!(found, expected, "{way:?}: cell {cell}");
        }
        for (name, key) in [("m.v", "V_m_mV"), ("m.threshold", "V_th_mV")] {
            for cell in 0..4 {
                let found = column(&result, name, cell);
                for (&step, &expected) in numbers(&mat["sample_steps"]).iter().zip(&numbers(&mat[key][cell])) {
                    let found = found[step as usize];
                    assert!((found - expected).abs() < 1e-9, "{way:?}: {name}[{cell}] at {step}: {found}, {expected}");
                }
            }
        }
    }
}

/// Spikes by chance above a threshold that they move: rates, the variation of intervals and the first spikes are those of NEST's neurons, as far as chances
/// per step are the same (1 - exp(-rate dt) there).
#[test]
fn generalized_neurons_spike_as_often_as_in_nest() {
    let reference = reference("point_cells_nest.json");
    let gif = &reference["gif"];
    for facts in gif["facts"].as_array().expect("a list") {
        let of = |key: &str| facts[key].as_f64().expect("a number");
        let text = format!(
            "use std.cells.gif.{{Gif}}
            network main {{
                population g: Gif[1000]
                param g.I_e = {} pA
                param g.Delta_V = 2 mV; param g.V_T_star = -40 mV; param g.lambda_0 = 10 Hz
                param g.q_sfa_1 = 8 mV; param g.tau_sfa_1 = 15 ms; param g.q_sfa_2 = 3 mV; param g.tau_sfa_2 = 150 ms
                param g.q_stc_1 = 20 pA; param g.tau_stc_1 = 8 ms; param g.q_stc_2 = 6 pA; param g.tau_stc_2 = 90 ms
            }}
            run {{ duration = 5 s; dt = 0.1 ms; seed = 4; record spikes of g }}",
            of("I_e_pA")
        );
        let found = trains(&native_run(&checked(&text), Precision::F64, 2), "g", 1000);
        let late: Vec<Vec<f64>> =
            found.iter().map(|train| train.iter().copied().filter(|&t| t > 1000.0).collect()).collect();
        let rate = counts(&late, 1000.0, 5000.0) / 1000.0 / 4.0;
        let cvs: Vec<f64> =
            late.iter().filter(|train| train.len() > 5).map(|train| intervals(std::slice::from_ref(train)).1).collect();
        let cv = cvs.iter().sum::<f64>() / cvs.len() as f64;
        let early = counts(&found, 0.0, 100.0) / 1000.0;
        let close = |found: f64, name: &str, error: &str| {
            let (expected, error) = (of(name), of(error));
            // Four times what both samples are off by chance, and a hundredth.
            let far = 4.0 * 2f64.sqrt() * error + 0.01 * expected;
            println!("{} pA, {name}: {found:.4}, {expected:.4} in NEST, {far:.4}", of("I_e_pA"));
            assert!((found - expected).abs() < far, "{name}: {found} is not {expected} +- {far}");
        };
        close(rate, "rate_Hz", "rate_error_Hz");
        close(cv, "cv", "cv_error");
        close(early, "spikes_in_100_ms", "spikes_error");
    }
}
