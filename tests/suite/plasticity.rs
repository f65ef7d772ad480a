//! Tests of: synapses that remember. Closed forms, the spikes and the weights of Brian2, the same bits on every engine that runs them and with every
//! number of threads.

use crate::events::{
    checked, checked_in, column, edge_file, found_spikes, native_run, numbers, per_cell, plain, reference, same,
    series, spikes_of,
};
use crate::models::{Way, run};
use neuroc::codegen::plan::Precision;
use neuroc::driver::CompileOptions;
use serde_json::Value;

const CELLS: &str = "
cell Relay { state v: mV = 0 mV; v' = -v / 1 ms; spike when v >= 10 mV { v = 0 mV } }
synapse Kick { on event(weight: mV) { v += weight } }
";

/// A connection from cells that spike at `pre` to one that spikes at `post`, with the weight after the run.
fn after(synapse: &str, pre: &[f64], post: &[f64]) -> f64 {
    after_with(synapse, pre, post, ("", ""), Way::Native)
}

/// The same with another line of the connection, and one of the run.
fn after_with(synapse: &str, pre: &[f64], post: &[f64], (line, setting): (&str, &str), way: Way) -> f64 {
    let times = |all: &[f64]| all.iter().map(|t| format!("{t} ms")).collect::<Vec<_>>().join(", ");
    let text = format!(
        "use std.plasticity.{{{name}}}
        {CELLS}
        network main {{
            population a: Relay[1]
            population b: Relay[1]
            drive a via Kick from times({}) {{ weight = 20 mV }}
            drive b via Kick from times({}) {{ weight = 20 mV }}
            connect a -> b via {synapse} {{ rule = one_to_one(); weight = 0.4 nS; delay = 1 ms; {line} }}
        }}
        run {{ duration = 300 ms; dt = 0.1 ms; {setting} record a.b.{name}.weight every 300 ms }}",
        times(pre),
        times(post),
        name = synapse.split('(').next().unwrap_or_default(),
    );
    // What arrives at a relay does not move it: it reads no current.
    let text = text.replace("v' = -v / 1 ms;", "v' = -(v + 0 Mohm * i_syn) / 1 ms;");
    let result = run(&checked(&text), &plain(), way);
    let name = result.series[0].name.clone();
    column(&result, &name, 0)[1]
}

/// These and, where there is its plugin, XLA.
fn and_xla(ways: &[Way]) -> Vec<Way> {
    let ways = ways.to_vec();
    #[cfg(feature = "xla")]
    let ways: Vec<Way> = ways.into_iter().chain(crate::pjrt::cpu().map(|_| Way::Xla)).collect();
    ways
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-12 * b.abs().max(1.0), "{a} is not {b}");
}

/// The weight moves by the window of the pair, on either side of a coincidence, and pairs add up.
#[test]
fn pairs_of_spikes_move_the_weight_as_their_window_says() {
    // A spike of the first cell arrives after 1 ms.
    for (pre, post) in [(10.0, 15.0), (10.0, 30.0), (20.0, 12.0)] {
        let apart: f64 = post - (pre + 1.0);
        let moved = if apart > 0.0 { 0.005 * (-apart / 20.0).exp() } else { -0.00525 * (apart / 20.0).exp() };
        close(after("Stdp", &[pre], &[post]), 0.4 + moved);
    }
    // In one step what arrives comes first: the pair counts as one after the arrival.
    close(after("Stdp", &[10.0], &[11.0]), 0.4 + 0.005);
    let all = 0.005 * ((-4.0f64 / 20.0).exp() + (-14.0f64 / 20.0).exp());
    close(after("Stdp", &[10.0, 20.0], &[25.0]), 0.4 + all - 0.0);
    let last = 0.005 * (-4.0f64 / 20.0).exp();
    close(after("StdpNearest", &[10.0, 20.0], &[25.0]), 0.4 + last);
    close(after("StdpMultiplicative", &[10.0], &[15.0]), 0.4 + 0.01 * 0.6 * (-4.0f64 / 20.0).exp());
    close(after("StdpMultiplicative", &[20.0], &[12.0]), 0.4 - 0.01 * 0.4 * (-9.0f64 / 20.0).exp());
    close(after("Stdp(a_plus = 2)", &[10.0], &[15.0]), 1.0);
}

/// The window is one of the times at the synapse: a spike that arrives has come along the axon, one of the cell behind along the dendrite.
#[test]
fn spikes_meet_at_the_synapse() {
    let expected = |apart: f64| match apart > 0.0 {
        true => 0.4 + 0.005 * (-apart / 20.0).exp(),
        false => 0.4 - 0.00525 * (apart / 20.0).exp(),
    };
    for way in [Way::Plain, Way::Native] {
        for part in [0.0, 0.05, 0.3, 0.5, 1.0] {
            let line = format!("dendritic_fraction = {part}");
            for (pre, post) in [(10.0, 15.0), (10.0, 10.4), (10.0, 10.9), (20.0, 19.7), (20.0, 12.0)] {
                let apart: f64 = (post + part) - (pre + 1.0 - part);
                if apart.abs() > 1e-9 {
                    let found = after_with("Stdp", &[pre], &[post], (&line, ""), way);
                    assert!((found - expected(apart)).abs() < 1e-12, "{way:?}, {part}, {pre}, {post}: {found}");
                }
            }
        }
        // Both at once, in the middle of the way and at its end.
        for (pre, line) in [(10.0, "dendritic_fraction = 0.5"), (11.0, "dendritic_fraction = 1")] {
            let found = |setting| after_with("Stdp", &[pre], &[10.0], (line, setting), way) - 0.4;
            close(found(""), 0.005);
            close(found("coincident = pre_first;"), 0.005);
            close(found("coincident = post_first;"), -0.00525);
            close(found("coincident = apart;"), 0.0);
        }
    }
}

