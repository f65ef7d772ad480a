"""Models: what they have, what they are set to, and runs of them."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import numpy as np
from numpy.typing import NDArray

from . import _core, fitting, progress as bars, sweep as sweeps, training
from ._core import Simulator
from .errors import Error, Interrupted, ModelError, NotFiniteError, SaveError, SettingError, UsageError
from .exchange import plain
from .fitting import Fit, Gradient, Target
from .progress import Bar, Progress
from .result import Result
from .sweep import Sweep
from .table import Table
from .training import Trained

if TYPE_CHECKING:
    from .jaxed import JaxModel

#: A time: a number of ms, or a text such as "0.1 s".
Time = Union[float, str]

#: No experiment is as cold, in K: smaller numbers are degrees Celsius.
COLDEST = 150.0


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


@dataclass(frozen=True, eq=False)
class Connections:
    """The connections of a `connect` line between two populations, one after the other: by target, and of each target by source."""

    #: Its name, such as "e.i.Ampa".
    name: str
    #: The population whose cells send.
    source: str
    #: The one whose cells receive.
    target: str
    #: The numbers of the cells that send, of shape `[connection]`.
    sources: NDArray[np.uint32]
    #: And of those that receive.
    targets: NDArray[np.uint32]
    #: The weights at the start, in `unit`.
    weights: NDArray[np.float64]
    #: The unit of the weights; "1" for pure numbers.
    unit: str
    #: How long spikes take, in ms; a run rounds it to whole steps. Graded synapses take 0.
    delays: NDArray[np.float64]

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.sources)


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


def _unpacked(texts: Any, settings: Any) -> Model:
    return Model(_core.Model.unpacked(texts, settings))


def _whole(least: int, **counts: Any) -> None:
    """Refuses what counts nothing; None is left to others."""
    for name, count in counts.items():
        if count is not None and (isinstance(count, bool) or not isinstance(count, Integral) or count < least):
            raise UsageError(f"`{name}` is a whole number from {least} on, not {count!r}")


def _value(name: str, value: Any) -> Any:
    """A str, a float, or an array of float64."""
    if isinstance(value, (str, float)):
        return value
    if isinstance(value, (bool, np.bool_)):
        raise UsageError(f"`{name}` is a number, not {value}; write 1 or 0 if that is meant")
    if isinstance(value, (int, np.integer, np.floating)):
        try:
            return float(value)
        except OverflowError:
            raise SettingError(f"`{name}` is given a number that is too large; the largest is 1.8e308") from None
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
    def connections(self) -> Table[Connections]:
        """The connections of each `connect` line by name, drawn as a run draws them, with weights and delays. Other simulators take
        them as they are; with `pre` and `post` the arrays of NEST's ids of the two populations, such as `np.array(cells.tolist())`:
        `nest.Connect(pre[c.sources], post[c.targets], "one_to_one", {"weight": c.weights, "delay": c.delays})`.

        Gap junctions and drives are none. Each access draws them anew, the same ones.
        """
        things = [Connections(*row) for row in self._core.connections()]
        return Table(things, "connection", ["name", "source", "target", "number", "weights", "unit", "delays"])

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
        for name in pairs:
            if not isinstance(name, str):
                raise UsageError(f"the name of a parameter is a text, not {name!r}")
        numbers = {name: plain(name, value, partial(self._core.unit, name)) for name, value in pairs.items()}
        for name, value in numbers.items():
            self._of_kelvin(name, value)
        # A pure number may say how many cells there are.
        before = self._core.copy() if any(self._core.unit(name) == "1" for name in numbers) else None
        self._core.set([(name, _value(name, value)) for name, value in numbers.items()])
        if before is not None:
            try:
                self._core.populations()
            except ModelError as error:
                self._core = before
                raise SettingError(str(error)) from error
        return self

    def _of_kelvin(self, name: str, value: Any) -> None:
        """Refuses plain numbers for temperatures that are meant in degrees Celsius."""
        if isinstance(value, str) or not name.rpartition(".")[2].startswith("celsius") or self._core.unit(name) != "K":
            return
        try:
            least = float(np.min(np.asarray(value, dtype=float)))
        except (TypeError, ValueError, OverflowError):
            return  # refused where it is set
        if least < COLDEST:
            raise SettingError(
                f'error: `{name}` is shown in K, and {least:.12g} K are {least - 273.15:.12g} degC: write "{least:.12g} degC", or kelvin'
            )

    def unset(self, *names: str) -> Model:
        """Forgets what these names were set to, or all settings. Answers the model itself."""
        self._core.unset(list(names))
        return self

    def copy(self) -> Model:
        """The same model with settings of its own."""
        return Model(self._core.copy())

    def __copy__(self) -> Model:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Model:
        return self.copy()

    def __reduce__(self) -> Any:
        # For other processes: the texts as they were checked, and the settings. Data files are read when a run begins.
        return _unpacked, self._core.packed()

    def run(
        self,
        duration: Time | None = None,
        dt: Time | None = None,
        *,
        every: Time | None = None,
        method: str | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        max_step: Time | None = None,
        seed: int | None = None,
        engine: str | None = None,
        device: str | None = None,
        precision: str | None = None,
        accuracy: str | None = None,
        threads: int | None = None,
        passes: str | None = None,
        trace_nan: bool = False,
        cache: str | os.PathLike[str] | None = None,
        progress: Progress = None,
    ) -> Result:
        """Compiles the model, runs it from its start to its end, and keeps what it records in memory.

        duration, dt, every
            Replace the duration, the time step and the interval of all records: numbers of ms, or texts such as "0.1 s".
        method, seed
            Replace the integration method and the key of all random numbers.
        rtol, atol, max_step
            With `method="adaptive"`: how far a state may be off in a step, in parts of its value, and in mV (or in parts of the largest value
            that a state has had); the longest step.
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
        progress
            Long runs show a bar in terminals and notebooks, if tqdm is there. True: always; False: never; a function: it is called about
            twenty times a second with the model time that is done and that of the whole run, in ms.

        The interpreter lock is not held in a run. Ctrl-C stops it and raises `Interrupted`, a `KeyboardInterrupt` whose `result` is what
        was recorded. Raises `NotFiniteError` (with `result`, too) if a value becomes NaN or infinite, `ModelError` for what is wrong
        with the model, `EngineError` if no engine can run it.
        """
        options = dict(
            duration=duration, dt=dt, every=every, method=method, rtol=rtol, atol=atol, max_step=max_step, seed=seed, engine=engine,
            device=device, precision=precision, accuracy=accuracy, threads=threads, passes=passes, trace_nan=trace_nan, cache=cache,
        )  # fmt: skip
        bars.checked(progress)
        with Bar(progress, self.name, 0.0, "ms") as bar:

            def news(done: float, whole: float) -> None:
                if callable(progress):
                    progress(done, whole)
                bar.to(done, of=whole)

            raw = self._core.run({**options, "progress": news if callable(progress) or bar.bar is not None else None})
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

    def sweep(
        self, axes: Mapping[str, Any], *, together: bool = False, threads: int | None = None, progress: Progress = None, **options: Any
    ) -> Sweep:
        """Runs the model with every combination of values of parameters or initial values. The model is compiled once.

        >>> sweep = model.sweep({"Na.gbar": np.linspace(80, 160, 41), "K.gbar": [30, 36, 42]}, duration=100)
        >>> sweep["squid.soma.v"]           # [Na.gbar, K.gbar, time, cell]
        >>> sweep.rates("squid")            # [Na.gbar, K.gbar, cell], in Hz
        >>> sweep.plot()

        axes
            What `set` takes for each run: numbers in the unit that `params` shows, texts, or arrays for each cell.
        together
            Do not combine: the first values of all names, then the second ones, and so on, as a random or Latin hypercube design wants it.
        threads
            So many runs at once, each on one thread; all processors by default. No number depends on it.
        progress
            As in `run`; a function is called with the runs that are done, and their number.

        Other options are those of `run`, and `seed` may be a name of `axes`, too: `{"seed": range(20)}` repeats noise. Raises what `set` and `run` raise;
        the runs that ended before are not lost: the error (or the `Interrupted` of Ctrl-C) has them as `results`, in the shape of the axes.
        """
        bars.checked(progress)
        _whole(1, threads=threads)
        if "seed" in axes and options.get("seed") is not None:
            raise UsageError("`seed` is an axis of the sweep and given besides; leave one of them out")
        axes = {name: values if name == "seed" else plain(name, values, partial(self._core.unit, name)) for name, values in axes.items()}
        shape, points = sweeps.points(axes, together)
        prepared = []
        for point in points:
            seed = {"seed": int(point["seed"])} if "seed" in point else {}
            model = self.copy().set({name: value for name, value in point.items() if name != "seed"})
            prepared.append((model, {**options, **seed}))
        units = {name: self._core.unit(name) or "1" for name in axes}
        results: list[Result | None] = [None] * len(points)
        count, done, lock = threads or os.cpu_count() or 1, 0, threading.Lock()
        with Bar(progress, self.name, float(len(points)), "runs") as bar:

            def one(at: int) -> None:
                nonlocal done
                model, how = prepared[at]
                try:
                    results[at] = model.run(**how, threads=1, progress=False)
                except NotFiniteError as error:
                    if sys.version_info >= (3, 11):
                        error.add_note("in the run with " + ", ".join(f"{name} = {value}" for name, value in points[at].items()))
                    raise
                with lock:
                    done += 1
                    if callable(progress):
                        progress(done, len(points))
                    bar.to(done)

            def ended() -> NDArray[np.object_]:
                kept = np.empty(len(points), dtype=object)
                kept[:] = results
                return kept.reshape(shape)

            try:
                # What is compiled for the first run the others find.
                one(0)
                with ThreadPoolExecutor(max_workers=count) as pool:
                    runs = [pool.submit(one, at) for at in range(1, len(points))]
                    try:
                        for run in runs:
                            run.result()
                    finally:
                        for run in runs:
                            run.cancel()
            except (Exception, Interrupted) as error:
                # Also what `progress` raises.
                setattr(error, "results", ended())
                raise
            except KeyboardInterrupt:
                stopped = Interrupted("the sweep was stopped")
                stopped.results = ended()
                raise stopped from None
        return Sweep(axes, units, ended())

    def gradient(
        self,
        parameters: Sequence[str],
        targets: Mapping[str, Target] | None = None,
        *,
        mode: str = "auto",
        memory: str = "1GB",
        **options: Any,
    ) -> Gradient:
        """Compiles the model so that losses of what it records have exact gradients in parameters.

        parameters
            Their names, or the ends of them; each is one number.
        targets
            By records, what a run is compared with: a file of two columns (time in ms, value in the unit of the record), or a pair of arrays.
            The loss is the mean squared error by the variance of the trace, averaged over targets.
        mode
            "reverse": back from the loss, which takes as long for any number of parameters; "forward": beside the run, which keeps nothing
            and takes longer with each parameter; "auto": forward for up to six parameters and on XLA, else back.
        memory
            For the states that going back needs; where it is less than all of them take, steps are taken again, with the same bits.

        Other options are those of `run` but `trace_nan` and `progress`; it is done in f64. Raises `SettingError` for names that do not fit, and for
        models without gradients so far (cells that are reset, synapses with events).
        """
        if isinstance(parameters, str) or not parameters:
            raise UsageError('write a list of parameters, such as gradient(["Na.gbar"])')
        gradient = Gradient(self._core.differentiable(list(parameters), self._options(options), mode, memory), targets is not None)
        if targets is not None:
            gradient._core.aim(fitting.aimed(targets))
        return gradient

    def fit(
        self,
        free: Mapping[str, Sequence[Any]] | None = None,
        targets: Mapping[str, Target] | None = None,
        *,
        search: str | None = None,
        starts: int | None = None,
        iterations: int | None = None,
        mode: str = "auto",
        memory: str = "1GB",
        progress: Progress = None,
        **options: Any,
    ) -> Fit:
        """Looks for the values of parameters with which a run comes nearest to traces and numbers. The model itself is not changed.

        >>> fit = model.fit({"Na.gbar": (50, 300), "K.gbar": ("10 mS/cm2", "80 mS/cm2")}, {"squid.axon.v": "trace.csv"}, starts=4)
        >>> model.set(fit.values)
        >>> fit = model.fit({"step.amplitude": (0.3, 1.5)}, {"rate(cells)": "40 Hz", "first_spike(cells)": (30, 1)})

        What is left out is what the `fit` block of the model says.

        free
            The bounds of each parameter.
        targets
            Traces as in `gradient`, and numbers that are read out of every cell: `spike_count(population)`, `rate`, `first_spike`, `interval`,
            `min(record)`, `max`, `mean`, `last`, `width`; a number (of a rate in Hz, of a time in ms, else in the unit of the record) or a text
            with a unit, or a pair of that and what counts as far, a tenth of it if absent. A text may be in the words of a `fit` block:
            "40 Hz from 20 ms to 80 ms within 2 Hz", 'file("runs.csv", column = "second")'.
        search
            "lbfgs", by gradients, or "nelder-mead", without them: for any model, and where a target is a number.
        starts
            From how many places: the first is the model's own, the others are drawn between the bounds; 1 if nobody says it.
        iterations
            Steps of the search from each place, at most; 100 if nobody says it.
        mode, memory
            As in `gradient`.
        progress
            As in `run`; a function is called with the number of the start, its runs so far, and its least loss so far.

        Other options are those of `run` but `trace_nan`. Ctrl-C raises `Interrupted`, whose `fit` is the best until then. Raises what
        `gradient` raises.
        """
        bars.checked(progress)
        _whole(1, starts=starts, iterations=iterations)
        counts = (starts, iterations)
        found, stopped = fitting.fit(self._core, free, targets, search, counts, mode, memory, self._options(options), progress)
        if stopped is not None:
            if not isinstance(stopped, KeyboardInterrupt):
                raise stopped
            interrupted = Interrupted("the fit was stopped; the best until then is in .fit")
            interrupted.fit = found
            raise interrupted from None
        return found

    def train(
        self,
        epochs: int | None = None,
        *,
        resume: Trained | str | os.PathLike[str] | None = None,
        output: str | os.PathLike[str] | None = None,
        memory: str = "4GB",
        progress: Progress = None,
        **options: Any,
    ) -> Trained:
        """Lets a network learn, as the `train` block of the model says. The model itself is not changed; `take` gives it what was learnt.

        >>> trained = model.train(epochs=5)
        >>> trained.history[-1].test.accuracy
        >>> model.take(trained).run()

        epochs
            How often all samples are seen, in all, instead of what the block says.
        resume
            Goes on with a training, to the same bits as if it had not been interrupted.
        output
            Writes what has been learnt to this file after each epoch, as `neuroc train` does.
        memory
            For what going back needs of all steps. With less than that, steps are taken again on the way back, with the same bits; on XLA what does
            not fit is refused.
        progress
            As in `run`; a function is called with the number of the epoch, the samples seen of it, how many there are, and the mean loss.

        Other options are those of `run` but `trace_nan`.

        With `patience` in the block the training may end before its epochs; what is answered and written is what was best for the test samples.

        Ctrl-C raises `Interrupted`, whose `trained` is what was learnt until the last whole epoch (None before the first).
        """
        bars.checked(progress)
        _whole(1, epochs=epochs)
        before = training.read_trained(resume) if isinstance(resume, (str, os.PathLike)) else resume
        if output is not None and not Path(output).resolve().parent.is_dir():
            raise SaveError(f"cannot write `{output}`: the directory `{Path(output).parent}` does not exist")
        if output is not None and Path(output).resolve() in (file.resolve() for file in self._core.files()):
            raise SaveError(f"cannot write `{output}`: the model is read from it, and it would be lost; choose another name")
        core = self._core.learning(self._options(options), memory, None if before is None else before._core, epochs)
        history: list[training.Epoch] = []
        last: Trained | None = before
        try:
            for epoch in training.epochs(core, progress):
                history.append(epoch)
                if core.is_best():
                    last = Trained(core.trained(), history)
                    if output is not None:
                        last.save(output)
        except KeyboardInterrupt:
            interrupted = Interrupted("the training was stopped; what was learnt until then is in .trained")
            interrupted.trained = last
            raise interrupted from None
        assert last is not None
        if last is before and output is not None:
            last.save(output)
        return last

    def take(self, trained: Trained | str | os.PathLike[str]) -> Model:
        """Sets what a training has learnt: weights and parameters; of a file, too. Answers the model itself."""
        known = training.read_trained(trained) if isinstance(trained, (str, os.PathLike)) else trained
        self._core.take(known._core)
        return self

    @staticmethod
    def _options(options: Mapping[str, Any]) -> dict[str, Any]:
        known = {
            "duration", "dt", "every", "method", "rtol", "atol", "max_step", "seed", "engine", "device", "precision", "accuracy",
            "threads", "passes", "cache",
        }  # fmt: skip
        unknown = sorted(set(options) - known)
        if unknown:
            raise UsageError(f"there is no option `{unknown[0]}`; the options are {', '.join(sorted(known))}")
        return dict(options)

    def simulator(
        self,
        dt: Time | None = None,
        *,
        duration: Time | None = None,
        method: str | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        max_step: Time | None = None,
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
            duration=duration, dt=dt, method=method, rtol=rtol, atol=atol, max_step=max_step, seed=seed, engine=engine, device=device,
            precision=precision, accuracy=accuracy, threads=threads, passes=passes, cache=cache,
        )  # fmt: skip
        return self._core.simulator(options)

    def stage(self, name: str, **options: Any) -> str:
        """A stage of the compilation as text: "ast", "hir", "ode", "ir", "ir-opt", "plan", "rust" or "stablehlo".

        `dt`, `duration`, `every`, `method`, `seed`, `precision`, `accuracy` and `passes` are options as in `run`; "stablehlo" is what XLA runs, all
        others are for the native engine.
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

    def to_jax(
        self,
        duration: Time | None = None,
        dt: Time | None = None,
        *,
        method: str | None = None,
        seed: int | None = None,
        device: str | None = None,
        precision: str | None = None,
    ) -> JaxModel:
        """The model as functions that run inside a JAX program, and that `jax.jit` takes; see `JaxModel`.

        duration
            Until when inputs that depend on time are known.
        device
            What it is to be fast on: "cpu", "cuda" or "tpu". It runs on all of them.

        Raises `UsageError` in a build without XLA, or if JAX has not the precision.
        """
        from .jaxed import JaxModel

        options = dict(duration=duration, dt=dt, method=method, seed=seed, device=device, precision=precision)
        core = self._core.copy()
        return JaxModel(core.artefact(options, False), lambda: core.artefact(options, True))

    def to_nir(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        unit: str = "s",
        steps: bool = True,
        inputs: Sequence[str] | None = None,
        dtype: Any = np.float32,
    ) -> Any:
        """The network as a graph of NIR, the Neuromorphic Intermediate Representation: a `nir.NIRGraph`; with a path it is written, too.

        >>> model.take(trained).to_nir("digits.nir")

        A population becomes a node I, IF, LI, LIF, CubaLI or CubaLIF if its equations are those, whatever its cell and its synapses are called; a
        projection Linear or Affine, Conv1d, Conv2d, AvgPool2d or SumPool2d, or Scale, with a Delay if it takes longer than what reads NIR takes.
        Populations that lead nowhere are outputs.

        unit
            What times are counted in: "s" (as snnTorch and Norse read them), "ms", "us" or "step".
        steps
            Frameworks take NIR's equations by Euler's method. True: with the time constants of the graph and the model's time step they take the
            steps that the model takes by its own method; False: the equations have the time constants of the model's.
        inputs
            The populations that become Inputs, whatever makes them spike; what leads to them is left out. If none are said, those that nothing leads to.
        dtype
            Of all numbers.

        Raises `UsageError` with all populations that are no such nodes, their cells, and why.
        """
        from .nir_out import to_nir

        return to_nir(self, path, unit, steps, inputs, dtype)

    def __repr__(self) -> str:
        populations = ", ".join(f"{p.name} ({p.cells})" for p in self.populations.values())
        settings = f", set {', '.join(self.settings)}" if self.settings else ""
        return f"<neuroc.Model {self.name} of {self.file}: {populations}{settings}>"
