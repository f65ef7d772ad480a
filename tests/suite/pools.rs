//! Tests of: pools. Concentrations against NEURON, the order in which a step takes them, charge.

use crate::cables::{apart, numbers, order, ran, samples};
use crate::models::{Way, root};
use serde_json::Value;

/// The cell of `tests/reference/pools_neuron.py`, with a reversal potential of its second channel, a stimulus and lines of `run`.
fn cell(erev: &str, stimulus: &str, run: &str) -> String {
    format!(
        "use std.channels.hh.{{K, Leak, Na}}
        channel First {{
            param gbar = 0.03 mS/cm2
            param erev = 120 mV
            gate q^2 {{ inf = 1 / (1 + exp(-(v + 20 mV) / 5 mV)); tau = 1 ms }}
        }}
        channel Second {{
            param gbar = 0.01 mS/cm2
            reads Ca: mM
            gate m {{ inf = 1 / (1 + exp(-(v + 35 mV) / 7 mV)); tau = 3 ms }}
            gate h {{ inf = 1 / (1 + Ca / 0.5 uM); tau = 15 ms }}
            let erev = {erev}
            current i = gbar * m * h * (v - erev)
        }}
        channel Opened {{
            param gbar = 1 mS/cm2
            param erev = -80 mV
            reads Ca: mM
            gate c {{ alpha = 50 /ms/mM * Ca; beta = 0.05 /ms }}
        }}
        cell Cable {{
            section soma {{ length = 20 um; diam = 20 um; compartments = 1 }}
            section dend {{ from soma(1); length = 200 um; diam = 2 um; compartments = 4 }}
            region all {{
                ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV
                pool Ca: mM {{
                    init = 5e-5 mM
                    Ca' = -(First.i + Second.i) / (2 * 96485 C/mol * 0.5 um) - (Ca - 5e-5 mM) / 40 ms
                }}
                insert Na, K, Leak(erev = -54.4 mV), First, Second, Opened
            }}
            spike when soma(0.5).v crosses -10 mV
        }}
        network main {{
            population c: Cable
            input step: {stimulus} -> c.soma(0.5)
        }}
        run {{
            celsius = 6.3 degC
            {run}
            record spikes of c
        }}"
    )
}

const NERNST: &str = "13 mV * ln(2 mM / Ca)";

