#!/usr/bin/env python3
"""The experiments of Landsmeer et al. 2024 with neuroc, one command each. Python 3.9 or newer; plots need matplotlib.

    run.py performance     speed from 64 to a million cells, without and with gap junctions (figures 6 and 7)
    run.py validation      ten seconds of 729 cells, single against double precision (figure 8)
    run.py stress          64 cells pushed by pulses, single against double precision (the stress test)
    run.py complexity      integrate-and-fire, Hodgkin-Huxley and inferior-olive cells side by side (figure 9)

Each prints its tables in Markdown and leaves them, NAME.csv and NAME.svg in --to; --document also puts tables and
picture into the README beside this file. `run.py NAME --help` lists the options. The exit code is 0 if what an
experiment must show is so, otherwise 1.
"""
import argparse
import array
import ast
import collections
import csv
import json
import math
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DT = 0.025              # ms
LIMIT = 0.05            # mV: how far ten seconds in single precision may be from double precision
PULSES_BEGIN = 5000     # ms
OLIVE = {"unconnected": "unconnected.neuro", "connected": "inferior_olive.neuro"}


class Failure(Exception):
    """Something that the user has to read."""


# ------------------------------------------------------------------------------------------------------------- neuroc


def program(a):
    """Where neuroc is: as told, as built in this repository, or on the path."""
    built = ROOT / "target" / "release" / "neuroc"
    found = a.neuroc or (str(built) if built.exists() else shutil.which("neuroc"))
    if not found:
        raise Failure(f"neuroc is not built: run `make demo` in {ROOT}, or say where it is with --neuroc")
    return found


def neuroc(a, *arguments):
    """Runs neuroc and gives the JSON that it printed."""
    command = [program(a), *map(str, arguments), "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise Failure(f"cannot run {command[0]}: {error}") from error
    if done.returncode != 0:
        raise Failure(f"`{' '.join(command)}` failed:\n{done.stderr.strip()}")
    return json.loads(done.stdout)


def simulate(a, model, output, *, precision, threads=None, duration, settings=()):
    """Runs a model and gives the summary and the arrays of the result."""
    arguments = ["run", model, "-o", output, "--precision", precision, "--duration", f"{duration}ms", "--quiet"]
    arguments += ["--threads", threads] if threads else []
    for setting in settings:
        arguments += ["--set", setting]
    summary = neuroc(a, *arguments)
    return summary, load(output)


def load(path):
    """The numeric arrays of an .npz file, flat, without NumPy."""
    out = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            raw = archive.read(name)
            wide = raw[6] > 1                                       # version 2 has a longer header
            size = int.from_bytes(raw[8:12 if wide else 10], "little")
            begin = (12 if wide else 10) + size
            header = ast.literal_eval(raw[12 if wide else 10:begin].decode("latin-1"))
            kind = {"<f4": "f", "<f8": "d", "<u4": "I", "<i4": "i", "<u8": "Q", "<i8": "q"}.get(header["descr"])
            if kind is None:                                        # text: what the run was
                continue
            if header["fortran_order"] and len(header["shape"]) > 1:
                raise Failure(f"{path}: {name} is not stored row by row")
            values = array.array(kind, raw[begin:])
            if sys.byteorder == "big":
                values.byteswap()
            out[name.removesuffix(".npy")] = values
    return out


def machine(a):
    """One line: what this was measured on."""
    cpu = platform.processor() or platform.machine()
    try:
        for line in open("/proc/cpuinfo", encoding="utf-8"):
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    version = subprocess.run([program(a), "--version"], capture_output=True, text=True).stdout.strip()
    return f"{cpu}, {processors()} processors, {platform.system()}; {version}"


def processors():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


# -------------------------------------------------------------------------------------------------------------- output


def say(a, *lines):
    """Prints lines of the report, and keeps them."""
    a.report += lines
    print(*lines, sep="\n", flush=True)


def markdown(a, header, rows):
    cells = [header, ["---"] * len(header), *rows]
    say(a, *("| " + " | ".join(map(str, row)) + " |" for row in cells), "")


def deliver(a):
    """Leaves the report in the folder and, if wanted, in the document between its two marks, with the picture."""
    name = a.experiment
    text = "\n".join(a.report).strip() + "\n"
    (a.to / f"{name}.md").write_text(text, encoding="utf-8")
    if not a.document:
        return
    document = HERE / "README.md"
    old = document.read_text(encoding="utf-8")
    begin, end = f"<!-- made by run.py {name} -->\n", f"<!-- end of {name} -->"
    before, mark, rest = old.partition(begin)
    _, other, after = rest.partition(end)
    if not mark or not other:
        raise Failure(f"{document} lacks the marks of {name}")
    document.write_text(before + begin + "\n" + text + "\n" + end + after, encoding="utf-8")
    if (a.to / f"{name}.svg").exists():
        shutil.copy(a.to / f"{name}.svg", HERE)


def write_csv(a, name, rows):
    path = a.to / f"{name}.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"wrote {path}", file=sys.stderr)


def figure(a, name, draw):
    """Draws with matplotlib, or says that it is missing."""
    try:
        import matplotlib
        matplotlib.use("svg")
        import matplotlib.pyplot as plt
    except ImportError:
        print(f"no {name}.svg: matplotlib is not installed (python3 -m pip install matplotlib)", file=sys.stderr)
        return
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": name, "font.size": 9, "axes.spines.top": False,
                         "axes.spines.right": False, "legend.frameon": False})
    path = a.to / f"{name}.svg"
    drawn = draw(plt)
    drawn.savefig(path, metadata={"Date": None}, bbox_inches="tight", dpi=200)
    print(f"wrote {path}", file=sys.stderr)


