"""Run neuroc and its peers alternately on one core and print a markdown table.

    python compare.py --neuroc "PATH/TO/neuroc bench ... --json" [--neuroc-f32 "..."]
                      [--python NAME=PATH ...] [--only NAME,NAME] [--rounds 5]

NAME is a script's: jax, brian2, arbor, neuron. `--python brian2=/venv/bin/python` runs that one with another interpreter;
`--python /venv/bin/python` is for all the rest. The neuroc command must print one line of JSON with the key `cell_steps_per_s`.
In every round each contestant runs once; the ratio is neuroc / peer inside a round, its median and range are over rounds.
"""
import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PEERS = [                                       # label, script, arguments, precision
    ("JAX", "jax", [], "f64"), ("JAX", "jax", [], "f32"),
    ("Brian2 C++", "brian2", [], "f64"), ("Brian2 C++", "brian2", [], "f32"),
    ("Brian2 C++, plain rates", "brian2", ["--plain-rates"], "f64"),
    ("Brian2 C++, default flags", "brian2", ["--default-flags"], "f64"),
    ("Arbor", "arbor", ["--fold-current"], "f64"),
    ("Arbor, i_clamp", "arbor", [], "f64"),
    ("CoreNEURON", "neuron", ["--coreneuron", "--fold-current"], "f64"),
    ("NEURON", "neuron", ["--fold-current"], "f64"),
    ("NEURON, tables", "neuron", ["--fold-current", "--tables"], "f64"),
]


def last_json(text):
    for line in reversed(text.splitlines()):
        line = line.strip()
        if line.startswith("{"):
            try:
                return json.loads(line)
            except json.JSONDecodeError:
                continue
    return None


def run(command):
    """The JSON a command printed, or a dictionary with `error`."""
    try:
        p = subprocess.run(command, capture_output=True, text=True, timeout=900)
    except (OSError, subprocess.TimeoutExpired) as e:
        return {"error": f"failed ({type(e).__name__})", "detail": str(e)}
    data = last_json(p.stdout)
    if p.returncode == 0 and data and "cell_steps_per_s" in data:
        return data
    if data and "error" in data:
        return data
    return {"error": f"failed (exit {p.returncode})", "detail": (p.stderr or p.stdout)[-500:]}


def alternate(contestants, rounds, done=0):
    """What each contestant (label, precision, command) printed in each round, of which some have been run."""
    results = [[] for _ in contestants]
    for k in range(done, rounds):
        for (label, precision, command), rows in zip(contestants, results):
            if rows and "error" in rows[-1]:
                continue                        # it said so once
            rows.append(run(command))
            now = rows[-1]
            print(f"round {k + 1}: {label} {precision}: "
                  + (now["error"] if "error" in now else f"{now['cell_steps_per_s'] / 1e6:.1f} M/s"),
                  file=sys.stderr, flush=True)
            if "error" in now and now["error"] != "not installed":
                print(now.get("detail", ""), file=sys.stderr)
    return results


def table(contestants, results):
    """Prints a markdown table; whether neuroc ran in every precision in which it should."""
    speed = [[r["cell_steps_per_s"] for r in rows if "error" not in r] for rows in results]
    neuroc = {p: s for (label, p, _), s in zip(contestants, speed) if label == "neuroc"}
    print("| tool | version | precision | M cell-steps/s (median) | set-up s | neuroc / tool: median | range |")
    print("|---|---|---|---|---|---|---|")
    for (label, precision, _), rows, s in zip(contestants, results, speed):
        if not rows or len(s) < len(rows) or not s:
            print(f"| {label} | | {precision} | {rows[-1]['error']} | | | |")
            continue
        setup = [r["setup_s"] for r in rows if isinstance(r.get("setup_s"), (int, float))]
        ours = neuroc.get(precision) or []
        ratios = [x / y for x, y in zip(ours, s)] if label != "neuroc" else []
        print(f"| {label} | {rows[0].get('version', '')} | {precision} | {statistics.median(s) / 1e6:.1f} | "
              + (f"{statistics.median(setup):.2f}" if setup else "") + " | "
              + (f"{statistics.median(ratios):.2f} | {min(ratios):.2f} .. {max(ratios):.2f} |" if ratios else " | |"),
              flush=True)
    return all(neuroc.values())


def interpreters(a):
    """Of the peers by name, and of all others."""
    default, by_name = sys.executable, {}
    for x in a.python:
        name, eq, path = x.partition("=")
        if eq:
            by_name[name] = path
        else:
            default = x
    return default, by_name


def pin(a):
    """Binds this process and what it starts to one core."""
    core = a.core if a.core is not None else min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})             # children inherit it
    return core


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--neuroc", required=True, help="command for f64")
    ap.add_argument("--neuroc-f32", help="command for f32")
    ap.add_argument("--python", action="append", default=[], metavar="[NAME=]PATH")
    ap.add_argument("--only", help="comma-separated names of peers")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--cells", type=int, default=10_000)
    ap.add_argument("--steps", type=int, default=2_000)
    ap.add_argument("--core", type=int, default=None)
    a = ap.parse_args()
    core = pin(a)
    default, by_name = interpreters(a)
    only = set(a.only.split(",")) if a.only else None
    unknown = (only or set()) - {name for _, name, _, _ in PEERS}
    if unknown:
        ap.error(f"no such peer: {', '.join(sorted(unknown))}")
    contestants = []                            # label, precision, command
    for precision, command in (("f64", a.neuroc), ("f32", a.neuroc_f32)):
        if command:
            contestants.append(("neuroc", precision, shlex.split(command)))
    for label, name, args, precision in PEERS:
        if only is None or name in only:
            contestants.append((label, precision, [
                by_name.get(name, default), str(HERE / f"hh_{name}.py"), "--precision", precision,
                "--cells", str(a.cells), "--steps", str(a.steps), "--core", str(core), *args]))

    print(f"HH points, {a.cells} cells, dt 0.025 ms, one thread on core {core}, {a.rounds} rounds, alternating.\n")
    sys.exit(0 if table(contestants, alternate(contestants, a.rounds)) else 1)


if __name__ == "__main__":
    main()
