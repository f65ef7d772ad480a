"""Runs the ten models in neuroc and in the other simulators, and compares what they say.

    python run.py                               # all models, all simulators that are installed
    python run.py squid cable                   # these models
    python run.py --only neuron,nest            # these simulators
    python run.py --demand neuron,brian2,nest   # a missing one of these is a failure
    python run.py --write                       # also write numbers/, which the pages show

Each folder NAME has the model in neuroc's language (NAME.neuro), the same in others (NAME_neuron.py, ...), and NAME.toml: what is compared,
with which tolerance, and why not more closely. A script prints its numbers as JSON on its last line. All run in copies of their folders
below `target/side_by_side` of the repository, so that nothing is left beside the sources.
"""
import argparse
import contextlib
import importlib.metadata
import importlib.util
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "target" / "side_by_side"
MODELS = sorted(HERE.glob("*/*.toml"), key=lambda path: tomllib.loads(path.read_text())["order"])
# Name, what Python imports, how pages call it.
PEERS = {"exact": ("numpy", "closed form"), "neuron": ("neuron", "NEURON"), "brian2": ("brian2", "Brian2"), "nest": ("nest", "NEST"),
         "jaxley": ("jaxley", "Jaxley"), "neuroml": ("pyneuroml", "NeuroML")}
PACKAGES = ["NEURON", "Brian2", "nest-simulator", "Jaxley", "pyNeuroML"]


class Failed(Exception):
    """What a script or a comparison says of its own failure."""


def here(peer):
    """Is it installed? NeuroML is run by jNeuroML, which comes with pyneuroml and needs Java."""
    return importlib.util.find_spec(PEERS[peer][0]) is not None and (peer != "neuroml" or shutil.which("java") is not None)


def prepared(model, peer):
    """A copy of the model's folder for the peer to run in. NEURON's .mod files are compiled there."""
    folder = BUILD / model["name"] / peer
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / model["name"], folder, ignore=shutil.ignore_patterns("__pycache__"))
    if peer == "neuron" and list(folder.glob("*.mod")):
        done = subprocess.run([Path(sys.executable).with_name("nrnivmodl"), "."], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"nrnivmodl (which needs make and a C++ compiler) failed:\n{done.stdout}{done.stderr}")
    return folder


def peer_says(model, peer):
    """The numbers that a script prints, and the seconds that it took, with those of the compiler of .mod files."""
    begin = time.perf_counter()
    script = f"{model['name']}_{peer}.py"
    done = subprocess.run([sys.executable, script], cwd=prepared(model, peer), capture_output=True, text=True,
                          env=os.environ | {"OMP_NUM_THREADS": "1"}, timeout=600)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        # Some tools print their whole environment when they fail, which is nobody's business.
        told = [line for line in (done.stdout + done.stderr).splitlines() if not re.search(r"\b[A-Za-z_]+ +=|^\s*$", line)]
        raise Failed("\n".join([f"{script} failed with code {done.returncode}:", *told[-40:]]))
    try:
        return json.loads(lines[-1]), time.perf_counter() - begin
    except json.JSONDecodeError as error:
        raise Failed(f"the last line of {script} is not JSON ({error}): {lines[-1][:200]}") from error


def neuroc_says(model, run):
    """The quantities of NAME.toml from a run of NAME.neuro, with the peer's method, step or parameters."""
    import neuroc

    run = dict(run)
    loaded = neuroc.load(HERE / model["name"] / f"{model['name']}.neuro")
    loaded.set(run.pop("set", {}))
    result = loaded.run(progress=False, **run)
    says = {}
    for name, quantity in model["quantities"].items():
        if "trace" in quantity:
            says[name] = [float(x) for x in np.asarray(result[quantity["trace"]])[:, quantity.get("cell", 0)]]
        elif "last" in quantity:
            says[name] = [float(x) for x in np.asarray(result[quantity["last"]])[-1]]
        elif "counts" in quantity:
            says[name] = [int(n) for n in result.spikes[quantity["counts"]].counts]
        else:
            train = result.spikes[quantity["spikes"]]
            says[name] = [float(t) for t in train.t] if train.cells == 1 else [[float(t), int(i)] for t, i in zip(train.t, train.i)]
    return says