def count(threads):
    return f"{threads} thread" + "s" * (threads > 1)


def short(x):
    """Three digits."""
    return f"{x:.3g}" if x < 1000 else f"{x:.0f}"


# --------------------------------------------------------------------------------------------- performance, complexity


def sweep(a, models):
    """Measures models (label, file) of all sizes with all numbers of threads."""
    rows = []
    steps = round(a.duration / DT)
    with tempfile.TemporaryDirectory() as cache:                    # empty, so that each kernel is compiled
        for label, file in models:
            first = neuroc(a, "bench", HERE / file, "--precision", a.precision, "--steps", 1, "--repeat", 1,
                           "--cache", cache)
            for side in a.sides:
                for threads in a.threads:
                    got = neuroc(a, "bench", HERE / file, "--set", f"side={side}", "--precision", a.precision,
                                 "--threads", threads, "--steps", steps, "--repeat", a.repeat, "--cache", cache)
                    row = {"model": label, "side": side, "cells": got["cells"], "precision": got["precision"],
                           "threads_allowed": threads, "threads_used": got["threads"],
                           "first_setup_s": first["compile_s"], "setup_s": got["compile_s"], "run_s": got["run_s"], "slowest_run_s": max(got["all_run_s"]),
                           "s_per_simulated_s": 1 / got["realtime_factor"],
                           "cell_steps_per_s": got["cell_steps_per_s"]}
                    rows.append(row)
                    print(f"{label}, {got['cells']} cells, {count(threads)}: "
                          f"{row['s_per_simulated_s']:.4g} s per simulated second", file=sys.stderr, flush=True)
    return rows


def table(a, rows):
    """For each size: set-up without compilation, then speed with each number of threads."""
    header = ["cells", "set-up, s"]
    for n in a.threads:
        header += [f"s per simulated s, {count(n)}", "M cell-steps/s"]
    for label in dict.fromkeys(r["model"] for r in rows):
        of_label = [r for r in rows if r["model"] == label]
        say(a, f"{label[0].upper()}{label[1:]}, {a.precision}, best of {a.repeat} of {a.duration:g} ms "
            f"(compiling it takes {of_label[0]['first_setup_s']:.2f} s, once)", "")
        lines = []
        for side in a.sides:
            here = [r for r in of_label if r["side"] == side]
            line = [here[0]["cells"], short(here[0]["setup_s"])]
            for r in here:
                line += [short(r["s_per_simulated_s"]), short(r["cell_steps_per_s"] / 1e6)]
            lines.append(line)
        markdown(a, header, lines)


def size_axes(ax, title):
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.axhline(1, color="0.6", linewidth=0.8, linestyle=":")
    ax.set_title(title)
    ax.set_xlabel("cells")
    ax.set_ylabel("seconds per simulated second")


