"""The cell magic `%%neuro`: a cell is a model."""

from __future__ import annotations

from typing import Any

from .errors import ModelError, UsageError
from .model import parse


def register(shell: Any) -> None:
    """Gives a notebook the magic."""

    def neuro(line: str, cell: str) -> Any:
        """`%%neuro NAME`: checks the cell as a model and binds it to NAME (`model` if there is none)."""
        name = line.strip() or "model"
        if not name.isidentifier():
            raise UsageError(f"`{name}` cannot name a model; write %%neuro followed by a name")
        # Lines are counted as the notebook shows them: the first is that of the magic.
        model = parse("\n" + cell, name=f"{name}.neuro")
        shell.user_ns[name] = model
        return model

    shell.register_magic_function(neuro, magic_kind="cell", magic_name="neuro")

    def show(_shell: Any, _kind: Any, error: ModelError, _traceback: Any, tb_offset: Any = None) -> Any:
        print(error.ansi)

    shell.set_custom_exc((ModelError,), show)
