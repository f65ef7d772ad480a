"""Run branched cells (`cables.neuro`: 64 compartments with the channels of the squid axon) in neuroc, NEURON, CoreNEURON and Arbor
alternately, on one core, and print a markdown table.

    python cables.py [--neuroc PATH/TO/neuroc] [--python NAME=PATH] [--only neuroc,neuron,coreneuron,arbor]
                     [--cells 256] [--branch 9] [--ms 100] [--rounds 5]

All have the same sections, compartments, channels without tables, step and current. Counted are compartments times steps, over the time that
the run takes, without set-up. Ratios are neuroc / tool inside a round. Exit code 1 if a contestant failed or fires at another rate.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from compare import alternate, interpreters, pin, table

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DT, CELSIUS, STIM_NA = 0.025, 6.3, 1.0
# name, parent, length, diam in um
SECTIONS = [("soma", None, 20, 20), ("a", "soma", 200, 2), ("b", "a", 200, 1.5), ("c", "a", 200, 1.2),
            ("d", "b", 200, 1), ("e", "b", 200, 1), ("f", "c", 200, 1), ("g", "c", 200, 1)]
TOOLS = {"neuroc": ["f64", "f32"], "arbor": ["f64"], "coreneuron": ["f64"], "neuron": ["f64"]}
LABELS = {"neuroc": "neuroc", "arbor": "Arbor", "coreneuron": "CoreNEURON", "neuron": "NEURON"}


def compartments(a):
    return 1 + a.branch * (len(SECTIONS) - 1)


def told(a, version, seconds, spikes, setup):
    steps = round(a.ms / DT)
    print(json.dumps({"version": version, "cell_steps_per_s": a.cells * compartments(a) * steps / seconds,
                      "setup_s": setup, "spikes": spikes}))


def neuroc(a):
    import numpy
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder, "cables.neuro")
        text = (HERE / "cables.neuro").read_text()
        model.write_text(text.replace("compartments = 9 ", f"compartments = {a.branch} "))
        command = [a.neuroc, "run", str(model), "--engine", "native", "--threads", "1", "--json",
                   "--precision", a.precision, "--set", f"n={a.cells}", "--duration", f"{a.ms}ms",
                   "-o", os.path.join(folder, "out.npz")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        spikes = len(numpy.load(command[-1])["cells.spikes.t"])
    said = json.loads(done.stdout)
    told(a, "", said["run_s"], spikes, said["compile_s"])


def neuron(a, core=False):
    os.environ.setdefault("NEURON_MODULE_OPTIONS", "-nogui")
    import neuron as package
    from neuron import h
    if core:
        from neuron import coreneuron
    begin = time.perf_counter()
    pc = h.ParallelContext()
    kept, recorded = [], []
    for gid in range(a.cells):
        cell = {}
        for name, parent, length, diam in SECTIONS:
            s = cell[name] = h.Section(name=f"{name}{gid}")
            s.L, s.diam, s.nseg, s.Ra, s.cm = length, diam, 1 if parent is None else a.branch, 100, 1
            if parent:
                s.connect(cell[parent](1))
            s.insert("hh")
            s.ena, s.ek = 50, -77
            for segment in s:
                segment.hh.gl, segment.hh.el = 0.0003, -54.4
        clamp = h.IClamp(cell["soma"](0.5))
        clamp.delay, clamp.dur, clamp.amp = 1, 1000, STIM_NA
        pc.set_gid2node(gid, pc.id())
        source = h.NetCon(cell["soma"](0.5)._ref_v, None, sec=cell["soma"])
        source.threshold = -10
        pc.cell(gid, source)
        kept.append((cell, clamp, source))
    times, gids = h.Vector(), h.Vector()
    pc.spike_record(-1, times, gids)
    h.celsius, h.dt, h.usetable_hh = CELSIUS, DT, 0
    cvode = h.CVode()
    cvode.active(0)
    if core:
        cvode.cache_efficient(1)
        coreneuron.enable, coreneuron.verbose = True, 0
    pc.set_maxstep(10)
    h.finitialize(-65)
    setup = time.perf_counter() - begin
    begin = time.perf_counter()
    pc.psolve(a.ms)
    told(a, package.__version__, time.perf_counter() - begin, len(times), setup)


def arbor(a):
    import arbor as A
    from arbor import units as U
    begin = time.perf_counter()
    tree, ends = A.segment_tree(), {}
    for name, parent, length, diam in SECTIONS:
        start = 0.0 if parent is None else ends[parent][1]
        at = A.mnpos if parent is None else ends[parent][0]
        points = [A.mpoint(x, 0, 0, diam / 2) for x in (start, start + length)]
        ends[name] = (tree.append(at, *points, tag=1 if parent is None else 3), start + length)

    class Recipe(A.recipe):
        def __init__(self):
            A.recipe.__init__(self)
            self.properties = A.neuron_cable_properties()
            self.properties.catalogue = A.default_catalogue()
            self.properties.set_property(tempK=(CELSIUS + 273.15) * U.Kelvin, cm=0.01 * U.F / U.m2, rL=100 * U.Ohm * U.cm,
                                         Vm=-65 * U.mV)
            self.properties.set_ion("na", rev_pot=50 * U.mV)
            self.properties.set_ion("k", rev_pot=-77 * U.mV)
            hh = A.density("hh", {"gnabar": 0.12, "gkbar": 0.036, "gl": 0.0003, "el": -54.4})
            clamp = A.i_clamp(1 * U.ms, 1000 * U.ms, STIM_NA * U.nA)
            labels = A.label_dict({"soma": "(tag 1)", "dend": "(tag 3)"})
            decor = A.decor().paint("(all)", hh).place('(on-components 0.5 (region "soma"))', clamp)
            policy = A.cv_policy_single("(tag 1)") | A.cv_policy_max_extent((200 / a.branch + 1e-6) * U.um, "(tag 3)")
            self.cell = A.cable_cell(tree, decor, labels, policy)

        def num_cells(self):
            return a.cells

        def cell_kind(self, gid):
            return A.cell_kind.cable

        def global_properties(self, kind):
            return self.properties

        def cell_description(self, gid):
            return self.cell

        def probes(self, gid):
            return [A.cable_probe_membrane_voltage('(on-components 0.5 (region "soma"))', "v")] if gid == 0 else []

    recipe, context = Recipe(), A.context(threads=1)
    hint = A.partition_hint()
    hint.cpu_group_size = a.cells
    simulation = A.simulation(recipe, context, A.partition_load_balance(recipe, context, {A.cell_kind.cable: hint}))
    recorded = simulation.sample((0, "v"), A.regular_schedule(0.1 * U.ms))
    setup = time.perf_counter() - begin
    begin = time.perf_counter()
    simulation.run(a.ms * U.ms, DT * U.ms)
    seconds = time.perf_counter() - begin
    v = simulation.samples(recorded)[0][0][:, 1]
    # All cells do the same.
    spikes = a.cells * int(((v[:-1] <= -10) & (v[1:] > -10)).sum())
    told(a, A.__version__, seconds, spikes, setup)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--neuroc", default=str(ROOT / "target/release/neuroc"))
    ap.add_argument("--python", action="append", default=[], metavar="[NAME=]PATH")
    ap.add_argument("--only", default=",".join(TOOLS))
    ap.add_argument("--cells", type=int, default=256)
    ap.add_argument("--branch", type=int, default=9, help="compartments of each of the seven branches")
    ap.add_argument("--ms", type=float, default=100.0)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--core", type=int, default=None)
    ap.add_argument("--tool", choices=TOOLS, help="be one contestant")
    ap.add_argument("--precision", choices=("f64", "f32"), default="f64")
    a = ap.parse_args()
    pin(a)
    if a.tool:
        try:
            return {"neuroc": neuroc, "arbor": arbor, "neuron": neuron,
                    "coreneuron": lambda a: neuron(a, core=True)}[a.tool](a)
        except ImportError as error:
            print(json.dumps({"error": "not installed", "detail": str(error)}))
            return 1
    default, by_name = interpreters(a)
    contestants = []
    for tool in a.only.split(","):
        python = by_name.get("neuron" if tool == "coreneuron" else tool, default)
        for precision in TOOLS[tool]:
            command = [python, str(HERE / "cables.py"), "--tool", tool, "--precision", precision, "--neuroc", a.neuroc,
                       "--cells", str(a.cells), "--branch", str(a.branch), "--ms", str(a.ms)]
            contestants.append((LABELS[tool], precision, command))
    results = alternate(contestants, a.rounds)
    print(f"{a.cells} cells of {compartments(a)} compartments, {a.ms:g} ms in steps of {DT} ms\n")
    fine = table(contestants, results)
    rates = [rows[0]["spikes"] for rows in results if rows and "error" not in rows[0]]
    same = all(abs(rate - rates[0]) <= 0.05 * rates[0] for rate in rates) and rates and rates[0] > 0
    print(f"\nspikes: {', '.join(map(str, rates))}")
    return 0 if fine and same else 1


if __name__ == "__main__":
    sys.exit(main())
