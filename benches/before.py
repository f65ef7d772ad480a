"""Is neuroc as fast as it was? Runs two builds in turn and prints the ratio of their speeds, new / old, as a markdown table.

    git worktree add ../before COMMIT && (cd ../before && cargo build --release)
    python benches/before.py --old ../before [--rounds 5] [--only olive] [--threads 1,2] [--engine native] [--scale 1]

Each build runs the models of its own tree; `--old` and `--new` (this one, if absent) are trees with `target/release/neuroc`, or give
the programs with `--old-bin` and `--new-bin`. A round runs every case once with each, the order changing from round to round; a figure
is the best repetition of `neuroc bench`. Above 1 the new build is faster. `--engine xla` is held to as many cores as `--threads` says: XLA
decides by its own estimate of cost which fusions it splits between cores, so a step with fewer operations may use fewer of them. Needs
nothing but Python.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
OLIVE = "examples/inferior_olive/inferior_olive.neuro"
ALONE = "examples/inferior_olive/unconnected.neuro"
CASES = [                                           # name, model, arguments, steps
    ("squid, 10 000", "examples/squid.neuro", ["--set", "n=10000", "--dt", "0.025ms"], 2000),
    ("olive, 8000", ALONE, ["--set", "side=20"], 1000), ("olive, 125 000", ALONE, ["--set", "side=50"], 80),
    ("Brunel, 10 000", "benches/peers/spiking_brunel.neuro", [], 5000), ("COBA, 4000", "benches/peers/spiking_coba.neuro", [], 20000),
    ("olive connected, 8000", OLIVE, ["--set", "side=20"], 1000), ("olive connected, 125 000", OLIVE, ["--set", "side=50"], 80),
]


def speed(binary, root, case, precision, threads, a):
    _, model, arguments, steps = case
    command = [str(binary), "bench", str(root / model), *arguments, "--precision", precision, "--engine", a.engine, "--json",
               "--steps", str(max(40, int(steps * a.scale))), "--repeat", "3"]
    if a.engine == "native":
        command += ["--threads", str(threads)]
    cores = sorted(os.sched_getaffinity(0))[-threads:] if a.engine == "xla" else os.sched_getaffinity(0)
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))["cell_steps_per_s"]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--old", type=pathlib.Path, required=True)
    ap.add_argument("--new", type=pathlib.Path, default=ROOT)
    ap.add_argument("--old-bin", type=pathlib.Path)
    ap.add_argument("--new-bin", type=pathlib.Path)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--only", default="", help="cases whose name holds this")
    ap.add_argument("--threads", default="1,2")
    ap.add_argument("--precision", default="f32,f64")
    ap.add_argument("--engine", choices=("native", "xla"), default="native")
    ap.add_argument("--scale", type=float, default=1.0, help="of the numbers of steps")
    a = ap.parse_args()
    builds = {name: (binary or root / "target/release/neuroc", root)
              for name, binary, root in (("old", a.old_bin, a.old), ("new", a.new_bin, a.new))}
    threads = [int(n) for n in a.threads.split(",")]
    cases = [(case, precision, n) for case in CASES if a.only in case[0] for precision in a.precision.split(",") for n in threads]
    found = {key: [] for key in range(len(cases))}
    for round_ in range(a.rounds):
        order = ["old", "new"] if round_ % 2 == 0 else ["new", "old"]
        for key, (case, precision, n) in enumerate(cases):
            pair = {name: speed(*builds[name], case, precision, n, a) for name in order}
            found[key].append((pair["new"] / pair["old"], pair["new"]))
    print(f"| case | precision | {'threads' if a.engine == 'native' else 'cores'} | new: M cell-steps/s | new / old: median | range |\n|---|---|---|---|---|---|")
    for key, (case, precision, n) in enumerate(cases):
        ratios, speeds = zip(*found[key])
        print(f"| {case[0]} | {precision} | {n} | {max(speeds) / 1e6:.0f} | {statistics.median(ratios):.3f} | {min(ratios):.3f} .. {max(ratios):.3f} |")


if __name__ == "__main__":
    main()
