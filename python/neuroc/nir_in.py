"""Networks from NIR, the Neuromorphic Intermediate Representation (Pedersen et al., Nat Commun 15:8122, 2024).

In comes a graph of the package `nir`, or a file of it; out goes a model with its text and its data files.
Never true here: a node is left out, or a number of the graph is changed.
"""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core, exchange
from .errors import SaveError, UsageError
from .model import Model, Time
from .nir_out import Named, ordered, to_nir

Array = NDArray[np.float64]
Shape = tuple[int, ...]

#: What the cells of a node are called in the text, and how the node is read.
CELLS = {
    "LIF": "Lif",
    "CubaLIF": "Lif",
    "LI": "Leaky",
    "CubaLI": "Leaky",
    "IF": "IntegrateAndFire",
    "I": "Integrator",
}
SPIKING = ("LIF", "CubaLIF", "IF")
FILTERED = ("CubaLIF", "CubaLI")
LINEAR = ("Affine", "Linear", "Scale", "Conv1d", "Conv2d", "SumPool2d", "AvgPool2d", "Flatten", "Delay")
#: As powers of ten of a millisecond.
UNITS = {"s": 3, "ms": 0, "us": -3}
#: Numbers that a matrix between two populations has at most.
LARGEST = 100_000_000

TEXTS = {
    "Source": """\
/// Sends the spikes that arrive, or those of the cells whose `v` is set to 1 mV.
cell Source {
    state v: mV = 0 mV
    v' = 0 /ms * v
    spike when v > 0.5 mV { v = 0 mV }
}
""",
    "Lif": """\
/// NIR's LIF: tau v' = v_leak - v + r i; the cell of its CubaLIF, too.
cell Lif {
    /// Membrane time constant.
    param tau = 10 ms
    /// Membrane resistance.
    param r = 1 kohm
    /// Leak potential.
    param v_leak = 0 mV
    /// The potential above which it fires.
    param v_threshold = 1 mV
    /// The potential behind a spike.
    param v_reset = 0 mV
    /// Constant input: the biases of what leads here.
    param bias = 0 uA
    state v: mV = v_leak
    v' = (v_leak - v + r * (bias - i_syn)) / tau
    spike when v > v_threshold { v = v_reset }
}
""",
    "Leaky": """\
/// NIR's LI: tau v' = v_leak - v + r i; the cell of its CubaLI, too.
cell Leaky {
    /// Membrane time constant.
    param tau = 10 ms
    /// Membrane resistance.
    param r = 1 kohm
    /// Leak potential.
    param v_leak = 0 mV
    /// Constant input: the biases of what leads here.
    param bias = 0 uA
    state v: mV = v_leak
    v' = (v_leak - v + r * (bias - i_syn)) / tau
}
""",
    "IntegrateAndFire": """\
/// NIR's IF: v' = r i.
cell IntegrateAndFire {
    /// What a current adds to the potential, in a time.
    param r = 1 kohm/ms
    /// The potential above which it fires.
    param v_threshold = 1 mV
    /// The potential behind a spike.
    param v_reset = 0 mV
    /// Constant input: the biases of what leads here.
    param bias = 0 uA
    state v: mV = 0 mV
    v' = r * (bias - i_syn)
    spike when v > v_threshold { v = v_reset }
}
""",
    "Integrator": """\
/// NIR's I: v' = r i.
cell Integrator {
    /// What a current adds to the potential, in a time.
    param r = 1 kohm/ms
    /// Constant input: the biases of what leads here.
    param bias = 0 uA
    state v: mV = 0 mV
    v' = r * (bias - i_syn)
}
""",
    "Pulse": """\
/// A spike is a current that flows for one time step.
synapse Pulse {
    /// How much a current adds to the potential in a step: r * dt / tau of the cell.
    param gain = 1 kohm
    on event(weight: uA) { v += gain * weight }
}
""",
    "Filter": """\
/// A spike is a pulse of one time step, which comes through a low-pass filter: tau i' = -i + w_in s. The potential sees it
/// in the step in which it comes.
synapse Filter {
    /// Time constant.
    param tau = 5 ms
    /// A factor of what comes.
    param w_in = 1
    /// How much a current adds to the potential in a step: r * dt / tau of the cell.
    param membrane = 1 kohm
    /// Constant input: the biases of what leads here.
    param bias = 0 uA
    /// The time step.
    param width = {dt}
    let gain = w_in * width / tau
    let left = 1 - width / tau
    state inward: uA = 0 uA
    inward' = (left * w_in * bias - inward) / tau
    on event(weight: uA) {
        inward += left * gain * weight
        v += membrane * gain * weight
    }
    current i = -(inward + gain * bias)
}
""",
}

#: Words of the language, and a name that the text has for itself.
RESERVED = set(
    "and or not if then else true false at of via from to crosses when as use const function channel cell junction synapse network run "
    "param let state reads gate current insert compartment couple spike input population connect record std t v pi index celsius "
    "fraction instantaneous pool refractory init spikes q10 every clamp on event pre post modulator modulating drive morphology section compartments region "
    "kinetics conserve train learn keep around trains".split()
)


@dataclass
class Neurons:
    """A population of the network in the making."""

    node: str
    #: What kind of node it is.
    kind: str
    name: str
    shape: Shape
    #: Parameters of cells by name: values in the unit that the text writes, and this unit.
    params: dict[str, tuple[Array, str]] = field(default_factory=dict)
    #: Constant input, `[cell]`.
    bias: Array = field(default_factory=lambda: np.zeros(0))
    #: So many steps after an input its spikes come in the network that is made, compared with NIR, where they come at once.
    depth: int = 0

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def receptor(self) -> str:
        return "Filter" if self.kind in FILTERED else "Pulse"

    @property
    def drive(self) -> str:
        """The parameter that the constant input is."""
        return f"{self.name}.Filter.bias" if self.kind in FILTERED else f"{self.name}.bias"


@dataclass
class Way:
    """Linear nodes from one population to another."""

    source: str
    target: str
    nodes: list[str]