def performance(a):
    rows = sweep(a, list(OLIVE.items()))
    say(a, machine(a), "")
    table(a, rows)
    write_csv(a, "performance", rows)

    def draw(plt):
        drawn, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True)
        for ax, label in zip(axes, OLIVE):
            size_axes(ax, label)
            for n in a.threads:
                here = [r for r in rows if r["model"] == label and r["threads_allowed"] == n]
                ax.plot([r["cells"] for r in here], [r["s_per_simulated_s"] for r in here], "o-", markersize=3,
                        label=count(n))
        axes[0].legend()
        axes[1].set_ylabel("")
        return drawn

    figure(a, "performance", draw)
    return True


def complexity(a):
    rows = sweep(a, [("integrate-and-fire", "lif.neuro"), ("Hodgkin-Huxley", "hodgkin_huxley.neuro"),
                     ("inferior olive, unconnected", "unconnected.neuro"),
                     ("inferior olive, connected", "inferior_olive.neuro")])
    say(a, machine(a), "")
    table(a, rows)
    write_csv(a, "complexity", rows)

    def draw(plt):
        drawn, axes = plt.subplots(1, len(a.threads), figsize=(4 * len(a.threads), 3.4), sharey=True, squeeze=False)
        for ax, n in zip(axes[0], a.threads):
            size_axes(ax, count(n))
            for label in dict.fromkeys(r["model"] for r in rows):
                here = [r for r in rows if r["model"] == label and r["threads_allowed"] == n]
                ax.plot([r["cells"] for r in here], [r["s_per_simulated_s"] for r in here], "o-", markersize=3,
                        label=label)
        axes[0][-1].legend(loc="center left", bbox_to_anchor=(1, 0.5))
        return drawn

    figure(a, "complexity", draw)
    return True


# ------------------------------------------------------------------------------------------------ validation and stress


def only(result, end):
    """The one array whose name ends so."""
    found = [name for name in result if name.endswith(end)]
    if len(found) != 1:
        raise Failure(f"a result has {len(found)} arrays that end in `{end}`: {', '.join(result)}")
    return result[found[0]]


def differences(x, y, cells, begin, end):
    """|x - y| of the samples from `begin` to `end`, both included."""
    at = slice(begin * cells, (end + 1) * cells)
    return [abs(p - q) for p, q in zip(x[at], y[at])]


def finite(*arrays):
    return all(all(map(math.isfinite, x)) for x in arrays)


def said(ok):
    return "yes" if ok else "NO"


