"""Results: arrays with times and units, and what others make of them."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator, Mapping
from copy import copy, deepcopy
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _core, exchange
from .exchange import needed

if TYPE_CHECKING:
    from .sweep import Sweep


class Trace(np.ndarray):
    """Samples of one record, shape `[time, cell]`, in `unit`: an array that also knows when and where they were taken.

    What is computed from it, and its slices, are plain numbers again: `t` and `cells` belong to the whole. What NumPy still makes of this class,
    such as `trace.T`, has no name and is pickled and copied as the array that it is.
    """

    #: The name of the record, such as "squid.soma.v".
    name: str
    #: The population.
    population: str
    #: The unit of the samples; "1" for pure numbers.
    unit: str
    #: Times of the samples in ms, shape `[time]`.
    t: NDArray[np.float64]
    #: The cells of the population that the columns belong to, from 0, shape `[cell]`.
    cells: NDArray[np.int64]
    #: Of what is recorded in every compartment of sections, those that the columns belong to, such as "dend(0.25)"; of a probe its
    #: contacts, such as "(40, -50, 0)"; None of all else.
    compartments: list[str] | None
    #: How far these are from the middle of the root section, or along the probe from its first contact, in um; None of all else.
    distance: NDArray[np.float64] | None

    @classmethod
    def _of(
        cls,
        name: str,
        population: str,
        unit: str,
        cells: Any,
        t: Any,
        values: Any,
        compartments: list[str] | None = None,
        distance: Any = None,
    ) -> Trace:
        trace: Trace = values.view(cls)
        trace.name, trace.population, trace.unit, trace.t, trace.cells = name, population, unit, t, cells
        trace.compartments, trace.distance = compartments, distance
        return trace

    def _labels(self) -> Any:
        """What the columns are called: cells, or compartments with their cells if there are several."""
        if self.compartments is None:
            return self.cells
        several = len(self.cells) > 0 and bool(np.any(self.cells != self.cells[0]))
        pairs = zip(self.compartments, self.cells.tolist(), strict=True)
        return [f"{name} of cell {cell}" if several else name for name, cell in pairs]

    def __array_finalize__(self, other: Any) -> None:
        # Only whole records have names; see _of.
        pass

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        array = np.asarray(array)
        return array[()] if return_scalar else array

    def __getitem__(self, index: Any) -> Any:
        return np.asarray(self)[index]

    def __reduce__(self) -> Any:
        if not hasattr(self, "name"):
            return np.asarray, (np.asarray(self),)
        own = (self.name, self.population, self.unit, self.cells, self.t, np.asarray(self))
        return _trace, (*own, self.compartments, self.distance)

    def __copy__(self) -> NDArray[Any]:
        if not hasattr(self, "name"):
            return copy(np.asarray(self))
        make, (*own, values, compartments, distance) = self.__reduce__()
        copied: Trace = make(*own, values.copy(), compartments, distance)
        return copied

    def __deepcopy__(self, memo: Any) -> NDArray[Any]:
        if not hasattr(self, "name"):
            return deepcopy(np.asarray(self), memo)
        make, parts = self.__reduce__()
        copied: Trace = make(*deepcopy(parts, memo))
        return copied

    def __repr__(self) -> str:
        if not hasattr(self, "name"):
            return repr(np.asarray(self))
        span = f"{self.t[0]:g} to {self.t[-1]:g} ms" if len(self) else "no samples"
        return f"<neuroc.Trace {self.name} ({self.unit}): {self._size()}, {span}>"

    def _size(self) -> str:
        rows, columns = self.shape
        what = "cell" if self.compartments is None else "compartment"
        return f"{rows} samples of {columns} {what}{'s' * (columns != 1)}"


def _trace(*parts: Any) -> Trace:
    return Trace._of(*parts)


def _result(file: bytes, compile_s: float, run_s: float, threads: int) -> Result:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "result.npz"
        path.write_bytes(file)
        raw = _core.Recorded.read(os.fspath(path))
    assert isinstance(raw, dict)
    return Result(raw | {"compile_s": compile_s, "run_s": run_s, "threads": threads})


def _with_gaps(t: NDArray[np.float64], x: Any) -> tuple[Any, Any]:
    """With NaN where there are no samples for more than three intervals, as in the command's figures."""
    steps = np.diff(t)
    gaps: Any = np.flatnonzero(steps > 3.5 * np.median(steps)) + 1 if len(steps) else []
    return np.insert(t, gaps, np.nan), np.insert(np.asarray(x, dtype=float), gaps, np.nan)


