"""A model inside a JAX program."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Mapping
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
    changed between steps. Under "step" it counts its steps; inputs that depend on time are known up to the duration. It runs on whatever
    JAX runs on, and needs `jax_enable_x64` in double precision. `jax.vmap` takes one state after the other. There are no gradients
    through it (`Model.gradient` has them).
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._jax: Any = needed("jax", "jax", "to_jax")
        self._manifest: dict[str, Any] = json.loads(files["manifest.json"])
        self._files = files
        if self._manifest["precision"] == "f64" and not self._jax.config.jax_enable_x64:
            raise UsageError('JAX computes in f32: set jax.config.update("jax_enable_x64", True), or take precision="f32"')
        archive = np.load(io.BytesIO(files["inputs.npz"]))
        functions = self._manifest["functions"]
        self._calls = {name: self._exported(name) for name in ("init", "step", "observe")}
        self._step: list[dict[str, Any]] = functions["step"]["arguments"]

        def array(argument: Mapping[str, Any]) -> Any:
            return archive[argument["key"]].astype(self._jax.numpy.dtype(argument["dtype"]))

        #: The numbers that are the same in every step: those of the whole model, and the edges of connections.
        self._inputs = {a["key"]: array(a) for f in functions.values() for a in f["arguments"] if a["from"] == "inputs"}
        self._rows = {a["key"]: (array(a), a["shape"][0]) for a in self._step if a["from"] == "steps"}
        #: How long a step is, in ms, and how many the duration has.
        self.dt: float = self._manifest["dt_ms"]
        self.duration_steps: int = self._manifest["steps"]
        #: The names of states, and of what differs from cell to cell.
        self.states: list[str] = [r["name"] for r in functions["init"]["results"]]
        # A call has so many rows, and a bit of a word for each step.
        bits = [32 * shape[0] for shape in self._words().values()]
        self._most: int = min([most for _, most in self._rows.values()] + bits, default=32)

    def _exported(self, name: str) -> Any:
        """A function of the artefact as one of JAX."""
        jax, described = self._jax, self._manifest["functions"][name]
        from jax import export
        from jax.interpreters import mlir
        from jaxlib.mlir import ir
        from jaxlib.mlir.dialects import stablehlo

        def shapes(ports: list[dict[str, Any]]) -> tuple[Any, ...]:
            return tuple(jax.core.ShapedArray(tuple(p["shape"]), jax.numpy.dtype(p["dtype"])) for p in ports)

        with mlir.make_ir_context():
            module = ir.Module.parse(self._files[described["text"]])
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
        made = self._calls["init"](*(self._fixed(a) for a in described["arguments"]))
        state = dict(zip(self.states, made))
        for name, value in (values or {}).items():
            if name not in state:
                raise SettingError(f"there is no state `{name}`; the states are {', '.join(self.states)}")
            kept = state[name]
            state[name] = self._jax.numpy.broadcast_to(self._jax.numpy.asarray(value, kept.dtype), kept.shape)
        state["step"] = self._jax.numpy.int32(0)
        return state

    def step(self, state: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """One step: the states after it, and by population which cells spiked in it, shape `[cell]`."""
        after, words, _ = self._advance(state, self._jax.numpy.int32(1))
        return after, {name: (word[0] & 1).astype(bool) for name, word in words.items()}

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
        """What of a model is no state, such as currents that it records, by name."""
        described = self._manifest["functions"]["observe"]
        arguments = (state[a["name"]] if a["from"] == "init" else self._fixed(a) for a in described["arguments"])
        made = self._calls["observe"](*arguments)
        return {r["name"]: value for r, value in zip(described["results"], made)}

    def _fixed(self, argument: Mapping[str, Any]) -> Any:
        return self._jax.numpy.asarray(self._inputs[argument["key"]])

    def _words(self) -> dict[str, Any]:
        results = self._manifest["functions"]["step"]["results"]
        return {r["name"].removesuffix("'spikes"): r["shape"] for r in results if r["name"].endswith("'spikes")}

    def _advance(self, state: Mapping[str, Any], count: Any) -> tuple[Any, Any, Any]:
        """At most `self._most` steps: states, words of spikes, whether all is finite."""
        at, arguments = state["step"], []
        for a in self._step:
            if a["from"] == "init":
                arguments.append(state[a["name"]])
            elif a["from"] == "caller":
                arguments.append(count)
            elif a["from"] == "steps":
                rows, most = self._rows[a["key"]]
                arguments.append(self._jax.lax.dynamic_slice_in_dim(self._jax.numpy.asarray(rows), at, most))
            else:
                arguments.append(self._fixed(a))
        made = dict(zip((r["name"] for r in self._manifest["functions"]["step"]["results"]), self._calls["step"](*arguments)))
        after = {name: made.get(name, state[name]) for name in self.states}
        after["step"] = at + count
        return after, {name: made[f"{name}'spikes"] for name in self._words()}, made["finite"]

    def __repr__(self) -> str:
        return f"<neuroc.JaxModel {self._manifest['model']}: {', '.join(self.states)}>"