/// Spikes that are no pair with each other are one with all others.
#[test]
fn spikes_that_are_kept_apart_meet_others() {
    let with = ("dendritic_fraction = 1", "coincident = apart;");
    // The second spike of the cell behind reaches the synapse as the second of the other side does.
    let found = after_with("Stdp", &[11.0, 17.0], &[10.0, 16.0], with, Way::Native) - 0.4;
    close(found, (0.005 - 0.00525) * (-6.0f64 / 20.0).exp());
    let found = after_with("StdpNearest", &[11.0, 17.0], &[10.0, 16.0], with, Way::Native) - 0.4;
    close(found, (0.005 - 0.00525) * (-6.0f64 / 20.0).exp());
}

/// One pair and one reward, of cells and of a place in a cell with sections: in one step what arrives comes first, then the spike of the cell behind, then
/// the reward, whose amounts are added up.
#[test]
fn a_reward_finds_what_its_step_has_made() {
    let model = |target: &str, place: &str| {
        format!(
            "use std.cells.generators.{{Relay, Regular}}
            use std.synapses.{{Delta}}
            synapse Learns {{
                state g: nS = 0 nS
                g' = -g / 5 ms
                state arrived = 0
                arrived' = 0 /s
                state left = 0
                left' = 0 /s
                on pre(weight: nS) {{ g += weight; arrived += 1 }}
                on post(weight: nS) {{ left += 1 }}
                on modulator(weight: nS, amount: mV) {{ weight = weight + amount / 1 mV * (1 nS + arrived * 2 nS + left * 4 nS) }}
                current i = g * v
            }}
            {target}
            network main {{
                population a: Relay
                population given: Relay[2]
                population b: Target
                drive a via Delta from times(2 ms) {{ weight = 1 mV }}
                drive given via Delta from times(1 ms, 2 ms) {{ weight = 1 mV }}
                connect a -> b{place} via Learns as one {{ rule = one_to_one; weight = 1 nS; delay = 1 ms }}
                connect given -> b{place} modulating one {{ rule = all_to_all; weight = 10 mV; delay = 1 ms }}
                drive b{place} modulating one from times(3 ms, 4 ms) {{ weight = 1 mV }}
            }}
            run {{ duration = 6 ms; dt = 0.1 ms; record a.b{place}.one.weight every 0.1 ms; record spikes of b }}"
        )
    };
    // It spikes in the step that ends at 3 ms, in which the spike arrives as well.
    let point = "cell Target {
        state left: ms = 3 ms
        left' = -1
        state v: mV = 0 mV
        v' = -(v + 0 Mohm * i_syn) / 1 ms
        spike when left < 1e-4 ms { left += 100 ms }
    }";
    for way in and_xla(&[Way::Plain, Way::Native]) {
        let result = run(&checked(&model(point, "")), &plain(), way);
        assert_eq!(result.spikes[0].t.len(), 1);
        let weight = column(&result, "a.b.one.weight", 0);
        // Given at 1 ms by two cells: 20 mV arrive at 2 ms, before all spikes. Then 21 mV after both, and 1 mV.
        let expected = [(19, 1.0), (20, 21.0), (29, 21.0), (30, 168.0), (39, 168.0), (40, 175.0), (60, 175.0)];
        for (at, value) in expected {
            close(weight[at], value);
        }
    }
    let sections = "cell Target {
        section soma { length = 20 um; diam = 20 um }
        section dend { from soma(1); length = 100 um; diam = 2 um; compartments = 3 }
        region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -70 mV }
        spike when soma(0.5).v crosses 1000 mV
    }";
    for way in [Way::Plain, Way::Native] {
        let text =
            model(sections, ".dend(0.5)").replace("dt = 0.1 ms", "dt = 0.1 ms; method = cnexp; celsius = 20 degC");
        let result = run(&checked(&text), &plain(), way);
        assert!(result.spikes[0].t.is_empty());
        let weight = column(&result, &result.series[0].name.clone(), 0);
        for (at, value) in [(19, 1.0), (20, 21.0), (29, 21.0), (30, 84.0), (39, 84.0), (40, 87.0)] {
            close(weight[at], value);
        }
    }
}

#[test]
fn a_triplet_needs_an_earlier_spike_of_the_cell_behind() {
    let pair = after("StdpTriplet", &[20.0], &[25.0]);
    close(pair, 0.4);
    let triplet = after("StdpTriplet", &[20.0], &[10.0, 25.0]);
    let depressed = 0.0071 * (-11.0f64 / 33.7).exp();
    let grown = 0.0065 * (-4.0f64 / 16.8).exp() * (-15.0f64 / 114.0).exp();
    close(triplet, 0.4 - depressed + grown);
}

