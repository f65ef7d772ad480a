"""What goes wrong, as exceptions.

In come texts and diagnostics of the compiler; out go exceptions that print as the compiler's messages do in a terminal.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .fitting import Fit
    from .result import Result
    from .training import Trained

__all__ = [
    "BugError",
    "ClosedError",
    "Diagnostic",
    "EngineError",
    "EngineWarning",
    "Error",
    "Interrupted",
    "Label",
    "MissingError",
    "ModelError",
    "ModelWarning",
    "NotFiniteError",
    "SaveError",
    "SettingError",
    "UsageError",
]


@dataclass(frozen=True)
class Label:
    """A place in a file that a diagnostic points at."""

    file: str
    #: From 1.
    line: int
    #: From 1, in characters.
    column: int
    #: First byte, and one past the last.
    start: int
    end: int
    #: What is true there; may be empty.
    message: str
    #: Is it the place of the mistake itself?
    primary: bool


@dataclass(frozen=True)
class Diagnostic:
    """One mistake."""

    #: "error" or "warning".
    severity: str
    #: Such as "NU0201"; `neuroc explain` tells its long story.
    code: str
    message: str
    labels: list[Label] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: Edits that help.
    help: list[str] = field(default_factory=list)

    @property
    def place(self) -> Label | None:
        """The place of the mistake; None for what was given from outside."""
        return next((label for label in self.labels if label.primary), None)

    @property
    def file(self) -> str | None:
        """The file of the mistake."""
        return self.place.file if self.place else None

    @property
    def line(self) -> int | None:
        """The line of the mistake, from 1."""
        return self.place.line if self.place else None

    @property
    def column(self) -> int | None:
        """The column of the mistake, from 1, in characters."""
        return self.place.column if self.place else None


def _diagnostics(text: str) -> list[Diagnostic]:
    found = []
    for line in text.splitlines():
        fields = json.loads(line)
        labels = [Label(**label) for label in fields.pop("labels")]
        found.append(Diagnostic(labels=labels, **fields))
    return found


class Error(Exception):
    """Everything that neuroc raises, but for what Ctrl-C does. `results`, where it is raised by a sweep, are those of the runs that ended before,
    in the shape of the axes, None for others."""

    __module__ = "neuroc"
    results: NDArray[np.object_] | None = None


class ModelError(Error, ValueError):
    """A model is wrong. `print(error)` shows what the command would print."""

    __module__ = "neuroc"

    def __init__(self, rendered: str, ansi: str | None = None, found: str = "") -> None:
        super().__init__(rendered)
        #: The messages as text.
        self.rendered = rendered
        #: The messages as text with a terminal's colours.
        self.ansi = rendered if ansi is None else ansi
        #: The messages one by one.
        self.diagnostics = _diagnostics(found)
        #: The messages as JSON, one a line.
        self.found = found

    def _first(self) -> Diagnostic | None:
        errors = (d for d in self.diagnostics if d.severity == "error")
        return next(errors, self.diagnostics[0] if self.diagnostics else None)

    @property
    def code(self) -> str | None:
        """The code of the first error, such as "NU0201"."""
        first = self._first()
        return first.code if first else None

    @property
    def message(self) -> str:
        """The first error in a sentence."""
        first = self._first()
        return first.message if first else self.rendered

    @property
    def file(self) -> str | None:
        """The file of the first error."""
        first = self._first()
        return first.file if first else None

    @property
    def line(self) -> int | None:
        """The line of the first error, from 1."""
        first = self._first()
        return first.line if first else None

    @property
    def column(self) -> int | None:
        """The column of the first error, from 1."""
        first = self._first()
        return first.column if first else None

    def __reduce__(self) -> Any:
        return type(self), (self.rendered, self.ansi, self.found), self.__dict__

    def _render_traceback_(self) -> list[str]:
        """What notebooks show: the messages, in colour, in place of a traceback."""
        return self.ansi.splitlines()


class SettingError(ModelError):
    """A parameter or an initial value cannot be set so: no such name, a wrong unit, a wrong shape, a number that is not finite."""

    __module__ = "neuroc"


class NotFiniteError(ModelError):
    """A value became NaN or infinite in a run. `result` is what was recorded before; None in a simulator."""

    __module__ = "neuroc"
    result: Result | None = None


class EngineError(Error, RuntimeError):
    """An engine cannot do what it was asked for, or the machine lacks something."""

    __module__ = "neuroc"


class UsageError(Error, ValueError):
    """Something was called as it cannot be called; the text says what to do instead."""

    __module__ = "neuroc"


class ClosedError(UsageError):
    """A simulator is closed."""

    __module__ = "neuroc"


class SaveError(Error, OSError):
    """A file cannot be written or read."""

    __module__ = "neuroc"


class MissingError(Error, ImportError):
    """A package that neuroc can do without is needed for this."""

    __module__ = "neuroc"


class BugError(Error, RuntimeError):
    """A bug of neuroc, not of the model."""

    __module__ = "neuroc"

    def __str__(self) -> str:
        return f"this is a bug of neuroc, not of your model: {super().__str__()}\nPlease report it with the model file."


class Interrupted(KeyboardInterrupt):
    """Ctrl-C stopped a run, a sweep, a fit or a training. `result` is what was recorded before, `results` are those of the runs of a sweep that
    ended before (in the shape of its axes, None for others), `fit` is the best, `trained` what was learnt."""

    __module__ = "neuroc"
    result: Result | None = None
    results: NDArray[np.object_] | None = None
    fit: Fit | None = None
    trained: Trained | None = None


class ModelWarning(UserWarning):
    """A model compiles, but is probably not what was meant."""

    __module__ = "neuroc"


class EngineWarning(UserWarning):
    """A slower engine runs a model, since the native one needs rustc."""

    __module__ = "neuroc"
