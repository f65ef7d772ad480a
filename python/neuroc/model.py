"""Models: what they have, what they are set to, and runs of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._core import Simulator
from .errors import Interrupted, NotFiniteError, UsageError
from .exchange import plain
from .result import Result
from .table import Table

#: A time: a number of ms, or a text such as "0.1 s".
Time = Union[float, str]


@dataclass(frozen=True)
class Param:
    """A parameter: its value is in `unit`, as is a plain number that it is set to."""

    #: Its full name, such as "squid.soma.Na.gbar".
    name: str
    #: One number, or an array of shape `[cell]` if it differs from cell to cell; None if it is not known before the run.
    value: float | NDArray[np.float64] | None
    #: Its unit; "1" for a pure number.
    unit: str
    #: What the model says about it.
    doc: str
    #: For whose cells it may differ; None if it is one number.
    population: str | None


@dataclass(frozen=True)
class State:
    """A state: its value at the start is in `unit`, as is a plain number that it is set to."""

    #: Its full name, such as "squid.soma.v".
    name: str
    #: At the start: one number, or an array of shape `[cell]`; None if it is not known before the run.
    value: float | NDArray[np.float64] | None
    #: Its unit; "1" for a pure number.
    unit: str
    #: Whose cells have it.
    population: str
    #: Is it the open fraction of gates?
    gate: bool


@dataclass(frozen=True)
class Population:
    """Cells of one kind."""

    name: str
    #: How many there are.
    cells: int
    #: The grid that they stand on, in NumPy's order; `row.reshape(shape)` is the picture of a row of a record.
    shape: tuple[int, ...]
    #: Does the model say when they spike?
    spikes: bool


def load(path: str | os.PathLike[str]) -> Model:
    """Checks a model file and everything that it uses.

    Raises `ModelError` with all that is wrong. What is probably wrong is a `ModelWarning`.
    """
    return Model(_core.Model.load(os.fspath(path)))


def parse(text: str, name: str = "model.neuro", directory: str | os.PathLike[str] = "") -> Model:
    """Checks a model given as text. Messages call it `name`; files that it uses are looked for in `directory`.

    Raises `ModelError` with all that is wrong. What is probably wrong is a `ModelWarning`.
    """
    return Model(_core.Model.parse(text, name, os.fspath(directory)))


def _value(name: str, value: Any) -> Any:
    """A str, a float, or an array of float64."""
    if isinstance(value, (str, float)):
        return value
    if isinstance(value, (bool, np.bool_)):
        raise UsageError(f"`{name}` is a number, not {value}; write 1 or 0 if that is meant")
    if isinstance(value, (int, np.integer, np.floating)):
        return float(value)
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        raise UsageError(
            f"`{name}` takes a number, a text with a unit or an array of numbers, not {type(value).__name__}"
            + (f" of {array.dtype}" if array.shape else "")
        )
    if array.ndim == 0:
        return float(array)
    return np.ascontiguousarray(array, dtype=np.float64)


class Model:
    """A checked model with settings. `neuroc.load` and `neuroc.parse` make one.

    Runs do not change it, and several threads may run it at once.
    """

    def __init__(self, core: _core.Model) -> None:
        self._core = core
        self.name: str
        #: What its first lines say.
        self.doc: str
        #: The file, as it was named.
        self.file: str
        self.name, self.doc, self.file = core.about()

    @property
    def params(self) -> Table[Param]:
        """The parameters by name, with the values that they are set to, their units and docs."""
        things = [Param(*row) for row in self._core.params()]
        return Table(things, "parameter", ["name", "value", "unit", "doc"])

    @property
    def states(self) -> Table[State]:
        """The states by name, with their values at the start and their units."""
        things = [State(*row) for row in self._core.states()]
        return Table(things, "state", ["name", "value", "unit", "population"])

    @property
    def populations(self) -> Table[Population]:
        """The populations by name, with their numbers of cells."""
        things = [Population(*row) for row in self._core.populations()]
        return Table(things, "population", ["name", "cells", "shape", "spikes"])

    @property
    def settings(self) -> list[str]:
        """What has been set, as the command's `--set` would take it; of arrays how long they are and a hash."""
        return self._core.told()

    def set(self, values: Mapping[str, Any] | str | None = None, value: Any = None, /, **more: Any) -> Model:
        """Sets parameters and initial values of states: all of them, or none if one does not fit. Answers the model itself.

        >>> model.set(n=100)
        >>> model.set("Na.gbar", "100 mS/cm2")
        >>> model.set({"Na.gbar": 100, "soma.v": rng.normal(-65, 2, size=100)})

        A name may be the end of a full one, if it fits one only. A plain number has the unit that `params` and `states` show (the one
        that the model declares); a text has the unit that it says; a quantity of Pint, Astropy or Quantities is turned into it. An array gives each cell of the population its own number: shape
        `[cell]`, or the population's grid. Setting something again replaces what it was.

        Raises `SettingError`: an unknown name, a unit of another kind, a wrong shape, a number that is not finite, or a value that the
        model does not allow.
        """
        if isinstance(values, str):
            pairs: dict[str, Any] = {values: value}
        elif value is not None:
            raise UsageError('write set("name", value), set(name=value) or set({"name": value})')
        else:
            pairs = dict(values or {})
        pairs.update(more)
        numbers = {name: plain(name, value, partial(self._core.unit, name)) for name, value in pairs.items()}
        self._core.set([(name, _value(name, value)) for name, value in numbers.items()])
        return self

    def unset(self, *names: str) -> Model:
        """Forgets what these names were set to, or all settings. Answers the model itself."""
        self._core.unset(list(names))
        return self

    def copy(self) -> Model:
        """The same model with settings of its own."""
        return Model(self._core.copy())

    def run(
        self,
        duration: Time | None = None,
        dt: Time | None = None,
        *,
        every: Time | None = None,
        method: str | None = None,
        seed: int | None = None,
        engine: str | None = None,
        device: str | None = None,
        precision: str | None = None,
        accuracy: str | None = None,
        threads: int | None = None,
        passes: str | None = None,
        trace_nan: bool = False,
        cache: str | os.PathLike[str] | None = None,
    ) -> Result:
        """Compiles the model, runs it from its start to its end, and keeps what it records in memory.

        duration, dt, every
            Replace the duration, the time step and the interval of all records: numbers of ms, or texts such as "0.1 s".
        method, seed
            Replace the integration method and the key of all random numbers.
        engine
            "native" (kernels that rustc compiles), "xla" or "interp" (slow; needs nothing). If none is said: the native one where
            rustc is, otherwise XLA where its plugin for processors is, otherwise the interpreter, and an `EngineWarning` says so once.
        device
            What XLA runs on: "cpu", "cuda" or "tpu".
        precision
            "f64", "f32" or, on XLA, "bf16"; f64 unless an accelerator runs it.
        accuracy
            How accurate functions are in f64: "exact", "1e-9" or "1e-6".
        threads
            Of the native engine; all processors by default. No number depends on it.
        passes
            "O2", "O0", or names with commas in between (`neuroc passes` lists them).
        trace_nan
            If a value becomes NaN, tell the ten steps before.
        cache
            A folder for compiled kernels instead of the user's cache.

        The interpreter lock is not held in a run. Ctrl-C stops it and raises `Interrupted`, a `KeyboardInterrupt` whose `result` is what
        was recorded. Raises `NotFiniteError` (with `result`, too) if a value becomes NaN or infinite, `ModelError` for what is wrong
        with the model, `EngineError` if no engine can run it.
        """
        options = dict(
            duration=duration, dt=dt, every=every, method=method, seed=seed, engine=engine, device=device,
            precision=precision, accuracy=accuracy, threads=threads, passes=passes, trace_nan=trace_nan, cache=cache,
        )  # fmt: skip
        raw = self._core.run(options)
        result = Result(raw)
        if raw["stopped"] is not None:
            if not isinstance(raw["stopped"], KeyboardInterrupt):
                raise raw["stopped"]
            t = result.meta["steps"] * result.meta["options"]["dt_ms"]
            stopped = Interrupted(f"stopped at t = {t:.12g} ms; what was recorded until then is in .result")
            stopped.result = result
            raise stopped from None
        if raw["not_finite"] is not None:
            wrong = NotFiniteError(*raw["not_finite"])
            wrong.result = result
            raise wrong
        return result

    def simulator(
        self,
        dt: Time | None = None,
        *,
        duration: Time | None = None,
        method: str | None = None,
        seed: int | None = None,
        engine: str | None = None,
        device: str | None = None,
        precision: str | None = None,
        accuracy: str | None = None,
        threads: int | None = None,
        passes: str | None = None,
        cache: str | os.PathLike[str] | None = None,
    ) -> Simulator:
        """Compiles the model and begins a run that is taken step by step; options are those of `run`.

        It goes on as long as it is asked to; `duration` matters only for models that read series from files. Later settings of the model
        do not reach it.
        """
        options = dict(
            duration=duration, dt=dt, method=method, seed=seed, engine=engine, device=device, precision=precision,
            accuracy=accuracy, threads=threads, passes=passes, cache=cache,
        )  # fmt: skip
        return self._core.simulator(options)

    def stage(self, name: str, **options: Any) -> str:
        """A stage of the compilation as text: "ast", "hir", "ode", "ir", "ir-opt", "plan", "rust" or "stablehlo".

        `dt`, `duration`, `method`, `seed`, `precision`, `accuracy` and `passes` are options as in `run`.
        """
        known = {"dt", "duration", "every", "method", "seed", "precision", "accuracy", "passes"}
        unknown = sorted(set(options) - known)
        if unknown:
            raise UsageError(f"a stage has no option `{unknown[0]}`; its options are {', '.join(sorted(known))}")
        return self._core.stage(name, options)

    def ir(self, stage: str = "ir-opt", **options: Any) -> str:
        """The step IR as text: "ir-opt" after the passes, "ir" before them."""
        if stage not in ("ir", "ir-opt"):
            raise UsageError(f'"{stage}" is not a stage of the IR; write "ir" or "ir-opt" (`stage` shows all others)')
        return self.stage(stage, **options)

    def rust(self, **options: Any) -> str:
        """The kernels in Rust."""
        return self.stage("rust", **options)

    def stablehlo(self, **options: Any) -> str:
        """The entry points in StableHLO. Raises `UsageError` in a build without XLA."""
        return self.stage("stablehlo", **options)

    def __repr__(self) -> str:
        populations = ", ".join(f"{p.name} ({p.cells})" for p in self.populations.values())
        settings = f", set {', '.join(self.settings)}" if self.settings else ""
        return f"<neuroc.Model {self.name} of {self.file}: {populations}{settings}>"
