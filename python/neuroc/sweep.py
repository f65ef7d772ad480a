"""One model with many values."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import UsageError
from .exchange import needed
from .result import Result


class Sweep:
    """Runs of one model over values of its parameters; `Model.sweep` makes one, and `neuroc.read` one of what `neuroc run --sweep` wrote.

    The axes come first: with one of 41 values and one of 7, `sweep["squid.soma.v"]` has the shape `[41, 7, time, cell]`, `sweep.results`
    holds the results in the shape `[41, 7]`, and `sweep[3, 5]` is one of them.
    """

    def __init__(
        self, axes: Mapping[str, Any], units: Mapping[str, str], results: NDArray[np.object_], along: Mapping[str, int] | None = None
    ) -> None:
        #: The values by the names that were swept; those of one run may be arrays or texts. With `together`, all of them share the first axis.
        self.axes: dict[str, Any] = dict(axes)
        #: The units of numbers in `axes`.
        self.units: dict[str, str] = dict(units)
        #: A `Result` for each run. In a file, one that was stopped or failed is not complete: `result.meta["complete"]`, and its samples are NaN.
        self.results: NDArray[np.object_] = results
        together = results.ndim < len(self.axes)
        #: The axis that each name belongs to.
        self.along: dict[str, int] = dict(along or {name: 0 if together else at for at, name in enumerate(self.axes)})

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each axis has."""
        return self.results.shape

    def __len__(self) -> int:
        return self.results.size

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results.flat)

    def __getitem__(self, which: Any) -> Any:
        """A record of all runs, shape `[axes..., time, cell]`, by its name; or the result of one run, by its place."""
        if not isinstance(which, str):
            return self.results[which]
        traces = [result[which] for result in self]
        shapes = {trace.shape for trace in traces}
        if len(shapes) > 1:
            raise UsageError(
                f"`{which}` has other numbers of samples or cells from run to run ({', '.join(map(str, sorted(shapes)))}); "
                "take the results one by one"
            )
        return np.stack([np.asarray(trace) for trace in traces]).reshape(self.shape + traces[0].shape)

    @property
    def t(self) -> NDArray[np.float64]:
        """The sample times (ms) of what is sampled most often, shape `[time]`."""
        times: NDArray[np.float64] = self.results.flat[0].t
        return times

    def counts(self, population: str) -> NDArray[np.int64]:
        """How many spikes each cell of a population had, shape `[axes..., cell]`."""
        counts = [self._train(result, population).counts for result in self]
        if len({len(of) for of in counts}) > 1:
            raise UsageError(f"`{population}` has other numbers of cells from run to run; take the results one by one")
        stacked: NDArray[np.int64] = np.stack(counts).reshape(self.shape + counts[0].shape)
        return stacked

    def rates(self, population: str) -> NDArray[np.float64]:
        """How often each cell of a population spiked, in Hz over the whole run, shape `[axes..., cell]`; NaN of runs that are not complete."""
        steps = max(result.meta["steps"] for result in self)
        seconds = steps * self.results.flat[0].meta["options"]["dt_ms"] / 1000
        rates: NDArray[np.float64] = self.counts(population) / seconds
        rates[~self.map(lambda result: result.meta["complete"]).astype(bool)] = np.nan
        return rates

    def map(self, function: Any) -> NDArray[Any]:
        """A number of each result, shape `[axes...]`: `sweep.map(lambda r: r["v"].max())`."""
        values = np.array([function(result) for result in self])
        return values.reshape(self.shape + values.shape[1:])

    def to_xarray(self) -> Any:
        """A dataset with a variable for each record, of the dimensions that were swept, "time" (in ms) and "cell"; of spikes the counts.

        A state that is recorded and swept has its initial values as "RECORD.swept".
        """
        xarray = needed("xarray", "xarray", "to_xarray")
        first: Result = self.results.flat[0]
        dimensions, coordinates = self._dimensions(set(first))
        variables: dict[str, Any] = {}
        for name, trace in first.items():
            time, cell = f"{name}.t", f"{name}.cell"
            variables[name] = ((*dimensions, time, cell), self[name], {"units": trace.unit})
            coordinates[time] = (time, trace.t, {"units": "ms"})
            coordinates[cell] = (cell, trace.cells)
        for population in first.spikes:
            variables[f"{population}.spikes"] = ((*dimensions, f"{population}.cell"), self.counts(population))
        return xarray.Dataset(variables, coords=coordinates, attrs={"model": first.meta["model"]})

    def plot(self, what: str | Any = None, cell: int | None = None) -> Any:
        """Draws a number of each run over one axis, or over two as a picture. Answers the figure (matplotlib).

        what
            A population: its mean rate in Hz; or a function of a result. By default the first population whose spikes are recorded.
        cell
            Of a population, one cell instead of the mean.
        """
        pyplot = needed("matplotlib.pyplot", "plot", "plot")
        if what is None:
            what = next(iter(self.results.flat[0].spikes), None)
            if what is None:
                raise UsageError("no spikes are recorded; say what to draw, such as sweep.plot(lambda r: r['v'].max())")
        if isinstance(what, str):
            rates = self.rates(what)
            values, label = (rates.mean(axis=-1) if cell is None else rates[..., cell]), f"{what} (Hz)"
        else:
            values, label = self.map(what), getattr(what, "__name__", "").replace("<lambda>", "")
        dimensions, coordinates = self._dimensions()
        if not 1 <= values.ndim <= 2:
            raise UsageError(f"a figure has one or two axes, and this has the shape {values.shape}")
        units = {name: coordinates[name][2]["units"] for name in dimensions}
        names = [f"{name} ({units[name]})" if units[name] not in ("", "1") else name for name in dimensions]
        figure, axis = pyplot.subplots(layout="constrained")
        along = [np.asarray(coordinates[name][1]) for name in dimensions]
        axis.set_xlabel(names[0])
        if values.ndim == 1:
            axis.plot(along[0], values, "o-", markersize=3)
            axis.set_ylabel(label)
        else:
            mesh = axis.pcolormesh(along[0], along[1], values.T, shading="nearest")
            axis.set_ylabel(names[1])
            figure.colorbar(mesh, label=label)
        return figure

    def _dimensions(self, taken: Container[str] = ()) -> tuple[list[str], dict[str, Any]]:
        """Names of the axes, other ones than those `taken`, and what stands along each: numbers, or their places where values are no numbers."""
        called = {name: f"{name}.swept" if name in taken else name for name in self.axes}
        names = [next(called[name] for name, axis in self.along.items() if axis == at) for at in range(len(self.shape))]
        coordinates: dict[str, Any] = {}
        for name, values in self.axes.items():
            plain = all(isinstance(value, (int, float, str, np.integer, np.floating)) for value in values)
            dimension = names[self.along[name]]
            along = list(values) if plain else list(range(len(values)))
            # Texts say their own units, and places have none.
            in_unit = plain and not any(isinstance(value, str) for value in values)
            coordinates[called[name]] = (dimension, along, {"units": self.units.get(name, "") if in_unit else ""})
        return names, coordinates

    @staticmethod
    def _train(result: Result, population: str) -> Any:
        if population not in result.spikes:
            known = ", ".join(result.spikes) or "none"
            raise KeyError(f"the spikes of `{population}` were not recorded; recorded are those of {known}")
        return result.spikes[population]

    def __repr__(self) -> str:
        axes = ", ".join(f"{name} ({len(values)})" for name, values in self.axes.items())
        return f"<neuroc.Sweep of {axes}: {len(self)} runs>"


def points(axes: Mapping[str, Any], together: bool) -> tuple[tuple[int, ...], list[dict[str, Any]]]:
    """The shape of a sweep, and what is set in each run."""
    if not axes:
        raise UsageError('name what is swept: model.sweep({"Na.gbar": [80, 100, 120]})')
    for name, values in axes.items():
        # An array of one number alone has no length.
        if isinstance(values, str) or not hasattr(values, "__len__") or getattr(values, "shape", None) == ():
            raise UsageError(f"`{name}` is swept over a list or an array of values, not {values!r}")
        if len(values) == 0:
            raise UsageError(f"`{name}` is swept over no value")
        if name == "seed" and not all(isinstance(value, (int, np.integer)) for value in values):
            raise UsageError(f"a seed is a whole number; swept are {list(values)!r}")
    lengths = [len(values) for values in axes.values()]
    if together:
        if len(set(lengths)) > 1:
            told = ", ".join(f"{len(values)} of `{name}`" for name, values in axes.items())
            raise UsageError(f"values that are taken together are as many: there are {told}")
        return (lengths[0],), [dict(zip(axes, values)) for values in zip(*axes.values())]
    return tuple(lengths), [dict(zip(axes, values)) for values in itertools.product(*axes.values())]
