//! Tests of: synapses, delays and drives: closed forms, the spikes of NEST and Brian2 on networks with explicit edges, the same bits on
//! every engine and with every number of threads.

use crate::models::{Way, run};
use neuroc::codegen::plan::Precision;
#[cfg(feature = "xla")]
use neuroc::codegen::plan::{DeliveryForm, DeviceClass};
use neuroc::driver::{Checked, CompileOptions, EngineChoice, Experiment, check_text, compile};
#[cfg(feature = "xla")]
use neuroc::engine::Engine;
use neuroc::engine::native::NativeOptions;
use neuroc::engine::rustc;
#[cfg(feature = "xla")]
use neuroc::engine::xla::XlaEngine;
use neuroc::hir::Sources;
use neuroc::results::{RunResult, Series};
use neuroc::simulate::{RunOptions, Unwatched};
use neuroc::{Model, Stage};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

/// Every engine that is here, in double precision.
pub(super) fn ways() -> Vec<Way> {
    let ways = [Way::Plain, Way::Optimized, Way::Reread];
    ways.into_iter().chain(compiled_ways()).collect()
}

/// Those of them that are fast.
pub(super) fn compiled_ways() -> Vec<Way> {
    #[allow(unused_mut)]
    let mut ways = vec![Way::Native];
    #[cfg(feature = "xla")]
    if crate::pjrt::cpu().is_some() {
        ways.push(Way::Xla);
    }
    ways
}

pub(super) fn checked_in(folder: &Path, text: &str) -> Checked {
    let checked = check_text("m.neuro", folder, text.to_string(), &Sources);
    let said = neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false);
    assert!(checked.model.is_some(), "{said}");
    checked
}

pub(super) fn checked(text: &str) -> Checked {
    checked_in(Path::new(""), text)
}

pub(super) fn series<'r>(result: &'r RunResult, name: &str) -> &'r Series {
    result.series.iter().find(|series| series.name == name).unwrap_or_else(|| panic!("no {name}"))
}

/// The samples of one column.
pub(super) fn column(result: &RunResult, name: &str, at: usize) -> Vec<f64> {
    let series = series(result, name);
    (0..series.t.len()).map(|row| series.values.get(row, at)).collect()
}

pub(super) fn plain() -> CompileOptions {
    CompileOptions::default()
}

/// Cells that spike when they are told to, and one that listens.
const RELAY: &str = "
synapse Kick { on event(weight: mV) { v += weight } }
synapse Exp {
    param tau = 5 ms; param erev = 0 mV
    state g: nS = 0 nS
    g' = -g / tau
    on event(weight: nS) { g += weight }
    current i = g * (v - erev)
}
synapse Alpha {
    param tau = 2 ms
    state x: nA/ms = 0 nA/ms
    state i_s: nA = 0 nA
    x' = -x / tau
    i_s' = x - i_s / tau
    on event(weight: nA) { x += weight * exp(1) / tau }
    current i = -i_s
}
cell Relay { state v: mV = 0 mV; v' = -v / 1 ms; spike when v >= 10 mV { v = 0 mV } }
cell Passive { state v: mV = -65 mV; v' = (-10 nS * (v + 65 mV) - i_syn) / 200 pF }
";

#[test]
fn an_event_arrives_when_it_should_and_decays_as_it_should() {
    let text = format!(
        "{RELAY}
network main {{
    population a: Relay[3]
    population b: Passive
    drive a[1 .. 3] via Kick from times(2 ms, 7 ms) {{ weight = 20 mV }}
    connect a -> b via Exp {{ rule = all_to_all(); weight = 2 nS; delay = 1.5 ms }}
    connect a -> b via Exp as slow(tau = 20 ms) {{ rule = all_to_all(); weight = 1 nS; delay = 0.1 ms }}
    drive b via Exp from times(4 ms) {{ weight = 3 nS }}
}}
run {{ duration = 12 ms; dt = 0.1 ms; method = exp_euler; record b.{{v, Exp.g, slow.g}}; record spikes of a }}"
    );
    let checked = checked(&text);
    // Two cells spike in the steps that end at 2 and at 7 ms.
    let g = |t: f64, tau: f64, arrivals: &[(f64, f64)]| -> f64 {
        let of = |&(at, weight): &(f64, f64)| if t > at - 1e-9 { weight * (-(t - at) / tau).exp() } else { 0.0 };
        arrivals.iter().map(of).sum()
    };
    for way in ways() {
        let result = run(&checked, &plain(), way);
        let [fast, slow] = ["b.Exp.g", "b.slow.g"].map(|name| column(&result, name, 0));
        for (row, &t) in series(&result, "b.Exp.g").t.iter().enumerate() {
            let expected = g(t, 5.0, &[(3.5, 4.0), (8.5, 4.0), (4.0, 3.0)]);
            assert!((fast[row] - expected).abs() < 1e-12, "{way:?}: {} at {t} ms, not {expected}", fast[row]);
            let expected = g(t, 20.0, &[(2.1, 2.0), (7.1, 2.0)]);
            assert!((slow[row] - expected).abs() < 1e-12, "{way:?}: {} at {t} ms, not {expected}", slow[row]);
        }
        let spikes = &result.spikes[0];
        assert_eq!(spikes.i, [1, 2, 1, 2], "{way:?}");
        assert_eq!(spikes.t.iter().map(|t| (t * 10.0).round()).collect::<Vec<_>>(), [20.0, 20.0, 70.0, 70.0]);
    }
}

/// A current that rises and falls has its peak, the weight, a time constant after its event; the potential converges to the exact one.
#[test]
fn an_alpha_current_moves_a_passive_cell_as_in_closed_form() {
    let text = |dt: f64| {
        format!(
            "{RELAY}
network main {{
    population b: Passive
    drive b via Alpha from times(1 ms) {{ weight = 0.1 nA }}
}}
run {{ duration = 21 ms; dt = {dt} ms; method = rk4; record b.{{v, Alpha.i_s}} every 1 ms }}"
        )
    };
    // C v' = -gL v + w e s/tau exp(-s/tau), from 0, with s the time since the event.
    let (tau, tau_m, c) = (2.0, 20.0, 0.2);
    let k = 1.0 / tau - 1.0 / tau_m;
    let exact = |s: f64| {
        let scale = 0.1 * 1f64.exp() / tau / c;
        scale * (-s / tau_m).exp() * (1.0 - (-k * s).exp() * (1.0 + k * s)) / (k * k)
    };
    let mut errors = Vec::new();
    for dt in [0.1, 0.05] {
        let checked = checked(&text(dt));
        let [optimized, native] = [Way::Optimized, Way::Native].map(|way| run(&checked, &plain(), way));
        let v = column(&native, "b.v", 0);
        assert_eq!(column(&optimized, "b.v", 0), v);
        let peak = column(&native, "b.Alpha.i_s", 0)[3];
        assert!((peak - 0.1).abs() < 1e-7, "{peak}");
        let worst = v.iter().enumerate().map(|(row, v)| (v + 65.0 - exact((row as f64 - 1.0).max(0.0))).abs());
        errors.push(worst.fold(0.0, f64::max));
    }
    // A jump at the end of a step costs a method of order 4 nothing.
    assert!(errors[0] < 1e-6 && errors[0] / errors[1] > 12.0, "{errors:?}");
}

pub(super) fn reference(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"))
}

pub(super) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|x| x.as_f64().expect("a number")).collect()
}

