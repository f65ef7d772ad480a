"""Results in the formats of others: SONATA's HDF5 files, Neo's objects."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import MissingError, SaveError, SettingError, UsageError

if TYPE_CHECKING:
    from .result import Result, Trace

#: What every SONATA file says of itself.
MAGIC, VERSION = 0x0A7A, (0, 1)


def needed(module: str, extra: str, what: str) -> Any:
    """A package that is not always there."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise MissingError(f"{what} needs {package}: pip install {package} (or pip install neuroc[{extra}])") from error


def interval(trace: Trace, dt: float) -> float:
    """The time (ms) from one sample to the next, if it is always the same; of less than two samples the time step."""
    steps = np.diff(trace.t)
    if len(steps) and np.ptp(steps) > 1e-6 * steps[0]:
        raise UsageError(f"the samples of `{trace.name}` are not equally far apart, which this format cannot say")
    return float(steps.mean()) if len(steps) else dt


def sonata(result: Result, directory: str | os.PathLike[str]) -> list[Path]:
    """Writes `spikes.h5` and a report for each record; see `Result.to_sonata`."""
    h5py = needed("h5py", "sonata", "to_sonata")
    dt = float(result.meta["options"]["dt_ms"])
    intervals = {name: interval(trace, dt) for name, trace in result.items()}
    named = {re.sub(r"[^\w.-]+", "_", name).strip("_"): name for name in result}
    if len(named) != len(result):
        raise UsageError("the names of two records make the same file name; save them one by one")
    folder = Path(directory)
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if result.spikes:
            written.append(folder / "spikes.h5")
            with new(h5py, written[-1]) as file:
                order = h5py.enum_dtype({"none": 0, "by_id": 1, "by_time": 2}, basetype=np.uint8)
                for name, train in result.spikes.items():
                    group = file.create_group(f"spikes/{name}")
                    by_time = np.argsort(train.t, kind="stable")
                    group.attrs.create("sorting", 2, dtype=order)
                    times = group.create_dataset("timestamps", data=train.t[by_time])
                    times.attrs["units"] = "ms"
                    group.create_dataset("node_ids", data=train.i[by_time].astype(np.uint64))
        for stem, name in named.items():
            trace = result[name]
            written.append(folder / f"{stem}.h5")
            with new(h5py, written[-1]) as file:
                group = file.create_group(f"report/{trace.population}")
                # A cell has as many columns as it has compartments.
                order = np.argsort(trace.cells, kind="stable")
                cells, columns = np.unique(trace.cells, return_counts=True)
                data = group.create_dataset("data", data=np.asarray(trace, dtype=np.float32)[:, order])
                data.attrs["units"] = trace.unit
                mapping = group.create_group("mapping")
                mapping.create_dataset("node_ids", data=cells.astype(np.uint64))
                mapping.create_dataset("index_pointers", data=np.concatenate([[0], np.cumsum(columns)]).astype(np.uint64))
                elements = [np.arange(count, dtype=np.uint32) for count in columns]
                mapping.create_dataset("element_ids", data=np.concatenate(elements) if elements else np.zeros(0, dtype=np.uint32))
                step = intervals[name]
                first = float(trace.t[0]) if len(trace.t) else 0.0
                time = mapping.create_dataset("time", data=[first, first + len(trace.t) * step, step])
                time.attrs["units"] = "ms"
    except OSError as error:
        raise SaveError(f"cannot write SONATA files to {folder}: {error}") from error
    return written


#: How many ms the units are that SONATA's spikes may have.
TIMES = {"ms": 1.0, "milliseconds": 1.0, "s": 1e3, "seconds": 1e3, "us": 1e-3, "microseconds": 1e-3}