def apart(ours, theirs):
    """The largest difference; infinite where there are more spikes or samples on one side, or spikes of other cells."""
    if len(ours) != len(theirs):
        return math.inf
    a, b = np.array(ours, dtype=float), np.array(theirs, dtype=float)
    if a.ndim == 2:                                 # times and cells
        a, b = (x[np.lexsort((x[:, 0], x[:, 1]))] for x in (a, b))
        if (a[:, 1] != b[:, 1]).any():
            return math.inf
        a, b = a[:, 0], b[:, 0]
    return float(np.abs(a - b).max(initial=0.0))


def number(x, unit):
    """Rounding differs from machine to machine, so what is tiny is only bounded."""
    if x == 0:
        return "none"
    return f"below 1e-9 {unit}".rstrip() if x < 1e-9 else f"below 1e{math.ceil(math.log10(x))} {unit}".rstrip() if x < 1e-6 else f"{x:.2g} {unit}".rstrip()


def short(quantity, values):
    """One cell of the page's table: what a quantity came to."""
    if "counts" in quantity or "last" in quantity:
        few = [f"{x:g}" if isinstance(x, int) else f"{x:.4f}" for x in values]
        return ", ".join(few if len(few) <= 12 else [*few[:5], "...", *few[-2:]])
    if "trace" in quantity:
        return f"{min(values):.3f} .. {max(values):.3f}"
    times = sorted(x[0] if isinstance(x, list) else x for x in values)
    return f"{len(times)} spikes, the last at {times[-1]:.3f} ms" if times else "no spikes"


def page(model, rows):
    """The table of a page, as Markdown. What neuroc says is that of the file as it is."""
    ours = neuroc_says(model, {})
    names = list(model["quantities"])
    lines = ["<!-- written by run.py --write -->", ""]
    lines += ["| | " + " | ".join(f"`{name}`: {model['quantities'][name]['says']}" for name in names) + " |", "|---|" + "---|" * len(names)]
    lines.append("| neuroc | " + " | ".join(short(model["quantities"][name], ours[name]) for name in names) + " |")
    lines += ["", "| beside | neuroc runs with | largest difference | allowed | why not closer |", "|---|---|---|---|---|"]
    for row in rows:
        unit = lambda name: model["quantities"][name].get("unit", "ms" if "spikes" in model["quantities"][name] else "")
        each = lambda values, shown: "; ".join(f"`{name}` {shown(x, unit(name))}" for name, x in values.items())
        limit = lambda x, unit: f"{x:g} {unit}".rstrip()
        run = ", ".join(f"`{k}` {v} ms" if k == "dt" else f"`{k} = {v}`" for k, v in row["run"].items() if k != "set") or "the file as it is"
        lines.append(f"| {PEERS[row['peer']][1]} | {run} | {each(row['apart'], number)} | {each(row['within'], limit)} | {model['peers'][row['peer']]['why']} |")
    for peer, entry in model["peers"].items():
        if "no" in entry:
            lines.append(f"| {PEERS[peer][1]} | | no | | {entry['no']} |")
    return "\n".join(lines) + "\n"