/// The edges of a stored network whose senders `choose` picks, as a file.
pub(super) fn edge_file(net: &Value, choose: impl Fn(usize) -> bool) -> String {
    let edges = &net["edges"];
    let [pre, post, weight, delay] = ["pre", "post", "weight", "delay_steps"].map(|key| numbers(&edges[key]));
    let mut out = "source,target,weight,delay\n".to_string();
    for i in (0..pre.len()).filter(|&i| choose(pre[i] as usize)) {
        let _ = writeln!(out, "{},{},{},{}", pre[i], post[i], weight[i].abs(), delay[i]);
    }
    out
}

/// What a network of a hundred cells does: the steps (counted from 1) and cells of its spikes, as NEST and Brian2 are told apart by `first`.
pub(super) fn spikes_of(net: &Value, first: f64) -> Vec<(u64, u64)> {
    let (steps, cells) = (numbers(&net["spike_steps"]), numbers(&net["spike_neurons"]));
    let mut spikes: Vec<(u64, u64)> =
        steps.into_iter().zip(cells).map(|(step, cell)| ((step + first) as u64, cell as u64)).collect();
    spikes.sort_unstable();
    spikes
}

pub(super) fn found_spikes(result: &RunResult) -> Vec<(u64, u64)> {
    let spikes = &result.spikes[0];
    let mut found: Vec<(u64, u64)> =
        spikes.t.iter().zip(&spikes.i).map(|(t, &cell)| ((t / 0.1).round() as u64, cell)).collect();
    found.sort_unstable();
    found
}

pub(super) fn per_cell(folder: &Path, name: &str, values: &[f64]) {
    let text: String = values.iter().map(|x| format!("{x:e}\n")).collect();
    std::fs::write(folder.join(name), text).unwrap_or_else(|e| panic!("{e}"));
}

/// The spikes of a stored network, run from a model in the same folder as its files.
fn compare(net: &Value, first: f64, folder: &Path, model: &str) {
    let excitatory =
        numbers(&net["excitatory"].as_u64().map_or(Value::Null, |n| Value::Array(vec![n.into()])))[0] as usize;
    for (name, of) in [("exc.csv", true), ("inh.csv", false)] {
        let text = edge_file(net, |pre| (pre < excitatory) == of);
        std::fs::write(folder.join(name), text).unwrap_or_else(|e| panic!("{e}"));
    }
    let expected = spikes_of(net, first);
    let checked = checked_in(folder, model);
    for way in compiled_ways().into_iter().chain([Way::Optimized]) {
        let found = found_spikes(&run(&checked, &plain(), way));
        let differs = expected.iter().zip(&found).position(|(a, b)| a != b);
        assert_eq!(differs.map(|at| (expected[at], found[at])), None, "{way:?}: the first that differs");
        assert_eq!(found.len(), expected.len(), "{way:?}");
    }
}