/// Voltages and concentrations step for step, and the same spikes: pools take the currents of the step's beginning (or, of order 2, of its middle), gates the
/// new concentrations. With order 2 the reversal potential is held at one value, because NEURON takes that of the step's beginning there.
#[test]
fn pools_are_those_of_neuron() {
    let text = std::fs::read_to_string(root().join("tests/reference/pools_neuron.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let run = |method: &str| {
        format!(
            "duration = 60 ms; dt = 0.025 ms; method = {method}\n record c.{{soma(0.5), dend(0.875)}}.{{v, Ca}} every 0.2 ms"
        )
    };
    let stimulus = "pulse(delay = 2 ms, duration = 100 ms, amplitude = 1 nA)";
    for (method, order, erev) in [("cnexp", "first_order", NERNST), ("crank_nicolson", "second_order", "130 mV")] {
        let text = cell(erev, stimulus, &run(method));
        for way in [Way::Plain, Way::Optimized, Way::Native] {
            let result = ran(&text, way);
            let near = |name: &str, at: &str, within: f64| {
                let error = apart(&samples(&result, name), &numbers(&all[order][at]));
                assert!(error < within, "{method}, {name}, {way:?}: {error:e}");
            };
            near("c.soma(0.5).v", "soma_mV", 1e-8);
            near("c.dend(0.875).v", "dend_mV", 1e-8);
            near("c.soma(0.5).Ca", "soma_mM", 1e-13);
            near("c.dend(0.875).Ca", "dend_mM", 1e-13);
            let spikes = numbers(&all[order]["spikes_ms"]);
            assert_eq!(spikes.len(), 6);
            assert!(apart(&result.spikes[0].t, &spikes) < 1e-6, "{:?} {spikes:?}", result.spikes[0].t);
        }
    }
}

/// With pools that open and close channels and set a reversal potential, during a spike.
#[test]
fn pools_keep_the_order_of_the_method() {
    for (method, expected) in [("cnexp", 1.0), ("crank_nicolson", 2.0)] {
        let at = |dt: f64| {
            let run =
                format!("duration = 8 ms; dt = {dt} ms; method = {method}\n record c.soma(0.5).{{v, Ca}} every 8 ms");
            // From rest, without a jump.
            let stimulus = "sine(delay = 0 ms, duration = 100 ms, amplitude = 0.5 nA, period = 17 ms)";
            let result = ran(&cell(NERNST, stimulus, &run), Way::Optimized);
            ["v", "Ca"].map(|quantity| samples(&result, &format!("c.soma(0.5).{quantity}"))[1])
        };
        let [coarse, middle, fine] = [0.01, 0.005, 0.0025].map(at);
        for quantity in 0..2 {
            let found = order(coarse[quantity], middle[quantity], fine[quantity], 2.0);
            assert!((found - expected).abs() < 0.1, "{method}, {quantity}: {found}");
        }
    }
}

const POOL: &str = "pool Ca: mM { init = 5e-5 mM; Ca' = -CaL.i / (2 * 96485 C/mol * 0.2 um) - (Ca - 5e-5 mM) / 20 ms }";
const WITH_CALCIUM: &str = "
use std.channels.hh.{K, Leak, Na}
use std.ions.{nernst}
channel CaL {
    param gbar = 0.5 mS/cm2
    reads Ca: mM
    let erev = nernst(2, Ca, 2 mM)
    gate m^2 { inf = 1 / (1 + exp(-(v + 20 mV) / 6 mV)); tau = 1.5 ms }
    current i = gbar * m^2 * (v - erev)
}
channel SK {
    param gbar = 2 mS/cm2
    param erev = -80 mV
    reads Ca: mM
    gate w { inf = Ca^2 / (Ca^2 + (0.5 uM)^2); tau = 5 ms }
}
";

/// A compartment of a cable is what a compartment of another cell is.
#[test]
fn a_pool_in_a_region_is_that_of_a_compartment() {
    let text = |method: &str| {
        format!(
            "{WITH_CALCIUM}
        cell Point {{ compartment soma {{ cm = 1 uF/cm2; v_init = -65 mV; {POOL} insert Na, K, Leak, CaL, SK }} }}
        cell Cable {{
            section soma {{ length = 20 um; diam = 20 um; compartments = 1 }}
            region soma {{ ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; {POOL} insert Na, K, Leak, CaL, SK }}
        }}
        network main {{
            population p: Point
            population c: Cable
            input one: 10 uA/cm2 -> p.soma
            input two: 10 uA/cm2 -> c.soma(0.5)
        }}
        run {{
            duration = 60 ms; dt = 0.025 ms; method = {method}; celsius = 6.3 degC
            record p.soma.{{v, Ca, SK.w, CaL.i}} every 0.1 ms
            record c.soma(0.5).{{v, Ca, SK.w, CaL.i}} every 0.1 ms
        }}"
        )
    };
    for (method, way) in ["cnexp", "crank_nicolson"]
        .into_iter()
        .flat_map(|method| [Way::Plain, Way::Optimized, Way::Reread, Way::Native].map(|way| (method, way)))
    {
        let result = ran(&text(method), way);
        assert!(samples(&result, "p.soma.v").iter().any(|&v| v > 0.0), "it spikes");
        for quantity in ["v", "Ca", "SK.w", "CaL.i"] {
            let point = samples(&result, &format!("p.soma.{quantity}"));
            let cable = samples(&result, &format!("c.soma(0.5).{quantity}"));
            let largest = point.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            let error = apart(&point, &cable) / largest;
            assert!(error < 1e-11, "{quantity}, {method}, {way:?}: {error:e}");
        }
    }
}

/// Charge that flows in through the calcium channels is what the pools take up, in every compartment.
#[test]
fn pools_take_up_what_flows_in() {
    let text = format!(
        "{WITH_CALCIUM}
        cell Cable {{
            section soma {{ length = 20 um; diam = 20 um; compartments = 1 }}
            section dend {{ from soma(1); length = 300 um; diam = 3 um .. 1 um; compartments = 9 }}
            region all {{ ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV }}
            region soma {{ insert Na, K, Leak }}
            region dend {{
                pool Ca: mM {{ init = 5e-5 mM; Ca' = -CaL.i / (2 * 96485 C/mol * 0.2 um) }}
                insert CaL(gbar = 0.05 mS/cm2), SK, Leak
            }}
        }}
        network main {{
            population c: Cable
            input up: 0.6 nA -> c.soma(0.5)
        }}
        run {{
            duration = 20 ms; dt = 0.0005 ms; method = cnexp; celsius = 6.3 degC
            record c.{{dend(0.05), dend(0.5), dend(1)}}.{{Ca, CaL.i}} every 0.0005 ms
        }}"
    );
    let result = ran(&text, Way::Native);
    let mut taken = Vec::new();
    for place in ["dend(0.05)", "dend(0.5)", "dend(1)"] {
        let ca = samples(&result, &format!("c.{place}.Ca"));
        let i = samples(&result, &format!("c.{place}.CaL.i"));
        // uA/cm2 ms / (C/mol um) is 10 mM.
        let charge: f64 = i.windows(2).map(|w| (w[0] + w[1]) / 2.0 * 0.0005).sum();
        let expected = -charge / (2.0 * 96485.0 * 0.2) * 10.0;
        let found = ca[ca.len() - 1] - ca[0];
        assert!((found / expected - 1.0).abs() < 2e-3, "{place}: {found} {expected}");
        taken.push(found);
    }
    assert!(taken[0] > 1e-4 && (taken[0] - taken[2]).abs() > 1e-6, "{taken:?}");
}