def validation(a):
    window = min(1000, a.duration // 2)
    windows = [("first", 1, window), ("last", a.duration - window + 1, a.duration)]     # samples are 1 ms apart
    rows, same, all_finite = [], True, True
    cells = a.side ** 3
    with tempfile.TemporaryDirectory() as folder:
        for label, file in OLIVE.items():
            v = {}
            for precision in ("f64", "f32"):
                for threads in a.threads:
                    _, result = simulate(a, HERE / file, pathlib.Path(folder) / "result.npz", precision=precision,
                                         threads=threads, duration=a.duration, settings=[f"side={a.side}"])
                    here = only(result, "soma.v")
                    if len(here) != (a.duration + 1) * cells:
                        raise Failure(f"{len(here)} samples of {cells} cells in {a.duration} ms")
                    same &= v.setdefault(precision, here) == here
            all_finite &= finite(v["f32"], v["f64"])
            for name, begin, end in windows:
                d = differences(v["f32"], v["f64"], cells, begin, end)
                low, median, high = statistics.quantiles(d, n=4)
                centiles = statistics.quantiles(d, n=20)
                rows.append({"network": label, "window": name, "from_ms": begin, "to_ms": end, "median_mV": median,
                             "quartile_1_mV": low, "quartile_3_mV": high, "percentile_5_mV": centiles[0],
                             "percentile_95_mV": centiles[-1], "max_mV": max(d)})
    say(a, machine(a), "",
        f"Somatic potential of {cells} cells over {a.duration / 1e3:g} s, f32 against f64, every 1 ms", "")
    markdown(a, ["network", "window", "median, mV", "95 % below, mV", "largest, mV"],
             [[r["network"], f"{r['from_ms']} .. {r['to_ms']} ms", *(f"{r[k]:.1e}" for k in
               ("median_mV", "percentile_95_mV", "max_mV"))] for r in rows])
    close = all(r["max_mV"] < LIMIT for r in rows)
    say(a, f"All values finite: {said(all_finite)}; below {LIMIT} mV: {said(close)}; "
        f"the same bits with {' and '.join(map(str, a.threads))} threads: {said(same)}")
    write_csv(a, "validation", rows)

    def draw(plt):
        drawn, ax = plt.subplots(figsize=(5, 3.2))
        ax.bxp([{"label": f"{r['network']}\n{r['window']} window", "med": r["median_mV"], "q1": r["quartile_1_mV"],
                 "q3": r["quartile_3_mV"], "whislo": r["percentile_5_mV"], "whishi": r["percentile_95_mV"],
                 "fliers": [r["max_mV"]]} for r in rows], flierprops={"marker": "x", "markersize": 4})
        ax.axhline(LIMIT, color="0.6", linewidth=0.8, linestyle=":")
        ax.set_yscale("log")
        ax.set_ylabel("|f32 - f64|, mV")
        return drawn

    figure(a, "validation", draw)
    return all_finite and close and same


def crossings(v, cells, every, level=-20.0):
    """How often each cell's samples rise through a level, taking one sample in `every`."""
    out = []
    for cell in range(cells):
        x = v[cell::cells][::every]
        out.append(sum(p < level <= q for p, q in zip(x, x[1:])))
    return out


def stress(a):
    cells, fine = 64, 0.05
    results, same = {}, True
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for precision in ("f64", "f32"):
            for threads in a.threads:
                _, got = simulate(a, HERE / "stress.neuro", folder / "result.npz", precision=precision, threads=threads,
                                  duration=a.duration)
                same &= results.setdefault(precision, got) == got
        # How many spikes someone sees who looks at the potential at intervals: the same run, recorded more often.
        text = (HERE / "stress.neuro").read_text(encoding="utf-8")
        often = text.replace("every 1 ms", f"every {fine} ms").replace('file("', f'file("{HERE.as_posix()}/')
        often = often.replace('edges("', f'edges("{HERE.as_posix()}/')
        for name in ("olive_cell.neuro", "inferior_olive.neuro"):
            shutil.copy(HERE / name, folder)
        (folder / "often.neuro").write_text(often, encoding="utf-8")
        _, got = simulate(a, folder / "often.neuro", folder / "often.npz", precision="f64", duration=a.duration)
        v = only(got, "soma.v")
    trains = {}
    for precision, result in results.items():
        times = collections.defaultdict(list)
        for t, i in zip(only(result, "spikes.t"), only(result, "spikes.i")):
            times[i].append(t)
        trains[precision] = times
    counts = {p: [len(t[i]) for i in range(cells)] for p, t in trains.items()}
    seen = {f"seen every step ({DT} ms)": counts["f64"], f"seen every {fine} ms": crossings(v, cells, 1),
            "seen every 1 ms": crossings(v, cells, 20)}
    equal = counts["f32"] == counts["f64"]
    shifts = [abs(round((p - q) / DT)) for i in range(cells) for p, q in zip(trains["f32"][i], trains["f64"][i])]
    f32, f64 = (only(results[p], "soma.v") for p in ("f32", "f64"))
    all_finite = finite(f32, f64, v)
    rows = []
    windows = (("before the pulses", 1, min(PULSES_BEGIN, a.duration)), ("pulses", PULSES_BEGIN + 1, a.duration))
    for name, begin, end in windows:
        if begin <= end:
            d = differences(f32, f64, cells, begin, end)
            rows.append({"window": name, "from_ms": begin, "to_ms": end, "median_mV": statistics.median(d),
                         "max_mV": max(d)})
    say(a, machine(a), "", f"Stress test, {cells} cells, {a.duration / 1e3:g} s, Euler, dt {DT} ms", "")
    markdown(a, ["f32 against f64, every 1 ms", "median, mV", "largest, mV"],
             [[f"{r['window']}, {r['from_ms']} .. {r['to_ms']} ms", f"{r['median_mV']:.1e}", f"{r['max_mV']:.2g}"]
              for r in rows])
    markdown(a, ["spikes (somatic potential rises through -20 mV)", "all cells", "fewest, most of a cell"],
             [[name, sum(c), f"{min(c)}, {max(c)}"] for name, c in seen.items()])
    say(a, f"- somatic potential {min(v):.2f} .. {max(v):.2f} mV; all values finite: {said(all_finite)}",
        f"- the same number of spikes in every cell in f32 and f64: {said(equal)} "
        f"({sum(counts['f32'])} and {sum(counts['f64'])})")
    if equal and shifts:
        say(a, f"- spike times: {sum(s == 0 for s in shifts)} of {len(shifts)} in the same step, the others "
            f"{max(shifts)} steps ({1e3 * max(shifts) * DT:g} us) apart at most")
    say(a, f"- the same bits with {' and '.join(map(str, a.threads))} threads allowed: {said(same)}")
    write_csv(a, "stress", rows)

    def draw(plt):
        drawn, (top, bottom) = plt.subplots(2, 1, figsize=(7, 4), sharex=True)
        step = 40                                                   # 2 ms of the fine recording
        t = [k * step * fine / 1e3 for k in range(len(v[::cells][::step]))]
        for cell in range(0, cells, 16):
            top.plot(t, v[cell::cells][::step], linewidth=0.4, label=f"cell {cell}")
        top.set_ylabel("soma of four cells, mV")
        for i in sorted(trains["f64"]):
            times = [x / 1e3 for x in trains["f64"][i]]
            bottom.plot(times, [i] * len(times), "|", color="black", markersize=2, rasterized=True)
        bottom.set_ylabel("cell (spikes)")
        bottom.set_xlabel("s")
        return drawn

    figure(a, "stress", draw)
    return all_finite and equal and same


# -------------------------------------------------------------------------------------------------------- command line


def sides(text):
    """`4..10,20,30` as a list."""
    out = []
    for part in text.split(","):
        first, dots, last = part.partition("..")
        out += range(int(first), int(last if dots else first) + 1)
    if not out or min(out) < 4:
        raise argparse.ArgumentTypeError("the study's networks have a side of 4 or more")
    return out


def threads(text):
    """`1,2` as a list."""
    out = [int(x) for x in text.split(",")]
    if min(out) < 1:
        raise argparse.ArgumentTypeError("at least one thread is needed")
    return out


def positive(text):
    out = int(text)
    if out < 1:
        raise argparse.ArgumentTypeError("a whole number above 0 is needed")
    return out


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = ap.add_subparsers(dest="experiment", required=True)

    def experiment(function, help):
        sub = verbs.add_parser(function.__name__, help=help, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        sub.set_defaults(function=function)
        sub.add_argument("--neuroc", help="the program; by default as built here with --release, then as on the path")
        sub.add_argument("--to", type=pathlib.Path, default=ROOT / "target" / "inferior_olive",
                         help="folder for results")
        sub.add_argument("--document", action="store_true", help="put the result into README.md")
        return sub

    hundreds = ",".join(map(str, range(30, 101, 10)))
    for function, what, default in ((performance, "speed over sizes", f"4..20,{hundreds}"),
                                    (complexity, "speed of three kinds of cells", f"4..10,20,{hundreds}")):
        sub = experiment(function, what)
        sub.add_argument("--sides", type=sides, default=default, help="cells are side^3")
        sub.add_argument("--threads", type=threads, default=",".join(map(str, sorted({1, processors()}))))
        sub.add_argument("--precision", choices=["f32", "f64"], default="f32")
        sub.add_argument("--duration", type=positive, default=100, help="ms of model time in one repetition")
        sub.add_argument("--repeat", type=positive, default=5, help="repetitions; the best counts")
    sub = experiment(validation, "single against double precision")
    sub.add_argument("--side", type=int, default=9, help="cells are side^3")
    sub.add_argument("--duration", type=positive, default=10_000, help="ms")
    sub.add_argument("--threads", type=threads, default="1,2", help="numbers of threads that must agree")
    sub = experiment(stress, "a network pushed by pulses")
    sub.add_argument("--duration", type=positive, default=15_000, help="ms; pulses begin after 5 s, one each second")
    sub.add_argument("--threads", type=threads, default="1,2", help="numbers of threads that must agree")
    a = ap.parse_args()
    a.report = []
    if a.experiment == "validation" and (a.side < 4 or a.duration < 2):
        ap.error("validation needs a side of 4 or more and at least 2 ms")
    try:
        a.to.mkdir(parents=True, exist_ok=True)
        fine = a.function(a)
        deliver(a)
        return 0 if fine else 1
    except (Failure, OSError) as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
