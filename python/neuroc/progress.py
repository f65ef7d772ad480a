"""How far something is, in terminals and notebooks."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, Union

from .errors import UsageError

#: None: a bar where somebody may look at it, if tqdm is there. True and False: always, never. A function: it is called instead.
Progress = Union[bool, Callable[..., Any], None]

#: What is done before this many seconds shows no bar.
PATIENCE = 1.0


def _seen() -> bool:
    """Is there a terminal or a notebook?"""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class Bar:
    """A bar from 0 to `total`; `to(done)` moves it. Without tqdm, or where nobody looks, nothing is shown."""

    def __init__(self, wish: Progress, what: str, total: float | None, unit: str) -> None:
        self.bar: Any = None
        if wish is True or (wish is None and _seen()):
            try:
                tqdm = importlib.import_module("tqdm.auto").tqdm
            except ImportError as error:
                if wish is True:
                    raise UsageError("a progress bar needs tqdm: pip install tqdm") from error
                return
            form = "{l_bar}{bar}| {n:.4g}/{total:.4g} {unit} [{elapsed}<{remaining}{postfix}]"
            self.bar = tqdm(
                total=total, desc=what, unit=unit, leave=False, delay=0 if wish else PATIENCE,
                bar_format=form if total is not None else None,
            )  # fmt: skip

    def to(self, done: float, said: str = "", of: float | None = None) -> None:
        """Moves it; `of` is the whole, where it was not known before."""
        if self.bar is not None:
            if of is not None:
                self.bar.total = of
            if said:
                self.bar.set_postfix_str(said, refresh=False)
            self.bar.update(done - self.bar.n)

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()


def checked(progress: Any) -> Progress:
    """The wish, if it is one."""
    if progress is None or isinstance(progress, bool) or callable(progress):
        wish: Progress = progress
        return wish
    raise UsageError("`progress` is True, False, or a function that is called now and then")
