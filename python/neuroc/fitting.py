"""Gradients of runs, and parameters fitted to traces."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from . import _core
from .errors import ModelWarning, SettingError, UsageError
from .exchange import is_own, plain, says_a_unit
from .progress import Bar, Progress

#: What a record is compared with: a file of two columns, or times in ms and values in the unit of the record. What a number such as
#: `rate(squid)` should be: a number or a text with a unit, an array with a number for each cell, or one of these and what counts as far.
Target = Union[str, "os.PathLike[str]", float, "NDArray[np.float64]", "tuple[Any, Any]"]

#: What is read out of a run, such as `rate(cells)`; a place in a section has something behind its brackets.
_NUMBER = re.compile(r"\s*\w+\s*\(.*\)\s*")


@dataclass(frozen=True)
class Start:
    """One search of a fit: where it began, what it found, the loss there, how many runs it took."""

    begin: dict[str, float]
    values: dict[str, float]
    loss: float
    runs: int


@dataclass(frozen=True)
class Fit:
    """What a fit has found. `model.set(fit.values)` takes it."""

    #: The best values, in the units that `model.params` shows.
    values: dict[str, float]
    #: Their units.
    units: dict[str, str]
    #: The mean over the targets: of a trace the mean squared error by its variance, of a number the squared difference by the square of
    #: what counts as far.
    loss: float
    #: By how much the run is off each target (root of the mean square; infinite if a cell has no such number), and the unit.
    off: dict[str, tuple[float, str]]
    #: Every search.
    starts: list[Start] = field(repr=False)

    def __str__(self) -> str:
        rows = [f"  {name} = {value:.7g} {self.units[name]}" for name, value in self.values.items()]
        off = [f"  {name} is off by {x:.4g} {unit}" for name, (x, unit) in self.off.items()]
        runs = sum(start.runs for start in self.starts)
        return "\n".join([f"loss {self.loss:.4e} after {runs} runs", *rows, *off])


def aimed(targets: Mapping[str, Target]) -> dict[str, Any]:
    """Targets as the part in Rust takes them."""
    all: dict[str, Any] = {}
    for name, target in targets.items():
        if _NUMBER.fullmatch(name):
            without_unit(name, *(target if isinstance(target, tuple) else (target,)))
            all[name] = target
            continue
        if isinstance(target, (str, os.PathLike)):
            all[name] = os.fspath(target)
            continue
        wrong = f"the trace for `{name}` is a file, or a pair of arrays: times in ms, values"
        if isinstance(target, (int, float)):
            raise UsageError(wrong)
        try:
            t, x = target
            without_unit(name, t, x)
            all[name] = tuple(np.ascontiguousarray(np.ravel(part), dtype=np.float64) for part in (t, x))
        except (TypeError, ValueError) as error:
            raise UsageError(wrong) from error
    return all


def without_unit(name: str, *values: Any) -> None:
    """Refuses quantities where plain numbers and texts are taken."""
    for value in values:
        if says_a_unit(value) and not is_own(value):
            raise SettingError(f"error: the target `{name}` takes plain numbers or texts with a unit, and is given {value!r}")


class Gradient:
    """A run whose losses have gradients; `Model.gradient` makes one.

    It is called with values of the parameters (in their order and units) and answers the loss and its derivatives, as
    `scipy.optimize.minimize(gradient, x, jac=True)` wants it:

    >>> gradient = model.gradient(["Na.gbar", "K.gbar"], {"squid.soma.v": "trace.csv"})
    >>> loss, slopes = gradient([120, 36])

    Without targets a loss of your own is asked: it gets the samples as `{name: array [time, cell]}`, in the units of the records, and
    answers the loss and its derivatives in the samples that it depends on, in the same form:

    >>> gradient = model.gradient(["Na.gbar"])
    >>> loss, slopes = gradient([120], lambda r: (r["squid.soma.v"].mean(), {"squid.soma.v": ones / size}))
    """

    def __init__(self, core: _core.Differentiable, aim: bool) -> None:
        self._core, self._aim = core, aim
        parameters = core.parameters()
        #: The full names of the parameters.
        self.names: list[str] = [name for name, _, _ in parameters]
        #: Their units.
        self.units: list[str] = [unit for _, unit, _ in parameters]
        #: What they are set to, shape `[parameter]`.
        self.start: NDArray[np.float64] = np.array([value for _, _, value in parameters])
        #: The times (ms) of the samples of each record.
        self.times: dict[str, NDArray[np.float64]] = {name: t for name, _, t in core.records()}

    @property
    def memory(self) -> int:
        """How many bytes of states are kept at the same time, at most; 0 in forward mode."""
        return self._core.memory()

    def __call__(
        self, values: Any, loss: Callable[[dict[str, Any]], tuple[float, Mapping[str, Any]]] | None = None
    ) -> tuple[float, NDArray[np.float64]]:
        """The loss, and its derivatives in the parameters, shape `[parameter]`."""
        x = [float(value) for value in np.ravel(values)]
        if loss is None:
            if not self._aim:
                raise UsageError("there is no target; name one in model.gradient(...), or give a loss of your own")
            return self._core.with_targets(x)
        names = list(self.times)

        def ask(samples: list[Any]) -> tuple[float, list[Any]]:
            value, slopes = loss(dict(zip(names, samples)))
            unknown = [name for name in slopes if name not in names]
            if unknown:
                raise UsageError(f"the loss has derivatives in `{unknown[0]}`, which is not recorded; {', '.join(names)} are")
            full = []
            for name, of in zip(names, samples):
                given = np.zeros(of.shape) if name not in slopes else np.asarray(slopes[name], dtype=np.float64)
                if given.shape != of.shape:
                    raise UsageError(f"the derivatives in `{name}` have the shape {given.shape}, its samples {of.shape}")
                full.append(np.ascontiguousarray(given).ravel())
            return float(value), full

        return self._core.with_loss(x, ask)

    def __repr__(self) -> str:
        return f"<neuroc.Gradient in {', '.join(self.names)}>"


def fit(
    core: _core.Model,
    free: Mapping[str, Sequence[Any]] | None,
    targets: Mapping[str, Target] | None,
    search: str | None,
    counts: tuple[int | None, int | None],
    mode: str,
    memory: str,
    options: dict[str, Any],
    progress: Progress,
) -> tuple[Fit, BaseException | None]:
    """The best values, and the exception that stopped the search."""
    starts, iterations = counts
    bounds = None
    if free is not None:
        bounds = []
        for name, ends in free.items():
            if isinstance(ends, str) or len(ends) != 2:
                raise UsageError(f"the bounds of `{name}` are two numbers or texts, such as (50, 300) or (\"50 mS/cm2\", \"0.3 S/cm2\")")
            ends = [plain(name, end, partial(core.unit, name)) for end in ends]
            bounds.append((name, *(end if isinstance(end, str) else float(end) for end in ends)))
    asked = {
        "free": bounds,
        "targets": None if targets is None else aimed(targets),
        "search": search,
        "starts": starts,
        "iterations": iterations,
        "mode": mode,
        "memory": memory,
    }
    with Bar(progress, "fit", None, "run") as bar:
        before = [0, 0]

        def news(start: int, runs: int, loss: float) -> None:
            if callable(progress):
                progress(start, runs, loss)
            # Runs of all starts so far.
            if runs < before[1]:
                before[0] += before[1]
            before[1] = runs
            bar.to(before[0] + runs, f"start {start + 1}, loss {loss:.3e}")

        found = core.fit(asked, options, news)
    if found["remark"] is not None:
        warnings.warn(found["remark"], ModelWarning, stacklevel=3)
    named = found["parameters"]

    def by_name(values: Sequence[float]) -> dict[str, float]:
        return {name: value for (name, _), value in zip(named, values)}

    best = Fit(
        values=by_name(found["values"]),
        units=dict(named),
        loss=found["loss"],
        off={name: (off, unit) for name, off, unit in found["off"]},
        starts=[Start(by_name(begin), by_name(values), loss, runs) for begin, values, loss, runs in found["starts"]],
    )
    stopped: BaseException | None = found["stopped"]
    return best, stopped
