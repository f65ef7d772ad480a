"""A model inside a JAX program."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .errors import SettingError, UsageError
from .exchange import needed


class JaxModel:
    """A model as functions that `jax.jit` takes; `Model.to_jax` makes one.

    >>> f = model.to_jax(duration=100)
    >>> state = f.init()                              # a dict of arrays: a pytree
    >>> state, spikes = jax.jit(f.step)(state)        # one step
    >>> state, counts = jax.jit(f.steps)(state, 40)   # or several
    >>> state["squid.soma.v"]

    A state holds the states of cells and the parameters that differ from cell to cell, in the compiler's units (mV, ms, mS/cm2); all may be
    changed between steps. Under "step" it counts its steps; inputs that depend on time are known up to the duration,
    and behind it those of its end are taken again: give a `duration` that is long enough. It runs on whatever JAX runs on, and needs
    `jax_enable_x64` in double precision. `jax.vmap` takes one state after the other.

    `jax.grad` goes back through `step`, in states and parameters that differ from cell to cell, for models that `Model.gradient` takes: others
    raise `ModelError` then. In loops that is `jax.lax.scan`; `steps`, whose count JAX does not know before, has no gradient.

    >>> def loss(state):
    ...     end, v = jax.lax.scan(lambda s, _: (f.step(s)[0], s["squid.soma.v"]), state, length=500)
    ...     return ((v - target) ** 2).mean()
    >>> jax.grad(loss, allow_int=True)(state)["squid.soma.Na.gbar"]
    """

    def __init__(self, files: Mapping[str, bytes], back: Callable[[], Mapping[str, bytes]]) -> None:
        self._jax: Any = needed("jax", "jax", "to_jax")
        self._manifest: dict[str, Any] = json.loads(files["manifest.json"])
        self._make_back = back
        self._back: Any = None
        if self._manifest["precision"] == "f64" and not self._jax.config.jax_enable_x64:
            raise UsageError('JAX computes in f32: set jax.config.update("jax_enable_x64", True), or take precision="f32"')
        functions = self._manifest["functions"]
        self._calls = {name: self._exported(files, functions[name], name) for name in ("init", "step", "observe")}
        self._tables = self._numbers(files, self._manifest)
        #: How long a step is, in ms, and how many the duration has.
        self.dt: float = self._manifest["dt_ms"]
        self.duration_steps: int = self._manifest["steps"]
        #: The names of states, and of what differs from cell to cell.
        self.states: list[str] = [r["name"] for r in functions["init"]["results"]]
        # A call has so many rows, and a bit of a word for each step.
        bits = [32 * shape[0] for shape in self._words().values()]
        rows = [a["shape"][0] for a in functions["step"]["arguments"] if a["from"] == "steps"]
        self._most: int = min(rows + bits, default=32)
        self._one = self._differentiable()

    def _numbers(self, files: Mapping[str, bytes], manifest: Mapping[str, Any]) -> dict[str, Any]:
        """The numbers of an artefact that do not depend on states: those of every step, and rows with those of each."""
        archive = np.load(io.BytesIO(files["inputs.npz"]))
        ports = [a for function in manifest["functions"].values() for a in function["arguments"] if a["from"] in ("inputs", "steps")]
        return {a["key"]: archive[a["key"]].astype(self._jax.numpy.dtype(a["dtype"])) for a in ports}

    def _arguments(
        self, ports: list[dict[str, Any]], tables: Mapping[str, Any], state: Callable[[dict[str, Any]], Any], at: Any, count: Any
    ) -> list[Any]:
        """What a function of an artefact is called with for so many steps from a step on; `state` tells the value of what is carried."""
        jax, numpy = self._jax, self._jax.numpy

        def argument(a: dict[str, Any]) -> Any:
            if a["from"] == "init":
                return state(a)
            if a["from"] == "caller":
                return count
            table = numpy.asarray(tables[a["key"]])
            return jax.lax.dynamic_slice_in_dim(table, at, a["shape"][0]) if a["from"] == "steps" else table

        return [argument(a) for a in ports]

    def _exported(self, files: Mapping[str, bytes], described: Mapping[str, Any], name: str) -> Any:
        """A function of an artefact as one of JAX."""
        jax = self._jax
        from jax import export
        from jax.interpreters import mlir
        from jaxlib.mlir import ir
        from jaxlib.mlir.dialects import stablehlo

        def shapes(ports: list[dict[str, Any]]) -> tuple[Any, ...]:
            return tuple(jax.core.ShapedArray(tuple(p["shape"]), jax.numpy.dtype(p["dtype"])) for p in ports)

        with mlir.make_ir_context():
            module = ir.Module.parse(files[described["text"]])
            # Who calls it decides what is donated.
            for operation in module.body.operations:
                if "arg_attrs" in operation.attributes:
                    del operation.attributes["arg_attrs"]
            portable = stablehlo.serialize_portable_artifact(module, stablehlo.get_minimum_version())
        arguments, results = shapes(described["arguments"]), shapes(described["results"])
        flat = jax.tree_util.tree_structure((tuple(arguments), {}))
        platform = jax.default_backend()
        facts = dict(
            fun_name=f"neuroc_{name}",
            in_tree=flat,
            in_avals=arguments,
            out_tree=jax.tree_util.tree_structure(tuple(results)),
            out_avals=results,
            _has_named_shardings=False,
            _in_named_shardings=(None,) * len(arguments),
            _out_named_shardings=(None,) * len(results),
            in_shardings_hlo=(None,) * len(arguments),
            out_shardings_hlo=(None,) * len(results),
            nr_devices=1,
            platforms=("cuda" if platform == "gpu" else platform,),
            ordered_effects=(),
            unordered_effects=(),
            disabled_safety_checks=(),
            mlir_module_serialized=portable,
            calling_convention_version=export.maximum_supported_calling_convention_version,
            module_kept_var_idx=tuple(range(len(arguments))),
            uses_global_constants=False,
            _get_vjp=None,
        )
        # Which of them there are depends on JAX's version.
        known = {field.name for field in dataclasses.fields(export.Exported)}
        call = export.Exported(**{key: value for key, value in facts.items() if key in known}).call
        # One after the other: the module is about so many cells.
        return jax.custom_batching.sequential_vmap(call)

    def init(self, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The states at the start, with some of them replaced by `values`."""
        described = self._manifest["functions"]["init"]
        made = self._calls["init"](*self._arguments(described["arguments"], self._tables, lambda a: None, 0, 0))
        state = dict(zip(self.states, made))
        for name, value in (values or {}).items():
            if name not in state:
                raise SettingError(f"there is no state `{name}`; the states are {', '.join(self.states)}")
            kept = state[name]
            state[name] = self._jax.numpy.broadcast_to(self._jax.numpy.asarray(value, kept.dtype), kept.shape)
        state["step"] = self._jax.numpy.int32(0)
        return state

    def step(self, state: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """One step: the states after it, and by population (of cells with sections the place of their `spike` rule, `cells.soma(0.5)`) which
        cells spiked in it, shape `[cell]`."""
        at = self._jax.numpy.asarray(state["step"])
        after, words = self._one({name: self._jax.numpy.asarray(state[name]) for name in self.states}, at)
        return {**after, "step": at + 1}, {name: (word[0] & 1).astype(bool) for name, word in words.items()}

    def steps(self, state: Mapping[str, Any], count: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """So many steps: the states after them, and by population how often each cell spiked, shape `[cell]`."""
        jax, numpy = self._jax, self._jax.numpy
        count = numpy.asarray(count, numpy.int32)
        zero = {name: numpy.zeros(shape[-1], numpy.int32) for name, shape in self._words().items()}

        def some(carry: Any) -> Any:
            state, counts, left = carry
            now = numpy.minimum(left, self._most)
            state, words, _ = self._advance(state, now)
            more = {name: jax.lax.population_count(word).sum(0).astype(numpy.int32) for name, word in words.items()}
            return state, {name: counts[name] + more[name] for name in counts}, left - now

        after, counts, _ = jax.lax.while_loop(lambda carry: carry[2] > 0, some, (dict(state), zero, count))
        return after, counts

    def observe(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """What of a model is no state, such as currents that it records, by name, at the time of the state."""
        at, described = self._jax.numpy.asarray(state["step"]), self._manifest["functions"]["observe"]
        made = self._calls["observe"](*self._arguments(described["arguments"], self._tables, lambda a: state[a["name"]], at, 0))
        return {r["name"].removesuffix("'out"): value for r, value in zip(described["results"], made)}

    def _words(self) -> dict[str, Any]:
        results = self._manifest["functions"]["step"]["results"]
        return {r["name"].removesuffix("'spikes"): r["shape"] for r in results if r["name"].endswith("'spikes")}

    def _advance(self, state: Mapping[str, Any], count: Any) -> tuple[Any, Any, Any]:
        """At most `self._most` steps: states, words of spikes, whether all is finite."""
        at, described = state["step"], self._manifest["functions"]["step"]
        arguments = self._arguments(described["arguments"], self._tables, lambda a: state[a["name"]], at, count)
        made = dict(zip((r["name"] for r in described["results"]), self._calls["step"](*arguments)))
        after = {name: made.get(name, state[name]) for name in self.states}
        after["step"] = at + count
        return after, {name: made[f"{name}'spikes"] for name in self._words()}, made["finite"]

    def _differentiable(self) -> Any:
        """One step of states, with its derivatives."""
        jax = self._jax

        def one(values: Any, at: Any) -> Any:
            after, words, _ = self._advance({**values, "step": at}, jax.numpy.int32(1))
            return {name: after[name] for name in self.states}, words

        def there(values: Any, at: Any) -> Any:
            return one(values, at), (values, at)

        def back(kept: Any, slopes: Any) -> Any:
            values, at = kept
            return self._step_back()(values, at, slopes[0]), np.zeros(np.shape(at), jax.dtypes.float0)

        stepped = jax.custom_vjp(one)
        stepped.defvjp(there, back)
        return stepped

    def _step_back(self) -> Any:
        """From the derivatives in the states behind a step to those before it, and in what differs from cell to cell."""
        if self._back is not None:
            return self._back
        jax, numpy = self._jax, self._jax.numpy
        files = self._make_back()
        manifest = json.loads(files["manifest.json"])
        described, tables = manifest["functions"]["step"], self._numbers(files, manifest)
        call = self._exported(files, described, "step_back")
        adjoints: dict[str, str] = manifest["adjoints"]
        of = {adjoint: name for name, adjoint in adjoints.items()}
        changing = {r["name"] for r in self._manifest["functions"]["step"]["results"]}

        def back(values: Any, at: Any, slopes: Any) -> Any:
            # What no step changes passes through, and gains what it does in this step.
            floating = {name for name in self.states if numpy.issubdtype(values[name].dtype, numpy.floating)}
            given = {adjoint: slopes[name] for adjoint, name in of.items() if name in changing & floating}

            def carried(a: dict[str, Any]) -> Any:
                name, dtype = a["name"], numpy.dtype(a["dtype"])
                if name not in of:
                    return numpy.asarray(values[name], dtype)
                return numpy.asarray(given[name], dtype) if name in given else numpy.zeros(a["shape"], dtype)

            arguments = self._arguments(described["arguments"], tables, carried, at, numpy.int32(1))
            made = dict(zip((r["name"] for r in described["results"]), call(*arguments)))

            def slope(name: str) -> Any:
                if name not in floating:
                    return np.zeros(values[name].shape, jax.dtypes.float0)
                adjoint = adjoints.get(name, "")
                found = made.get(adjoint, given.get(adjoint, 0.0))
                return found if name in changing else slopes[name] + found

            return {name: slope(name) for name in self.states}

        self._back = back
        return back

    def __repr__(self) -> str:
        return f"<neuroc.JaxModel {self._manifest['model']}: {', '.join(self.states)}>"