/// What the spikes of a cell that fires every 20 ms open, one after the other, against the recursion of Tsodyks, Pawelzik and Markram.
#[test]
fn short_term_plasticity_comes_to_its_steady_state() {
    let times = (0..40).map(|k| format!("{} ms", 10 + 20 * k)).collect::<Vec<_>>().join(", ");
    let text = format!(
        "use std.plasticity.{{TsodyksMarkram, NMDASaturating}}
        {CELLS}
        cell Listener {{ state v: mV = 0 mV; v' = -(v + 0 Mohm * i_syn) / 1 ms }}
        network main {{
            population a: Relay[1]
            population b: Listener[1]
            drive a via Kick from times({times}) {{ weight = 20 mV }}
            connect a -> b via TsodyksMarkram(U = 0.15, tau_rec = 130 ms, tau_facil = 530 ms) {{
                rule = one_to_one(); weight = 2 nS; delay = 1.5 ms
            }}
            connect a -> b via NMDASaturating {{ rule = one_to_one(); weight = 2 nS; delay = 1.5 ms }}
        }}
        run {{ duration = 900 ms; dt = 0.1 ms; record b.{{TsodyksMarkram.g, NMDASaturating.g}} }}"
    );
    let checked = checked(&text);
    for way in and_xla(&[Way::Plain, Way::Native]) {
        let result = run(&checked, &plain(), way);
        let [g, nmda] = ["b.TsodyksMarkram.g", "b.NMDASaturating.g"].map(|name| column(&result, name, 0));
        let (mut u, mut x, mut s) = (0.0f64, 1.0f64, 0.0f64);
        for spike in 0..40 {
            let rest = if spike == 0 { 0.0f64 } else { 20.0 };
            u *= (-rest / 530.0).exp();
            x = 1.0 + (x - 1.0) * (-rest / 130.0).exp();
            s *= (-rest / 100.0).exp();
            u += 0.15 * (1.0 - u);
            let sent = 2.0 * u * x;
            x -= u * x;
            // It arrives 1.5 ms after the spike, at the end of a step.
            let at = 100 + 200 * spike + 15;
            let jump = g[at] - g[at - 1] * (-0.1f64 / 5.0).exp();
            assert!((jump - sent).abs() < 1e-10, "{way:?}: spike {spike}: {jump}, not {sent}");
            let opened = nmda[at] - nmda[at - 1] * (-0.1f64 / 100.0).exp();
            assert!((opened - 2.0 * 0.5 * (1.0 - s)).abs() < 1e-9, "{way:?}: spike {spike}: {opened}");
            s += 0.5 * (1.0 - s);
        }
    }
}

/// A quotient that is 0/0 at the first event has its limit there, as in equations.
#[test]
fn what_an_event_does_has_limits() {
    let text = format!(
        "{CELLS}
        synapse Limit {{
            state g: nS = 0 nS
            g' = -g / 5 ms
            state x = 0
            x' = -x / 20 ms
            on event(weight: nS) {{ g += weight * x / (exp(x) - 1); x += 1 }}
            current i = g * v
        }}
        cell Listener {{ state v: mV = 0 mV; v' = -(v + 0 Mohm * i_syn) / 1 ms }}
        network main {{
            population a: Relay[1]
            population b: Listener[1]
            drive a via Kick from times(1 ms) {{ weight = 20 mV }}
            connect a -> b via Limit {{ rule = one_to_one(); weight = 2 nS; delay = 1 ms }}
        }}
        run {{ duration = 3 ms; dt = 0.1 ms; record b.Limit.g }}"
    );
    let checked = checked(&text);
    for way in and_xla(&[Way::Plain, Way::Native]) {
        let g = column(&run(&checked, &plain(), way), "b.Limit.g", 0);
        assert!(g[19] == 0.0 && (g[20] - 2.0).abs() < 1e-12, "{way:?}: {g:?}");
    }
}

/// The net of conductances of the tests of events, with other synapses between excitatory cells; more lines of the network, and what of them is recorded.
fn as_in_brian2(net: &Value, (synapse, via): (&str, &str), lines: &str, record: &str) {
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    per_cell(folder.path(), "i.csv", &numbers(&net["I_pA"]));
    per_cell(folder.path(), "v.csv", &numbers(&net["v_init_mV"]));
    for (name, of) in [("exc.csv", true), ("inh.csv", false)] {
        let text = edge_file(net, |pre| (pre < 80) == of);
        std::fs::write(folder.path().join(name), text).unwrap_or_else(|e| panic!("{e}"));
    }
    if net.get("rewards").is_some() {
        rewards(folder.path(), net);
    }
    let at_once = numbers(&net["edges"]["delay_steps"]).iter().all(|&steps| steps == 0.0);
    let [exc, inh] = ["exc", "inh"].map(|of| match at_once {
        true => "0 ms".to_string(),
        false => format!("file(\"{of}.csv\", column = \"delay\") * 0.1 ms"),
    });
    let duration = net["steps"].as_f64().expect("a number") * 0.1;
    let model = format!(
        "use std.synapses.{{ExpCond, Delta}}
        use std.cells.generators.{{Relay}}
        {synapse}
        cell Lif {{
            param i_e = 0 pA
            state v: mV = -60 mV
            v' = (10 nS * (-60 mV - v) + i_e - i_syn) / 200 pF
            spike when v > -50 mV {{ v = -60 mV; refractory 4.9 ms }}
        }}
        network main {{
            population n: Lif[100]
            param n.i_e = file(\"i.csv\") * 1 pA
            init n.v = file(\"v.csv\") * 1 mV
            connect n -> n via {via} {{
                rule = edges(\"exc.csv\")
                weight = file(\"exc.csv\", column = \"weight\") * 1 nS
                delay = {exc}
            }}
            connect n -> n via ExpCond as inh(tau = 10 ms, erev = -80 mV) {{
                rule = edges(\"inh.csv\")
                weight = file(\"inh.csv\", column = \"weight\") * 1 nS
                delay = {inh}
            }}
            {lines}
        }}
        run {{ duration = {duration} ms; dt = 0.1 ms; method = exp_euler; record spikes of n; {record} }}"
    );
    let expected = spikes_of(net, 1.0);
    let checked = checked_in(folder.path(), &model);
    for way in and_xla(&[Way::Optimized, Way::Native]) {
        let result = run(&checked, &plain(), way);
        let found = found_spikes(&result);
        let differs = expected.iter().zip(&found).position(|(a, b)| a != b);
        assert_eq!(differs.map(|at| (expected[at], found[at])), None, "{way:?}: the first that differs");
        assert_eq!(found.len(), expected.len(), "{way:?}");
        if let Some(weights) = net.get("final_weights_nS").map(numbers) {
            let last = series(&result, "n.n.Remembers.weight");
            let ends = |name: &str| -> Vec<f64> { parameter(&result, name) };
            // Brian2 has them in the order of the file, neuroc by target and source.
            let (sources, targets) = (ends("n.n.Remembers.source"), ends("n.n.Remembers.target"));
            let [pre, post] = ["pre", "post"].map(|key| numbers(&net["edges"][key]));
            let mut of_brian: Vec<(f64, f64, f64)> =
                (0..pre.len()).filter(|&i| pre[i] < 80.0).zip(&weights).map(|(i, &w)| (post[i], pre[i], w)).collect();
            of_brian.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
            let mut own: Vec<(f64, f64, f64)> =
                (0..sources.len()).map(|i| (targets[i], sources[i], last.values.get(1, i))).collect();
            own.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
            assert_eq!(own.len(), of_brian.len());
            let moved = of_brian.iter().filter(|w| ![0.5, 0.75, 1.0, 1.5].contains(&w.2)).count();
            assert!(moved * 2 > own.len(), "{moved} weights of {} have moved", own.len());
            for (own, brian) in own.iter().zip(&of_brian) {
                assert_eq!((own.0, own.1), (brian.0, brian.1));
                assert!((own.2 - brian.2).abs() < 1e-10, "{way:?}: {own:?}, {brian:?}");
            }
            for name in ["c", "d"] {
                let Some(of_brian) = net.get(format!("final_{name}")).map(numbers) else { continue };
                let last = series(&result, &format!("n.n.Remembers.{name}"));
                let mut of_brian: Vec<(f64, f64, f64)> = (0..pre.len())
                    .filter(|&i| pre[i] < 80.0)
                    .zip(&of_brian)
                    .map(|(i, &x)| (post[i], pre[i], x))
                    .collect();
                of_brian.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
                let of = |i: usize| (targets[i], sources[i], last.values.get(1, i));
                let mut own: Vec<(f64, f64, f64)> = (0..sources.len()).map(of).collect();
                own.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
                for (own, brian) in own.iter().zip(&of_brian) {
                    assert!((own.2 - brian.2).abs() < 1e-10, "{way:?}, {name}: {own:?}, {brian:?}");
                }
            }
        }
    }
}

fn parameter(result: &neuroc::results::RunResult, name: &str) -> Vec<f64> {
    let found = result.parameters.iter().find(|p| p.name == name).unwrap_or_else(|| panic!("no {name}"));
    match &found.values {
        neuroc::results::ParameterValues::PerCell { values, .. } => values.clone(),
        neuroc::results::ParameterValues::One(_) => panic!("{name} is one number"),
    }
}

/// The synapses of the nets with STDP.
const STDP: &str = "
synapse Remembers {
    param tau = 5 ms; param erev = 0 mV
    param tau_pre = 20 ms; param tau_post = 15 ms
    param w_max = 3 nS
    state g: nS = 0 nS
    g' = -g / tau
    state apre = 0
    apre' = -apre / tau_pre
    state apost = 0
    apost' = -apost / tau_post
    on pre(weight: nS) { g += weight; apre += 0.02; weight = clamp(weight + apost * w_max, 0 nS, w_max) }
    on post(weight: nS) { apost -= 0.025; weight = clamp(weight + apre * w_max, 0 nS, w_max) }
    current i = g * (v - erev)
}";

#[test]
fn a_net_with_stdp_spikes_and_learns_as_in_brian2() {
    let brian = reference("plasticity_brian2.json");
    as_in_brian2(&brian["net_stdp"], (STDP, "Remembers"), "", "record n.n.Remembers.weight every 500 ms");
}

/// Spikes take no time, or none of them less than a step, behind the threshold: what Brian2 does unless told otherwise.
#[test]
fn a_net_with_stdp_without_delays_spikes_and_learns_as_in_brian2() {
    let brian = reference("at_once_brian2.json");
    for net in ["net_stdp", "net_stdp_delayed"] {
        let lines = "arrivals = after_threshold; record n.n.Remembers.weight every 300 ms";
        as_in_brian2(&brian[net], (STDP, "Remembers"), "", lines);
    }
}

/// A net with NEST's `stdp_synapse`, in the words of the language; `lines` of the connection and of the run.
fn nest_net(net: &Value, folder: &std::path::Path, line: &str, settings: &str) -> String {
    per_cell(folder, "i.csv", &numbers(&net["I_e_pA"]));
    per_cell(folder, "v.csv", &numbers(&net["V_init_mV"]));
    for (name, of) in [("exc.csv", true), ("inh.csv", false)] {
        let text = edge_file(net, |pre| (pre < 80) == of);
        std::fs::write(folder.join(name), text).unwrap_or_else(|e| panic!("{e}"));
    }
    format!(
        "use std.cells.lif.{{LifPsc}}
        use std.synapses.{{ExpCurr}}
        synapse Stdp {{
            param tau = 2 ms
            param tau_plus = 20 ms; param tau_minus = 15 ms
            param rate = 0.05; param alpha = 1.2; param w_max = 600 pA
            state x: pA = 0 pA
            x' = -x / tau
            state plus = 0
            plus' = -plus / tau_plus
            state minus = 0
            minus' = -minus / tau_minus
            on pre(weight: pA) {{ weight = max(weight - alpha * rate * minus * weight, 0 pA); x += weight; plus += 1 }}
            on post(weight: pA) {{ weight = min(weight + rate * plus * w_max, w_max); minus += 1 }}
            current i = -x
        }}
        network main {{
            population n: LifPsc[100]
            param n.I_e = file(\"i.csv\") * 1 pA
            init n.v = file(\"v.csv\") * 1 mV
            connect n -> n via Stdp {{
                rule = edges(\"exc.csv\")
                weight = file(\"exc.csv\", column = \"weight\") * 1 pA
                delay = file(\"exc.csv\", column = \"delay\") * 0.1 ms
                {line}
            }}
            connect n -> n via ExpCurr as inh(tau = 5 ms) {{
                rule = edges(\"inh.csv\")
                weight = -file(\"inh.csv\", column = \"weight\") * 1 pA
                delay = file(\"inh.csv\", column = \"delay\") * 0.1 ms
            }}
        }}
        run {{ duration = 500 ms; dt = 0.1 ms; method = exact; {settings}
            record spikes of n; record n.n.Stdp.weight every 0.1 ms }}"
    )
}

/// How many of the weights that NEST has sent are not those of an edge when the spike comes to the soma.
fn sent_otherwise(net: &Value, result: &neuroc::results::RunResult) -> (usize, usize) {
    let weights = series(result, "n.n.Stdp.weight");
    let [sources, targets] = ["source", "target"].map(|end| parameter(result, &format!("n.n.Stdp.{end}")));
    let [pre, post, delays] = ["pre", "post", "delay_steps"].map(|key| numbers(&net["edges"][key]));
    let lists = |key: &str| -> Vec<Vec<f64>> { net[key].as_array().expect("a list").iter().map(numbers).collect() };
    let plastic = (0..pre.len()).filter(|&i| pre[i] < 80.0);
    let (mut wrong, mut all) = (0, 0);
    for (i, (steps, sent)) in plastic.zip(lists("sent_steps").iter().zip(lists("sent_pA"))) {
        let own = (0..sources.len()).find(|&at| (sources[at], targets[at]) == (pre[i], post[i])).expect("the edge");
        for (step, weight) in steps.iter().zip(sent) {
            // It is known when the step is over that it arrives in.
            let at = (step + delays[i]) as usize;
            if at < weights.t.len() {
                all += 1;
                wrong += usize::from((weights.values.get(at, own) - weight).abs() > 1e-9);
            }
        }
    }
    (wrong, all)
}

/// In NEST all of a delay lies behind the synapse, and spikes that meet there are no pair. Every weight that it sends is ours.
#[test]
fn a_net_with_stdp_behind_dendrites_spikes_and_learns_as_in_nest() {
    let nest = reference("plasticity_nest.json");
    let net = &nest["net_stdp"];
    assert!(net["pairs_at_once"].as_u64() > Some(20));
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let model = nest_net(net, folder.path(), "dendritic_fraction = 1", "coincident = apart;");
    let (checked, expected) = (checked_in(folder.path(), &model), spikes_of(net, 0.0));
    for way in and_xla(&[Way::Plain, Way::Optimized, Way::Native]) {
        let result = run(&checked, &plain(), way);
        let found = found_spikes(&result);
        let differs = expected.iter().zip(&found).position(|(a, b)| a != b);
        assert_eq!(differs.map(|at| (expected[at], found[at])), None, "{way:?}: the first that differs");
        assert_eq!(found.len(), expected.len(), "{way:?}");
        let (wrong, all) = sent_otherwise(net, &result);
        assert!(wrong == 0 && all > 7000, "{way:?}: {wrong} of {all} weights");
    }
    // With none of the two it is another net.
    for (line, settings) in
        [("", ""), ("dendritic_fraction = 1", ""), ("dendritic_fraction = 1", "coincident = post_first;")]
    {
        let model = nest_net(net, folder.path(), line, settings);
        let result = run(&checked_in(folder.path(), &model), &plain(), Way::Native);
        let (wrong, _) = sent_otherwise(net, &result);
        assert!(wrong > 10, "{line} {settings}: {wrong}");
    }
}

/// The edges along which rewards come, and when their sources spike.
fn rewards(folder: &std::path::Path, net: &Value) {
    let of = &net["rewards"];
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap_or_else(|e| panic!("{e}"));
    let mut edges = "source,target,weight,delay\n".to_string();
    let rows = |key: &str| -> Vec<Vec<f64>> { of[key].as_array().expect("a list").iter().map(numbers).collect() };
    for (source, (amounts, delays)) in rows("amount").iter().zip(rows("delay_steps")).enumerate() {
        for (target, (amount, delay)) in amounts.iter().zip(delays).enumerate() {
            edges += &format!("{source},{target},{amount},{delay}\n");
        }
    }
    write("rewards.csv", edges);
    // What Brian2 does in its step 0 happens in our step 1.
    let spikes = numbers(&of["step"]).into_iter().zip(numbers(&of["source"]));
    let rows = spikes.map(|(step, source)| format!("{},{source}\n", (step + 1.0) * 0.1));
    write("given.csv", "t,cell\n".to_string() + &rows.collect::<String>());
}

/// Rewards of both signs come along edges of their own, each with its delay, while 600 synapses learn: eligibility, dopamine and weights as where Brian2
/// takes every step. Many weights come to a bound on their way.
#[test]
fn a_net_that_is_rewarded_learns_as_in_brian2() {
    let brian = reference("reward_brian2.json");
    let via = "RewardStdp as Remembers(tau_post = 15 ms, a_plus = 1, a_minus = 1.25, tau_c = 150 ms, tau_d = 40 ms, rate = 2 /s, w_max = 3 nS)";
    // At the end an event brings all weights up to date.
    let lines = "
        population giver: Relay[4]
        drive giver via Delta from spikes(\"given.csv\") { weight = 1 mV }
        connect giver -> n modulating Remembers {
            rule = edges(\"rewards.csv\")
            weight = file(\"rewards.csv\", column = \"weight\")
            delay = file(\"rewards.csv\", column = \"delay\") * 0.1 ms
        }
        drive n modulating Remembers from times(500 ms) { weight = 1e-12 }";
    let synapse = ("use std.plasticity.{RewardStdp}", via);
    as_in_brian2(&brian["net"], synapse, lines, "record n.n.Remembers.{weight, c, d} every 500 ms");
}

#[test]
fn a_net_with_short_term_plasticity_spikes_as_in_brian2() {
    let brian = reference("plasticity_brian2.json");
    let synapse = "
synapse Remembers {
    param tau = 5 ms; param erev = 0 mV; param U = 0.2
    state g: nS = 0 nS
    g' = -g / tau
    state x = 1
    x' = (1 - x) / 120 ms
    state u = U
    u' = (U - u) / 250 ms
    let used = u * x
    on event(weight: nS) { u += U * (1 - u); g += weight * used; x -= used }
    current i = g * (v - erev)
}";
    as_in_brian2(&brian["net_tsodyks_markram"], (synapse, "Remembers"), "", "");
}

/// Chance may leave a connection without synapses.
#[test]
fn a_connection_without_edges_runs() {
    let text = format!(
        "use std.plasticity.{{Stdp}}
        {CELLS}
        cell Listener {{ state v: mV = 2 mV; v' = -(v + 0 Mohm * i_syn) / 1 ms; spike when v > 10 mV {{ v = 0 mV }} }}
        network main {{
            population a: Relay[3]
            population b: Listener[2]
            connect a -> b via Stdp {{ rule = probability(p = 0); weight ~ uniform(0 nS, 1 nS); delay ~ uniform(1 ms, 2 ms) }}
        }}
        run {{ duration = 3 ms; dt = 0.1 ms; record a.b.Stdp.{{weight, pre}}; record b.v }}"
    );
    let checked = checked(&text);
    for way in and_xla(&[Way::Plain, Way::Native]) {
        let result = run(&checked, &plain(), way);
        assert!(result.series[..2].iter().all(|series| series.cells.is_empty()), "{way:?}");
        assert!((column(&result, "b.v", 1)[30] - 2.0 * (-3.0f64).exp()).abs() < 1e-9, "{way:?}");
    }
}

/// Synapses of every kind that remember: several sums, parameters and states of the cell behind, chains of equations, no weight, no change by spikes of
/// the cell behind, delays, parameters and initial values that differ.
pub(super) const MIXED: &str = "
use std.plasticity.{Stdp, TsodyksMarkram, RewardStdp}
use std.cells.generators.{Poisson}
synapse Alpha {
    param tau = 2 ms
    param eta = 0.001
    state x: nS = 0 nS
    state g: nS = 0 nS
    x' = -x / tau
    g' = (x - g) / tau
    state a = 0
    state b = 0
    a' = -a / 10 ms
    b' = (a - b) / 30 ms
    on event(weight: nS) { x += exp(1) * weight; g += 0.1 * weight * b; a += 1 }
    on post(weight: nS) { weight = clamp(weight + eta * b * 1 nS + 1e-4 nS/mV * (v + 60 mV), 0 nS, 9 nS) }
    current i = g * (v - 0 mV)
}
synapse Tired {
    state left = 1
    left' = (1 - left) / 50 ms
    on event { v += 0.5 mV * left; left -= 0.3 * left }
}
cell Lif {
    param drive = 0 mV
    state v: mV = -60 mV
    v' = (10 nS * (-60 mV - v + drive) - i_syn) / 200 pF
    spike when v > -50 mV { v = -60 mV; refractory 2 ms }
}
network main {
    population e: Lif[70]
    population i: Lif[33]
    init e.v ~ uniform(-60 mV, -50 mV)
    param e.drive ~ uniform(8 mV, 16 mV)
    param i.drive ~ uniform(8 mV, 12 mV)
    param i.Alpha.eta ~ uniform(0.001, 0.002)
    connect e -> {e, i} via Stdp { rule = probability(p = 0.1); weight ~ uniform(0.2 nS, 0.9 nS); delay ~ uniform(0.1 ms, 2 ms) }
    connect e -> i via Alpha { rule = fixed_total_number(n = 400); weight ~ uniform(0.1 nS, 0.5 nS); delay = 0.7 ms }
    connect i -> e via TsodyksMarkram(erev = -80 mV) { rule = fixed_in_degree(n = 7); weight = 3 nS; delay ~ uniform(0.1 ms, 0.4 ms) }
    connect i -> i via Tired { rule = all_to_all(); delay = 0.3 ms; left ~ uniform(0.5, 1) }
    population giver: Poisson[3]
    param giver.rate = 100 Hz
    connect i -> e via RewardStdp as learnt(erev = -80 mV, rate = 3 /s) {
        rule = fixed_in_degree(n = 5); weight ~ uniform(0.2 nS, 0.8 nS); delay ~ uniform(0.1 ms, 2 ms)
        tau_pre ~ uniform(15 ms, 25 ms)
    }
    connect giver -> e modulating learnt { rule = probability(p = 0.5); weight ~ uniform(-0.5, 1); delay ~ uniform(0.1 ms, 9 ms) }
    drive e[10..50] modulating learnt from poisson(rate = 50 Hz) { weight ~ uniform(0, 0.3); delay = 2 ms }
}
run { duration = 80 ms; dt = 0.1 ms; method = exp_euler; seed = 5
    record e.{v, Stdp.g, TsodyksMarkram.g}; record i.{v, Alpha.g}; record e.i.Alpha.weight every 8 ms
    record e.e.Stdp.{weight, pre, post} every 8 ms; record e.i.Alpha.b; record i.e.TsodyksMarkram.x every 1 ms
    record i.e.learnt.{weight, c, d} every 8 ms
    record spikes of e; record spikes of i }
";

/// [`MIXED`] in other words.
fn mixed(others: &[(&str, &str)]) -> String {
    others.iter().fold(MIXED.to_string(), |text, (old, new)| {
        assert!(text.contains(old), "no `{old}`");
        text.replace(old, new)
    })
}

#[test]
fn every_number_of_threads_has_the_same_bits() {
    has_the_same_bits(MIXED);
    let [single, other] = [1, 3].map(|threads| native_run(&checked(MIXED), Precision::F32, threads));
    same(&single, &other, "single precision");
}

/// Dendrites that differ from edge to edge; and spikes that the cell behind has made first, between two steps.
#[test]
fn every_number_of_threads_has_the_same_bits_behind_dendrites() {
    let of_e = "delay ~ uniform(0.1 ms, 2 ms) }\n    connect e -> i";
    has_the_same_bits(&mixed(&[(of_e, &of_e.replace(" }", "; dendritic_fraction = 0.7 }"))]));
    has_the_same_bits(&mixed(&[
        (of_e, "delay = 0 ms }\n    connect e -> i"),
        ("delay = 0.7 ms", "delay = 0 ms"),
        (
            "weight ~ uniform(0.2 nS, 0.8 nS); delay ~ uniform(0.1 ms, 2 ms)",
            "weight ~ uniform(0.2 nS, 0.8 nS); delay = 0 ms",
        ),
        ("seed = 5", "seed = 5; arrivals = after_threshold; coincident = apart"),
    ]));
}

fn has_the_same_bits(text: &str) {
    let checked = checked(text);
    let unoptimized = run(&checked, &CompileOptions::default(), Way::Plain);
    let counts: Vec<usize> = unoptimized.spikes.iter().map(|spikes| spikes.i.len()).collect();
    assert!(counts.iter().all(|&count| count > 50), "{counts:?}");
    let weights = series(&unoptimized, "e.i.Alpha.weight");
    let moved = (0..400).filter(|&edge| weights.values.get(0, edge) != weights.values.get(10, edge)).count();
    assert!(moved > 100, "only {moved} weights have moved");
    let rewarded = series(&unoptimized, "i.e.learnt.weight");
    let moved = (0..350).filter(|&edge| rewarded.values.get(0, edge) != rewarded.values.get(10, edge)).count();
    assert!(moved > 100, "only {moved} weights have moved after rewards");
    let optimized = run(&checked, &plain(), Way::Optimized);
    for threads in [1, 2, 3] {
        same(&optimized, &native_run(&checked, Precision::F64, threads), &format!("{threads} threads"));
    }
    // XLA has elementary functions of its own, and adds up what comes in one step in the order of edges.
    #[cfg(feature = "xla")]
    if crate::pjrt::cpu().is_some() {
        crate::events::close(&optimized, &run(&checked, &plain(), Way::Xla), 1e-9, "XLA");
    }
}

/// What a sender opens on receivers through synapses whose parameters stand in the list of edges, are the same in other lines, or differ by the distance:
/// each as if its parameters were those of a receptor of its own.
#[test]
fn connections_have_parameters_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let edges = "src,tgt,u,rec,left\n0,0,0.5,800,1\n0,1,0.1,130,0.5\n0,2,0.9,20,0\n0,2,0.3,50,0.25\n";
    std::fs::write(folder.path().join("edges.csv"), edges).unwrap();
    let times = (0..25).map(|k| format!("{} ms", 10 + 7 * k + k * k % 5)).collect::<Vec<_>>().join(", ");
    let text = |connections: &str, count: usize| {
        format!(
            "use std.plasticity.TsodyksMarkram
            {CELLS}
            cell Listener {{ state v: mV = 0 mV; v' = -(v + 0 Mohm * i_syn) / 1 ms }}
            network main {{
                population a: Relay
                population b: Listener[{count}]
                drive a via Kick from times({times}) {{ weight = 20 mV }}
                {connections}
            }}
            run {{ duration = 250 ms; dt = 0.1 ms; record b.v; record b.TsodyksMarkram.g }}"
        )
    };
    let of_edges = text(
        r#"connect a -> b via TsodyksMarkram {
                rule = edges("edges.csv"); weight = 2 nS; delay = 1 ms; tau_facil = 300 ms
                U = file("edges.csv", column = "u"); tau_rec = file("edges.csv", column = "rec") * 1 ms
                x = file("edges.csv", column = "left")
            }
            connect a -> b via TsodyksMarkram { rule = all_to_all; weight = 1 nS; delay = 2 ms }"#,
        3,
    );
    // One receiver for each connection, behind a synapse of the same equations that begins elsewhere.
    let library = include_str!("../../stdlib/plasticity.neuro");
    let model = &library[library.find("synapse TsodyksMarkram").unwrap()..];
    let model = &model[..model.find("\n}\n").unwrap() + 3];
    let begins = |number: usize, left: &str| {
        model.replace("TsodyksMarkram", &format!("From{number}")).replace("state x = 1", &format!("state x = {left}"))
    };
    let all = [("0.5", "800", "1"), ("0.1", "130", "0.5"), ("0.9", "20", "0"), ("0.3", "50", "0.25")];
    let mut apart = String::new();
    for (number, (u, rec, _)) in all.iter().enumerate() {
        apart += &format!(
            "population c{number}: Listener
            connect a -> c{number} via From{number}(U = {u}, tau_rec = {rec} ms, tau_facil = 300 ms) {{ rule = one_to_one; weight = 2 nS; delay = 1 ms }}\n"
        );
    }
    apart += "connect a -> b via TsodyksMarkram { rule = all_to_all; weight = 1 nS; delay = 2 ms }";
    let models: String = all.iter().enumerate().map(|(number, (.., left))| begins(number, left)).collect();
    let apart = text(&apart, 1).replace("network main", &format!("{models}\nnetwork main")).replace(
        "record b.TsodyksMarkram.g",
        "record b.TsodyksMarkram.g; record c0.From0.g; record c1.From1.g; record c2.From2.g; record c3.From3.g",
    );
    let expected = run(&checked(&apart), &plain(), Way::Native);
    let of = |name: &str| column(&expected, name, 0);
    let [rest, a, b, c, d] = ["b.TsodyksMarkram.g", "c0.From0.g", "c1.From1.g", "c2.From2.g", "c3.From3.g"].map(of);
    let sums: Vec<Vec<f64>> = [vec![a], vec![b], vec![c, d]]
        .iter()
        .map(|some| (0..rest.len()).map(|t| rest[t] + some.iter().map(|g| g[t]).sum::<f64>()).collect())
        .collect();
    for way in and_xla(&[Way::Plain, Way::Native]) {
        let result = run(&checked_in(folder.path(), &of_edges), &plain(), way);
        for (cell, sum) in sums.iter().enumerate() {
            let g = column(&result, "b.TsodyksMarkram.g", cell);
            let most = g.iter().zip(sum).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(most < 1e-12 && sum.iter().any(|g| *g > 0.5), "{way:?}: cell {cell}: {most}");
        }
    }
}

/// Parameters that are drawn are there before the first event, differ, stay, and are the same on every engine and with every number of threads; by the
/// distance they are what it says.
#[test]
fn parameters_of_connections_are_drawn() {
    let old = "rule = fixed_in_degree(n = 7); weight = 3 nS; delay ~ uniform(0.1 ms, 0.4 ms)";
    let new = format!("{old}; U ~ uniform(0.1, 0.9); tau_rec ~ uniform(10 ms, 300 ms); x ~ uniform(0, 1)");
    let stdp = "weight ~ uniform(0.2 nS, 0.9 nS); delay";
    let text = mixed(&[
        (old, &new),
        (
            stdp,
            &stdp.replace("delay", "tau_pre ~ uniform(5 ms, 40 ms); a_plus ~ uniform(0.1, 0.2); w_max = 2 nS; delay"),
        ),
        (
            "record i.e.TsodyksMarkram.x every 1 ms",
            "record i.e.TsodyksMarkram.{x, U} every 1 ms; record e.i.Stdp.tau_pre every 8 ms",
        ),
    ]);
    has_the_same_bits(&text);
    let result = native_run(&checked(&text), Precision::F64, 2);
    let drawn = series(&result, "i.e.TsodyksMarkram.U");
    let of_edge = |edge| (0..80).map(|t| drawn.values.get(t, edge)).collect::<Vec<f64>>();
    let all: Vec<f64> = (0..490).map(|edge| drawn.values.get(0, edge)).collect();
    assert!(all.iter().all(|u| (0.1..0.9).contains(u)), "{all:?}");
    let mean = all.iter().sum::<f64>() / 490.0;
    assert!((mean - 0.5).abs() < 4.0 * 0.8 / (12.0f64 * 490.0).sqrt(), "{mean}");
    assert!((0..490).all(|edge| of_edge(edge).iter().all(|u| *u == all[edge])));
    let text = format!(
        "use std.plasticity.Stdp
        {CELLS}
        cell Listener {{ state v: mV = 0 mV; v' = -(v + 0 Mohm * i_syn) / 1 ms; spike when v crosses 1 mV }}
        network main {{
            population a: Listener[8] {{ spacing = 50 um }}
            connect a -> a via Stdp {{
                rule = all_to_all; weight = 0.5 nS; delay = 1 ms; tau_pre = 10 ms + distance / (10 um/ms)
            }}
        }}
        run {{ duration = 1 ms; dt = 0.1 ms; record a.a.Stdp.tau_pre every 1 ms }}"
    );
    let result = run(&checked(&text), &plain(), Way::Native);
    let tau = series(&result, "a.a.Stdp.tau_pre");
    // From the others to the first one, the shorter way round.
    let expected = [5.0, 10.0, 15.0, 20.0, 15.0, 10.0, 5.0].map(|ms| 10.0 + ms);
    (0..7).for_each(|edge| close(tau.values.get(0, edge), expected[edge]));
}
