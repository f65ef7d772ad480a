"""Where the models are."""

import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]



def pytest_configure(config):
    # Short runs end before the input begins.
    config.addinivalue_line("filterwarnings", "ignore::neuroc.ModelWarning")


@pytest.fixture
def squid():
    return ROOT / "examples" / "squid.neuro"


@pytest.fixture
def root():
    return ROOT