def shifted(x: float, by: int) -> float:
    """A number times a power of ten, as if it had been written so."""
    return float(Decimal(repr(float(x))).scaleb(by)) if by else float(x)


def all_shifted(values: Array, by: int) -> Array:
    """Numbers times a power of ten."""
    return np.array([shifted(x, by) for x in values.ravel()]).reshape(values.shape) if by else values


def text_of(x: float, unit: str) -> str:
    return f"{float(x)!r} {unit}".replace(".0 ", " ").rstrip()


def grid(shape: Shape) -> list[int]:
    """The sizes of a population, the fastest first: `[width, height, channels]`."""
    if len(shape) == 2:
        return [shape[1], 1, shape[0]]
    if len(shape) > 3 or not shape:
        return [int(np.prod(shape, dtype=np.int64))]
    return list(reversed(shape))


class Importer:
    """Makes a network of a graph."""

    def __init__(self, graph: Any, dt: float, unit: str) -> None:
        self.dt = dt
        self.power = UNITS.get(unit)
        self.wrong: list[str] = []
        self.nodes: dict[str, Any] = {}
        self.edges: list[tuple[str, str]] = []
        self.tops: set[str] = set()
        self.flatten(graph, "")
        self.next: dict[str, list[str]] = {name: [] for name in self.nodes}
        self.before: dict[str, list[str]] = {name: [] for name in self.nodes}
        for a, b in dict.fromkeys(self.edges):
            self.next[a].append(b)
            self.before[b].append(a)
        self.populations: dict[str, Neurons] = {}
        self.paths: list[Way] = []
        self.files: dict[str, Array | str] = {}
        self.names: dict[str, str] = {}
        self.biases: dict[str, Array] = {}

    def flatten(self, graph: Any, prefix: str) -> None:
        """Takes the nodes of a graph and of those inside of it; their inputs and outputs become nodes that change nothing."""
        inside = {}
        for name, node in graph.nodes.items():
            full, kind = f"{prefix}{name}", type(node).__name__
            if kind == "NIRGraph":
                inside[name] = node
                self.flatten(node, f"{full}.")
                continue
            self.nodes[full] = node
            if not prefix and kind in ("Input", "Output"):
                self.tops.add(full)
        for a, b in graph.edges:
            for name in (a, b):
                if name not in graph.nodes:
                    raise UsageError(f"an edge of the graph names `{prefix}{name}`, which is no node of it")
            self.edges.append((self.end(prefix, a, inside, "Output"), self.end(prefix, b, inside, "Input")))

    def end(self, prefix: str, name: str, inside: Mapping[str, Any], kind: str) -> str:
        if name not in inside:
            return f"{prefix}{name}"
        ends = [inner for inner, node in inside[name].nodes.items() if type(node).__name__ == kind]
        if len(ends) != 1:
            raise UsageError(
                f"the graph `{prefix}{name}` has {len(ends)} nodes of type {kind}, so that an edge to it does not say which is meant"
            )
        return f"{prefix}{name}.{ends[0]}"

    def kind(self, name: str) -> str:
        """What a node is; "Identity" changes nothing."""
        kind = type(self.nodes[name]).__name__
        return "Identity" if kind in ("Input", "Output") and name not in self.tops else kind

    def is_cells(self, name: str) -> bool:
        kind = self.kind(name)
        return kind in CELLS or kind == "Input"

    # What there is

    def check(self) -> None:
        for name in self.nodes:
            kind = self.kind(name)
            if kind == "Threshold":
                self.wrong.append(f"`{name}` (Threshold): a threshold without a state that it is compared with is no cell")
            elif not (kind in CELLS or kind in LINEAR or kind in ("Input", "Output", "Identity")):
                self.wrong.append(f"`{name}` ({kind}): this type is not known")
            elif kind in ("Affine", "Linear") and np.ndim(self.nodes[name].weight) != 2:
                self.wrong.append(f"`{name}` ({kind}): its weight has {np.ndim(self.nodes[name].weight)} dimensions, not two")
        self.refuse()
        if not any(self.kind(name) in CELLS for name in self.nodes):
            raise UsageError("the graph has no neurons")

    def refuse(self) -> None:
        if self.wrong:
            raise UsageError("this graph cannot be made a model:\n" + "\n".join(f"- {why}" for why in self.wrong))

    # Shapes

    def shape_behind(self, name: str, seen: tuple[str, ...] = ()) -> Shape | None:
        """The shape of what a node gives, as far as it is known."""
        if name in seen:
            return None
        node, kind = self.nodes[name], self.kind(name)
        if kind == "Input":
            given = node.input_type["input"]
            return None if given is None else tuple(int(n) for n in np.atleast_1d(given))
        if kind in CELLS:
            own = self.arrays(name)
            try:
                shape = np.broadcast_shapes(*(a.shape for a in own.values()))
            except ValueError:
                shapes = ", ".join(f"{key} {value.shape}" for key, value in own.items())
                raise UsageError(f"the parameters of `{name}` ({kind}) have shapes that do not fit: {shapes}") from None
            if int(np.prod(shape, dtype=np.int64)) > 1:
                return shape
            # One number for all: the shape is that of what comes.
            coming = [self.shape_behind(a, (*seen, name)) for a in self.before[name]]
            known = [s for s in coming if s is not None]
            return known[0] if known else (shape or (1,))
        coming = [self.shape_behind(a, (*seen, name)) for a in self.before[name]]
        known = [s for s in coming if s is not None]
        if kind in ("Affine", "Linear"):
            return (int(np.shape(node.weight)[0]),)
        if not known:
            return None
        return self.operator(name, known[0], shape_only=True)[2]

    def arrays(self, name: str) -> dict[str, Array]:
        """The parameters of neurons."""
        node = self.nodes[name]
        names = ["tau", "tau_mem", "tau_syn", "r", "v_leak", "v_threshold", "v_reset", "w_in"]
        found = {}
        for key in names:
            value = getattr(node, key, None)
            if value is not None:
                found[key] = np.asarray(value, dtype=np.float64)
            elif key == "v_reset" and hasattr(node, "v_threshold"):
                found[key] = np.zeros_like(np.asarray(node.v_threshold, dtype=np.float64))
        for key, value in found.items():
            if not np.all(np.isfinite(value)):
                raise UsageError(f"`{name}` ({self.kind(name)}): {key} is not finite everywhere")
        return found

    # Linear nodes

    def operator(self, name: str, shape: Shape, shape_only: bool = False) -> tuple[Array | None, Array | None, Shape]:
        """A node as a matrix `[out, in]` and what it adds `[out]`, and the shape of what comes out; None is what changes or adds nothing."""
        node, kind = self.nodes[name], self.kind(name)
        size = int(np.prod(shape, dtype=np.int64))
        for key in ("weight", "bias", "scale"):
            value = getattr(node, key, None)
            if value is not None and not np.all(np.isfinite(value)):
                raise UsageError(f"`{name}` ({kind}): {key} is not finite everywhere")
        if kind in ("Identity", "Delay", "Output"):
            return None, None, shape
        if kind == "Flatten":
            if size == 1 and not shape:
                return None, None, (1,)
            dims = len(shape)
            first, last = int(node.start_dim) % dims, int(node.end_dim) % dims
            middle = int(np.prod(shape[first : last + 1], dtype=np.int64))
            return None, None, (*shape[:first], middle, *shape[last + 1 :])
        if kind in ("Affine", "Linear"):
            weight = np.asarray(node.weight, dtype=np.float64)
            if weight.shape[1] != size:
                raise UsageError(f"`{name}` ({kind}) takes {weight.shape[1]} numbers, but {shape} come, which are {size}")
            bias = np.asarray(node.bias, dtype=np.float64).ravel() if kind == "Affine" and node.bias is not None else None
            return weight, bias, (weight.shape[0],)
        if kind == "Scale":
            if shape_only:
                return None, None, shape
            self.sized(name, size, size)
            return np.diag(np.broadcast_to(np.asarray(node.scale, dtype=np.float64), shape).ravel()), None, shape
        return self.windows(name, kind, shape, shape_only)

    def sized(self, name: str, rows: int, columns: int) -> None:
        if rows * columns > LARGEST:
            raise UsageError(f"`{name}` ({self.kind(name)}) is a matrix of {rows} x {columns}; more than {LARGEST} numbers are not taken")

    def windows(self, name: str, kind: str, shape: Shape, shape_only: bool) -> tuple[Array | None, Array | None, Shape]:
        """Convolutions and pooling."""
        weight, stride, padding, dilation, groups, bias = self.window(name, shape)
        dims = weight.ndim - 2
        if len(shape) != dims + 1:
            raise UsageError(f"`{name}` ({kind}) takes {dims + 1} dimensions, channels first, but {shape} come")
        if shape[0] != weight.shape[1] * groups:
            raise UsageError(f"`{name}` ({kind}) takes {weight.shape[1] * groups} channels, but {shape} come")
        lows, outs = [], []
        for at in range(dims):
            span = dilation[at] * (weight.shape[2 + at] - 1) + 1
            if padding == "same":
                if stride[at] != 1:
                    raise UsageError(f'`{name}` ({kind}) has padding "same" and a stride of {stride[at]}, which do not go together')
                lows.append((span - 1) // 2)
                outs.append(shape[1 + at])
            else:
                lows.append(padding[at])
                outs.append((shape[1 + at] + 2 * padding[at] - span) // stride[at] + 1)
        if min(outs) < 1:
            raise UsageError(f"`{name}` ({kind}): its window is larger than what comes, {shape}")
        out: Shape = (weight.shape[0], *outs)
        if shape_only:
            return None, None, out
        self.sized(name, int(np.prod(out)), int(np.prod(shape)))
        matrix = np.zeros((*out, *shape))
        each_in, each_out = weight.shape[1], weight.shape[0] // groups
        for taps in np.ndindex(*weight.shape[2:]):
            places = []
            for at, tap in enumerate(taps):
                to = np.arange(outs[at])
                of = to * stride[at] - lows[at] + tap * dilation[at]
                inside = (of >= 0) & (of < shape[1 + at])
                places.append((to[inside], of[inside]))
            tos = np.meshgrid(*(p[0] for p in places), indexing="ij")
            ofs = np.meshgrid(*(p[1] for p in places), indexing="ij")
            for group in range(groups):
                of_out = np.arange(each_out) + group * each_out
                of_in = np.arange(each_in) + group * each_in
                tap_of_all: tuple[Any, ...] = (of_out, slice(None), *taps)
                block = weight[tap_of_all]
                rows, columns = np.ix_(of_out, of_in)
                for there, here in zip(zip(*(a.ravel() for a in tos)), zip(*(a.ravel() for a in ofs))):
                    place: tuple[Any, ...] = (rows, *there, columns, *here)
                    matrix[place] += block
        added = None if bias is None else np.repeat(bias, int(np.prod(outs)))
        return matrix.reshape(int(np.prod(out)), int(np.prod(shape))), added, out

    def window(self, name: str, shape: Shape) -> tuple[Array, list[int], Any, list[int], int, Array | None]:
        """The weight `[out, in, window...]` of a convolution or a pooling, stride, padding, dilation, groups, bias."""
        node, kind = self.nodes[name], self.kind(name)
        if kind in ("SumPool2d", "AvgPool2d"):
            size = pair(node.kernel_size, 2)
            weight = np.ones((shape[0], 1, *size)) / (np.prod(size) if kind == "AvgPool2d" else 1)
            return weight, pair(node.stride, 2), pair(node.padding, 2), [1, 1], shape[0], None
        dims = 1 if kind == "Conv1d" else 2
        said = np.asarray(node.padding)
        word = said.item() if said.dtype.kind in "SU" else ""
        word = word.decode() if isinstance(word, bytes) else word
        padding = "same" if word == "same" else [0] * dims if word == "valid" else pair(said, dims)
        bias = None if node.bias is None else np.asarray(node.bias, dtype=np.float64).ravel()
        weight = np.asarray(node.weight, dtype=np.float64)
        return weight, pair(node.stride, dims), padding, pair(node.dilation, dims), int(node.groups), bias

    # Populations

    def gather(self) -> None:
        taken: set[str] = set()
        for node in self.nodes:
            if not self.is_cells(node):
                continue
            shape = self.shape_behind(node)
            if shape is None:
                self.wrong.append(f"`{node}` ({self.kind(node)}): its shape is not known")
                continue
            name = re.sub(r"\W", "_", node, flags=re.ASCII) or "cells"
            if not re.match(r"[A-Za-z_]", name):
                name = f"n{name}"
            while name in RESERVED or name in _core.WORDS or name in taken:
                name += "_1"
            taken.add(name)
            self.populations[node] = Neurons(node, self.kind(node), name, shape)
        self.refuse()
        for node, cells in self.populations.items():
            if cells.kind != "Input":
                cells.bias = np.zeros(cells.size)
                self.parameters(node, cells)
        self.refuse()

    def parameters(self, node: str, cells: Neurons) -> None:
        of = {key: np.broadcast_to(value, cells.shape).ravel() for key, value in self.arrays(node).items()}
        for key in ("tau", "tau_mem", "tau_syn"):
            if key in of:
                of[key] = self.in_ms(of[key])
                if np.any(of[key] < self.dt * (1 - 1e-9)):
                    least = float(of[key].min())
                    self.wrong.append(
                        f"`{node}` ({cells.kind}): its {key} of {least:.6g} ms is shorter than the time step of {self.dt:.6g} ms; "
                        "is `unit` the unit of the graph's times?"
                    )
        tau = of.get("tau", of.get("tau_mem"))
        if tau is None:
            # What a current adds in a time: the unit of the graph's times is below the line.
            cells.params["r"] = (self.per_ms(of["r"]), "kohm/ms")
            gain = cells.params["r"][0] * self.dt
        else:
            cells.params["tau"] = (tau, "ms")
            cells.params["r"] = (of["r"], "kohm")
            gain = of["r"] * self.dt / tau
            cells.params["v_leak"] = (of["v_leak"], "mV")
        for key in ("v_threshold", "v_reset"):
            if key in of:
                cells.params[key] = (of[key], "mV")
        if cells.kind in FILTERED:
            cells.params["Filter.tau"] = (of["tau_syn"], "ms")
            cells.params["Filter.w_in"] = (of["w_in"], "")
            cells.params["Filter.membrane"] = (gain, "kohm")
        else:
            cells.params["Pulse.gain"] = (gain, "kohm")

    def in_ms(self, values: Array) -> Array:
        return values * self.dt if self.power is None else all_shifted(values, self.power)

    def per_ms(self, values: Array) -> Array:
        return values / self.dt if self.power is None else all_shifted(values, -self.power)

    # Connections

    def walk(self) -> None:
        """All ways along linear nodes from population to population."""
        for source, cells in self.populations.items():
            gives = cells.kind == "Input" or cells.kind in SPIKING
            for path in self.ways(source, source, []):
                kind = self.kind(path.target)
                if kind == "Output":
                    strange = [n for n in path.nodes if self.kind(n) not in ("Identity", "Flatten")]
                    if strange or cells.kind == "Input":
                        through = f" through {', '.join(f'`{n}` ({self.kind(n)})' for n in strange)}" if strange else ""
                        self.wrong.append(
                            f"`{path.target}` (Output): what `{source}` ({cells.kind}) sends comes there{through} without a neuron that takes it up"
                        )
                elif not gives:
                    self.wrong.append(
                        f"`{source}` ({cells.kind}): its potential goes to `{path.target}` ({kind}); connections carry spikes, not potentials"
                    )
                else:
                    self.paths.append(path)
        self.wrong = list(dict.fromkeys(self.wrong))
        self.refuse()

    def ways(self, source: str, at: str, nodes: list[str]) -> Iterator[Way]:
        for name in self.next[at]:
            if self.is_cells(name) or self.kind(name) == "Output":
                if self.kind(name) == "Input":
                    raise UsageError(f"`{at}` leads to `{name}`, an Input")
                yield Way(source, name, nodes)
            elif name in nodes:
                raise UsageError(f"`{name}` ({self.kind(name)}) is in a loop without a neuron")
            else:
                yield from self.ways(source, name, [*nodes, name])

    def composed(self, path: Way) -> tuple[Array, Array, Array | None]:
        """A way as a matrix `[target, source]`, what it adds `[target]`, and its delays (ms) `[target, source]`."""
        source, target = self.populations[path.source], self.populations[path.target]
        shape, matrix, added = source.shape, None, np.zeros(source.size)
        before: Array | None = None
        behind: Array | None = None
        for name in path.nodes:
            if self.kind(name) == "Delay":
                delay = np.broadcast_to(self.in_ms(np.asarray(self.nodes[name].delay, dtype=np.float64)), shape).ravel()
                if matrix is None:
                    before = delay if before is None else before + delay
                else:
                    behind = delay if behind is None else behind + delay
                continue
            own, bias, shape = self.operator(name, shape)
            if own is not None:
                if behind is not None:
                    if np.ptp(behind) > 0:
                        raise UsageError(f"`{name}` ({self.kind(name)}): what it adds up has been delayed by different times, which is not supported")
                    behind = np.full(own.shape[0], behind[0])
                matrix = own if matrix is None else own @ matrix
                added = own @ added
            if bias is not None:
                added = added + bias
        if matrix is None:
            self.sized(path.target, target.size, source.size)
            matrix = np.eye(source.size)
        if matrix.shape[0] != target.size:
            raise UsageError(f"`{path.target}` ({target.kind}) has the shape {target.shape}, but {shape} come from `{path.source}`")
        delays = None
        if before is not None or behind is not None:
            of_source = np.zeros(source.size) if before is None else before
            of_target = np.zeros(target.size) if behind is None else behind
            delays = of_target[:, None] + of_source[None, :]
            if np.any(delays < 0):
                raise UsageError(f"a delay on the way from `{path.source}` to `{path.target}` is negative")
        return matrix, added, delays

    def depths(self) -> dict[tuple[str, str], int]:
        """How many steps the spikes of each pair take, so that all that belongs to one step of NIR arrives in one."""
        pairs = list(dict.fromkeys((p.source, p.target) for p in self.paths))
        after: dict[str, list[str]] = {name: [] for name in self.populations}
        for a, b in pairs:
            after[a].append(b)
        order, back = ordered(sorted(self.populations, key=lambda n: self.populations[n].kind != "Input"), after)
        for at in order:
            for to in after[at]:
                if (at, to) not in back:
                    cells = self.populations[to]
                    cells.depth = max(cells.depth, self.populations[at].depth + 1)
        steps = {}
        for a, b in pairs:
            between = self.populations[b].depth - self.populations[a].depth + (1 if (a, b) in back else 0)
            if between < 1:
                self.wrong.append(
                    f"`{a}` leads back to `{b}`, {self.populations[a].depth - self.populations[b].depth} layers before it: a spike takes a time "
                    "step for each layer, so that it would have to arrive before it is sent"
                )
            steps[a, b] = between
        self.refuse()
        return steps

    # The text

    def number(self, values: Array, unit: str, name: str) -> str:
        """One number, or a file of them."""
        if values.size and np.all(values == values.flat[0]):
            return text_of(values.flat[0], unit)
        # A connection to a node of the name of a parameter may have a file of this name.
        while f"{name}.npy" in self.files:
            name += "_1"
        self.files[f"{name}.npy"] = values
        return f'file("{name}.npy")' + (f" * 1 {unit}" if unit else "")

    def connection(self, source: Neurons, target: Neurons, paths: list[Way], steps: int) -> tuple[list[str], str]:
        """The keys of a connection, and the name of the node that it is, if it is one; the target's bias has what it adds."""
        step, stem = text_of(round(steps * self.dt, 12), "ms"), f"{source.name}.{target.name}"
        ways = [[n for n in p.nodes if self.kind(n) not in ("Identity", "Flatten")] for p in paths]
        only = ways[0] if len(ways) == 1 else None
        one = only[0] if only is not None and len(only) == 1 else ""
        if one and len(paths[0].nodes) == 1:
            shared = self.shared(source, target, one)
            if shared is not None:
                weight, rule, bias = shared
                if bias is not None:
                    self.add(stem, target, np.repeat(bias, target.size // len(bias)))
                if isinstance(weight, float):
                    return [f"rule = {rule}", f"weight = {text_of(weight, 'uA')}", f"delay = {step}"], one
                self.files[f"{stem}.npy"] = weight
                return [f"rule = {rule}", f'weight = file("{stem}.npy") * 1 uA', f"delay = {step}"], one
        matrices = [self.composed(p) for p in paths]
        if any(self.kind(n) in ("Affine", "Conv1d", "Conv2d") for way in ways for n in way):
            self.add(stem, target, sum((added for _, added, _ in matrices), np.zeros(target.size)))
        delayed = any(d is not None for _, _, d in matrices)
        if only == [] and not delayed and source.size == target.size:
            return ["rule = one_to_one", "weight = 1 uA", f"delay = {step}"], ""
        if not delayed or len(matrices) == 1:
            matrix = matrices[0][0] if len(matrices) == 1 else sum((m for m, _, _ in matrices), np.zeros((target.size, source.size)))
            delays = matrices[0][2]
            linear = [n for n in (only or []) if self.kind(n) != "Delay"]
            dense = len(matrices) > 1 or any(self.kind(n) in ("Affine", "Linear") for n in linear)
            if dense and source is not target:
                self.files[f"{stem}.npy"] = matrix
                keys = ["rule = all_to_all", f'weight = file("{stem}.npy") * 1 uA']
                if delays is not None and np.ptp(delays) > 0:
                    self.files[f"{stem}.delay.npy"] = delays + round(steps * self.dt, 12)
                    keys.append(f'delay = file("{stem}.delay.npy") * 1 ms')
                else:
                    keys.append(f"delay = {step if delays is None else text_of(round(steps * self.dt + delays.flat[0], 12), 'ms')}")
                return keys, one or (linear[0] if len(linear) == 1 else "")
        rows: list[tuple[int, int, float, float]] = []
        for matrix, _, delays in matrices:
            to, of = np.nonzero(matrix)
            late = np.zeros(len(to)) if delays is None else delays[to, of]
            rows.extend(zip(of.tolist(), to.tolist(), matrix[to, of].tolist(), (late + steps * self.dt).tolist()))
        if not rows:
            rows.append((0, 0, 0.0, steps * self.dt))
        times = {round(row[3], 12) for row in rows}
        out = io.StringIO()
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["source", "target", "weight"] + (["delay"] if len(times) > 1 else []))
        for a, b, w, d in rows:
            table.writerow([a, b, repr(w)] + ([repr(round(d, 12))] if len(times) > 1 else []))
        self.files[f"{stem}.csv"] = out.getvalue()
        keys = [f'rule = edges("{stem}.csv")', f'weight = file("{stem}.csv", column = "weight") * 1 uA']
        keys.append(f'delay = file("{stem}.csv", column = "delay") * 1 ms' if len(times) > 1 else f"delay = {text_of(times.pop(), 'ms')}")
        return keys, one

    def add(self, stem: str, target: Neurons, bias: Array) -> None:
        """What a connection adds all the time."""
        self.biases[stem] = bias
        target.bias = target.bias + bias

    def shared(self, source: Neurons, target: Neurons, node: str) -> tuple[Array | float, str, Array | None] | None:
        """The weight, the rule and the bias of a convolution or a pooling that a rule of the language says."""
        kind = self.kind(node)
        if kind not in ("Conv1d", "Conv2d", "SumPool2d", "AvgPool2d"):
            return None
        shape = self.operator(node, source.shape, shape_only=True)[2]
        if shape != target.shape:
            return None
        weight, stride, padding, dilation, groups, bias = self.window(node, source.shape)
        pooling = kind.endswith("Pool2d")
        if padding == "same":
            size = weight.shape[2]
            padding = [(size - 1) // 2] * len(stride) if size % 2 else [-1]
        square = len({*weight.shape[2:]}) == 1 and len({*stride}) == 1 and len({*padding}) == 1 and padding[0] >= 0
        if not square or set(dilation) != {1} or not (groups == 1 or pooling):
            return None
        # Along a dimension of one cell on both sides the language has windows of one cell.
        if any(source.shape[1 + at] == target.shape[1 + at] == 1 and weight.shape[2 + at] > 1 for at in range(len(stride))):
            return None
        keys = f"kernel = {weight.shape[2]}"
        if stride[0] != (weight.shape[2] if pooling else 1):
            keys += f", stride = {stride[0]}"
        if padding[0]:
            keys += f", padding = {padding[0]}"
        if pooling:
            return float(weight.flat[0]), f"pooling({keys})", None
        return weight, f"convolution({keys})", bias

    def source(self, title: str, duration: float | None, spikes: Mapping[str, Array]) -> str:
        """The text of the model; its files are in `files` then."""
        steps = self.depths()
        by_pair: dict[tuple[str, str], list[Way]] = {}
        for path in self.paths:
            by_pair.setdefault((path.source, path.target), []).append(path)
        connections = []
        for (a, b), paths in by_pair.items():
            source, target = self.populations[a], self.populations[b]
            keys, node = self.connection(source, target, paths, steps[a, b])
            if node:
                self.names[f"{source.name}.{target.name}"] = node
            connections.append(f"    connect {source.name} -> {target.name} via {target.receptor} {{ {'; '.join(keys)} }}")
        step = text_of(self.dt, "ms")
        kinds = [c.kind for c in self.populations.values()]
        receptors = {c.receptor for c in self.populations.values() if c.kind != "Input" and any(p.target == c.node for p in self.paths)}
        used = ["Source"] if "Input" in kinds else []
        used += dict.fromkeys(CELLS[kind] for kind in kinds if kind != "Input")
        used += sorted(receptors)
        lines = [f"//! {title}, from NIR. Its equations are taken by Euler's method, as the frameworks that write NIR take them.", "//!"]
        lines.append(f"//! A spike takes a time step from layer to layer: a population is {', '.join(self.late())} late.")
        text = "\n".join(lines) + "\n\n" + "\n".join(TEXTS[name].replace("{dt}", step) for name in used)
        network, trains, last = self.network(connections, spikes)
        text += trains
        text += "\nnetwork main {\n" + "\n".join(network) + "\n}\n"
        if duration is None:
            duration = (last or 100) * self.dt
        recorded = [c.name for c in self.populations.values() if c.kind == "Input" or c.kind in SPIKING]
        run = [f"    duration = {text_of(round(duration, 9), 'ms')}", f"    dt = {step}", "    method = euler"]
        run += [f"    record {c.name}.v" for c in self.populations.values() if c.kind in CELLS and c.kind not in SPIKING]
        if recorded:
            run.append("    record spikes of " + (recorded[0] if len(recorded) == 1 else "{" + ", ".join(recorded) + "}"))
        return text + "\nrun {\n" + "\n".join(run) + "\n}\n"

    def late(self) -> list[str]:
        by_depth: dict[int, list[str]] = {}
        for cells in self.populations.values():
            by_depth.setdefault(cells.depth, []).append(cells.name)
        return [f"{' and '.join(f'`{n}`' for n in names)} {depth} step{'' if depth == 1 else 's'}" for depth, names in sorted(by_depth.items())]

    def network(self, connections: list[str], spikes: Mapping[str, Array]) -> tuple[list[str], str, int]:
        lines = []
        for cells in self.populations.values():
            sizes = ", ".join(str(n) for n in grid(cells.shape))
            lines.append(f"    population {cells.name}: {CELLS.get(cells.kind, 'Source')}[{sizes}]")
        for cells in self.populations.values():
            reached = any(p.target == cells.node for p in self.paths)
            for key, (values, unit) in cells.params.items():
                default = {"v_leak": 0.0, "v_reset": 0.0, "v_threshold": 1.0, "Filter.w_in": 1.0}.get(key)
                if (default is not None and np.all(values == default)) or (key.startswith(("Pulse.", "Filter.")) and not reached):
                    continue
                lines.append(f"    param {cells.name}.{key} = {self.number(values, unit, f'{cells.name}.{key}')}")
            if np.any(cells.bias != 0):
                lines.append(f"    param {cells.drive} = {self.number(cells.bias, 'uA', cells.drive)}")
        lines += connections
        if not spikes:
            return lines, "", 0
        text = """
/// Spikes once, in the first step.
cell Once { state x = 1; x' = 0 /ms * x; spike when x > 0.5 { x = 0 } }

synapse Arrival { on event { v += 1 mV } }
"""
        last = 0
        lines.append("    population trains: Once")
        for name, raster in spikes.items():
            cells = next(c for c in self.populations.values() if c.name == name)
            step, cell = np.nonzero(raster.reshape(len(raster), -1))
            last = max(last, len(raster))
            out = io.StringIO()
            table = csv.writer(out, lineterminator="\n")
            table.writerow(["source", "target", "t"])
            table.writerows((0, c, repr(round((s + 1) * self.dt, 12))) for s, c in zip(step.tolist(), cell.tolist()))
            if len(step) == 0:
                continue
            self.files[f"{name}.spikes.csv"] = out.getvalue()
            rule = f'rule = edges("{name}.spikes.csv"); delay = file("{name}.spikes.csv", column = "t") * 1 ms'
            lines.append(f"    connect trains -> {cells.name} via Arrival {{ {rule} }}")
        deepest = max(c.depth for c in self.populations.values())
        return lines, text, last + deepest + 2


def pair(value: Any, dims: int) -> list[int]:
    """A whole number for each dimension."""
    numbers = [int(n) for n in np.atleast_1d(np.asarray(value)).ravel()]
    return numbers * dims if len(numbers) == 1 else numbers


class NirModel(Model):
    """A model that `neuroc.from_nir` has made of a graph: a model as any other, with its text and its data files."""

    def __init__(self, core: _core.Model, made: Importer, source: str, home: Home, unit: str) -> None:
        super().__init__(core)
        self._made = made
        self._home = home
        self._unit = unit
        #: The text of the model.
        self.source = source
        #: The data files that it reads, by name: arrays (`.npy`) and texts (`.csv`).
        self.files: dict[str, NDArray[np.float64] | str] = dict(made.files)

    @property
    def names(self) -> dict[str, str]:
        """The populations by the nodes of the graph that they come from."""
        return {node: cells.name for node, cells in self._made.populations.items()}

    @property
    def late(self) -> dict[str, int]:
        """By how many steps the spikes of each population come later than in a framework, in which they pass all layers in one step."""
        return {cells.name: cells.depth for cells in self._made.populations.values()}

    def copy(self) -> NirModel:
        """The same model with settings of its own."""
        return NirModel(self._core.copy(), self._made, self.source, self._home, self._unit)

    def save(self, folder: str | os.PathLike[str], name: str = "network") -> Path:
        """Writes the text and the data files into a folder, which is made if need be; answers the path of the model file.

        `neuroc run folder/network.neuro` runs it. Settings that were made since are not part of it.
        """
        place = Path(folder)
        try:
            place.mkdir(parents=True, exist_ok=True)
            written(place, self.files)
            model = place / f"{name}.neuro"
            model.write_text(self.source, encoding="utf-8")
        except OSError as error:
            raise SaveError(f"cannot write the model to {place}: {error}") from error
        return model

    def present(self, x: ArrayLike | Mapping[str, ArrayLike], **options: Any) -> dict[str, NDArray[Any]]:
        """Runs the network on an input, step by step, and answers as a framework does: what comes in a step passes all layers in that step.

        >>> spikes = model.present(raster)["lif2"]        # [step, cell], 0 or 1

        x
            What comes in each step, shape `[step, ...]` with the shape of the graph's Input behind the steps; of several Inputs a dict by
            node. Numbers that are all 0 or 1 are spikes. Any other numbers are currents: they go through the linear nodes in NumPy and
            reach the cells as their constant input, for one step.
        options
            Those of `simulator`.

        The answer has for each node of neurons an array `[step, ...]`: spikes (uint8), or of neurons that do not spike their
        potential (float64) at the end of the step.
        """
        made = self._made
        inputs = {node: cells for node, cells in made.populations.items() if cells.kind == "Input"}
        given = dict(x) if isinstance(x, Mapping) else dict.fromkeys(list(inputs)[:1], x)
        if not isinstance(x, Mapping) and len(inputs) != 1:
            raise UsageError(f"the graph has {len(inputs)} Inputs: {', '.join(inputs)}; give a dict of them")
        if set(given) != set(inputs):
            raise UsageError(f"the graph has the Inputs {', '.join(inputs) or 'none'}, not {', '.join(map(str, given))}")
        frames = {node: checked(node, inputs[node], value) for node, value in given.items()}
        lengths = {len(f) for f in frames.values()}
        if len(lengths) != 1:
            raise UsageError(f"the Inputs have different numbers of steps: {sorted(lengths)}")
        steps = lengths.pop()
        as_spikes = all(np.all((f == 0) | (f == 1)) for f in frames.values())
        # A spike of an input takes a step to the first layer; a current reaches it at once.
        first = 0 if as_spikes or any(c.depth == 0 and c.kind != "Input" for c in made.populations.values()) else 1
        drives: dict[str, Array] = {}
        params = self.params
        deepest = max((c.depth for c in made.populations.values()), default=0)
        for node, cells in made.populations.items():
            if cells.kind == "Input":
                continue
            # Biases begin when the first step of an input reaches a layer, and not before.
            late = cells.depth - first
            drive = np.zeros((steps + deepest, cells.size))
            if cells.drive not in params:
                continue
            base = np.broadcast_to(np.asarray(params[cells.drive].value, dtype=np.float64), cells.size)
            drive[late:] = base
            if not as_spikes:
                for path in made.paths:
                    if path.target != node or path.source not in frames:
                        continue
                    matrix, _, delays = made.composed(path)
                    if delays is not None:
                        raise UsageError(f"`{path.source}` leads to `{node}` through a Delay, which delays spikes and not currents")
                    drive[late : late + steps] += frames[path.source] @ matrix.T
            if np.any(drive != drive[0]) or np.any(drive[0] != base):
                drives[cells.drive] = drive
        runs = self.copy()
        if "trains.x" in self.states:
            # Spikes that the model has for itself are not sent.
            runs.set("trains.x", 0)
        for name, drive in drives.items():
            runs.set(name, drive[0])
        answer: dict[str, NDArray[Any]] = {}
        for node, cells in made.populations.items():
            if cells.kind != "Input":
                answer[node] = np.zeros((steps, cells.size), dtype=np.uint8 if cells.kind in SPIKING else np.float64)
        with runs.simulator(**options) as run:
            for step in range(steps + deepest - first):
                for name, drive in drives.items():
                    if step and np.any(drive[step] != drive[step - 1]):
                        run[name] = drive[step]
                if as_spikes and step < steps:
                    for node, frame in frames.items():
                        run[f"{inputs[node].name}.v"] = frame[step]
                run.step()
                for node, rows in answer.items():
                    cells = made.populations[node]
                    at = step - (cells.depth - first)
                    if 0 <= at < steps:
                        if cells.kind in SPIKING:
                            rows[at, run.spikes(cells.name)[1]] = 1
                        else:
                            rows[at] = run[f"{cells.name}.v"]
        return {node: rows.reshape(steps, *made.populations[node].shape) for node, rows in answer.items()}

    def to_nir(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        unit: str | None = None,
        steps: bool = True,
        inputs: Sequence[str] | None = None,
        dtype: Any = np.float32,
    ) -> Any:
        """The graph again, with the names that its nodes had; see `Model.to_nir`. `unit` is that of `from_nir`, if none is said."""
        made = self._made
        populations = made.populations.values()
        names = Named(
            nodes={cells.name: node for node, cells in made.populations.items()},
            between=made.names,
            biases=made.biases,
            inputs=[cells.name for cells in populations if cells.kind == "Input"],
            outputs={
                cells.name: [way.target for way in made.ways(cells.node, cells.node, []) if made.kind(way.target) == "Output"]
                for cells in populations
            },
            shapes={cells.name: cells.shape for cells in populations},
        )
        return to_nir(self, path, unit or self._unit, steps, inputs, dtype, names)


class Home:
    """A folder that is there as long as models read files of it."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="neuroc-nir-")
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def checked(node: str, cells: Neurons, value: ArrayLike) -> Array:
    frames = np.asarray(value, dtype=np.float64)
    if frames.ndim < 1 or frames.size != len(frames) * cells.size or (frames.ndim > 2 and frames.shape[1:] != cells.shape):
        raise UsageError(f"`{node}` takes an array of the shape [step, {', '.join(map(str, cells.shape))}], not {frames.shape}")
    if not np.all(np.isfinite(frames)):
        raise UsageError(f"what comes to `{node}` is not finite everywhere")
    return frames.reshape(len(frames), cells.size)


def written(folder: Path, files: Mapping[str, NDArray[np.float64] | str]) -> None:
    for name, content in files.items():
        if isinstance(content, str):
            (folder / name).write_text(content, encoding="utf-8")
        else:
            np.save(folder / name, content)


def milliseconds(what: str, value: Time) -> float:
    """A time in ms."""
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([0-9.eE+-]+)\s*(s|ms|us)\s*", value)
        try:
            if found is None:
                raise ValueError
            ms = shifted(float(found[1]), UNITS[found[2]])
        except ValueError:
            raise UsageError(f'`{what}` is a number of ms or a text such as "0.1 ms", not "{value}"') from None
    else:
        ms = float(value)
    if not (np.isfinite(ms) and ms > 0):
        raise UsageError(f"`{what}` is {ms} ms; write a time above zero")
    return ms


def from_nir(
    graph: Any,
    *,
    dt: Time,
    unit: str,
    duration: Time | None = None,
    spikes: ArrayLike | Mapping[str, ArrayLike] | None = None,
) -> NirModel:
    """A model of a graph in NIR, the Neuromorphic Intermediate Representation.

    >>> model = neuroc.from_nir("net.nir", dt="0.1 ms", unit="s")
    >>> print(model.source)                          # the network in the language
    >>> model.present(raster)["output_layer"]        # [step, cell], as the framework answers
    >>> model.save("net")                            # net/network.neuro and its files, for `neuroc run`

    graph
        A `nir.NIRGraph`, or the path of a file.
    dt
        The time step: a number of ms or a text. NIR has none; snnTorch reads graphs with 0.1 ms, Norse with 1 ms.
    unit
        What the times of the graph are counted in: "s" (snnTorch, Norse), "ms", "us" or "step" (time steps).
    duration
        How long `run` runs: that of `spikes` and 100 steps otherwise.
    spikes
        Spikes of the Input, shape `[step, ...]`, 0 or 1, for `run` and `neuroc run`; of several Inputs a dict by node. Without them inputs are silent
        in a run; `present` takes spikes and currents when it is called.

    A NIR current of 1 is 1 uA, a voltage of 1 is 1 mV, a resistance of 1 is 1 kohm, so that all numbers stay what they are. Raises
    `UsageError` with all nodes that cannot be carried, and why; `SaveError` if a file is no graph.
    """
    nir = exchange.needed("nir", "nir", "from_nir")
    step = milliseconds("dt", dt)
    if unit not in (*UNITS, "step"):
        raise UsageError(f'`unit` is "s", "ms", "us" or "step", not "{unit}"')
    title = "A network"
    if isinstance(graph, (str, os.PathLike)):
        title = f"`{re.sub(r'[^ -~]', '?', Path(graph).name)}`"
        try:
            graph = nir.read(graph, type_check=False)
        except Exception as error:
            raise SaveError(f"{title} cannot be read as NIR: {error}") from error
    if not isinstance(graph, nir.NIRGraph):
        raise UsageError(f"from_nir takes a nir.NIRGraph or the path of a file, not {type(graph).__name__}")
    made = Importer(graph, step, unit)
    made.check()
    made.gather()
    made.walk()
    rasters: dict[str, Array] = {}
    if spikes is not None:
        inputs = {node: cells for node, cells in made.populations.items() if cells.kind == "Input"}
        given = dict(spikes) if isinstance(spikes, Mapping) else dict.fromkeys(list(inputs)[:1], spikes)
        if not isinstance(spikes, Mapping) and len(inputs) != 1:
            raise UsageError(f"the graph has {len(inputs)} Inputs: {', '.join(inputs)}; give a dict of them")
        for node, value in given.items():
            if node not in inputs:
                raise UsageError(f"`{node}` is no Input of the graph; they are {', '.join(inputs)}")
            raster = checked(node, inputs[node], value)
            if not np.all((raster == 0) | (raster == 1)):
                raise UsageError(f"the spikes of `{node}` are not all 0 or 1; `present` takes other numbers as currents")
            rasters[inputs[node].name] = raster
    text = made.source(title, None if duration is None else milliseconds("duration", duration), rasters)
    home = Home()
    written(Path(home.path), made.files)
    return NirModel(_core.Model.parse(text, "network.neuro", home.path), made, text, home, unit)
