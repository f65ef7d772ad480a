"""The gallery: a page for each `examples/*.neuro`, with the picture that `neuroc run` draws of it.

The pages are written into `docs/gallery` before Sphinx reads it, and are not kept in git. An example is run again when it, or this
file, is newer than its picture.
"""

import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sphinx.util import logging

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
GALLERY = ROOT / "docs" / "gallery"
#: The command of this environment, which has the same compiler as the Python package.
NEUROC = Path(sys.executable).with_name("neuroc")

#: What is run where that is not `neuroc run examples/NAME.neuro`; the last command draws the picture.
COMMANDS = {
    "lif_fi_curve": [
        "neuroc run examples/lif_fi_curve.neuro -o lif_fi_curve.npz",
        "neuroc plot lif_fi_curve.npz --kind cells --against step.amplitude",
    ],
    "microcircuit": [
        "neuroc run examples/microcircuit.neuro -o microcircuit.npz",
        "neuroc plot microcircuit.npz --kind raster",
    ],
    "rallpack3": [
        "neuroc run examples/rallpack3.neuro -o rallpack3.npz",
        "neuroc plot rallpack3.npz --kind space --to 60ms",
    ],
    "purkinje": [
        "neuroc run examples/purkinje.neuro -o purkinje.npz",
        "neuroc plot --morphology examples/purkinje.neuro purkinje.npz --colour v --at 154ms",
    ],
    "lfp": [
        "neuroc run examples/lfp.neuro -o lfp.npz",
        "neuroc plot lfp.npz --kind space",
    ],
    "digits": [
        "neuroc train examples/digits.neuro --epochs 4 -o digits.trained.npz",
        "neuroc run examples/digits.neuro --trained digits.trained.npz",
    ],
    "digits_direct": [
        "neuroc train examples/digits_direct.neuro --epochs 4 -o digits_direct.trained.npz",
        "neuroc run examples/digits_direct.neuro --trained digits_direct.trained.npz --sample 7",
    ],
    "digits_latency": [
        "neuroc train examples/digits_latency.neuro --epochs 8 -o digits_latency.trained.npz",
        "neuroc run examples/digits_latency.neuro --trained digits_latency.trained.npz",
    ],
    "evidence": [
        "neuroc train examples/evidence.neuro --epochs 6 -o evidence.trained.npz",
        "neuroc run examples/evidence.neuro --trained evidence.trained.npz",
    ],
    "feature_binding": [
        "neuroc train examples/feature_binding.neuro -o feature_binding.trained.npz",
        "neuroc run examples/feature_binding.neuro --trained feature_binding.trained.npz --sample 7",
    ],
    "spike_order": [
        "neuroc train examples/spike_order.neuro -o spike_order.trained.npz",
        "neuroc run examples/spike_order.neuro --trained spike_order.trained.npz --sample 7",
    ],
    "digits_convolution": [
        "neuroc train examples/digits_convolution.neuro --epochs 4 -o digits_convolution.trained.npz",
        "neuroc run examples/digits_convolution.neuro --trained digits_convolution.trained.npz",
    ],
}
#: What is said about the settings of those that are shown shorter than they are.
NOTES = {
    "digits": "The picture is made after 4 epochs of training; the file says 15.",
    "digits_convolution": "The picture is made after 4 epochs of training; the file says 15.",
    "digits_direct": "The picture is made after 4 epochs of training; the file says 15.",
    "digits_latency": "The picture is made after 8 epochs of training; the file says 20.",
    "evidence": "The picture is made after 6 epochs of training; the file says 12.",
    "brunel": "The file has a fifth of the paper's cells as it stands; `--set order=2500` runs the paper's net.",
    "microcircuit": "The file has a twentieth of the circuit as it stands; `--set scale=1` is all of it, which takes gigabytes.",
}
#: Examples by what they show. One that is not named here stands with the last.
GROUPS = {
    "Channels and single cells": [
        "squid", "squid_sweep", "squid_warm", "voltage_clamp", "a_current", "cortical_rs", "rebound_burst", "resurgent_sodium", "nmda_spike",
        "calcium_adaptation", "calcium_ghk", "channel_noise",
    ],
    "Branched cells": [
        "ball_and_stick", "pyramidal", "purkinje", "dendritic_calcium", "calcium_diffusion", "dendritic_junctions", "dendritic_ring", "column", "lfp",
        "rallpack1", "rallpack2", "rallpack3",
    ],
    "Point neurons": ["lif_fi_curve", "adex", "izhikevich", "izhikevich_rs", "oscillators"],
    "Networks": [
        "brunel", "vogels_abbott_coba", "vogels_abbott_cuba", "coba_hh", "izhikevich_net", "microcircuit", "delays", "olive_sheet",
        "pyloric", "noise_and_files",
    ],
    "Synapses that remember, fits and training": [
        "short_term", "stdp", "stdp_protocol", "distal_reward", "squid_fit", "olive_fit", "adex_fit", "fi_fit", "digits", "digits_convolution",
        "digits_direct", "digits_latency", "evidence", "feature_binding", "spike_order",
    ],
}  # fmt: skip


