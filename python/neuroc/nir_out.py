"""Networks to NIR, the Neuromorphic Intermediate Representation (Pedersen et al., Nat Commun 15:8122, 2024).

In comes a model with settings; out goes a graph of the package `nir`.
Never true here: a cell is taken for a node whose equations it does not have.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import exchange
from .errors import ModelWarning, SaveError, UsageError

if TYPE_CHECKING:
    from .model import Model

Array = NDArray[np.float64]
Key = TypeVar("Key", bound=Hashable)

#: A time of NIR in ms.
UNITS = {"s": 1000.0, "ms": 1.0, "us": 0.001}
POTENTIALS = ("V", "mV", "uV")


@dataclass
class Named:
    """What the nodes of a graph are to be called."""

    #: By population.
    nodes: dict[str, str] = field(default_factory=dict)
    #: By the names of both populations with a dot between them.
    between: dict[str, str] = field(default_factory=dict)
    #: The biases of nodes, by the same names.
    biases: dict[str, Array] = field(default_factory=dict)
    #: Populations that are inputs.
    inputs: list[str] = field(default_factory=list)
    #: The outputs by population; None: those of populations that lead nowhere.
    outputs: dict[str, list[str]] | None = None
    #: The shapes of populations, channels first.
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass
class Node:
    """A population as a node."""

    kind: str
    #: In ms, kohm, mV and the unit of the weights.
    values: dict[str, Array]
    #: Constant input.
    bias: Array
    #: By projection that stands for a receptor: what its weights are multiplied by, for each cell.
    factors: dict[int, Array]
    #: Does a spike reach the potential a step later than in NIR?
    late: bool = False


def close(a: Array, b: Array) -> bool:
    """Do arrays differ by rounding alone?"""
    scale = max(float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0)))
    return bool(np.all(np.abs(a - b) <= 1e-11 * scale))


def ordered(roots: Sequence[Key], after: Mapping[Key, Iterable[Key]]) -> tuple[list[Key], set[tuple[Key, Key]]]:
    """All that follows from roots, senders first, and the pairs that lead back to a sender."""
    back: set[tuple[Key, Key]] = set()
    done: dict[Key, bool] = {}
    order: list[Key] = []
    for root in roots:
        if root in done:
            continue
        done[root] = False
        # Networks may be deep, so that there is a stack in place of a function that calls itself.
        stack = [(root, iter(after[root]))]
        while stack:
            at, rest = stack[-1]
            for to in rest:
                if to not in done:
                    done[to] = False
                    stack.append((to, iter(after[to])))
                    break
                if not done[to]:
                    back.add((at, to))
            else:
                done[at] = True
                order.append(at)
                stack.pop()
    return order[::-1], back


class Reader:
    """Finds the node that a population is."""

    def __init__(self, found: dict[str, Any], population: dict[str, Any], params: dict[str, Array], units: dict[str, str], steps: bool) -> None:
        self.found = found
        self.dt: float = found["dt"]
        self.method: str = found["method"]
        self.population = population
        self.params = params
        self.units = units
        self.steps = steps
        self.cells = int(np.prod(population["shape"], dtype=np.int64))

    def written(self, values: Array, scale: float = 0.0) -> Array:
        """The parameter that values are but for rounding, so that a number comes out as it has been written; zero if they are that of a scale."""
        if np.all(np.abs(values) <= 1e-12 * scale):
            return np.zeros_like(values)
        for own in self.params.values():
            if close(values, own):
                return own
        return values

    def decay(self, rate: Array, potential: bool) -> Array:
        """What is left of a state after a step, if nothing drives it."""
        z = rate * self.dt
        if self.method == "euler":
            return 1 + z
        if self.method in ("exp_euler", "exact") or (self.method in ("cnexp", "crank_nicolson") and not potential):
            return np.exp(z)
        if self.method == "cnexp":
            return 1 / (1 - z)
        if self.method == "crank_nicolson":
            return (1 + z / 2) / (1 - z / 2)
        if self.method == "adaptive":
            raise ValueError(
                "its steps are as long as its states allow (`adaptive`), which no time constants do with Euler's method; run it with another "
                "method, or take the equations as they are (steps=False)"
            )
        terms = {"heun": 2, "rk4": 4}[self.method]
        return np.asarray(sum(z**n / math.factorial(n) for n in range(terms + 1)), dtype=np.float64)

    def constants(self, rate: Array, state: str) -> tuple[Array, Array]:
        """The time constant, and how long a step counts for what drives a state."""
        tau = self.written(-1 / rate)
        if not self.steps or self.method == "euler":
            return tau, np.full(self.cells, self.dt)
        left = self.decay(rate, self.units.get(state, "1") in POTENTIALS)
        if np.any(left <= 0) or np.any(left >= 1):
            raise ValueError(f"a step of {self.dt:.6g} ms leaves {left.flat[0]:.6g} of `{state}`, which no time constant does with Euler's method")
        return self.dt / (1 - left), (left - 1) / rate

    def node(self) -> Node:
        p = self.population
        if "why" in p:
            raise ValueError(str(p["why"]))
        states, spike = p["states"], p.get("spike")
        if not 1 <= len(states) <= 2:
            raise ValueError(f"it has {len(states)} states ({', '.join(states)}), and NIR's neurons one or two")
        rates: list[dict[int, Array]] = [dict(row) for row in p["rates"]]
        v = spike["state"] if spike else next((at for at, row in enumerate(rates) if any(s != at for s in row)), 0)
        if len(states) == 1:
            return self.plain(v, rates, spike)
        return self.filtered(v, 1 - v, rates, spike)

    def jumps(self, state: int) -> dict[int, Array]:
        added: dict[int, Array] = {}
        for receptor, to, amount in self.population["jumps"]:
            if to == state:
                added[receptor] = added.get(receptor, np.zeros(self.cells)) + amount
        return added

    def plain(self, v: int, rates: list[dict[int, Array]], spike: Any) -> Node:
        """I, IF, LI or LIF."""
        name, constant = self.population["states"][v], np.asarray(self.population["constants"][v])
        rate = rates[v].get(v)
        jumps = self.jumps(v)
        first = next(iter(jumps.values()), None)
        if first is not None and np.any(first == 0):
            raise ValueError("what spikes add to it is 0 for some of its cells")
        bias = np.zeros(self.cells)
        if rate is None:
            r = self.written((np.ones(self.cells) if first is None else first) / self.dt)
            values = {"r": r}
            bias = self.written(constant / r)
        else:
            self.falls(rate, name)
            tau, counts = self.constants(rate, name)
            r = self.written((np.ones(self.cells) if first is None else first) * tau / self.dt)
            values = {"tau": tau, "r": r}
            values["v_leak"], bias = self.leak(constant * counts * tau / self.dt, r)
        if spike:
            values.update(self.threshold(spike, v))
        kind = ("IF" if spike else "I") if rate is None else ("LIF" if spike else "LI")
        return Node(kind, values, bias, {p: amount / (first if first is not None else 1) for p, amount in jumps.items()})

    def leak(self, at: Array, r: Array) -> tuple[Array, Array]:
        """The leak potential and the constant input by where the potential goes to: as parameters `v_leak` and `bias` say, if there are any."""
        own = self.params.get("v_leak")
        if own is None or "bias" not in self.params:
            return self.written(at), np.zeros(self.cells)
        return own, self.written((at - own) / r, float(np.abs(at / r).max(initial=0.0)))

    def filtered(self, v: int, i: int, rates: list[dict[int, Array]], spike: Any) -> Node:
        """CubaLI or CubaLIF."""
        states, constants = self.population["states"], [np.asarray(c) for c in self.population["constants"]]
        if set(rates[i]) != {i} or set(rates[v]) != {v, i}:
            raise ValueError(f"`{states[i]}` and `{states[v]}` are not a current that decays and a potential that it drives")
        self.falls(rates[i][i], states[i])
        self.falls(rates[v][v], states[v])
        if self.steps and self.method not in ("euler", "exp_euler", "cnexp"):
            raise ValueError(
                f"no time constants make steps of NIR's current-based neurons what `{self.method}` makes of it; run it with `euler` or `exp_euler`, "
                "or take the equations as they are (steps=False)"
            )
        tau_syn, counts_syn = self.constants(rates[i][i], states[i])
        tau_mem, counts = self.constants(rates[v][v], states[v])
        # What a current adds to the potential in a step.
        drives = rates[v][i] * counts
        if np.any(drives == 0):
            raise ValueError(f"`{states[i]}` does not drive `{states[v]}` in all cells")
        r = self.written(drives * tau_mem / self.dt)
        on_i, on_v = self.jumps(i), self.jumps(v)
        left = 1 - self.dt / tau_syn
        late = not on_v
        if late:
            gains = on_i
        else:
            if set(on_v) != set(on_i):
                raise ValueError("some spikes jump its potential, others drive its current")
            gains = {p: self.written(amount / drives) for p, amount in on_v.items()}
            if not all(close(gains[p] * left, on_i[p]) for p in gains):
                raise ValueError(f"what a spike adds to `{states[v]}` is not what the current that it adds to `{states[i]}` brings in a step")
        first = next(iter(gains.values()), np.ones(self.cells) * self.dt / tau_syn)
        if np.any(first == 0):
            raise ValueError("what spikes add to it is 0 for some of its cells")
        w_in = self.written(first * tau_syn / self.dt)
        constant = constants[i] * counts_syn / (1 if late else left)
        bias = self.written(constant / first)
        at = constants[v] * counts * tau_mem / self.dt
        seen = np.zeros(self.cells) if late else drives * bias * first * tau_mem / self.dt
        scale = max(float(np.abs(at).max(initial=0.0)), float(np.abs(seen).max(initial=0.0)))
        values = {"tau_syn": tau_syn, "tau_mem": tau_mem, "r": r, "v_leak": self.written(at - seen, scale), "w_in": w_in}
        if spike:
            values.update(self.threshold(spike, v))
        return Node("CubaLIF" if spike else "CubaLI", values, bias, {p: g / first for p, g in gains.items()}, late)

    def falls(self, rate: Array, name: str) -> None:
        if np.any(rate >= 0):
            raise ValueError(f"`{name}` does not decay in all cells")

    def threshold(self, spike: Any, v: int) -> dict[str, Array]:
        name, level = self.population["states"][v], self.written(np.asarray(spike["level"]))
        if np.any(np.asarray(spike["refractory"]) >= self.dt / 2):
            raise ValueError("it has a refractory time, and NIR's neurons have none")
        reset: Array | None = None
        for state, kept, added in spike["resets"]:
            if state != v:
                if np.all(kept == 1) and np.all(added == 0):
                    continue
                raise ValueError(f"a spike resets `{self.population['states'][state]}`, and in NIR the potential alone")
            if np.all(kept == 0):
                reset = self.written(np.asarray(added))
            elif np.all(kept == 1):
                reset = self.written(level + added, float(np.abs(level).max(initial=0.0)))
                warnings.warn(
                    f"population `{self.population['name']}`: NIR has no reset that subtracts; its v_reset is where `{name}` comes to from the "
                    "threshold, and who reads it loses what a spike was above that",
                    ModelWarning,
                    stacklevel=5,
                )
        if reset is None:
            raise ValueError(f"a spike does not set `{name}` to a value")
        return {"v_threshold": level, "v_reset": reset}


class Exporter:
    """Makes a graph of a model."""

    def __init__(self, model: Model, unit: str, steps: bool, inputs: Sequence[str] | None, dtype: Any, names: Named) -> None:
        self.nir = exchange.needed("nir", "nir", "to_nir")
        if unit != "step" and unit not in UNITS:
            raise UsageError(f'`unit` is "s", "ms", "us" or "step", not "{unit}"')
        self.found = model._core.network()
        self.dt: float = self.found["dt"]
        self.ms = self.dt if unit == "step" else UNITS[unit]
        self.dtype = np.dtype(dtype)
        self.names = names
        self.nodes: dict[str, Any] = {}
        self.edges: list[tuple[str, str]] = []
        self.populations: list[dict[str, Any]] = self.found["populations"]
        self.projections: list[dict[str, Any]] = self.found["projections"]
        if self.found["junctions"]:
            raise UsageError("this model cannot be said in NIR: it has gap junctions")
        self.inputs, self.left_out = self.ends(self.names.inputs if inputs is None else list(inputs))
        self.projections = [p for p in self.projections if p["to"] not in self.inputs and p["from"] not in self.left_out]
        params, units = parameters(model, self.populations)
        self.read: dict[int, Node] = {}
        wrong = []
        for at, population in enumerate(self.populations):
            if at in self.inputs or at in self.left_out:
                continue
            try:
                reader = Reader(self.found, population, params[population["name"]], units, steps)
                self.read[at] = reader.node()
            except ValueError as why:
                cell = f" (cell `{population['cell']}`)" if population.get("cell") else ""
                wrong.append(f"population `{population['name']}`{cell}: {why}")
        wrong += [f"projection `{p['name']}`: its synapses remember" for p in self.projections if p["remembers"]]
        if wrong:
            raise UsageError("this model cannot be said in NIR:\n" + "\n".join(f"- {why}" for why in wrong))

    def ends(self, named: list[str]) -> tuple[set[int], set[int]]:
        """The inputs: those that are named, otherwise those that nothing leads to; and what leads to them alone, which is left out."""
        places = {p["name"]: at for at, p in enumerate(self.populations)}
        for name in named:
            if name not in places:
                raise UsageError(f'there is no population "{name}"; the populations are {", ".join(places)}')
            if not self.populations[places[name]]["spikes"]:
                raise UsageError(f'"{name}" cannot be an input: its cells do not spike')
        inputs = {places[name] for name in named}
        receives = {p["to"] for p in self.projections}
        sends: dict[int, set[int]] = {}
        for p in self.projections:
            sends.setdefault(p["from"], set()).add(p["to"])
        if not named:
            return {at for at in sends if at not in receives and self.populations[at]["spikes"]}, set()
        return inputs, {at for at, to in sends.items() if to <= inputs and at not in inputs}

    def shape(self, at: int) -> tuple[int, ...]:
        population = self.populations[at]
        if population["name"] in self.names.shapes:
            return self.names.shapes[population["name"]]
        shape = tuple(population["shape"]) or (1,)
        windows = [p for p in self.projections if at in (p["from"], p["to"]) and p["rule"][0] in ("convolution", "pooling")]
        if not windows:
            return shape

        def whole(other: int) -> tuple[int, ...]:
            """Channels, height and width; sizes that are left out are 1."""
            own = tuple(self.populations[other]["shape"])
            return (1,) * (3 - len(own)) + own

        shape = whole(at)
        lines = all(whole(p[end])[1] == 1 for p in windows for end in ("from", "to"))
        return (shape[0], shape[2]) if lines else shape

    def name(self, at: int) -> str:
        own: str = self.populations[at]["name"]
        return self.names.nodes.get(own, own)

    def time(self, ms: Array) -> Array:
        """A time of the graph, by moving the decimal point where that is what it takes."""
        by = {1000.0: -3, 1.0: 0, 0.001: 3}.get(self.ms)
        if by is None:
            return ms / self.ms
        return np.array([float(f"{float(x)!r}e{by}") if "e" not in repr(float(x)) else float(x) / self.ms for x in ms.ravel()]).reshape(ms.shape)

    def graph(self) -> Any:
        nir = self.nir
        depth, back = self.depths()
        incoming: dict[int, list[dict[str, Any]]] = {}
        for p in self.projections:
            incoming.setdefault(p["to"], []).append(p)
        for at in range(len(self.populations)):
            if at in self.left_out:
                continue
            shape = self.shape(at)
            if at in self.inputs:
                self.nodes[self.name(at)] = nir.Input(input_type={"input": np.array(shape)})
                continue
            node = self.read[at]
            self.nodes[self.name(at)] = self.neurons(node, shape)
            coming = sorted(incoming.get(at, []), key=lambda p: (p["from"], p["to"]) in back)
            biases = self.shares(node, coming)
            bias = node.bias if biases is None else np.zeros_like(node.bias)
            for p in coming:
                leads_back = (p["from"], p["to"]) in back
                if biases is None:
                    bias = self.connect(p, node, bias, depth, leads_back)
                elif (own := biases.get(self.between(p))) is not None:
                    bias = bias + self.connect(p, node, own, depth, leads_back, biased=True)
                else:
                    self.connect(p, node, np.zeros_like(node.bias), depth, leads_back)
            if np.any(bias != 0):
                own = self.populations[at]["name"]
                raise UsageError(f"population `{own}` has a constant input, but nothing leads to it that could have it as its bias")
        self.outputs()
        return nir.NIRGraph(nodes=self.nodes, edges=self.edges, type_check=False)

    def neurons(self, node: Node, shape: tuple[int, ...]) -> Any:
        values = dict(node.values)
        for key in ("tau", "tau_mem", "tau_syn"):
            if key in values:
                values[key] = self.time(values[key])
        if node.kind in ("I", "IF"):
            values["r"] = values["r"] * self.ms
        return getattr(self.nir, node.kind)(**{key: self.array(value, shape) for key, value in values.items()})

    def array(self, values: Array, shape: tuple[int, ...]) -> NDArray[Any]:
        return np.ascontiguousarray(np.broadcast_to(values, int(np.prod(shape))).reshape(shape), dtype=self.dtype)

    def depths(self) -> tuple[list[int], set[tuple[int, int]]]:
        """By how many steps the spikes of each population come later than in NIR, where they pass connections at once; and which pairs lead back."""
        after: dict[int, dict[int, int]] = {at: {} for at in range(len(self.populations))}
        for p in self.projections:
            if len(p["delays"]):
                least = int(np.min(np.floor(np.asarray(p["delays"]) / self.dt + 0.5))) + int(self.late(p))
                known = after[p["from"]].get(p["to"])
                after[p["from"]][p["to"]] = least if known is None else min(known, least)
        order, back = ordered([*self.inputs, *range(len(self.populations))], after)
        hops = [0] * len(self.populations)
        depth: list[int | None] = [None] * len(self.populations)
        for at in order:
            own = hops[at] if depth[at] is None else min(hops[at], depth[at] or 0)
            depth[at] = own
            for to, steps in after[at].items():
                if (at, to) not in back:
                    hops[to] = max(hops[to], own + 1)
                    known = depth[to]
                    depth[to] = own + steps if known is None else min(known, own + steps)
        return [d or 0 for d in depth], back

    def late(self, p: dict[str, Any]) -> bool:
        return p["to"] in self.read and self.read[p["to"]].late

    def between(self, p: dict[str, Any]) -> str:
        return f"{self.populations[p['from']]['name']}.{self.populations[p['to']]['name']}"

    def shares(self, node: Node, coming: list[dict[str, Any]]) -> dict[str, Array] | None:
        """What part of the constant input comes with which projection, if that is known and still so."""
        known = {name: self.names.biases[name] for name in map(self.between, coming) if name in self.names.biases}
        total = sum(known.values(), np.zeros_like(node.bias))
        return known if known and close(total, node.bias) else None

    def connect(
        self, p: dict[str, Any], node: Node, bias: Array, depth: list[int], leads_back: bool, biased: bool = False
    ) -> Array:
        """The nodes of a projection. Answers what is left of the constant input."""
        source, target = self.name(p["from"]), self.name(p["to"])
        own = self.between(p)
        stem = self.names.between.get(own, own)
        while stem in self.nodes:
            stem += "_"
        of, to = self.shape(p["from"]), self.shape(p["to"])
        at, shape = source, of
        factor = np.broadcast_to(node.factors.get(p["arrives"], np.ones(1)), int(np.prod(to)))
        steps = np.floor(np.asarray(p["delays"]) / self.dt + 0.5) + int(node.late)
        extra = steps - (depth[p["to"]] - depth[p["from"]]) - int(leads_back)
        delay_behind: Array | None = None
        if np.any(extra != 0):
            if np.any(extra < 0):
                raise UsageError(f"projection `{p['name']}`: its spikes come earlier than in NIR, where a connection back takes a step")
            delay, of_source = self.delays(p, extra * self.dt, int(np.prod(of)), int(np.prod(to)))
            if of_source:
                at = self.put(f"{stem}.delay", self.nir.Delay(delay=self.array(self.time(delay), of)), at)
            else:
                delay_behind = delay
        made = None if np.ptp(factor) > 0 else self.windows(p, stem, at, of, to, float(factor[0]), bias)
        if made is not None:
            at, bias = made
        else:
            at, bias = self.matrix(p, stem, at, shape, to, factor, bias, biased)
        if delay_behind is not None:
            at = self.put(f"{stem}.delay", self.nir.Delay(delay=self.array(self.time(delay_behind), to)), at)
        self.edges.append((at, target))
        return bias

    def put(self, name: str, node: Any, behind: str) -> str:
        while name in self.nodes:
            name += "_"
        self.nodes[name] = node
        self.edges.append((behind, name))
        return name

    def pairs(self, p: dict[str, Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The targets and the sources of the edges."""
        offsets = np.asarray(p["offsets"], dtype=np.int64)
        return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), np.asarray(p["sources"], dtype=np.int64)

    def delays(self, p: dict[str, Any], extra: Array, sources: int, targets: int) -> tuple[Array, bool]:
        """Delays that belong to the sources, or to the targets."""
        to, of = self.pairs(p)
        for cells, count in ((of, sources), (to, targets)):
            delay = np.zeros(count)
            delay[cells] = extra
            if np.array_equal(delay[cells], extra):
                return delay, cells is of
        raise UsageError(f"projection `{p['name']}`: its delays differ from edge to edge; those of NIR belong to what is sent, or to what receives")

    def matrix(
        self,
        p: dict[str, Any],
        stem: str,
        at: str,
        of: tuple[int, ...],
        to: tuple[int, ...],
        factor: Array,
        bias: Array,
        biased: bool,
    ) -> tuple[str, Array]:
        """All edges as a matrix."""
        targets, sources = self.pairs(p)
        weights = np.asarray(p["weights"])
        if "kernel" in p:
            pool = dict(zip(("kernel", "stride", "padding", "pool"), p["rule"][1])).get("pool", 1.0)
            weights = weights[np.asarray(p["entries"])] / pool**2
        rows, columns = int(np.prod(to)), int(np.prod(of))
        if p["rule"][0] == "one_to_one" and not (biased or np.any(bias != 0)) and of == to:
            scale = weights * factor
            return (at if np.all(scale == 1) else self.put(stem, self.nir.Scale(scale=self.array(scale, to)), at)), bias
        if rows * columns > 100_000_000:
            raise UsageError(f"projection `{p['name']}` is a matrix of {rows} x {columns}; more than 100000000 numbers are not written")
        matrix = np.zeros((rows, columns))
        np.add.at(matrix, (targets, sources), weights * factor[targets])
        if len(of) > 1:
            at = self.put(f"{stem}.flatten", self.nir.Flatten(input_type={"input": np.array(of)}, start_dim=0, end_dim=-1), at)
        weight = matrix.astype(self.dtype)
        if biased or np.any(bias != 0):
            node = self.nir.Affine(weight=weight, bias=bias.astype(self.dtype))
        else:
            node = self.nir.Linear(weight=weight)
        return self.put(stem, node, at), np.zeros_like(bias)

    def windows(
        self, p: dict[str, Any], stem: str, at: str, of: tuple[int, ...], to: tuple[int, ...], factor: float, bias: Array
    ) -> tuple[str, Array] | None:
        """A convolution or a pooling, if it is one that NIR has; with what is left of the constant input."""
        rule, arguments = p["rule"]
        if rule not in ("convolution", "pooling") or len(of) not in (2, 3) or len(of) != len(to):
            return None
        given = dict(zip(("kernel", "stride", "padding", "pool"), (int(x) for x in arguments)))
        dims = len(of) - 1
        stride, padding = given["stride"], given["padding"]
        if rule == "pooling":
            weights = np.asarray(p["weights"]) * factor
            size = given["kernel"]
            if dims != 2 or not len(weights) or np.ptp(weights) > 0:
                return None
            mean = np.isclose(weights[0] * size**2, 1, rtol=1e-12)
            if not mean and weights[0] != 1:
                return None
            node = getattr(self.nir, "AvgPool2d" if mean else "SumPool2d")
            made = node(kernel_size=np.array([size, size]), stride=np.array([stride, stride]), padding=np.array([padding, padding]))
            return self.put(stem, made, at), bias
        weight = np.asarray(p["weights"]).reshape(p["kernel"]) * factor
        if dims == 1:
            if weight.shape[2] != 1:
                return None
            weight = weight[:, :, 0, :]
        by_channel = bias.reshape(to[0], -1)
        if np.any(np.ptp(by_channel, axis=1) > 0):
            added, bias = np.zeros(to[0]), bias
        else:
            added, bias = by_channel[:, 0], np.zeros_like(bias)
        pool = given.get("pool", 1)
        weight, added = weight.astype(self.dtype), added.astype(self.dtype)
        if dims == 1:
            if pool > 1:
                return None
            conv = self.nir.Conv1d(
                input_shape=of[1], weight=weight, stride=stride, padding=padding, dilation=1, groups=1, bias=added
            )
            return self.put(stem, conv, at), bias
        conv = self.nir.Conv2d(
            input_shape=(of[1], of[2]), weight=weight, stride=(stride, stride), padding=(padding, padding), dilation=(1, 1), groups=1, bias=added
        )
        at = self.put(stem, conv, at)
        if pool > 1:
            mean = self.nir.AvgPool2d(kernel_size=np.array([pool, pool]), stride=np.array([pool, pool]), padding=np.array([0, 0]))
            at = self.put(f"{stem}.pool", mean, at)
        return at, bias

    def outputs(self) -> None:
        sends = {p["from"] for p in self.projections}
        if self.names.outputs is None:
            last = [at for at in self.read if at not in sends] or list(self.read)
            named = {at: ["output" if len(last) == 1 else f"output_{self.name(at)}"] for at in last}
        else:
            named = {at: self.names.outputs.get(p["name"], []) for at, p in enumerate(self.populations)}
        for at, names in named.items():
            for name in names:
                while name in self.nodes and not isinstance(self.nodes[name], self.nir.Output):
                    name += "_"
                self.nodes[name] = self.nir.Output(output_type={"output": np.array(self.shape(at))})
                self.edges.append((self.name(at), name))


