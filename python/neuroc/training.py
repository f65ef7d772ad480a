"""Networks that learn."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import _core
from .progress import Bar, Progress


@dataclass(frozen=True)
class Score:
    """How well samples are taken for what they are."""

    #: The mean loss of a sample.
    loss: float
    #: The share of samples that are taken for their class, 0 to 1.
    accuracy: float
    #: Spikes for each sample.
    spikes: float
    #: How many samples were seen.
    samples: int
    #: Wall time in s.
    seconds: float


@dataclass(frozen=True)
class Epoch:
    """An epoch of a training: its number from 1 on, what was learnt from, and what was kept for testing (None if nothing is)."""

    number: int
    train: Score
    test: Score | None

    def __str__(self) -> str:
        text = f"epoch {self.number}: loss {self.train.loss:.4f}, {100 * self.train.accuracy:.2f} % right"
        if self.test is not None:
            text += f"; test: loss {self.test.loss:.4f}, {100 * self.test.accuracy:.2f} % right"
        return text


class Trained:
    """What has been learnt. `model.take(trained)` gives it to a model, `save` writes what `neuroc run --trained` takes."""

    def __init__(self, core: _core.Trained, history: list[Epoch]) -> None:
        self._core = core
        #: The epochs of this training, one after the other.
        self.history = history

    @property
    def weights(self) -> dict[str, NDArray[np.float64]]:
        """The weights by name, one for each edge: by target, and of each target by source; in the compiler's units (mV, nS, ...)."""
        return dict(self._core.weights())

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters that have learnt, with their units."""
        return {name.strip(): value.strip() for name, value in (text.split("=", 1) for text in self._core.parameters())}

    @property
    def epochs(self) -> int:
        """How many epochs there have been in all."""
        return self._core.epochs()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes an .npz archive; `neuroc.read_trained` reads it."""
        self._core.write(os.fspath(path))

    def __repr__(self) -> str:
        last = f": {self.history[-1]}" if self.history else ""
        return f"<neuroc.Trained, {self.epochs} epochs{last}>"


def read_trained(path: str | os.PathLike[str]) -> Trained:
    """What `neuroc train` or `Trained.save` wrote. Raises `SaveError` if it is something else."""
    return Trained(_core.Trained.read(os.fspath(path)), [])


def epochs(core: _core.Learning, progress: Progress) -> Iterator[Epoch]:
    """Learns; one epoch after the other."""
    while core.goes_on():
        number = core.done() + 1
        with Bar(progress, f"epoch {number} of {core.epochs}", float(core.about()[1]), "samples") as bar:

            def news(seen: int, of: int, loss: float) -> None:
                if callable(progress):
                    progress(number, seen, of, loss)
                bar.to(seen, f"loss {loss:.4f}")

            train, test = core.epoch(news)
        yield Epoch(number, Score(*train), None if test is None else Score(*test))