@dataclass(frozen=True)
class Spikes:
    """The spikes of a population, in the order of their times."""

    population: str
    #: How many cells the population has, spiking or not.
    cells: int
    #: Times in ms, shape `[spike]`.
    t: NDArray[np.float64]
    #: The cells that fired, from 0, shape `[spike]`.
    i: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.t)

    def of(self, cell: int) -> NDArray[np.float64]:
        """The times (ms) of the spikes of one cell, shape `[spike]`."""
        times: NDArray[np.float64] = self.t[self.i == cell]
        return times

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many spikes each cell had, shape `[cell]`."""
        return np.bincount(self.i, minlength=self.cells).astype(np.int64)

    def __repr__(self) -> str:
        return f"<neuroc.Spikes of {self.population}: {len(self)} of {self.cells} cell{'s' * (self.cells != 1)}>"


def read(path: str | os.PathLike[str]) -> Result | Sweep:
    """The results that `neuroc run -o` or `Result.save` wrote: an .npz file, or a directory. Of a sweep a `Sweep`, as `Model.sweep` answers.

    Raises `SaveError` if it holds none.
    """
    from .sweep import Sweep

    raw = _core.Recorded.read(os.fspath(path))
    if isinstance(raw, dict):
        return Result(raw)
    shape, axes, runs = raw
    results = np.empty(len(runs), dtype=object)
    results[:] = [Result(run) for run in runs]
    values = {name: values for name, _, _, values in axes}
    units = {name: unit for name, unit, _, _ in axes}
    return Sweep(values, units, results.reshape(shape), {name: axis for name, _, axis, _ in axes})


class Result(Mapping[str, Trace]):
    """What a run recorded: `result["squid.soma.v"]` is a `Trace`, `result.spikes["squid"]` are `Spikes`.

    The arrays are the run's own, not copies; `save` writes what they hold then.
    """

    def __init__(self, raw: dict[str, Any]) -> None:
        self._recorded: _core.Recorded = raw["recorded"]
        self._traces = {parts[0]: Trace._of(*parts) for parts in raw["series"]}
        #: The spikes by population.
        self.spikes: dict[str, Spikes] = {parts[0]: Spikes(*parts) for parts in raw["spikes"]}
        #: The shape of each population, in NumPy's order.
        self.shapes: dict[str, tuple[int, ...]] = {name: shape for name, _, shape in raw["populations"]}
        #: The parameters of the run: value (a number, or an array `[cell]`) and unit.
        self.params: dict[str, tuple[Any, str]] = {name: (value, unit) for name, unit, value in raw["parameters"]}
        #: Facts about the run: model, compiler, hash of the sources, options, seed, steps, whether it is complete.
        self.meta: dict[str, Any] = json.loads(raw["meta"])
        #: How long it took to be ready for the first step, and from then on, in s; NaN of results from a file.
        self.compile_s: float = raw.get("compile_s", float("nan"))
        self.run_s: float = raw.get("run_s", float("nan"))
        #: How many threads ran it; 0 where that is not known.
        self.threads: int = raw.get("threads", 0)

    def __getitem__(self, name: str) -> Trace:
        if name in self._traces:
            return self._traces[name]
        hits = [full for full in self._traces if full.endswith(f".{name}")]
        if len(hits) == 1:
            return self._traces[hits[0]]
        if hits:
            raise KeyError(f"`{name}` fits several records: {', '.join(hits)}; write more of the name")
        if name.removesuffix(".spikes") in self.spikes:
            raise KeyError(f'spikes are in result.spikes["{name.removesuffix(".spikes")}"]')
        raise KeyError(f"`{name}` was not recorded; recorded are {', '.join(self._traces) or 'spikes only'}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._traces)

    def __len__(self) -> int:
        return len(self._traces)

    def __eq__(self, other: object) -> bool:
        # Whether arrays are equal has no single answer; a result is itself.
        return self is other

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __reduce__(self) -> Any:
        # As a file holds it; how long the run took is in no file.
        with TemporaryDirectory() as folder:
            (file,) = self.save(Path(folder) / "result.npz")
            return _result, (file.read_bytes(), self.compile_s, self.run_s, self.threads)

    @property
    def t(self) -> NDArray[np.float64]:
        """The sample times (ms) of what is sampled most often, shape `[time]`."""
        return max((trace.t for trace in self._traces.values()), key=len, default=np.empty(0))

    def save(self, path: str | os.PathLike[str], compress: bool = False) -> list[Path]:
        """Writes the result as `neuroc run -o` does: .npz, .csv, or a directory (a name that ends in "/"). Answers the files."""
        series = [(trace.t, np.asarray(trace)) for trace in self._traces.values()]
        spikes = [(name, train.t, train.i) for name, train in self.spikes.items()]
        return self._recorded.save(os.fspath(path), compress, series, spikes)

    def report(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """The run as a web page, one file that needs no network: the model, plots that zoom, spikes, parameters, how it was made.

        With a path (.html) the page is written there, all of it or nothing; without one it is answered as text, which a notebook shows in
        a frame (`IFrame` of the file, or the text as `srcdoc`). Results from a file know the hash of the model, not its text.
        """
        series = [(trace.t, np.asarray(trace)) for trace in self._traces.values()]
        spikes = [(name, train.t, train.i) for name, train in self.spikes.items()]
        took = (self.compile_s, self.run_s, self.threads) if self.run_s == self.run_s else None
        return self._recorded.report(None if path is None else os.fspath(path), series, spikes, took)

    def to_pandas(self) -> Any:
        """A table with a row for each sample time ("t", in ms) and a column for each cell of each record, named (record, cell).

        Where records have different times, NaN means that there is no sample.
        """
        pandas = needed("pandas", "pandas", "to_pandas")
        if not self._traces:
            return pandas.DataFrame()
        frames = []
        for name, trace in self._traces.items():
            columns = pandas.MultiIndex.from_product([[name], trace._labels()], names=["record", "cell"])
            index = pandas.Index(trace.t, name="t")
            frames.append(pandas.DataFrame(np.asarray(trace), index=index, columns=columns, copy=False))
        frame = pandas.concat(frames, axis=1).sort_index()
        frame.attrs["units"] = {name: trace.unit for name, trace in self._traces.items()}
        return frame

    def spikes_to_pandas(self) -> Any:
        """A table with a row for each spike: "population", "cell" and "t" in ms."""
        pandas = needed("pandas", "pandas", "spikes_to_pandas")
        tables = [
            pandas.DataFrame({"population": train.population, "cell": train.i, "t": train.t})
            for train in self.spikes.values()
        ]
        columns = ["population", "cell", "t"]
        return pandas.concat(tables, ignore_index=True) if tables else pandas.DataFrame(columns=columns)

    def to_xarray(self) -> Any:
        """A dataset with a variable for each record, of the dimensions "time" (in ms) and the population's cells.

        Records with other times or chosen cells have dimensions of their own: "RECORD.t", "RECORD.cell", and those of compartments
        "RECORD.compartment" with the coordinate "RECORD.distance" (in um). Spikes are in
        "POPULATION.spikes.t" and "POPULATION.spikes.i".
        """
        xarray = needed("xarray", "xarray", "to_xarray")
        variables: dict[str, Any] = {}
        coordinates: dict[str, Any] = {}

        def dimension(usual: str, own: str, values: Any, attributes: dict[str, str]) -> str:
            if usual not in coordinates or np.array_equal(coordinates[usual][1], values):
                coordinates.setdefault(usual, (usual, values, attributes))
                return usual
            coordinates[own] = (own, values, attributes)
            return own

        for name, trace in self._traces.items():
            time = dimension("time", f"{name}.t", trace.t, {"units": "ms"})
            if trace.compartments is None:
                cell = dimension(trace.population, f"{name}.cell", trace.cells, {})
            else:
                cell = f"{name}.compartment"
                coordinates[cell] = (cell, trace._labels(), {})
                coordinates[f"{name}.distance"] = (cell, trace.distance, {"units": "um"})
            variables[name] = ((time, cell), np.asarray(trace), {"units": trace.unit})
        for name, train in self.spikes.items():
            variables[f"{name}.spikes.t"] = ((f"{name}.spike",), train.t, {"units": "ms"})
            variables[f"{name}.spikes.i"] = ((f"{name}.spike",), train.i)
        attributes = {"model": self.meta["model"], "meta": json.dumps(self.meta)}
        return xarray.Dataset(variables, coords=coordinates, attrs=attributes)

    def to_sonata(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Writes SONATA's HDF5 files to a directory: `spikes.h5`, and for each record a report named after it. Answers the files.

        Node ids are the cells, element ids the compartments of each that are recorded (of a probe its contacts), from 0 in the order of the record. Numbers are in
        single precision, as SONATA's reports are. Records around spikes have no even clock, and are refused.
        """
        return exchange.sonata(self, directory)

    def to_neo(self) -> Any:
        """A `neo.Block` with one segment: a signal for each record, a spike train for each cell of populations whose spikes are recorded."""
        return exchange.neo(self)

    def plot(self, *names: str, cells: int = 10) -> Any:
        """Draws records (these, or all) and, if none are named, spikes, one above the other. Answers the figure (matplotlib).

        Of a record with more cells, `cells` are drawn, evenly chosen.
        """
        pyplot = needed("matplotlib.pyplot", "plot", "plot")
        traces = [self[name] for name in names] if names else list(self._traces.values())
        trains = [] if names else list(self.spikes.values())
        panels = len(traces) + len(trains)
        if panels == 0:
            raise KeyError("nothing was recorded, so there is nothing to draw")
        figure, axes = pyplot.subplots(
            panels, 1, sharex=True, squeeze=False, figsize=(8, 1 + 1.6 * panels), layout="constrained"
        )
        for axis, trace in zip(axes[:, 0], traces):
            count = trace.shape[1]
            chosen = np.unique(np.linspace(0, count - 1, min(cells, count)).round().astype(int))
            for column in chosen:
                axis.plot(*_with_gaps(trace.t, trace[:, column]), linewidth=1)
            unit = "" if trace.unit == "1" else f" ({trace.unit})"
            axis.set_ylabel(f"{trace.name}{unit}", rotation=0, ha="right", va="center")
        for axis, train in zip(axes[len(traces) :, 0], trains):
            axis.plot(train.t, train.i, "|", color="black", markersize=4)
            axis.set_ylim(-0.5, train.cells - 0.5)
            axis.set_ylabel(f"{train.population} spikes", rotation=0, ha="right", va="center")
        axes[-1, 0].set_xlabel("t (ms)")
        figure.suptitle(str(self.meta["model"]))
        return figure

    def __repr__(self) -> str:
        return "\n".join([self._title(), *(f"  {name}: {text}" for name, text in self._rows())])

    def _title(self) -> str:
        begin, dt = self.meta.get("first_step", 0), self.meta["options"]["dt_ms"]
        steps = self.meta["steps"] - begin
        how = "" if self.meta["complete"] else ", not complete"
        later = f" from {begin * dt:.12g} ms on" if begin else ""
        took = f", computed in {self.run_s:.3g} s" if self.run_s == self.run_s else ""
        return f"{self.meta['model']}: {steps * dt:.12g} ms{later} in {steps} steps{took}{how}"

    def _rows(self) -> list[tuple[str, str]]:
        def span(trace: Trace) -> str:
            return f", {np.min(np.asarray(trace)):.4g} to {np.max(np.asarray(trace)):.4g} {trace.unit}" if trace.size else ""

        records = [
            (name, f"{trace._size()}{span(trace)}")
            for name, trace in self._traces.items()
        ]
        trains = [(f"spikes of {name}", f"{len(train)} of {train.cells} cell{'s' * (train.cells != 1)}")
                  for name, train in self.spikes.items()]  # fmt: skip
        return records + trains

    def _repr_html_(self) -> str:
        body = "".join(
            f"<tr><td><code>{html.escape(name)}</code></td><td>{html.escape(text)}</td></tr>" for name, text in self._rows()
        )
        return f"<p>{html.escape(self._title())}</p><table><tbody>{body}</tbody></table>"
