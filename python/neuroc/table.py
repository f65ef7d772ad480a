"""Tables of things with names, as text and as HTML."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

import numpy as np

T = TypeVar("T")


def shown(value: Any) -> str:
    """A value in a few words."""
    if value is None:
        return "not known before the run"
    if isinstance(value, np.ndarray):
        if value.size == 0:
            return "no numbers"
        return f"{value.size} numbers, {value.min():.6g} to {value.max():.6g}"
    if isinstance(value, float):
        return f"{value:.10g}"
    return str(value)


class Table(Mapping[str, T], Generic[T]):
    """Things by their names. An end of a name will do where it fits one thing only: `params["Na.gbar"]`."""

    def __init__(self, things: list[T], what: str, columns: list[str]) -> None:
        self._things: dict[str, T] = {getattr(thing, "name"): thing for thing in things}
        self._what = what
        self._columns = columns

    def __getitem__(self, name: str) -> T:
        if name in self._things:
            return self._things[name]
        hits = [full for full in self._things if full.endswith(f".{name}")]
        if len(hits) == 1:
            return self._things[hits[0]]
        if hits:
            raise KeyError(f"`{name}` fits several: {', '.join(hits)}; write more of the name")
        raise KeyError(f"there is no {self._what} `{name}`; there are {', '.join(self._things)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)

    def _rows(self) -> list[list[str]]:
        return [[shown(getattr(thing, column)) for column in self._columns] for thing in self._things.values()]

    def __repr__(self) -> str:
        if not self._things:
            return f"no {self._what}s"
        rows = [self._columns, *self._rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(self._columns))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(column)}</th>" for column in self._columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self._rows()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
