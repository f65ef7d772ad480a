"""Calcium that diffuses along a cylinder of two sections, in NEURON: in all of the cross-section, and in as much of it as a shell of 0.2 um has.

Needs a C++ compiler besides NEURON: the mechanism is compiled when the script runs. What flows in is constant, so that backward Euler is the step of an
exponential, too. (Where the diameter changes NEURON takes the mean of two cross-sections in place of two halves behind each other, and branches have no
node between them.)
"""
import math
import os
import pathlib
import subprocess
import sys
import tempfile

from common import store

DT = 0.1

SPREAD = """
NEURON { SUFFIX spread  RANGE first, inflow, depth }
UNITS { (mM) = (milli/liter) (um) = (micron) PI = (pi) (1) }
PARAMETER { D = 0.6 (um2/ms)  first = 1 (mM)  inflow = 0 (mM/ms)  depth = 1000 (um) }
ASSIGNED { diam (um)  across (um2) }
STATE { ca (mM) }
INITIAL {
    ca = first
    across = PI * diam * diam / 4
    if (depth < diam / 2) { across = PI * depth * (diam - depth) }
}
BREAKPOINT { SOLVE spreading METHOD sparse }
KINETIC spreading {
    COMPARTMENT across {ca}
    LONGITUDINAL_DIFFUSION D * across {ca}
    ~ ca << (inflow * across)
}
"""

SECTIONS = {"stem": (100, 2, 10), "branch": (60, 2, 4)}


def compute(depth):
    from neuron import h
    h.load_file("stdrun.hoc")
    sections = {}
    for name, (length, diam, count) in SECTIONS.items():
        section = sections[name] = h.Section(name=name)
        section.L, section.diam, section.nseg = length, diam, count
        section.insert("spread")
        if name != "stem":
            section.connect(sections["stem"](1))
        for segment in section:
            # As far as it is from the middle of the stem.
            way = abs(segment.x - 0.5) * length if name == "stem" else 50 + segment.x * length
            segment.spread.first = 1 + math.exp(-way / 20)
            segment.spread.inflow = 0.01 if name == "stem" else 0
            segment.spread.depth = depth
    h.dt, h.secondorder = DT, 0
    recorded = [h.Vector().record(segment.spread._ref_ca) for section in sections.values() for segment in section]
    h.finitialize(-65.0)
    for _ in range(500):
        h.fadvance()
    return [list(values)[::100] for values in recorded]


def main():
    # NEURON loads what is compiled in the folder that it starts in.
    if os.path.exists("spread.mod"):
        import neuron
        store("diffusion_neuron", {
            "what": "mM in each compartment of a stem and its branch, every 10 ms of 50 ms in steps of 0.1 ms",
            "neuron_version": neuron.__version__,
            "whole": compute(1000),
            "shell": compute(0.2),
        })
        return
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "spread.mod").write_text(SPREAD)
        command = os.path.join(os.path.dirname(sys.executable), "nrnivmodl")
        environment = {**os.environ, "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]}
        subprocess.run([command], cwd=folder, env=environment, check=True, capture_output=True)
        subprocess.run([sys.executable, os.path.abspath(__file__), *sys.argv[1:]], cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    main()
