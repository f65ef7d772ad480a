use super::*;
use crate::diag::{Diagnostics, render_human};
use crate::source::SourceMap;

const SAMPLES: [&str; 3] =
    [include_str!("samples/squid.neuro"), include_str!("samples/olive.neuro"), include_str!("samples/lif.neuro")];

fn messages(text: &str) -> String {
    let mut sources = SourceMap::default();
    let file = sources.add("model.neuro", ".", text);
    let mut diagnostics = Diagnostics::default();
    parse(file, text, &mut diagnostics);
    render_human(&sources, &diagnostics.sorted(), false)
}

#[test]
fn samples_parse() {
    for sample in SAMPLES {
        assert_eq!(messages(sample), "");
    }
}

/// Typical slips by name. Each message is reviewed in its snapshot.
const SLIPS: &[(&str, &str)] = &[
    (
        "missing brace of a gate",
        "channel Na {\n    gate m {\n        alpha = 1 /ms\n    gate h { inf = 1 }\n}\n\nchannel K {\n    param g = 1\n}\n",
    ),
    (
        "missing brace of a channel",
        "channel Na {\n    gate m { inf = 1; tau = 1 ms }\n\nchannel K {\n    param g = 1\n}\n",
    ),
    ("missing brace at the end", "run {\n    dt = 0.1 ms\n"),
    (
        "closing brace too many",
        "channel Na {\n    gate m { inf = 1 } }\n    gate h { inf = 1 }\n}\nrun { dt = 1 ms }\n",
    ),
    ("missing =", "channel Na { param gbar 120 mS/cm2 }"),
    ("missing = in a key", "run {\n    dt 0.1 ms\n    duration 5 ms\n}"),
    (":= for =", "channel Na { param gbar := 120 mS/cm2 }"),
    ("== for =", "run { dt == 0.1 ms }"),
    ("** for ^", "function f(x) = x**2"),
    ("a comma for ;", "run { dt = 0.1 ms, duration = 5 ms }"),
    (
        "symbols for words",
        "cell A { spike when v > 1 mV && u < 2 mV }\ncell B { spike when v > 1 mV || u < 2 mV }\ncell C { spike when !x }",
    ),
    ("an NMODL block", "PARAMETER {\n    gbar = 0.1\n}\n"),
    ("dv/dt", "cell A {\n    state v: mV = 0 mV\n    dv/dt = -v / 10 ms\n}"),
    ("# for a comment", "# my model\nrun {\n    dt = 0.1 ms # step\n    duration = 1 ms\n}"),
    ("single quotes", "network n { init io.v = load('v.npy') }"),
    ("unit in parentheses", "channel Leak { param erev = -65 (mV) }"),
    ("unit in brackets", "channel Leak { param erev = -65 [mV] }"),
    ("unclosed string", "network n { init io.v = load(\"v.npy) }"),
    ("unclosed comment", "channel A { param g = 1 }\n/* now the cell\ncell B { }\n"),
    ("unclosed parenthesis", "channel Na {\n    let a = exp(-(v + 1 mV) / 10 mV\n    let b = 2\n}"),
    ("closing parenthesis too many", "channel Na { let a = (1 + 2)) * 3 }"),
    ("missing operand", "channel Na {\n    let a = 1 +\n    let b = 2 *\n}"),
    ("missing value", "channel Na { let a = }"),
    (
        "two typos in one block",
        "channel Na {\n    parm gbar = 1\n    gate m { alpha == 1 /ms; beta = 2 /ms }\n    gate h { inf = 1 ** 2 }\n    let x = 5\n}",
    ),
    ("misspelt item", "chanel Na { param g = 1 }\ncell A { }"),
    ("a member where no keys are", "cell A {\n    cm = 1 uF/cm2\n}"),
    (
        "misspelt compartment",
        "cell A {\n    compartmnt soma {\n        cm = 1 uF/cm2\n        v_init = -65 mV\n    }\n    spike wen v > 0 mV\n}",
    ),
    ("an item in a block", "cell A {\n    channel Na { param g = 1 }\n    param x = 1\n}"),
    ("a member of another block", "cell A {\n    insert Na\n    gate m { inf = 1 }\n}"),
    ("reserved word as a name", "channel Na { param input = 3 }\nchannel cell { }"),
    ("else missing", "function f(x) = if x > 1 then 2"),
    ("if inside", "function f(x) = 1 + if x > 1 then 2 else 3"),
    ("elif", "function f(x) = if x > 1 then a elif x > 0 then b else c"),
    ("chained comparison", "function f(x) = if 0 < x < 1 then 2 else 3"),
    ("not inside", "function f(x) = a == not b"),
    ("arrow of couple", "cell A { couple soma -> dend: 1 mS/cm2 }"),
    ("arrow of connect", "network n { connect io.dend -> io.dend via Gap }"),
    ("unit with spaces", "channel Na { param g: mS / cm2 = 3 }"),
    ("point without digits", "channel Na { param g = 1. }"),
    ("grouped digits", "channel Na { param g = 1_000 }"),
    ("plus sign", "channel Na { param g = +1 }"),
    ("unicode", "channel Na { param g = −1 }\nchannel K { param α = 1 }\nchannel L { param a = 2 × 3 }"),
    ("key outside", "dt = 0.1 ms\nduration = 100 ms\ncell A { }"),
    ("python", "def f(x):\n    return x\n"),
    ("four sizes", "network n { population a: A[1, 2, 3, 4] }"),
    ("huge powers", "channel Na { gate m^99999999999 { inf = 1 m^1000 } }"),
    ("junk", "@@ $ 1 ) }"),
    ("junk behind", "cell A { } ) cell B { }"),
    ("bad record", "run {\n    record v each 1 ms\n    record spikes squid\n}"),
    ("bad use", "use std.channels.\ncell A { }"),
];

#[test]
fn slips() {
    let mut all = String::new();
    for (name, text) in SLIPS {
        let found = messages(text);
        assert_ne!(found, "", "{name} goes unnoticed");
        all.push_str(&format!("==== {name}\n{text}\n----\n{found}\n"));
    }
    insta::assert_snapshot!(all);
}