def parameters(model: Model, populations: list[dict[str, Any]]) -> tuple[dict[str, dict[str, Array]], dict[str, str]]:
    """The parameters of each population by their last names, for each cell in canonical units where they are known; and the units of states."""
    found: dict[str, dict[str, Array]] = {p["name"]: {} for p in populations}
    sizes = {p["name"]: int(np.prod(p["shape"], dtype=np.int64)) for p in populations}
    for param in model.params.values():
        owner, _, own = param.name.partition(".")
        if owner in found and own and param.value is not None and param.unit in ("ms", "mV", "kohm", "uA", "1", "kohm/ms"):
            values = np.asarray(param.value, dtype=np.float64)
            found[owner][own] = np.broadcast_to(values, sizes[owner]).copy()
    return found, {state.name: state.unit for state in model.states.values()}


def to_nir(
    model: Model,
    path: str | os.PathLike[str] | None,
    unit: str,
    steps: bool,
    inputs: Sequence[str] | None,
    dtype: Any,
    names: Named | None = None,
) -> Any:
    """A network as a graph of NIR; see `Model.to_nir`."""
    exporter = Exporter(model, unit, steps, inputs, dtype, names or Named())
    graph = exporter.graph()
    if path is not None:
        try:
            exporter.nir.write(path, graph)
        except OSError as error:
            raise SaveError(f"cannot write {os.fspath(path)}: {error}") from error
    return graph
