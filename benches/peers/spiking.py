"""Run three spiking networks in neuroc, Brian2 and NEST alternately, on one core, and print a markdown table for each.

    python spiking.py [--neuroc PATH/TO/neuroc] [--python brian2=PATH] [--python nest=PATH] [--rounds 5]
                      [--model coba,brunel,stdp] [--only neuroc,brian2,nest] [--size 1] [--seconds 1]

coba is benchmark 1 of Brette et al. 2007, brunel the network of Brunel 2000, stdp is coba with synapses that learn; `--size 2` has twice the cells and as many
synapses on each. Every run prints one line of JSON. Round k has the seed k in every contestant, and each draws its own
network and noise from it: the spikes differ, and what is compared is whether the activity is the same (rate, and
coefficient of variation of the intervals between spikes). Ratios are neuroc / tool of the speeds in a round, in the same
precision. Exit code 1 if a contestant failed, fell silent or fires at another rate. Needs NumPy.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from compare import interpreters, pin, run

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DT = 0.1                                            # ms
CLOSE, FEW = 0.1, 0.2                               # how far a contestant's rate may be from that of all; of one or two rounds
# cells at size 1 and synapses on each, four fifths of both excitatory; mS, mV, ms
MODELS = {"coba": (4_000, 80), "brunel": (10_000, 1_000), "stdp": (4_000, 80)}
COBA = {"C_pF": 200.0, "gL_nS": 10.0, "El_mV": -60.0, "Ee_mV": 0.0, "Ei_mV": -80.0, "Vt_mV": -50.0, "Vr_mV": -60.0,
        "tau_e_ms": 5.0, "tau_i_ms": 10.0, "refractory_ms": 5.0, "we_nS": 6.0, "wi_nS": 67.0, "delay_ms": 0.1,
        "v_init_mV": (-65.0, 5.0), "ge_init_nS": (40.0, 15.0), "gi_init_nS": (200.0, 120.0)}
STDP = {"tau_ms": 20.0, "step": 1e-4, "w_max_nS": 12.0}
BRUNEL = {"tau_ms": 20.0, "Vt_mV": 20.0, "Vr_mV": 10.0, "refractory_ms": 2.0, "j_mV": 0.1, "g": 5.0, "delay_ms": 1.5,
          "drive_kHz": 2 * 20.0 / (0.1 * 20.0)}     # eta theta / (j tau)
CONTESTANTS = [                                     # label, name, precision, arguments, models
    ("neuroc", "neuroc", "f64", [], MODELS), ("neuroc", "neuroc", "f32", [], MODELS),
    ("Brian2 C++", "brian2", "f64", [], MODELS), ("Brian2 C++", "brian2", "f32", [], MODELS),
    ("Brian2 C++, its own draw", "brian2", "f64", ["--sample"], ("brunel",)),
    ("NEST", "nest", "f64", [], ("coba", "brunel")),
]


# ---------------------------------------------------------------- for the peers
def options(precisions=("f64",), extra=()):
    """A peer's command line; pins it to one core, and its libraries to one thread, before they are imported."""
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", choices=MODELS, default="coba")
    ap.add_argument("--size", type=float, default=1.0)
    ap.add_argument("--seconds", type=float, default=1.0, help="model time")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--precision", choices=precisions, default=precisions[0])
    ap.add_argument("--core", type=int, default=None, help="pin to this core (default: first core allowed)")
    for args, kwargs in extra:
        ap.add_argument(*args, **kwargs)
    a = ap.parse_args()
    pin(a)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    return a


def scaled(a):
    """Cells, excitatory cells among them, and synapses on each cell."""
    cells, degree = MODELS[a.model]
    cells = max(10, round(cells * a.size / 5) * 5)
    if degree > 0.8 * cells:
        sys.exit(f"{a.model} of {cells} cells is too small for {degree} synapses on each")
    return cells, 4 * cells // 5, degree


def steps(a):
    return round(a.seconds * 1000 / DT)


