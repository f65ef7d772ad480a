#!/usr/bin/env python3
"""Every example on XLA, a GPU if there is one, against the native engine in double precision: does it run, and how far is it?

    gpu_examples.py --reference FOLDER                  native, f64; needs no GPU
    gpu_examples.py --against FOLDER [--device cuda]    XLA, against that; needs no Rust, so another machine will do

A row for each model: the worst of its results (the largest difference as a part of the largest value; spikes must be as many), and the time of all steps.
What learns is trained for two epochs; there the losses are compared. The exit code is 1 if a model fails that XLA takes, or is far in f64 (`--far`). Needs NumPy.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
KEPT = 20_000                                       # numbers of each result, evenly spaced


def models(only):
    found = [p for p in sorted([*(ROOT / "examples").glob("*.neuro"), *(ROOT / "examples" / "inferior_olive").glob("*.neuro")])
             if re.search(r"^run\s*\{", p.read_text(), re.MULTILINE)]
    return [p for p in found if not only or p.stem in only]


def learns(model):
    return re.search(r"^train\s*\{", model.read_text(), re.MULTILINE) is not None


def said(a, command):
    """The JSON that a command printed, or an error's first words."""
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=a.timeout)
    except subprocess.TimeoutExpired:
        return {"error": f"took more than {a.timeout:g} s"}
    if done.returncode == 0:
        return json.loads(next(line for line in reversed(done.stdout.splitlines()) if line.startswith("{")))
    return {"error": (done.stderr.strip() or f"exit code {done.returncode}"), "code": done.returncode}


def results(a, model, options, folder):
    """What a run or a training comes to: numbers by name, and what it said."""
    out = folder / f"{model.stem}.npz"
    if learns(model):
        told = said(a, [a.neuroc, "train", model, *options, "--epochs", 2, "-o", out, "--json", "--quiet"])
        if "error" in told:
            return None, told
        losses = [epoch["train"]["loss"] for epoch in told["epochs"]]
        return {"loss": np.array(losses)}, {"run_s": told["epochs"][-1]["train"]["seconds"]}
    told = said(a, [a.neuroc, "run", model, *options, "-o", out, "--json", "--quiet"])
    if "error" in told:
        return None, told
    with np.load(out, allow_pickle=False) as found:
        numbers = {name: found[name] for name in found if found[name].dtype.kind in "fiu"}
    out.unlink()
    return numbers, told


def reduced(values):
    flat = values.astype(float).ravel()
    return flat[:: max(1, -(-len(flat) // KEPT))], np.array(values.shape)


def worst(reference, numbers):
    """How far results are, and which is the farthest."""
    far = (0.0, "")
    for name, values in numbers.items():
        if name not in reference:
            return float("inf"), f"{name} is new"
        truth, shape = reference[name], reference[f"{name}/shape"]
        mine, own = reduced(values)
        if not np.array_equal(shape, own):
            far = max(far, (float("inf"), f"{name} is {'x'.join(map(str, own))}, not {'x'.join(map(str, shape))}"))
            continue
        scale = np.nanmax(np.abs(truth), initial=0) or 1.0
        apart = np.abs(mine - truth)
        apart[np.isnan(mine) & np.isnan(truth)] = 0
        far = max(far, (float(np.nan_to_num(apart, nan=np.inf).max(initial=0) / scale), name))
    return far


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--neuroc", default=str(ROOT / "target" / "release" / "neuroc"))
    ap.add_argument("--reference", type=pathlib.Path, help="write what the native engine makes of them here")
    ap.add_argument("--against", type=pathlib.Path, help="compare with that")
    ap.add_argument("--device", default="cuda")
    ap.add_argument("--plugin", help="XLA's plugin, instead of the one that neuroc finds")
    ap.add_argument("--precision", default="f64", help="f64, f32 or f64,f32")
    ap.add_argument("--only", type=lambda text: text.split(","), help="names of models")
    ap.add_argument("--jobs", type=int, default=1, help="models at a time")
    ap.add_argument("--timeout", type=float, default=300, help="seconds for a model")
    ap.add_argument("--far", type=float, default=1e-6, help="what is far, in double precision")
    a = ap.parse_args()
    if bool(a.reference) == bool(a.against):
        ap.error("either --reference or --against")
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        folder = pathlib.Path(folder)
        if a.reference:
            a.reference.mkdir(parents=True, exist_ok=True)
            fine = True
            for model in models(a.only):
                numbers, told = results(a, model, [], folder)
                if numbers is None:
                    fine = False
                    print(f"{model.stem}: {told['error']}", file=sys.stderr)
                    continue
                kept = {name: reduced(values) for name, values in numbers.items()}
                np.savez_compressed(a.reference / f"{model.stem}.npz", **{name: values for name, (values, _) in kept.items()},
                                    **{f"{name}/shape": shape for name, (_, shape) in kept.items()})
                print(f"{model.stem}: {told['run_s']:.3f} s", file=sys.stderr)
            sys.exit(0 if fine else 1)
        plugin = ["--plugin", a.plugin] if a.plugin else []

        def row(model, precision):
            place = folder / precision
            place.mkdir(exist_ok=True)
            options = ["--engine", "xla", "--device", a.device, *plugin, "--precision", precision]
            numbers, told = results(a, model, options, place)
            if numbers is None:
                refused = re.search(r"so far|natively", told["error"]) is not None
                return model.stem, precision, None, "refused" if refused else "FAILS", told["error"]
            with np.load(a.against / f"{model.stem}.npz") as reference:
                far, name = worst(reference, numbers)
            return model.stem, precision, told, far, name

        tasks = [pool.submit(row, model, precision) for precision in a.precision.split(",") for model in models(a.only)
                 if (a.against / f"{model.stem}.npz").exists()]
        fine = True
        print("| model | precision | farthest from native f64 | in | steps, s | compiling, s |\n|---|---|---|---|---|---|")
        for task in tasks:
            model, precision, told, far, name = task.result()
            if told is None:
                fine &= far == "refused"
                print(f"| {model} | {precision} | {far} | {' '.join(name.split())[:400]} | | |", flush=True)
                continue
            fine &= precision != "f64" or far <= a.far
            print(f"| {model} | {precision} | {far:.1e} | {name} | {told['run_s']:.3f} | {told.get('compile_s', float('nan')):.1f} |", flush=True)
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
