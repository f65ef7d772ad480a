"""A pool that two calcium channels fill, one of them closed by it, and a potassium channel that it opens, in NEURON: a soma with a dendrite.

Needs a C++ compiler besides NEURON: the mechanisms are compiled when the script runs. The reversal potential of the second channel is that of its own
formula, since NEURON's constants are not asked for here.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

from common import store

DT = 0.025

FIRST = """
NEURON { SUFFIX first  USEION ca WRITE ica  RANGE gbar }
UNITS { (mV) = (millivolt) (mA) = (milliamp) (S) = (siemens) }
PARAMETER { gbar = 3e-5 (S/cm2) }
ASSIGNED { v (mV) ica (mA/cm2) }
STATE { q }
INITIAL { q = qinf(v) }
BREAKPOINT {
    SOLVE states METHOD cnexp
    ica = gbar * q * q * (v - 120)
}
DERIVATIVE states { q' = (qinf(v) - q) / 1 (ms) }
FUNCTION qinf(v (mV)) { qinf = 1 / (1 + exp(-(v + 20) / 5)) }
"""

SECOND = """
NEURON { SUFFIX second  USEION ca READ cai WRITE ica  RANGE gbar, log_of }
UNITS { (mV) = (millivolt) (mA) = (milliamp) (S) = (siemens) (mM) = (milli/liter) }
PARAMETER { gbar = 1e-5 (S/cm2)  log_of = 1 }
ASSIGNED { v (mV) cai (mM) ica (mA/cm2) erev (mV) }
STATE { m h }
INITIAL {
    m = minf(v)
    h = hinf(cai)
}
BREAKPOINT {
    SOLVE states METHOD cnexp
    if (log_of) { erev = 13 * log(2 / cai) } else { erev = 130 }
    ica = gbar * m * h * (v - erev)
}
DERIVATIVE states {
    m' = (minf(v) - m) / 3 (ms)
    h' = (hinf(cai) - h) / 15 (ms)
}
FUNCTION minf(v (mV)) { minf = 1 / (1 + exp(-(v + 35) / 7)) }
FUNCTION hinf(cai (mM)) { hinf = 1 / (1 + cai / 5e-4) }
"""

POOL = """
NEURON { SUFFIX pool  USEION ca READ ica WRITE cai }
UNITS { (mA) = (milliamp) (mM) = (milli/liter) (um) = (micron) }
ASSIGNED { ica (mA/cm2) }
STATE { cai (mM) }
INITIAL { cai = 5e-5 }
BREAKPOINT { SOLVE states METHOD cnexp }
DERIVATIVE states { cai' = -(10000) * ica / (2 * 96485 (coulomb) * 0.5 (um)) - (cai - 5e-5) / 40 (ms) }
"""

# The first in the alphabet, so that only NEURON's own order lets it read what the pool has come to.
OPENED = """
NEURON { SUFFIX aopened  USEION ca READ cai  NONSPECIFIC_CURRENT i }
UNITS { (mV) = (millivolt) (mA) = (milliamp) (S) = (siemens) (mM) = (milli/liter) }
PARAMETER { gbar = 1e-3 (S/cm2) }
ASSIGNED { v (mV) cai (mM) i (mA/cm2) }
STATE { c }
INITIAL { c = cai / (cai + 1e-3) }
BREAKPOINT {
    SOLVE states METHOD cnexp
    i = gbar * c * (v + 80)
}
DERIVATIVE states { c' = 50 (/ms/mM) * cai * (1 - c) - 0.05 (/ms) * c }
"""

MECHANISMS = {"first": FIRST, "second": SECOND, "pool": POOL, "aopened": OPENED}


def compute(secondorder, log_of):
    from neuron import h
    h.load_file("stdrun.hoc")
    soma, dend = h.Section(name="soma"), h.Section(name="dend")
    soma.L, soma.diam, soma.nseg = 20, 20, 1
    dend.L, dend.diam, dend.nseg = 200, 2, 4
    dend.connect(soma(1))
    for section in (soma, dend):
        section.Ra, section.cm = 100, 1
        section.insert("hh")
        section.ena, section.ek = 50, -77
        for mechanism in MECHANISMS:
            section.insert(mechanism)
        for segment in section:
            segment.hh.el = -54.4
            segment.second.log_of = log_of
    clamp = h.IClamp(soma(0.5))
    clamp.delay, clamp.dur, clamp.amp = 2.0, 100.0, 1.0
    h.celsius, h.usetable_hh, h.secondorder, h.dt = 6.3, 0, secondorder, DT
    recorded = {
        "soma_mV": soma(0.5)._ref_v,
        "dend_mV": dend(0.875)._ref_v,
        "soma_mM": soma(0.5)._ref_cai,
        "dend_mM": dend(0.875)._ref_cai,
    }
    recorded = {name: h.Vector().record(of) for name, of in recorded.items()}
    spikes = h.Vector()
    netcon = h.NetCon(soma(0.5)._ref_v, None, sec=soma)
    netcon.threshold = -10.0
    netcon.record(spikes)
    h.finitialize(-65.0)
    steps = round(60.0 / DT)
    for _ in range(steps):
        h.fadvance()
    assert all(len(values) == steps + 1 for values in recorded.values())
    return {**{name: list(values)[::8] for name, values in recorded.items()}, "spikes_ms": list(spikes)}


def main():
    # NEURON loads what is compiled in the folder that it starts in.
    if os.path.exists("pool.mod"):
        import neuron
        store("pools_neuron", {
            "what": "calcium channels, a pool and a channel that it opens in a soma with a dendrite, fixed step of 0.025 ms; every eighth sample",
            "neuron_version": neuron.__version__,
            "first_order": compute(0, 1),
            "second_order": compute(2, 0),
        })
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, text in MECHANISMS.items():
            pathlib.Path(folder, f"{name}.mod").write_text(text)
        command = os.path.join(os.path.dirname(sys.executable), "nrnivmodl")
        environment = {**os.environ, "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]}
        subprocess.run([command], cwd=folder, env=environment, check=True, capture_output=True)
        subprocess.run([sys.executable, os.path.abspath(__file__), *sys.argv[1:]], cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    main()