#[test]
fn a_net_of_delta_synapses_spikes_as_in_nest() {
    let nest = reference("spiking_nest.json");
    let net = &nest["net_psc_delta"];
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    per_cell(folder.path(), "i.csv", &numbers(&net["I_e_pA"]));
    per_cell(folder.path(), "v.csv", &numbers(&net["V_init_mV"]));
    let model = "
synapse Delta { on event(weight: mV) { v += weight } }
cell Lif {
    param i_e = 0 pA
    state v: mV = -70 mV
    v' = -(v + 70 mV) / 10 ms + i_e / 250 pF
    spike when v >= -55 mV { v = -70 mV; refractory 2 ms }
}
network main {
    population n: Lif[100]
    param n.i_e = file(\"i.csv\") * 1 pA
    init n.v = file(\"v.csv\") * 1 mV
    connect n -> n via Delta {
        rule = edges(\"exc.csv\")
        weight = file(\"exc.csv\", column = \"weight\") * 1 mV
        delay = file(\"exc.csv\", column = \"delay\") * 0.1 ms
    }
    connect n -> n via Delta {
        rule = edges(\"inh.csv\")
        weight = -file(\"inh.csv\", column = \"weight\") * 1 mV
        delay = file(\"inh.csv\", column = \"delay\") * 0.1 ms
    }
}
run { duration = 1000 ms; dt = 0.1 ms; method = exp_euler; record spikes of n }";
    compare(net, 0.0, folder.path(), model);
}

#[test]
fn a_net_of_exponential_currents_spikes_as_in_nest() {
    let nest = reference("spiking_nest.json");
    let net = &nest["net_psc_exp"];
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    per_cell(folder.path(), "i.csv", &numbers(&net["I_e_pA"]));
    per_cell(folder.path(), "v.csv", &numbers(&net["V_init_mV"]));
    let model = "
use std.cells.lif.{LifPsc}
use std.synapses.{ExpCurr}
network main {
    population n: LifPsc[100]
    param n.I_e = file(\"i.csv\") * 1 pA
    init n.v = file(\"v.csv\") * 1 mV
    connect n -> n via ExpCurr as exc(tau = 2 ms) {
        rule = edges(\"exc.csv\")
        weight = file(\"exc.csv\", column = \"weight\") * 1 pA
        delay = file(\"exc.csv\", column = \"delay\") * 0.1 ms
    }
    connect n -> n via ExpCurr as inh(tau = 5 ms) {
        rule = edges(\"inh.csv\")
        weight = -file(\"inh.csv\", column = \"weight\") * 1 pA
        delay = file(\"inh.csv\", column = \"delay\") * 0.1 ms
    }
}
run { duration = 1000 ms; dt = 0.1 ms; method = exact; record spikes of n }";
    compare(net, 0.0, folder.path(), model);
}

#[test]
fn a_net_of_conductances_spikes_as_in_brian2() {
    let brian = reference("spiking_brian2.json");
    let net = &brian["net_coba"];
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    per_cell(folder.path(), "i.csv", &numbers(&net["I_pA"]));
    per_cell(folder.path(), "v.csv", &numbers(&net["v_init_mV"]));
    // A cell that Brian2 holds for so long is held for a step less.
    let model = "
synapse Exp {
    param tau = 5 ms; param erev = 0 mV
    state g: nS = 0 nS
    g' = -g / tau
    on event(weight: nS) { g += weight }
    current i = g * (v - erev)
}
cell Lif {
    param i_e = 0 pA
    state v: mV = -60 mV
    v' = (10 nS * (-60 mV - v) + i_e - i_syn) / 200 pF
    spike when v > -50 mV { v = -60 mV; refractory 4.9 ms }
}
network main {
    population n: Lif[100]
    param n.i_e = file(\"i.csv\") * 1 pA
    init n.v = file(\"v.csv\") * 1 mV
    connect n -> n via Exp {
        rule = edges(\"exc.csv\")
        weight = file(\"exc.csv\", column = \"weight\") * 1 nS
        delay = file(\"exc.csv\", column = \"delay\") * 0.1 ms
    }
    connect n -> n via Exp as inh(tau = 10 ms, erev = -80 mV) {
        rule = edges(\"inh.csv\")
        weight = file(\"inh.csv\", column = \"weight\") * 1 nS
        delay = file(\"inh.csv\", column = \"delay\") * 0.1 ms
    }
}
run { duration = 1000 ms; dt = 0.1 ms; method = exp_euler; record spikes of n }";
    compare(net, 1.0, folder.path(), model);
}

/// Cells that are kicked, behind the threshold or before it; a cell that Brian2 holds for so long is held for a step less.
fn kicked(arrivals: &str) -> String {
    format!(
        "
synapse Delta {{ on event(weight: mV) {{ v += weight }} }}
cell Lif {{
    param drive = 0 mV
    state v: mV = -60 mV
    v' = (-60 mV - v + drive) / 20 ms
    spike when v > -50 mV {{ v = -60 mV; refractory 1.9 ms }}
}}
network main {{
    population n: Lif[100]
    param n.drive = file(\"drive.csv\") * 1 mV
    init n.v = file(\"v.csv\") * 1 mV
    connect n -> n via Delta {{
        rule = edges(\"exc.csv\")
        weight = file(\"exc.csv\", column = \"weight\") * 1 mV
        delay = file(\"exc.csv\", column = \"delay\") * 0.1 ms
    }}
    connect n -> n via Delta {{
        rule = edges(\"inh.csv\")
        weight = -file(\"inh.csv\", column = \"weight\") * 1 mV
        delay = file(\"inh.csv\", column = \"delay\") * 0.1 ms
    }}
}}
run {{ duration = 1000 ms; dt = 0.1 ms; method = exact; arrivals = {arrivals}; record spikes of n }}"
    )
}

#[test]
fn a_net_of_delta_synapses_behind_the_threshold_spikes_as_in_brian2() {
    let brian = reference("spiking_brian2.json");
    let net = &brian["net_lif_delta"];
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    per_cell(folder.path(), "drive.csv", &numbers(&net["drive_mV"]));
    per_cell(folder.path(), "v.csv", &numbers(&net["v_init_mV"]));
    compare(net, 1.0, folder.path(), &kicked("after_threshold"));
    // The order matters in this net.
    let before = checked_in(folder.path(), &kicked("before_threshold"));
    assert_ne!(found_spikes(&run(&before, &plain(), Way::Optimized)), spikes_of(net, 1.0));
}

/// Cells without a refractory time kick each other at once, and many are kicked in the step of their own spike: its reset sets the voltage, or takes
/// something from it.
#[test]
fn a_net_without_delays_spikes_as_in_brian2() {
    let brian = reference("at_once_brian2.json");
    for (net, reset) in [("net_jumps_set", "v = -60 mV"), ("net_jumps_less", "v -= 10 mV")] {
        let net = &brian[net];
        let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        per_cell(folder.path(), "drive.csv", &numbers(&net["drive_mV"]));
        per_cell(folder.path(), "v.csv", &numbers(&net["v_init_mV"]));
        let model = format!(
            "
synapse Delta {{ on event(weight: mV) {{ v += weight }} }}
cell Lif {{
    param drive = 0 mV
    state v: mV = -60 mV
    v' = (-60 mV - v + drive) / 20 ms
    spike when v > -50 mV {{ {reset} }}
}}
network main {{
    population n: Lif[100]
    param n.drive = file(\"drive.csv\") * 1 mV
    init n.v = file(\"v.csv\") * 1 mV
    connect n -> n via Delta {{
        rule = edges(\"exc.csv\"); weight = file(\"exc.csv\", column = \"weight\") * 1 mV; delay = 0 ms
    }}
    connect n -> n via Delta {{
        rule = edges(\"inh.csv\"); weight = -file(\"inh.csv\", column = \"weight\") * 1 mV; delay = 0 ms
    }}
}}
run {{ duration = 300 ms; dt = 0.1 ms; method = exact; arrivals = after_threshold; record spikes of n }}"
        );
        compare(net, 1.0, folder.path(), &model);
    }
}

#[test]
fn a_net_of_conductances_without_delays_spikes_as_in_brian2() {
    let brian = reference("at_once_brian2.json");
    let net = &brian["net_coba"];
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    per_cell(folder.path(), "i.csv", &numbers(&net["I_pA"]));
    per_cell(folder.path(), "v.csv", &numbers(&net["v_init_mV"]));
    let model = "
use std.synapses.{ExpCond}
cell Lif {
    param i_e = 0 pA
    state v: mV = -60 mV
    v' = (10 nS * (-60 mV - v) + i_e - i_syn) / 200 pF
    spike when v > -50 mV { v = -60 mV; refractory 4.9 ms }
}
network main {
    population n: Lif[100]
    param n.i_e = file(\"i.csv\") * 1 pA
    init n.v = file(\"v.csv\") * 1 mV
    connect n -> n via ExpCond {
        rule = edges(\"exc.csv\"); weight = file(\"exc.csv\", column = \"weight\") * 1 nS; delay = 0 ms
    }
    connect n -> n via ExpCond as inh(tau = 10 ms, erev = -80 mV) {
        rule = edges(\"inh.csv\"); weight = file(\"inh.csv\", column = \"weight\") * 1 nS; delay = 0 ms
    }
}
run { duration = 300 ms; dt = 0.1 ms; method = exp_euler; arrivals = after_threshold; record spikes of n }";
    compare(net, 1.0, folder.path(), model);
}

/// One kick over the threshold, at the end of step 11, and one in the step of the spike, with another reset and refractory time.
fn two_kicks(reset: &str, arrivals: &str) -> RunResult {
    let model = format!(
        "
synapse Delta {{ on event(weight: mV) {{ v += weight }} }}
cell Lif {{
    state v: mV = 0 mV
    v' = -v / 1e9 ms
    spike when v >= 10 mV {{ {reset} }}
}}
network main {{
    population n: Lif
    drive n via Delta from times(1 ms, 1.1 ms) {{ weight = 12 mV; delay = 0.1 ms }}
}}
run {{ duration = 2 ms; dt = 0.1 ms; method = exact; arrivals = {arrivals}; record n.v; record spikes of n }}"
    );
    run(&checked(&model), &plain(), Way::Optimized)
}

#[test]
fn what_arrives_behind_the_threshold_is_looked_at_one_step_later_and_before_the_reset() {
    let steps = |result: &RunResult| found_spikes(result).into_iter().map(|(step, _)| step).collect::<Vec<u64>>();
    let last = |result: &RunResult| result.series[0].values.get(result.series[0].t.len() - 1, 0);
    for (reset, before, after, v_before, v_after) in [
        // Two kicks in steps 11 and 12: each makes a spike at once, or the first one step later, and the second is lost to its reset.
        ("v = 0 mV", vec![11, 12], vec![12], 0.0, 0.0),
        // What is subtracted leaves the second, which makes the next one.
        ("v -= 10 mV", vec![11, 12], vec![12, 13], 4.0, 4.0),
        // A cell with a refractory time keeps nothing of what arrives in the step of its spike.
        ("v -= 10 mV; refractory 0.3 ms", vec![11], vec![12], 2.0, 2.0),
    ] {
        let [found_before, found_after] = ["before_threshold", "after_threshold"].map(|at| two_kicks(reset, at));
        assert_eq!((steps(&found_before), steps(&found_after)), (before, after), "{reset}");
        let ends = [last(&found_before), last(&found_after)];
        assert!((ends[0] - v_before).abs() < 1e-6 && (ends[1] - v_after).abs() < 1e-6, "{reset}: {ends:?}");
    }
}

/// A net of several populations, with weights and delays of every kind, drives, and gap junctions beside them.
const MIXED: &str = "
use std.channels.hh.{Na, K, Leak}
synapse Exp {
    param tau = 5 ms; param erev = 0 mV
    state g: nS = 0 nS
    g' = -g / tau
    on event(weight: nS) { g += weight }
    current i = g * (v - erev)
}
synapse Kick { on event(weight: mV) { v += weight } }
junction Gap { param g = 1 nS; current i = g * dv }
cell Lif {
    state v: mV = -60 mV
    v' = (10 nS * (-60 mV - v) - i_syn) / 200 pF
    spike when v > -50 mV { v = -60 mV; refractory 2 ms }
}
cell Hh {
    compartment soma { area = 1000 um2; cm = 1 uF/cm2; v_init = -65 mV; insert Na, K, Leak }
    compartment dend { area = 500 um2; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }
    couple soma <- dend: 1 mS/cm2
    couple dend <- soma: 2 mS/cm2
    spike when soma.v crosses 0 mV
}
network main {
    param n = 70
    population e: Lif[n]
    population i: Lif[33]
    population h: Hh[20]
    init e.v ~ uniform(-60 mV, -50 mV)
    drive {e, i} via Exp from poisson(rate = 2 kHz) { weight = 2 nS }
    drive h[3 .. 9].dend via Exp from poisson(rate = 1 kHz * (1 + sin(t / 5 ms))) { weight = 0.5 nS }
    connect e -> {e, i} via Exp { rule = probability(p = 0.1); weight ~ truncated(normal(3 nS, 2 nS), 0 nS, 9 nS); delay = 0.8 ms }
    connect i -> {e, i} via Exp as inh(tau = 10 ms, erev = -80 mV) {
        rule = fixed_in_degree(n = 7); weight = 20 nS; delay ~ uniform(0.1 ms, 2 ms)
    }
    connect e -> h.dend via Exp(tau = 3 ms) { rule = fixed_out_degree(n = 3); weight ~ uniform(0.5 nS, 1 nS); delay ~ uniform(0.1 ms, 0.4 ms) }
    connect h -> e via Kick { rule = all_to_all(); weight ~ normal(0.1 mV, 0.05 mV); delay = 0.3 ms }
    connect h.soma -- h.soma via Gap { rule = probability(p = 0.2) }
}
run { duration = 40 ms; dt = 0.1 ms; method = exp_euler; seed = 5; celsius = 6.3 degC
    record e.{v, Exp.g, inh.g}; record h.{soma.v, dend.Exp.g}; record spikes of e; record spikes of i; record spikes of h }
";

pub(super) fn native_run(checked: &Checked, precision: Precision, threads: usize) -> RunResult {
    native_run_with(checked, &plain(), precision, threads)
}

pub(super) fn native_run_with(
    checked: &Checked,
    options: &CompileOptions,
    precision: Precision,
    threads: usize,
) -> RunResult {
    let compiled = compile(checked, options, &mut |_, _, _| {}).unwrap_or_else(|d| panic!("{d:?}"));
    let experiment = Experiment::new(compiled).unwrap_or_else(|d| panic!("{d:?}"));
    let cache = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels"));
    let compile = rustc::CompileOptions { cache, ..Default::default() };
    let mut plan = experiment.plan(precision).unwrap_or_else(|d| panic!("{d:?}"));
    // Threads for every few cells.
    plan.min_cells = 8;
    let choice = EngineChoice::Native(NativeOptions { threads, arrangement: Default::default(), compile });
    let mut engine = experiment.engine(&plan, choice).unwrap_or_else(|e| panic!("{e}")).engine;
    let outcome = experiment.run(engine.as_mut(), &RunOptions::default(), &mut Unwatched);
    outcome.unwrap_or_else(|e| panic!("{e:?}")).0
}

pub(super) fn same(a: &RunResult, b: &RunResult, what: &str) {
    assert_eq!(a.series.len(), b.series.len());
    for (a, b) in a.series.iter().zip(&b.series) {
        assert!(a.values == b.values, "{what}: {} differs", a.name);
    }
    for (a, b) in a.spikes.iter().zip(&b.spikes) {
        assert_eq!((&a.t, &a.i), (&b.t, &b.i), "{what}: spikes of {}", a.population);
    }
}

/// The net with spikes that arrive behind the threshold: those of most lines at once, some at cells whose reset takes them back, some beside others that
/// take their time.
fn mixed_at_once() -> String {
    let others = [
        ("delay = 0.8 ms", "delay = 0 ms"),
        ("delay = 0.3 ms", "delay = 0 ms"),
        ("seed = 5", "seed = 5; arrivals = after_threshold"),
        ("spike when v > -50 mV { v = -60 mV; refractory 2 ms }", "spike when v > -50 mV { v = -60 mV }"),
    ];
    others.iter().fold(MIXED.to_string(), |text, (old, new)| {
        assert!(text.contains(old), "no `{old}`");
        text.replace(old, new)
    })
}

#[test]
fn every_engine_and_every_number_of_threads_has_the_same_bits() {
    every_way_has_the_same_bits(&checked(MIXED));
}

#[test]
fn every_engine_and_every_number_of_threads_has_the_same_bits_without_delays() {
    every_way_has_the_same_bits(&checked(&mixed_at_once()));
}

fn every_way_has_the_same_bits(checked: &Checked) {
    let plain_run = run(checked, &CompileOptions::default(), Way::Plain);
    let counts: Vec<usize> = plain_run.spikes.iter().map(|spikes| spikes.i.len()).collect();
    assert!(counts.iter().all(|&count| count > 20), "{counts:?}");
    let optimized = run(checked, &plain(), Way::Optimized);
    for threads in [1, 2, 3] {
        same(&optimized, &native_run(checked, Precision::F64, threads), &format!("{threads} threads"));
    }
    let single = native_run(checked, Precision::F32, 1);
    same(&single, &native_run(checked, Precision::F32, 3), "single precision");
    // XLA has elementary functions of its own.
    #[cfg(feature = "xla")]
    if crate::pjrt::cpu().is_some() {
        close(&optimized, &run(checked, &plain(), Way::Xla), 1e-9, "XLA");
    }
}

/// The same spikes, and samples that differ by so much at most, relative to their size and 1.
pub(super) fn close(a: &RunResult, b: &RunResult, within: f64, what: &str) {
    assert_eq!(a.series.len(), b.series.len());
    for (a, b) in a.series.iter().zip(&b.series) {
        for row in 0..a.t.len() {
            for cell in 0..a.cells.len() {
                let [x, y] = [a, b].map(|series| series.values.get(row, cell));
                assert!((x - y).abs() <= within * x.abs().max(1.0), "{what}: {} in row {row}: {x} and {y}", a.name);
            }
        }
    }
    for (a, b) in a.spikes.iter().zip(&b.spikes) {
        assert_eq!((&a.t, &a.i), (&b.t, &b.i), "{what}: spikes of {}", a.population);
    }
}

/// Long rows, many edges from one cell to another with one delay, and cells that emit together: sums that are not exact have the same bits,
/// so they are added up in the same order.
#[cfg(feature = "xla")]
#[test]
fn sums_are_added_up_in_the_same_order_on_xla() {
    if crate::pjrt::cpu().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let mut edges = "source,target,weight\n".to_string();
    for at in 0..3000 {
        let _ = writeln!(edges, "{},{},{}", at % 7, at % 11, 1.0 / f64::from(at + 3));
    }
    std::fs::write(folder.path().join("edges.csv"), edges).unwrap_or_else(|e| panic!("{e}"));
    let text = "
synapse Count { state n: 1 = 0; n' = 0 / 1 ms; on event(weight) { n += weight } current i = n * 0 nA }
synapse Kick { on event(weight: mV) { v += weight } }
cell Relay { state v: mV = 0 mV; v' = -v / 1 ms; spike when v >= 10 mV { v = 0 mV } }
cell Lif { state v: mV = 0 mV; v' = -v / 1 ms + i_syn / 1 nF }
network main {
    population a: Relay[7]
    population many: Lif[30000]
    population few: Lif[11]
    drive a via Kick from poisson(rate = 3 kHz) { weight = 20 mV }
    connect a -> many via Count { rule = all_to_all(); weight ~ uniform(0, 1); delay = 0.3 ms }
    connect a -> few via Count {
        rule = edges(\"edges.csv\")
        weight = file(\"edges.csv\", column = \"weight\")
        delay = 0.5 ms
    }
}
run { duration = 8 ms; dt = 0.1 ms; method = exp_euler; record many.Count.n every 2 ms; record few.Count.n; record spikes of a }";
    let checked = checked_in(folder.path(), text);
    let native = run(&checked, &plain(), Way::Native);
    assert!(native.spikes[0].i.len() > 50);
    same(&native, &run(&checked, &plain(), Way::Xla), "XLA");
}

const JOINED: &str = "
synapse Count { state n: 1 = 0; n' = 0 / 1 ms; on event(weight) { n += weight } current i = n * 0 nA }
synapse Kick { on event(weight: mV) { v += weight } }
cell Relay { state v: mV = 0 mV; v' = -v / 1 ms; spike when v >= 10 mV { v = 0 mV } }
cell Lif { state v: mV = 0 mV; v' = -v / 1 ms + i_syn / 1 nF }
network main {
    population a: Relay[9]
    population b: Relay[21]
    population x: Lif[45]
    population y: Lif[11]
    drive {a, b} via Kick from poisson(rate = 2 kHz) { weight = 20 mV }
    connect b -> x via Count { rule = probability(p = 0.6); weight ~ uniform(0, 1); delay ~ uniform(0.1 ms, 1.5 ms) }
    connect a -> x via Count { rule = all_to_all(); weight ~ uniform(0, 1); delay ~ uniform(0.1 ms, 0.9 ms) }
    connect a -> x via Count { rule = fixed_in_degree(n = 5); weight = 1 / 3; delay ~ uniform(0.1 ms, 0.9 ms) }
    connect a -> y via Count { rule = fixed_total_number(n = 300); weight ~ uniform(0, 1); delay = 0.2 ms }
    connect b -> y via Count { rule = all_to_all(); weight = 1 / 7; delay ~ uniform(0.1 ms, 3 ms) }
    connect a -> x via Count { rule = all_to_all(); weight ~ uniform(0, 1); delay = 0.4 ms }
    connect a -> y via Count as other { rule = all_to_all(); weight ~ uniform(0, 1); delay = 0.4 ms }
}
run { duration = 30 ms; dt = 0.1 ms; method = exp_euler; record {x, y}.Count.n; record y.other.n; record spikes of a; record spikes of b }";

/// What comes to a receptor through several projections is one sum, of what is older first: on all engines with the same bits.
#[test]
fn projections_onto_one_receptor_are_added_up_together() {
    let checked = checked(JOINED);
    let compiled = compile(&checked, &plain(), &mut |_, _, _| {}).unwrap_or_else(|d| panic!("{d:?}"));
    let program = compiled.program.program();
    let sums = program.fields.iter().filter(|field| matches!(field.source, neuroc::step::Source::Arrived(..)));
    assert_eq!(sums.count(), 3, "one for each receptor");
    let interpreted = run(&checked, &plain(), Way::Plain);
    assert!(interpreted.spikes.iter().all(|spikes| spikes.i.len() > 200));
    same(&interpreted, &run(&checked, &plain(), Way::Optimized), "optimized");
    for threads in [1, 2, 3] {
        same(&interpreted, &native_run(&checked, Precision::F64, threads), &format!("{threads} threads"));
    }
    same(&native_run(&checked, Precision::F32, 1), &native_run(&checked, Precision::F32, 3), "single precision");
    #[cfg(feature = "xla")]
    if crate::pjrt::cpu().is_some() {
        same(&interpreted, &run(&checked, &plain(), Way::Xla), "XLA");
    }
}

/// Whatever the form in which events travel, they arrive when they should.
#[cfg(feature = "xla")]
#[test]
fn forms_of_deliveries_agree() {
    let Some(client) = crate::pjrt::cpu() else { return };
    let options = CompileOptions { backend: neuroc::passes::Backend::Xla, ..plain() };
    let compiled = compile(&checked(MIXED), &options, &mut |_, _, _| {}).unwrap_or_else(|d| panic!("{d:?}"));
    let experiment = Experiment::new(compiled).unwrap_or_else(|d| panic!("{d:?}"));
    let plan = experiment.plan(Precision::F64).unwrap_or_else(|d| panic!("{d:?}"));
    let outcome = |class: DeviceClass, precision: Precision| {
        let plan = experiment.plan(precision).unwrap_or_else(|d| panic!("{d:?}"));
        let mut inputs = XlaEngine::inputs(&plan, &experiment.setup, &client).unwrap_or_else(|e| panic!("{e}"));
        let device = experiment.setup.device_plan(&plan, class).unwrap_or_else(|e| panic!("{e}"));
        inputs.device.deliveries = device.deliveries;
        let engine = XlaEngine::with_forms(&experiment.setup, inputs, client.clone());
        let mut engine = engine.unwrap_or_else(|e| panic!("{e}"));
        let outcome = experiment.run(&mut engine, &RunOptions::default(), &mut Unwatched);
        outcome.unwrap_or_else(|e| panic!("{e:?}")).0
    };
    let forms = |class: DeviceClass| {
        let device = experiment.setup.device_plan(&plan, class).unwrap_or_else(|e| panic!("{e}"));
        device.deliveries.iter().map(DeliveryForm::name).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(forms(DeviceClass::Cpu).into_iter().collect::<Vec<_>>(), ["a loop over those who emit"]);
    assert_eq!(forms(DeviceClass::Accelerator).into_iter().collect::<Vec<_>>(), ["matrix products"]);
    let [cpu, accelerator] = [DeviceClass::Cpu, DeviceClass::Accelerator];
    close(&outcome(cpu, Precision::F64), &outcome(accelerator, Precision::F64), 1e-9, "matrix products");
}

/// Events that are on their way when the host is visited arrive as if it were not.
#[cfg(feature = "xla")]
#[test]
fn many_short_visits_have_the_bits_of_one_long_one() {
    let Some(client) = crate::pjrt::cpu() else { return };
    let options = CompileOptions { backend: neuroc::passes::Backend::Xla, ..plain() };
    let compiled = compile(&checked(MIXED), &options, &mut |_, _, _| {}).unwrap_or_else(|d| panic!("{d:?}"));
    let experiment = Experiment::new(compiled).unwrap_or_else(|d| panic!("{d:?}"));
    let plan = experiment.plan(Precision::F64).unwrap_or_else(|d| panic!("{d:?}"));
    let mut long: Option<RunResult> = None;
    // So many steps from visit to visit; 0: steps that are asked for, not recorded by the device.
    for steps in [400, 20, 4, 1, 0] {
        let mut inputs = XlaEngine::inputs(&plan, &experiment.setup, &client).unwrap_or_else(|e| panic!("{e}"));
        inputs.device.visit = steps * inputs.device.sizes.iter().sum::<usize>();
        let engine = XlaEngine::with_forms(&experiment.setup, inputs, client.clone());
        let mut engine = engine.unwrap_or_else(|e| panic!("{e}"));
        if steps > 0 {
            let total = experiment.extent.grid.steps;
            let stride = engine.prepare(&experiment.recording, total).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(stride.steps(), steps as u64);
        }
        let outcome = experiment.run(&mut engine, &RunOptions { window: 7, ..RunOptions::default() }, &mut Unwatched);
        let (result, _) = outcome.unwrap_or_else(|e| panic!("{e:?}"));
        match &long {
            // Where XLA has loops of the same shape to compile, it rounds in the same way.
            Some(long) if steps > 1 => same(long, &result, &format!("visits every {steps} steps")),
            Some(long) => close(long, &result, 1e-9, &format!("visits every {steps} steps")),
            None => long = Some(result),
        }
    }
}

/// Where all cells of a drive expect the same, its distribution is added up once: for the run, or for a step that all make together.
#[test]
fn cells_of_a_drive_share_its_distribution() {
    let text = "
synapse Count { state n: 1 = 0; n' = 0 / 1 ms; on event(weight) { n += weight } current i = n * 1 nA }
cell Lif { state v: mV = 0 mV; v' = -v / 1 ms + i_syn / 1 nF; spike when v >= 20 mV { v = 10 mV } }
network main {
    population alone: Lif[20]
    population joined: Lif[20]
    connect joined -> joined via Count { rule = all_to_all; weight = 1; delay = 1 ms }
    drive {alone, joined} via Count as steady from poisson(rate = 3 kHz) { weight = 2 }
    drive {alone, joined} via Count as waves from poisson(rate = 1 kHz * (1 + sin(t / 5 ms))) { weight = 1 }
}
run { duration = 10 ms; dt = 0.5 ms; method = exp_euler; record spikes of joined }";
    for precision in [Precision::F64, Precision::F32] {
        let model = Model::from_source(text).unwrap().precision(precision);
        let rust = model.stage(Stage::Rust).unwrap();
        let counts = ["= math::Poisson::new(", ": math::Poisson::new(", ".number(", "= math::poisson("];
        assert_eq!(counts.map(|code| rust.matches(code).count()), [2, 1, 3, 1], "{rust}");
        assert_eq!(model.stage(Stage::Plan).unwrap().matches(": Poisson, of mean ").count(), 3);
    }
}

/// The way that the grammar's README describes: a connection for each spike.
#[test]
fn spike_trains_of_a_file_arrive_as_those_that_are_written_out() {
    let times: Vec<(usize, f64)> = (0..60).map(|k| (k * 7 % 5, 1.0 + ((k * 37) % 190) as f64 * 0.1)).collect();
    let mut file = "source,target,t\n".to_string();
    let mut drives = String::new();
    for (cell, t) in &times {
        writeln!(file, "0,{cell},{t:.1}").unwrap();
    }
    for cell in 0..5 {
        let own: Vec<String> = times.iter().filter(|(of, _)| *of == cell).map(|(_, t)| format!("{t:.1} ms")).collect();
        writeln!(drives, "drive e[{cell}] via S from times({}) {{ weight = 6 nS }}", own.join(", ")).unwrap();
    }
    let model = |lines: &str| {
        format!(
            "synapse S {{ state g: nS = 0 nS; g' = -g / 3 ms; on event(weight: nS) {{ g += weight }}; current i = g * v }}
             cell Once {{ state x = 1; x' = 0 /ms * x; spike when x > 0.5 {{ x = 0 }} }}
             cell Lif {{ state v: mV = -65 mV; v' = (10 nS * (-65 mV - v) - i_syn) / 200 pF; spike when v > -50 mV {{ v = -65 mV }} }}
             network main {{ population e: Lif[5]; {lines} }}
             run {{ duration = 30 ms; dt = 0.1 ms; record e.{{v, S.g}}; record spikes of e }}"
        )
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("spikes.csv"), file).unwrap();
    let written = run(&checked(&model(&drives)), &CompileOptions::default(), Way::Plain);
    let read = model(
        "population trains: Once
         connect trains -> e via S { rule = edges(\"spikes.csv\"); weight = 6 nS; delay = file(\"spikes.csv\", column = \"t\") * 1 ms - 0.1 ms }",
    );
    let read = checked_in(folder.path(), &read);
    assert!(written.spikes[0].t.len() > 10);
    for way in ways() {
        let found = run(&read, &CompileOptions::default(), way);
        assert_eq!(found.spikes[0], written.spikes[0], "{way:?}");
        for name in ["e.v", "e.S.g"] {
            for cell in 0..5 {
                let both = column(&found, name, cell).into_iter().zip(column(&written, name, cell));
                assert!(
                    both.into_iter().all(|(a, b)| (a - b).abs() < 1e-9 * b.abs().max(1.0)),
                    "{way:?}, {name}, {cell}"
                );
            }
        }
    }
}

/// A matrix says what the list of its numbers says: by target, and of each target by source, without those of cells to themselves.
#[test]
fn weights_of_a_file_are_those_of_a_list() {
    let model = |a: &str, b: &str, c: &str, d: &str| {
        format!(
            "synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
             cell Beat {{ state x = 0; x' = 1 /ms; spike when x > 1.55 {{ x = 0 }} }}
             cell Lif {{ state v: mV = 0 mV; v' = -v / 10 ms; spike when v > 1 mV {{ v -= 1 mV }} }}
             network main {{
                 population s: Beat[2]; population e: Lif[3]; population o: Lif[3]
                 init s.x = index / 2
                 connect s -> e via Kick {{ {a} }}
                 connect e -> e via Kick {{ {b} }}
                 connect e -> o via Kick {{ {c} }}
                 connect o -> e via Kick {{ {d} }}
             }}
             run {{ duration = 30 ms; dt = 0.1 ms; record {{e, o}}.v; record spikes of {{e, o}} }}"
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let number = |k: usize| 0.3 + 0.37 * k as f64;
    let mut lists = Vec::new();
    for (name, sources, own) in [("se", 2, true), ("ee", 3, false), ("oe", 3, true)] {
        let pairs: Vec<(usize, usize)> =
            (0..3).flat_map(|t| (0..sources).map(move |s| (s, t))).filter(|(s, t)| own || s != t).collect();
        let weights: Vec<f64> = (0..pairs.len()).map(number).collect();
        per_cell(folder.path(), &format!("{name}.csv"), &weights);
        let rows: String =
            pairs.iter().zip(&weights).map(|((s, t), w)| format!("{s},{t},{w:e},0.{}\n", 2 + s)).collect();
        std::fs::write(folder.path().join(format!("{name}_list.csv")), format!("source,target,weight,delay\n{rows}"))
            .unwrap();
        let delays: Vec<f64> = pairs.iter().map(|(s, _)| 0.2 + 0.1 * *s as f64).collect();
        per_cell(folder.path(), &format!("{name}_delays.csv"), &delays);
        lists.push(format!(
            "rule = edges(\"{name}_list.csv\"); weight = file(\"{name}_list.csv\", column = \"weight\") * 1 mV; \
             delay = file(\"{name}_list.csv\", column = \"delay\") * 1 ms"
        ));
    }
    let matrix = |name: &str| {
        format!("rule = all_to_all; weight = file(\"{name}.csv\") * 1 mV; delay = file(\"{name}_delays.csv\") * 1 ms")
    };
    per_cell(folder.path(), "eo.csv", &[0.9, 0.8, 0.7]);
    let each = "rule = one_to_one; weight = file(\"eo.csv\") * 1 mV; delay = 0.1 ms";
    let rows = "source,target,weight\n0,0,0.9\n1,1,0.8\n2,2,0.7\n";
    std::fs::write(folder.path().join("eo_list.csv"), rows).unwrap();
    let listed =
        "rule = edges(\"eo_list.csv\"); weight = file(\"eo_list.csv\", column = \"weight\") * 1 mV; delay = 0.1 ms";
    let list = checked_in(folder.path(), &model(&lists[0], &lists[1], listed, &lists[2]));
    let file = checked_in(folder.path(), &model(&matrix("se"), &matrix("ee"), each, &matrix("oe")));
    let expected = run(&list, &plain(), Way::Plain);
    assert!(expected.spikes.iter().all(|train| train.t.len() > 3), "{:?}", expected.spikes);
    for way in compiled_ways().into_iter().chain([Way::Optimized]) {
        let found = run(&file, &plain(), way);
        assert_eq!(found.spikes, expected.spikes, "{way:?}");
    }
    same(&run(&file, &plain(), Way::Plain), &expected, "a matrix and its list");
}

/// The numbers of events in a step are those of a Poisson distribution, in each cell its own, and no two drives are alike.
#[test]
fn drives_are_poisson() {
    let text = "
synapse Count { state n: 1 = 0; n' = 0 / 1 ms; on event(weight) { n += weight } current i = n * 0 nA }
cell Lif { state v: mV = 0 mV; v' = -v / 1 ms + i_syn / 1 nF }
network main {
    population a: Lif[2000]
    drive a via Count from poisson(rate = 500 Hz) { weight = 1 }
    drive a via Count as other from poisson(rate = 3 kHz) { weight = 2 }
}
run { duration = 10 ms; dt = 0.5 ms; method = exp_euler; record a.{Count.n, other.n} every 0.5 ms }";
    let checked = checked(text);
    let native = run(&checked, &plain(), Way::Native);
    let plain_run = run(&checked, &plain(), Way::Plain);
    let mut counts = Vec::new();
    for (name, mean, weight) in [("a.Count.n", 0.25, 1.0), ("a.other.n", 1.5, 2.0)] {
        let columns: Vec<Vec<f64>> = (0..2000).map(|cell| column(&native, name, cell)).collect();
        assert_eq!(columns[7], column(&plain_run, name, 7));
        let of_steps: Vec<f64> = columns.iter().flat_map(|c| c.windows(2).map(|w| (w[1] - w[0]) / weight)).collect();
        let n = of_steps.len() as f64;
        assert!(of_steps.iter().all(|x| x.fract() == 0.0 && *x >= 0.0));
        let found = of_steps.iter().sum::<f64>() / n;
        // Five standard errors.
        assert!((found - mean).abs() < 5.0 * (mean / n).sqrt(), "{name}: {found}");
        let spread = of_steps.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        assert!((spread - mean).abs() < 5.0 * ((2.0 * mean * mean + mean) / n).sqrt(), "{name}: {spread}");
        for k in 0..4u32 {
            let p = (-mean).exp() * mean.powi(k as i32) / f64::from((1..=k).product::<u32>());
            let share = of_steps.iter().filter(|x| **x == f64::from(k)).count() as f64 / n;
            assert!((share - p).abs() < 5.0 * (p * (1.0 - p) / n).sqrt(), "{name}: {k} events in {share}, not {p}");
        }
        counts.push(of_steps);
    }
    let n = counts[0].len() as f64;
    let together = counts[0].iter().zip(&counts[1]).map(|(a, b)| (a - 0.25) * (b - 1.5)).sum::<f64>() / n;
    assert!(together.abs() < 5.0 * (0.25 * 1.5 / n).sqrt(), "{together}");
}

/// A delay that is drawn is looked at before the run: the edge is named.
#[test]
fn a_drawn_delay_below_a_step_is_an_error() {
    let text = format!(
        "{RELAY}
network main {{
    population a: Relay[30]
    connect a -> a via Kick {{ rule = probability(p = 0.5); weight = 1 mV; delay ~ normal(0.3 ms, 0.2 ms) }}
}}
run {{ duration = 1 ms; dt = 0.1 ms; record a.v }}"
    );
    let compiled = compile(&checked(&text), &plain(), &mut |_, _, _| {}).unwrap_or_else(|d| panic!("{d:?}"));
    let said = match Experiment::new(compiled) {
        Ok(_) => panic!("there are delays below a step"),
        Err(diagnostics) => diagnostics,
    };
    let [error] = &said[..] else { panic!("{said:?}") };
    assert!(error.message.starts_with("the delay of edge "), "{error:?}");
    assert!(error.message.ends_with(" ms, less than the time step"), "{error:?}");
}

/// More edges than one thread computes at once.
#[test]
fn values_of_many_edges_do_not_depend_on_threads() {
    let text = format!(
        "{RELAY}
function strength(w: nS): nS = truncated(normal(w, w), 0 nS, 2 * w)
network main {{
    population a: Relay[400]
    population b: Passive[800]
    drive a via Kick from poisson(rate = 200 Hz) {{ weight = 20 mV }}
    connect a -> b via Exp {{ rule = all_to_all(); weight ~ strength(0.1 nS); delay ~ uniform(0.1 ms, 3 ms) }}
}}
run {{ duration = 6 ms; dt = 0.1 ms; method = exp_euler; seed = 3; record b.{{v, Exp.g}} }}"
    );
    let drawn = native_run(&checked(&text), Precision::F64, 1);
    assert!(column(&drawn, "b.Exp.g", 7).iter().any(|g| *g > 0.0));
    assert_eq!(native_run(&checked(&text), Precision::F64, 3).series, drawn.series);
    // A function that draws is what it says.
    let written = text.replace("strength(0.1 nS);", "truncated(normal(0.1 nS, 0.1 nS), 0 nS, 2 * 0.1 nS);");
    assert_ne!(written, text);
    assert_eq!(native_run(&checked(&written), Precision::F64, 1).series, drawn.series);
}

/// A threshold that adapts goes on while the voltage is held, if the rule says what is held; on every engine and by every method.
#[test]
fn a_rule_says_what_is_held() {
    let text = |holds: &str, method: &str| {
        format!(
            "cell Adapting {{
                state v: mV = 0 mV
                v' = (30 mV - v) / 10 ms
                state theta: mV = 10 mV
                theta' = (10 mV - theta) / 20 ms
                spike when v > theta {{ v = 1 mV; theta += 8 mV; refractory 2.5 ms{holds} }}
            }}
            network main {{ population cells: Adapting[3]; init cells.v = 1 mV * index }}
            run {{ duration = 60 ms; dt = 0.1 ms; method = {method}; record cells.{{v, theta}}; record spikes of cells }}"
        )
    };
    // What the rule says, step by step, with both equations solved exactly.
    let solved = |cell: usize, held: [bool; 2]| {
        let (mut v, mut theta, mut left, mut spikes) = (cell as f64, 10.0, 0, Vec::new());
        let mut all = vec![(v, theta)];
        for step in 1..=600 {
            if left == 0 || !held[0] {
                v = 30.0 + (v - 30.0) * (-0.01f64).exp();
            }
            if left == 0 || !held[1] {
                theta = 10.0 + (theta - 10.0) * (-0.005f64).exp();
            }
            if left > 0 {
                left -= 1;
            } else if v > theta {
                (v, theta, left) = (1.0, theta + 8.0, 25);
                spikes.push(step as f64 * 0.1);
            }
            all.push((v, theta));
        }
        (all, spikes)
    };
    let ways = [Way::Plain, Way::Native];
    #[cfg(feature = "xla")]
    let ways: Vec<Way> = ways.into_iter().chain(crate::pjrt::cpu().map(|_| Way::Xla)).collect();
    let all = [
        ("", [true, true]),
        (" holds v, theta", [true, true]),
        (" holds v", [true, false]),
        (" holds nothing", [false, false]),
    ];
    for (holds, held) in all {
        for (way, method) in ways.iter().flat_map(|way| ["exp_euler", "exact"].map(|method| (*way, method))) {
            let result = run(&checked(&text(holds, method)), &plain(), way);
            for cell in 0..3 {
                let (all, expected) = solved(cell, held);
                let spikes = &result.spikes[0];
                let found: Vec<f64> =
                    spikes.t.iter().zip(&spikes.i).filter(|(_, i)| **i as usize == cell).map(|s| *s.0).collect();
                assert!(expected.len() > 3 && found.len() == expected.len(), "{way:?} {method}{holds}: {found:?}");
                assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-9), "{way:?} {method}{holds}");
                let [v, theta] = ["cells.v", "cells.theta"].map(|name| column(&result, name, cell));
                for (step, (expected_v, expected_theta)) in all.iter().enumerate() {
                    let off = (v[step] - expected_v).abs().max((theta[step] - expected_theta).abs());
                    assert!(off < 1e-10, "{way:?} {method}{holds}: step {step}: {off}");
                }
            }
        }
    }
}
