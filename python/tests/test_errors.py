"""What goes wrong."""

import pickle
import subprocess
import sys

import pytest

import neuroc
from neuroc import _core

WRONG = """cell C {
    state x: mV = 1 mV
    x' = x
    y' = 3
}
"""


def test_a_mistake_is_the_commands_message_and_its_parts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.neuro").write_text(WRONG)
    with pytest.raises(neuroc.ModelError) as caught:
        neuroc.load("wrong.neuro")
    error = caught.value
    said = subprocess.run([sys.executable, "-m", "neuroc", "check", "wrong.neuro"], capture_output=True, text=True)
    assert said.returncode == 1 and str(error) in said.stderr
    assert isinstance(error, ValueError) and isinstance(error, neuroc.Error)
    assert len(error.diagnostics) >= 2
    first = error.diagnostics[0]
    assert (error.code, error.file, error.line, error.column) == ("NU0201", "wrong.neuro", 3, 10)
    assert first.severity == "error" and first.labels[0].primary and "voltage per time" in error.message
    assert first.help == ["divide by a time constant, for example `x / 10 ms`"]
    assert (WRONG[first.place.start : first.place.end], first.line) == ("x", 3)
    assert "\x1b[" in error.ansi and "\x1b[" not in str(error)
    assert error._render_traceback_() == error.ansi.splitlines()
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.diagnostics == error.diagnostics


def test_a_missing_file_is_told():
    with pytest.raises(neuroc.ModelError, match="cannot read `no/such.neuro`"):
        neuroc.load("no/such.neuro")


def test_warnings_are_pythons():
    with pytest.warns(neuroc.ModelWarning, match="warning") as said:
        neuroc.parse("channel Leak { param gbar = -0.3 mS/cm2; param erev = -54 mV }")
    assert said[0].filename == __file__


def test_a_bug_is_told_as_one():
    with pytest.raises(neuroc.BugError, match="bug of neuroc, not of your model(.|\n)*on purpose(.|\n)*report it"):
        _core._panic()


def test_a_model_needs_a_network_to_have_populations():
    model = neuroc.parse("cell C { state x = 1; x' = -x / 10 ms }")
    with pytest.raises(neuroc.ModelError):
        model.run()


def test_what_an_error_has_besides_is_pickled():
    model = neuroc.parse(
        "cell P { param k = 1 /ms; state x = 1; x' = k * x * x }\n"
        "network main { population p: P }\nrun { duration = 5 ms; dt = 0.1 ms; method = euler; record p.x }"
    )
    with pytest.raises(neuroc.NotFiniteError) as failed:
        model.sweep({"k": [0.01, 50]}, threads=1, engine="interp")
    again = pickle.loads(pickle.dumps(failed.value))
    assert str(again) == str(failed.value) and again.diagnostics == failed.value.diagnostics
    assert again.results[1] is None and len(again.results[0]["p.x"]) == 51
    assert again.result["p.x"].shape == failed.value.result["p.x"].shape
    bug = neuroc.BugError("on purpose")
    assert str(pickle.loads(pickle.dumps(bug))) == str(bug) and str(bug).count("this is a bug") == 1