def report(tool, version, a, precision, compile_s, setup_s, run_s, times_ms, cells_of_spikes, **more):
    """`events` are spikes times synapses of a cell, without those of the external drive; `cv` is the mean over cells with
    five spikes or more."""
    import numpy as np
    cells, _, degree = scaled(a)
    i, t = np.asarray(cells_of_spikes, dtype=np.int64), np.asarray(times_ms, dtype=float)
    order = np.lexsort((t, i))
    i, t = i[order], t[order]
    count = np.bincount(i, minlength=cells)
    interval = np.diff(t)
    same = np.diff(i) == 0
    of, interval = i[1:][same], interval[same]
    n = np.maximum(count - 1, 1)
    mean = np.bincount(of, interval, cells) / n
    var = np.maximum(np.bincount(of, interval ** 2, cells) / n - mean ** 2, 0)
    often = count >= 5
    line = {"tool": tool, "version": version, "precision": precision, "model": a.model, "cells": cells, "steps": steps(a),
            "seed": a.seed, "compile_s": round(compile_s, 4), "setup_s": round(setup_s, 4), "run_s": round(run_s, 5),
            "spikes": len(t), "rate_Hz": round(len(t) / cells / a.seconds, 3),
            "cv": round(float(np.mean(np.sqrt(var[often]) / mean[often])), 4) if often.any() else None,
            "last_spike_ms": round(float(t.max()), 1) if len(t) else 0.0,
            "events": len(t) * degree, "events_per_s": round(len(t) * degree / run_s),
            "cell_steps_per_s": round(cells * steps(a) / run_s), **more}
    print(json.dumps(line), flush=True)
    return line


# ---------------------------------------------------------------- neuroc
def neuroc(a, precision, folder):
    """One run, in this process's core: its own times, the spikes from its result."""
    import numpy as np
    cells, excitatory, degree = scaled(a)
    sizes = [f"n={cells}", f"degree={degree}" if a.model == "brunel" else f"p={degree / cells!r}"]
    out, compile_s = folder / "neuroc.npz", 0.0

    def once(duration):
        p = subprocess.run([a.neuroc, "run", str(HERE / f"spiking_{a.model}.neuro"), "--threads", "1", "--precision",
                            precision, "--seed", str(a.seed), "--duration", duration, "--cache", str(folder / "cache"),
                            "--json", "-o", str(out), *(x for s in sizes for x in ("--set", s))],
                           capture_output=True, text=True, timeout=1800)
        if p.returncode:
            raise OSError((p.stderr or p.stdout)[-500:])
        return json.loads(p.stdout.splitlines()[-1])

    try:
        if (a.model, precision) not in a.compiled:          # with an empty cache, and again without compiling
            compile_s = once(f"{DT}ms")["compile_s"] - once(f"{DT}ms")["compile_s"]
            a.compiled.add((a.model, precision))
        told = once(f"{a.seconds}s")
    except (OSError, subprocess.TimeoutExpired, ValueError) as e:
        return {"error": f"failed ({type(e).__name__})", "detail": str(e)}
    with np.load(out) as r:
        version = json.loads(str(r["meta"]))["compiler"].removeprefix("neuroc ")
        t = np.concatenate([r["e.spikes.t"], r["i.spikes.t"]])
        i = np.concatenate([r["e.spikes.i"], r["i.spikes.i"] + excitatory])
    return report("neuroc", version, a, precision, compile_s, told["compile_s"], told["run_s"], t, i)


# ---------------------------------------------------------------- in turn
def one(a, name, precision, args, folder, core):
    if name == "neuroc":
        return neuroc(a, precision, folder)
    default, by_name = interpreters(a)
    command = [by_name.get(name, default), str(HERE / f"spiking_{name}.py"), "--model", a.model, "--size", str(a.size),
               "--seconds", str(a.seconds), "--seed", str(a.seed), "--precision", precision, "--core", str(core), *args]
    if name == "brian2":
        command += ["--build-dir", str(folder / "_".join([name, a.model, precision, *args]))]
    line = run(command)
    print(json.dumps({"model": a.model, **line} if "error" in line else line), flush=True)
    return line


def median(rows, key):
    values = [r[key] for r in rows if r[key] is not None]
    return statistics.median(values) if values else float("nan")