def spikes_from_sonata(
    source: str | os.PathLike[str], target: str | os.PathLike[str], *, population: str | None = None
) -> Path:
    """Writes the spikes of a SONATA file (HDF5) as an archive that a drive takes. Answers its path.

    >>> neuroc.spikes_from_sonata("spikes.h5", "spikes.npz", population="thalamus")

    In the model: `drive cells via S from spikes("spikes.npz") { weight = 1 nS }`. A node id of the file is the number of a cell of the
    population that is driven. Without `population` all of them are written, and `spikes("spikes.npz", column = "thalamus")` takes one.

    Raises `SaveError`: there is no such file, it is not one of spikes, or the archive cannot be written.
    """
    h5py = needed("h5py", "sonata", "spikes_from_sonata")
    arrays: dict[str, Any] = {}
    try:
        with h5py.File(source, "r") as file:
            spikes = file.get("spikes")
            groups = {} if spikes is None else dict(spikes.items())
            known = [name for name, group in groups.items() if isinstance(group, h5py.Group) and "timestamps" in group]
            if not known:
                raise SaveError(f"{source} has no spikes: no `spikes/POPULATION/timestamps`")
            if population is not None and population not in known:
                raise SaveError(f"{source} has no spikes of `{population}`, but of {', '.join(known)}")
            for name in known if population is None else [population]:
                times, nodes = groups[name]["timestamps"], groups[name].get("node_ids")
                unit = times.attrs.get("units", "ms")
                unit = unit.decode() if isinstance(unit, bytes) else str(unit)
                if unit not in TIMES:
                    raise SaveError(f"{source}: the times of `{name}` are in `{unit}`, which is none of {', '.join(TIMES)}")
                if nodes is None or nodes.shape != times.shape or len(times.shape) != 1:
                    raise SaveError(f"{source}: `{name}` has not as many node_ids as timestamps")
                arrays[f"{name}.spikes.t"] = np.asarray(times, dtype=np.float64) * TIMES[unit]
                arrays[f"{name}.spikes.i"] = np.asarray(nodes).astype(np.int64)
    except SaveError:
        raise
    except OSError as error:
        raise SaveError(f"cannot read {source}: {error}") from error
    path = Path(target)
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as archive:
            np.savez(archive, **arrays)
        part.replace(path)
    except OSError as error:
        raise SaveError(f"cannot write {path}: {error}") from error
    finally:
        part.unlink(missing_ok=True)
    return path


@contextmanager
def new(h5py: Any, path: Path) -> Iterator[Any]:
    """A SONATA file, which is there when it is whole."""
    part = path.with_name(f"{path.name}.part")
    try:
        with h5py.File(part, "w") as file:
            file.attrs["magic"] = np.uint32(MAGIC)
            file.attrs["version"] = np.array(VERSION, dtype=np.uint32)
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def unit_of(unit: str) -> str:
    """A unit as Quantities, Pint and Astropy write it: `mS/cm**2` for `mS/cm2`."""
    plain = re.sub(r"([A-Za-z])\^?(-?\d)", r"\1**\2", unit)
    if plain == "1":
        return "dimensionless"
    return f"1{plain}" if plain.startswith("/") else plain


def neo(result: Result) -> Any:
    """A block with one segment; see `Result.to_neo`."""
    objects = needed("neo", "neo", "to_neo")
    quantities = needed("quantities", "neo", "to_neo")
    ms = quantities.ms
    segment = objects.Segment(name=str(result.meta["model"]))
    dt = float(result.meta["options"]["dt_ms"])
    start = float(result.meta.get("first_step", 0)) * dt
    stop = max([float(result.meta["steps"]) * dt, *(float(train.t.max()) for train in result.spikes.values() if len(train))])
    for name, trace in result.items():
        about = {"name": name, "population": trace.population, "array_annotations": {"cell": trace.cells}}
        samples = quantities.Quantity(np.asarray(trace), unit_of(trace.unit))
        try:
            step = interval(trace, dt)
        except UsageError:
            segment.irregularlysampledsignals.append(
                objects.IrregularlySampledSignal(trace.t * ms, samples, **about)
            )
            continue
        first = float(trace.t[0]) if len(trace.t) else 0.0
        signal = objects.AnalogSignal(samples, sampling_period=step * ms, t_start=first * ms, **about)
        segment.analogsignals.append(signal)
    for name, train in result.spikes.items():
        by_cell = np.argsort(train.i, kind="stable")
        bounds = np.searchsorted(train.i[by_cell], np.arange(1, train.cells))
        for cell, times in enumerate(np.split(train.t[by_cell], bounds)):
            spikes = objects.SpikeTrain(times * ms, t_start=start * ms, t_stop=stop * ms, name=f"{name}[{cell}]", population=name, cell=cell)
            segment.spiketrains.append(spikes)
    block = objects.Block(name=str(result.meta["model"]))
    block.segments.append(segment)
    return block