def overview(models):
    """The table of models and simulators on the index page."""
    peers = [peer for peer in PEERS if peer != "exact"]
    lines = ["<!-- written by run.py --write -->", "", "| model | neuroc | " + " | ".join(PEERS[p][1] for p in peers) + " |", "|---" * (len(peers) + 2) + "|"]
    for model in models:
        name, cells = model["name"], []
        for peer in peers:
            entry = model["peers"][peer]
            cells.append(f"no: {entry['no']}" if "no" in entry else f"[yes](#{name}-{peer})")
        lines.append(f"| [{model['title']}]({name}.md) | [yes](#{name}-neuroc) | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def invalid(models):
    """How many of NeuroML's files are not what its schema allows."""
    from neuroml.utils import validate_neuroml2

    wrong = 0
    for path in [path for model in models for path in sorted((HERE / model["name"]).glob("*.nml"))]:
        try:
            with contextlib.redirect_stdout(io.StringIO()):     # it says so where all is well
                validate_neuroml2(str(path))
        except Exception as error:
            wrong += 1
            print(f"{path.name} is not valid NeuroML: {error}")
    return wrong


def versions():
    """What the numbers come from."""
    each = [f"{package} {importlib.metadata.version(package)}" for package in PACKAGES]
    return f"<!-- written by run.py --write -->\n\nThe numbers were made with {', '.join(each)} and NumPy {np.__version__}.\n"


def kept(texts, write):
    """Writes the tables, or says which of those that are there are out of date. The last digits differ from machine to machine."""
    stale = 0
    digits = re.compile(r"none|(below )?-?[0-9][0-9.e-]*( (ms|mV/ms|mV|uM|nS))?")
    for name, text in texts.items():
        path = HERE / "numbers" / f"{name}.inc"
        if write:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        elif name != "versions" and digits.sub("#", text) != digits.sub("#", path.read_text() if path.exists() else ""):
            stale += 1
            print(f"numbers/{name}.inc is out of date: run.py --write")
    return stale


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("models", nargs="*", help="all if none is named")
    options.add_argument("--only", default="", help="simulators to run, with commas in between")
    options.add_argument("--demand", default="", help="simulators that must be there")
    options.add_argument("--write", action="store_true", help="write numbers/ for the pages")
    a = options.parse_args()
    only, demand = (set(filter(None, text.split(","))) for text in (a.only, a.demand))
    if unknown := (only | demand) - set(PEERS):
        options.error(f"no simulator is called {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
    present = [peer for peer in PEERS if here(peer)]
    missing = sorted(demand - set(present))
    models = []
    for path in MODELS:
        model = tomllib.loads(path.read_text()) | {"name": path.stem}
        if a.models and path.stem not in a.models:
            continue
        model["use"] = [p for p, entry in model["peers"].items() if "no" not in entry and p in present and (not only or p in only)]
        models.append(model)
    if unknown := set(a.models) - {model["name"] for model in models}:
        options.error(f"no model is called {', '.join(sorted(unknown))}")

    passed, failed, rows = 0, invalid(models) if "neuroml" in present else 0, {model["name"]: [] for model in models}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        begin = time.perf_counter()
        answers = [(model, peer, pool.submit(peer_says, model, peer)) for model in models for peer in model["use"]]
        for model, peer, answer in answers:
            entry = model["peers"][peer]
            run, label = entry.get("run", {}), f"{model['name']:<16}{PEERS[peer][1]:<12}"
            try:
                theirs, seconds = answer.result()
                ours = neuroc_says(model, run)
                difference = {name: apart(ours[name], theirs[name]) for name in entry["within"]}
            except Exception as error:              # of a script, of neuroc, or a number that one of them does not give
                failed += 1
                print(f"{label}FAILED\n{type(error).__name__}: {error}")
                continue
            fine = all(difference[name] <= allowed for name, allowed in entry["within"].items())
            passed, failed = passed + fine, failed + (not fine)
            text = "; ".join(f"{name} {x:.2g} (allowed {entry['within'][name]:g})" for name, x in difference.items())
            print(f"{label}{'agrees' if fine else 'DISAGREES':<10}{text}; {seconds:.1f} s", flush=True)
            if not fine:
                for name in difference:
                    print(f"    {name}: neuroc {short(model['quantities'][name], ours[name])}; {peer} {short(model['quantities'][name], theirs[name])}")
            rows[model["name"]].append({"peer": peer, "run": run, "apart": difference, "within": entry["within"]})

    for peer in PEERS:
        if peer not in present and (not only or peer in only):
            print(f"{PEERS[peer][1]} is not installed" + (", and it is demanded" if peer in missing else "") + ": not compared")
    if not failed and not missing and present == list(PEERS) and not only:
        texts = {model["name"]: page(model, rows[model["name"]]) for model in models}
        if not a.models:
            texts |= {"overview": overview(models), "versions": versions()}
        failed += kept(texts, a.write)
    elif a.write:
        failed += 1
        print("nothing is written: it takes all simulators, and that all agree")
    print(f"all done after {time.perf_counter() - begin:.0f} s")
    print(f"{passed} passed, {failed + len(missing)} failed")
    return 1 if failed or missing or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