def names():
    return sorted(path.stem for path in EXAMPLES.glob("*.neuro"))


def head(source):
    """The documentation at the head of a file: its first sentence, and all of it."""
    lines = [line[3:] if line.startswith("//!") else None for line in source.splitlines()]
    lines = lines[: lines.index(None)]
    # What is indented in the head of a file is a command over one or several lines.
    text = "\n".join("    " + line[4:] if line.startswith("    ") else line.strip() for line in lines)
    text = re.sub(r"\n(    .*(?:\n    .*)*)\n", lambda m: f"\n\n{re.sub(chr(10), ' ' + chr(92) + chr(10), m[1])}\n\n", text)
    whole = " ".join(line.strip() for line in lines)
    ends = [m.start() for m in re.finditer(r"(?<=[a-z)0-9])[.?:](?= [A-Z0-9])", whole)]
    end = next((e for e in ends if whole[:e].count("(") == whole[:e].count(")")), len(whole) - 1)
    first = whole[: end + 1].rstrip(":") if whole[end] == "?" else whole[:end].rstrip(".") + "."
    return first, text


def run(name, folder):
    """Runs an example: what was printed, and the picture."""
    picture = GALLERY / f"{name}.svg"
    said = folder / f"{name}.txt"
    source = EXAMPLES / f"{name}.neuro"
    newest = max(source.stat().st_mtime, Path(__file__).stat().st_mtime, NEUROC.stat().st_mtime)
    if picture.exists() and said.exists() and min(picture.stat().st_mtime, said.stat().st_mtime) > newest:
        return said.read_text()
    printed = ""
    commands = COMMANDS.get(name, [f"neuroc run examples/{name}.neuro"])
    for number, command in enumerate(commands, 1):
        words = [str(NEUROC), *shlex.split(command)[1:]]
        if number == len(commands):
            words += ["-o" if words[1] == "plot" else "--plot", str(picture)]
        ran = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if ran.returncode != 0:
            raise RuntimeError(f"{command}\n{ran.stdout}")
        out = [line for line in ran.stdout.splitlines() if not line.startswith(("wrote ", "drew "))]
        printed += "\n".join([f"$ {command}", *out]) + "\n"
    said.write_text(printed)
    return printed


def page(name, printed):
    source = (EXAMPLES / f"{name}.neuro").read_text()
    _, text = head(source)
    begin = next(number for number, line in enumerate(source.splitlines(), 1) if not line.startswith("//!")) + 1
    note = f"\n:::{{note}}\n{NOTES[name]}\n:::\n" if name in NOTES else ""
    return f"""# {name}

{text}

![What a run of {name} records]({name}.svg)
{note}
```console
{printed}```

`examples/{name}.neuro`:

```{{literalinclude}} ../../examples/{name}.neuro
:language: neuro
:lines: {begin}-
```
"""


def card(name):
    first, _ = head((EXAMPLES / f"{name}.neuro").read_text())
    return f"""::::{{grid-item-card}} {name}
:link: {name}
:link-type: doc
:img-top: {name}.svg
{first}
::::
"""


def write(path, text):
    """Writes a file unless it has this text, so that Sphinx reads again only what has changed."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def make(app):
    log = logging.getLogger(__name__)
    folder = Path(os.environ["NEUROC_BOOK_WORK"]).parent / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "examples").is_symlink():
        (folder / "examples").symlink_to(EXAMPLES)
    log.info("running the examples...")
    with ThreadPoolExecutor(max_workers=max(1, min(4, os.cpu_count() or 1))) as pool:
        printed = dict(zip(names(), pool.map(lambda name: run(name, folder), names())))
    for old in GALLERY.glob("*.md"):
        if old.stem not in printed and old.stem not in ("index", "cards"):
            old.unlink()
    for name, text in printed.items():
        write(GALLERY / f"{name}.md", page(name, text))
    groups = {title: [name for name in group if name in printed] for title, group in GROUPS.items()}
    shown = {name for group in groups.values() for name in group}
    groups[list(groups)[-1]] += [name for name in names() if name not in shown]
    cards = ""
    for title, group in groups.items():
        cards += f"## {title}\n\n:::::{{grid}} 1 2 3 3\n:gutter: 2\n\n{chr(10).join(card(name) for name in group)}:::::\n\n"
        cards += "```{toctree}\n:hidden:\n\n" + "\n".join(group) + "\n```\n\n"
    write(GALLERY / "cards.md", cards)


def setup(app):
    app.connect("builder-inited", make)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