def table(a, contestants, results):
    """Prints a markdown table; what is wrong."""
    wrong, good = [], [[r for r in rows if "error" not in r] for rows in results]
    ours = {p: rows for (_, name, p, *_), rows in zip(contestants, results) if name == "neuroc"}
    print("| tool | version | precision | compile s | set-up s | run s | M events/s | spikes | rate Hz | CV "
          "| neuroc / tool: median | range |")
    print("|" + "---|" * 12)
    for (label, name, precision, *_), rows, g in zip(contestants, results, good):
        if len(g) < len(rows):
            print(f"| {label} | | {precision} | {rows[-1]['error']} |" + " |" * 8)
            if rows[-1]["error"] != "not installed":
                wrong.append(f"{label} {precision}: {rows[-1]['error']}")
            continue
        pairs = zip(rows, ours.get(precision, [])) if name != "neuroc" else ()
        ratios = [theirs["run_s"] / our["run_s"] for theirs, our in pairs if "error" not in our]
        print(f"| {label} | {rows[0]['version']} | {precision} | {rows[0]['compile_s']:.1f} | {median(g, 'setup_s'):.2f} "
              f"| {median(g, 'run_s'):.2f} | {median(g, 'events_per_s') / 1e6:.1f} | {median(g, 'spikes'):.0f} "
              f"| {median(g, 'rate_Hz'):.2f} | {median(g, 'cv'):.2f} | "
              + (f"{statistics.median(ratios):.2f} | {min(ratios):.2f} .. {max(ratios):.2f} |" if ratios else "| |"))
    everything = [r for g in good for r in g]
    if not everything:
        return ["nothing ran"]
    rate, close = median(everything, "rate_Hz"), CLOSE if a.rounds > 2 else FEW
    for (label, _, precision, *_), g in zip(contestants, good):
        if g and not abs(median(g, "rate_Hz") - rate) <= close * rate:
            wrong.append(f"{label} {precision}: fires at {median(g, 'rate_Hz'):.2f} Hz, all together at {rate:.2f}")
        silent = [r["seed"] for r in g if r["last_spike_ms"] < 900 * a.seconds]
        if silent:
            wrong.append(f"{label} {precision}: no spikes in the last tenth with the seeds {silent}")
    rates = [r["rate_Hz"] for r in everything]
    print(f"\nRates of single runs: {min(rates):.2f} .. {max(rates):.2f} Hz. "
          + ("Wrong: " + "; ".join(wrong) if wrong else f"Every contestant's is within {close:.0%} of {rate:.2f} Hz."))
    return wrong


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--neuroc", default=str(ROOT / "target" / "release" / "neuroc"))
    ap.add_argument("--python", action="append", default=[], metavar="[NAME=]PATH")
    ap.add_argument("--model", default="coba,brunel,stdp")
    ap.add_argument("--only", help="comma-separated: neuroc, brian2, nest")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--size", type=float, default=1.0)
    ap.add_argument("--seconds", type=float, default=1.0, help="model time")
    ap.add_argument("--core", type=int, default=None)
    a = ap.parse_args()
    try:
        import numpy                                                    # noqa: F401
    except ImportError:
        ap.error("NumPy is missing: run this with the Python of a peer")
    names = {c[1] for c in CONTESTANTS}
    only = set(a.only.split(",")) if a.only else names
    models = a.model.split(",")
    if only - names or set(models) - set(MODELS):
        ap.error(f"no such contestant or model: {', '.join(sorted((only - names) | (set(models) - set(MODELS))))}")
    core, fine, a.compiled = pin(a), True, set()
    for a.model in models:
        contestants = [c for c in CONTESTANTS if c[1] in only and a.model in c[4]]
        with tempfile.TemporaryDirectory(prefix="spiking_") as folder:
            results = [[] for _ in contestants]
            for a.seed in range(1, a.rounds + 1):
                for (label, name, precision, args, _), rows in zip(contestants, results):
                    if rows and "error" in rows[-1]:
                        continue                                        # it has failed once
                    rows.append(one(a, name, precision, args, pathlib.Path(folder), core))
                    now = rows[-1]
                    print(f"round {a.seed}: {a.model}, {label} {precision}: "
                          + (f"{now['error']} {now.get('detail', '')}" if "error" in now else
                             f"run {now['run_s']:.2f} s, {now['rate_Hz']:.2f} Hz"), file=sys.stderr, flush=True)
        cells, _, degree = scaled(a)
        print(f"\n{a.model}: {cells} cells with {degree} synapses each, {a.seconds:g} s, dt {DT} ms, one thread on core {core}, "
              f"{a.rounds} rounds, alternating.\n")
        fine &= not table(a, contestants, results)
        print(flush=True)
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
