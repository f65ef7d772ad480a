"""neuroc: a compiler for biophysical neuron models.

>>> import neuroc
>>> model = neuroc.load("squid.neuro")       # checked to the last unit
>>> model.set({"Na.gbar": "100 mS/cm2"})     # numbers have the units that model.params shows
>>> result = model.run(duration=50)          # ms
>>> result["squid.soma.v"]                   # an array [time, cell] with .t, .unit and .cells
>>> result.plot()

`Model` is a model with settings, `Result` what a run recorded, `Simulator` a run that is taken step by step. What goes wrong is an
exception of `neuroc.Error`; those about models print as the compiler's messages do in a terminal.
"""

from . import _core
from ._core import Saved, Simulator, __version__
from .errors import (
    BugError,
    ClosedError,
    Diagnostic,
    EngineError,
    EngineWarning,
    Error,
    Interrupted,
    Label,
    MissingError,
    ModelError,
    ModelWarning,
    NotFiniteError,
    SaveError,
    SettingError,
    UsageError,
)
from .exchange import spikes_from_sonata
from .fitting import Fit, Gradient
from .model import Connections, Model, Param, Population, State, load, parse
from .nir_in import NirModel, from_nir
from .result import Result, Spikes, Trace, read
from .sweep import Sweep
from .training import Trained, read_trained

#: Was this package built with XLA (`engine="xla"`, `Model.stablehlo`)?
XLA: bool = _core.XLA

__all__ = [
    "XLA",
    "BugError",
    "ClosedError",
    "Connections",
    "Diagnostic",
    "EngineError",
    "EngineWarning",
    "Error",
    "Fit",
    "Gradient",
    "Interrupted",
    "Label",
    "MissingError",
    "Model",
    "ModelError",
    "ModelWarning",
    "NirModel",
    "NotFiniteError",
    "Param",
    "Population",
    "Result",
    "SaveError",
    "Saved",
    "SettingError",
    "Simulator",
    "Spikes",
    "State",
    "Sweep",
    "Trace",
    "Trained",
    "UsageError",
    "__version__",
    "from_nir",
    "load",
    "parse",
    "read",
    "read_trained",
    "spikes_from_sonata",
]


def load_ipython_extension(shell: object) -> None:
    """`%load_ext neuroc` gives notebooks the cell magic `%%neuro`."""
    from .magic import register

    register(shell)
