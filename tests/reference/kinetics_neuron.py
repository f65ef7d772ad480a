"""Kinetic schemes in NEURON, by `METHOD sparse` (backward Euler): the channels of a squid axon as schemes of 8 and of 5 states, in a cell with a dendrite.

Needs a C++ compiler besides NEURON: the mechanisms are compiled when the script runs. They begin at rest by formula, because `STEADYSTATE sparse` is off by
4e-9 of a state, and are two, because the second `KINETIC` of one mechanism makes the first step jump.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

from common import store

DT = 0.025

SODIUM = """
NEURON { SUFFIX sodium  NONSPECIFIC_CURRENT i }
UNITS { (mV) = (millivolt) (mA) = (milliamp) (S) = (siemens) }
PARAMETER { gbar = 0.12 (S/cm2) gl = 0.0003 (S/cm2) }
ASSIGNED { v (mV) i (mA/cm2) am (/ms) bm (/ms) ah (/ms) bh (/ms) }
STATE { c0 c1 c2 o i0 i1 i2 i3 }
INITIAL {
    LOCAL m, h
    rates(v)
    m = am / (am + bm)
    h = ah / (ah + bh)
    c0 = (1 - m)^3 * h
    c1 = 3 * m * (1 - m)^2 * h
    c2 = 3 * m^2 * (1 - m) * h
    o = m^3 * h
    i0 = (1 - m)^3 * (1 - h)
    i1 = 3 * m * (1 - m)^2 * (1 - h)
    i2 = 3 * m^2 * (1 - m) * (1 - h)
    i3 = m^3 * (1 - h)
}
BREAKPOINT {
    SOLVE kin METHOD sparse
    i = gbar * o * (v - 50) + gl * (v + 54.4)
}
KINETIC kin {
    rates(v)
    ~ c0 <-> c1 (3 * am, bm)
    ~ c1 <-> c2 (2 * am, 2 * bm)
    ~ c2 <-> o (am, 3 * bm)
    ~ i0 <-> i1 (3 * am, bm)
    ~ i1 <-> i2 (2 * am, 2 * bm)
    ~ i2 <-> i3 (am, 3 * bm)
    ~ i0 <-> c0 (ah, bh)
    ~ i1 <-> c1 (ah, bh)
    ~ i2 <-> c2 (ah, bh)
    ~ i3 <-> o (ah, bh)
    CONSERVE c0 + c1 + c2 + o + i0 + i1 + i2 + i3 = 1
}
FUNCTION linoid(x) { if (fabs(x) < 1e-6) { linoid = 1 + x / 2 } else { linoid = x / (1 - exp(-x)) } }
PROCEDURE rates(v (mV)) {
    am = linoid((v + 40) / 10)
    bm = 4 * exp(-(v + 65) / 18)
    ah = 0.07 * exp(-(v + 65) / 20)
    bh = 1 / (1 + exp(-(v + 35) / 10))
}
"""

POTASSIUM = """
NEURON { SUFFIX potassium  NONSPECIFIC_CURRENT i }
UNITS { (mV) = (millivolt) (mA) = (milliamp) (S) = (siemens) }
PARAMETER { gbar = 0.036 (S/cm2) }
ASSIGNED { v (mV) i (mA/cm2) an (/ms) bn (/ms) }
STATE { n0 n1 n2 n3 n4 }
INITIAL {
    LOCAL n
    rates(v)
    n = an / (an + bn)
    n0 = (1 - n)^4
    n1 = 4 * n * (1 - n)^3
    n2 = 6 * n^2 * (1 - n)^2
    n3 = 4 * n^3 * (1 - n)
    n4 = n^4
}
BREAKPOINT {
    SOLVE kin METHOD sparse
    i = gbar * n4 * (v + 77)
}
KINETIC kin {
    rates(v)
    ~ n0 <-> n1 (4 * an, bn)
    ~ n1 <-> n2 (3 * an, 2 * bn)
    ~ n2 <-> n3 (2 * an, 3 * bn)
    ~ n3 <-> n4 (an, 4 * bn)
    CONSERVE n0 + n1 + n2 + n3 + n4 = 1
}
FUNCTION linoid(x) { if (fabs(x) < 1e-6) { linoid = 1 + x / 2 } else { linoid = x / (1 - exp(-x)) } }
PROCEDURE rates(v (mV)) {
    an = 0.1 * linoid((v + 55) / 10)
    bn = 0.125 * exp(-(v + 65) / 80)
}
"""


def compute():
    from neuron import h
    h.load_file("stdrun.hoc")
    soma, dend = h.Section(name="soma"), h.Section(name="dend")
    soma.L, soma.diam, soma.nseg = 20, 20, 1
    dend.L, dend.diam, dend.nseg = 200, 2, 4
    dend.connect(soma(1))
    for section in (soma, dend):
        section.Ra, section.cm = 100, 1
        section.insert("sodium")
        section.insert("potassium")
    clamp = h.IClamp(soma(0.5))
    clamp.delay, clamp.dur, clamp.amp = 2.0, 30.0, 0.4
    h.secondorder, h.dt = 0, DT
    recorded = {
        "soma_mV": soma(0.5)._ref_v,
        "dend_mV": dend(0.875)._ref_v,
        "open": soma(0.5).sodium._ref_o,
        "closed": soma(0.5).sodium._ref_c0,
    }
    recorded = {name: h.Vector().record(of) for name, of in recorded.items()}
    h.finitialize(-65.0)
    steps = round(20.0 / DT)
    for _ in range(steps):
        h.fadvance()
    assert all(len(values) == steps + 1 for values in recorded.values())
    return {name: list(values)[::4] for name, values in recorded.items()}


def main():
    # NEURON loads what is compiled in the folder that it starts in.
    if os.path.exists("sodium.mod"):
        import neuron
        store("kinetics_neuron", {
            "what": "schemes of 8 and 5 states by METHOD sparse in a soma with a dendrite, fixed step of 0.025 ms, secondorder 0; every fourth sample",
            "neuron_version": neuron.__version__,
            **compute(),
        })
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, text in [("sodium", SODIUM), ("potassium", POTASSIUM)]:
            pathlib.Path(folder, f"{name}.mod").write_text(text)
        command = os.path.join(os.path.dirname(sys.executable), "nrnivmodl")
        environment = {**os.environ, "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]}
        subprocess.run([command], cwd=folder, env=environment, check=True, capture_output=True)
        subprocess.run([sys.executable, os.path.abspath(__file__), *sys.argv[1:]], cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    main()