#: Whose quantities are understood.
QUANTITIES = ("pint", "astropy", "quantities")


def kind_of(value: Any) -> str | None:
    """Whose quantity a value is, also if its class is derived from one of theirs; none if it is no such quantity."""
    for ancestor in type(value).__mro__:
        package = ancestor.__module__.split(".")[0]
        if package in QUANTITIES:
            return package
    return None


def says_a_unit(value: Any) -> bool:
    """Has a value a unit of whatever package?"""
    return kind_of(value) is not None or any(hasattr(value, says) for says in ("unit", "units", "dimensions"))


def is_own(value: Any) -> bool:
    """Is it one of our traces? They are in the unit of what they are compared with or set to."""
    return type(value).__module__.split(".")[0] == "neuroc"


def plain(name: str, value: Any, unit: Callable[[], str | None]) -> Any:
    """The number or array that a quantity of Pint, Astropy or Quantities is in a unit, which is asked for if need be; else the value as it is.

    Raises `SettingError`: a quantity of another kind, a quantity or an array that says its unit in a way that is not understood, or a masked value.
    """
    if isinstance(value, (str, int, float)) or type(value) is np.ndarray:
        return value
    if isinstance(value, (list, tuple)):
        return [plain(name, one, unit) for one in value]
    kind = kind_of(value)
    if kind is not None:
        return converted(name, kind, value, unit())
    if is_own(value):
        return np.asarray(value)
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value):
            raise SettingError(f"error: `{name}` is given masked values; fill them, or leave them out")
        return np.asarray(value)
    if type(value).__module__.split(".")[0] == "xarray" and hasattr(value, "data"):
        says, wanted = getattr(value, "attrs", {}).get("units"), unit()
        if says is not None and wanted is not None and says != wanted:
            raise SettingError(f"error: `{name}` has the unit {wanted}, but is given values in {says}")
        return plain(name, value.data, unit)
    if says_a_unit(value):
        raise SettingError(
            f"error: `{name}` is given a quantity of {type(value).__module__.split('.')[0]}, whose units are not understood: "
            "give a number, a text with a unit, or a quantity of Pint, Astropy or Quantities"
        )
    return value


def converted(name: str, kind: str, value: Any, wanted: str | None) -> Any:
    """A quantity as a number or an array in a unit."""
    if wanted is None:
        # A name that is unknown or fits several is told where it is looked up; no number is set.
        return float("nan")
    try:
        if wanted in ("K", "degC"):
            return kelvin(kind, value) - (273.15 if wanted == "degC" else 0.0)
        return np.asarray(magnitude(kind, value, unit_of(wanted)))
    except Exception as error:
        raise SettingError(f"error: `{name}` has the unit {wanted}, and {value} cannot be turned into it: {error}") from error


def magnitude(kind: str, value: Any, unit: str) -> Any:
    if kind == "astropy":
        molar = re.fullmatch(r"([numkM]?)M", unit)
        return value.to_value("" if unit == "dimensionless" else f"{molar[1]}mol/l" if molar else unit)
    return value.rescale(unit).magnitude if kind == "quantities" else value.to(unit).magnitude


def kelvin(kind: str, value: Any) -> Any:
    """A temperature. Quantities takes a degree Celsius for a kelvin, so that its degrees have to be known by their name."""
    if kind == "quantities" and str(value.dimensionality) == "degC":
        return value.magnitude + 273.15
    if kind == "astropy":
        units = importlib.import_module("astropy.units")
        return value.to_value(units.K, equivalencies=units.temperature())
    return magnitude(kind, value, "K")
