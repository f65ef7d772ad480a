"""Where the models are."""

import pathlib
import signal

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def pytest_configure(config):
    # What a shell starts in the background does not hear Ctrl-C, and neither do its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Short runs end before the input begins.
    config.addinivalue_line("filterwarnings", "ignore::neuroc.ModelWarning")


@pytest.fixture
def squid():
    return ROOT / "examples" / "squid.neuro"


@pytest.fixture
def root():
    return ROOT
