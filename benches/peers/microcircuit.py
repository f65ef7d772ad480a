"""Run the cortical microcircuit of Potjans and Diesmann (2014) in neuroc and in NEST and print rates and times as a markdown table.

    python microcircuit.py [--neuroc PATH/TO/neuroc] [--nest PYTHON] [--scale 0.1] [--seconds 10] [--threads 1] [--precision f32]

neuroc runs examples/microcircuit.neuro. `--nest` is a Python that has NEST; without it only neuroc runs. NEST builds the same
circuit from the tables below, which are not read from that file. `--scale 1` is the whole circuit; smaller ones have fewer
cells, and fewer and stronger synapses on each, and a current for the mean that these lack. Rates are those after the first
tenth of a second. Every run prints one line of JSON first.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ["e23", "i23", "e4", "i4", "e5", "i5", "e6", "i6"]
CELLS = [20683, 5834, 21915, 5479, 4850, 1065, 14395, 2948]
EXTERNAL = [1600, 1500, 2100, 1900, 2000, 1900, 2900, 2100]
START = [(-68.28, 5.36), (-63.16, 4.57), (-63.33, 4.74), (-63.45, 4.94), (-63.11, 4.94), (-61.66, 4.55), (-66.72, 5.46), (-61.43, 4.48)]
CHANCE = [                                          # row: target, column: source
    [.1009, .1689, .0437, .0818, .0323, 0, .0076, 0], [.1346, .1371, .0316, .0515, .0755, 0, .0042, 0],
    [.0077, .0059, .0497, .1350, .0067, .0003, .0453, 0], [.0691, .0029, .0794, .1597, .0033, 0, .1057, 0],
    [.1004, .0622, .0505, .0057, .0831, .3726, .0204, 0], [.0548, .0269, .0257, .0022, .0600, .3158, .0086, 0],
    [.0156, .0066, .0211, .0166, .0572, .0197, .0396, .2252], [.0364, .0010, .0034, .0005, .0277, .0080, .0658, .1443]]
PUBLISHED = [.903, 2.965, 4.414, 5.876, 7.569, 8.633, 1.105, 7.829]   # spikes/s, NEST's example, scale 1
W, G, TAU_SYN, BACKGROUND = 87.81, -4.0, 0.5, 8.0   # pA, 1, ms, spikes/s
SKIP = 100.0                                        # ms


def count(p, pre, post):
    return round(math.log(1 - p) / math.log(1 - 1 / (pre * post)))


def weight(target, source):
    return (G if source % 2 else 2.0 if (target, source) == (0, 2) else 1.0) * W


def run_nest(a):
    import nest
    nest.verbosity = nest.VerbosityLevel.ERROR
    begin = time.perf_counter()
    nest.ResetKernel()
    nest.SetKernelStatus({"resolution": 0.1, "local_num_threads": a.threads, "rng_seed": a.seed + 1, "overwrite_files": True})
    k = a.scale
    cells = [round(n * k) for n in CELLS]
    lif = {"C_m": 250.0, "tau_m": 10.0, "E_L": -65.0, "V_th": -50.0, "V_reset": -65.0, "t_ref": 2.0, "tau_syn_ex": TAU_SYN, "tau_syn_in": TAU_SYN}
    groups, recorders = [], []
    for i, n in enumerate(cells):
        mean = W * EXTERNAL[i] * BACKGROUND
        for j in range(8):
            if CHANCE[i][j]:
                mean += weight(i, j) * count(CHANCE[i][j], CELLS[j], CELLS[i]) / CELLS[i] * PUBLISHED[j]
        group = nest.Create("iaf_psc_exp", n, params=lif | {"I_e": (1 - math.sqrt(k)) * TAU_SYN * 1e-3 * mean})
        group.V_m = nest.random.normal(mean=START[i][0], std=START[i][1])
        drive = nest.Create("poisson_generator", params={"rate": EXTERNAL[i] * BACKGROUND * k})
        nest.Connect(drive, group, syn_spec={"weight": W / math.sqrt(k), "delay": 1.5})
        recorder = nest.Create("spike_recorder", params={"start": SKIP})
        nest.Connect(group, recorder)
        groups.append(group)
        recorders.append(recorder)
    for i, target in enumerate(groups):
        for j, source in enumerate(groups):
            if not CHANCE[i][j]:
                continue
            w = weight(i, j) / math.sqrt(k)
            bounds = {"min": 0.0} if w > 0 else {"max": 0.0}
            delay = 0.75 if j % 2 else 1.5
            syn = {"weight": nest.math.redraw(nest.random.normal(mean=w, std=0.1 * abs(w)), **{"min": -1e6, "max": 1e6} | bounds),
                   "delay": nest.math.redraw(nest.random.normal(mean=delay, std=delay / 2), min=0.05, max=1e3)}
            rule = {"rule": "fixed_total_number", "N": count(CHANCE[i][j], cells[j], cells[i]), "allow_autapses": True, "allow_multapses": True}
            nest.Connect(source, target, rule, syn)
    nest.Prepare()
    build = time.perf_counter() - begin
    begin = time.perf_counter()
    nest.Run(a.seconds * 1e3)
    run = time.perf_counter() - begin
    rates = [r.n_events / n / (a.seconds - SKIP / 1e3) for r, n in zip(recorders, cells)]
    return {"tool": "NEST " + nest.__version__, "build": build, "run": run, "rates": rates}


def run_neuroc(a):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.npz"
        command = [a.neuroc, "run", str(ROOT / "examples/microcircuit.neuro"), "--set", f"scale={a.scale}", "--seed", str(a.seed), "--json",
                   "--duration", f"{a.seconds}s", "--threads", str(a.threads), "--precision", a.precision, "-o", str(out)]
        begin = time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        wall = time.perf_counter() - begin
        facts = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
        import numpy
        spikes = numpy.load(out)
        rates = []
        for name, n in zip(NAMES, CELLS):
            t = spikes[f"{name}.spikes.t"]
            rates.append(float((t > SKIP).sum()) / round(n * a.scale) / (a.seconds - SKIP / 1e3))
    return {"tool": f"neuroc {a.precision}", "build": wall - facts["run_s"], "run": facts["run_s"], "rates": rates}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--neuroc", default=str(ROOT / "target/release/neuroc"))
    ap.add_argument("--nest")
    ap.add_argument("--scale", type=float, default=0.1)
    ap.add_argument("--seconds", type=float, default=10.0)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--precision", choices=("f64", "f32"), default="f32")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--one", choices=("nest",), help=argparse.SUPPRESS)
    a = ap.parse_args()
    if a.one:
        return print(json.dumps(run_nest(a)))
    runs = [run_neuroc(a)]
    if a.nest:
        same = [f"--{name}={getattr(a, name)}" for name in ("scale", "seconds", "threads", "seed")]
        done = subprocess.run([a.nest, __file__, "--one", "nest", *same], check=True, capture_output=True, text=True)
        runs.append(json.loads(done.stdout.strip().splitlines()[-1]))
    for r in runs:
        print(json.dumps(r), file=sys.stderr)
    print("| | built in s | s per model s | " + " | ".join(NAMES) + " |\n" + "|---" * 11 + "|")
    for r in runs:
        print(f"| {r['tool']} | {r['build']:.1f} | {r['run'] / a.seconds:.2f} | " + " | ".join(f"{x:.2f}" for x in r["rates"]) + " |")


if __name__ == "__main__":
    main()
