"""The package: its command, its words of help, its types."""

import inspect
import pathlib
import re
import subprocess
import sys

import pytest

import neuroc
from neuroc import _core


def test_the_wheel_has_the_command(squid):
    command = pathlib.Path(sys.executable).with_name("neuroc")
    if not command.exists():
        pytest.skip("the package is not installed")
    said = subprocess.run([command, "--version"], capture_output=True, text=True)
    assert said.stdout == f"neuroc {neuroc.__version__}\n" and said.returncode == 0
    assert subprocess.run([command, "check", squid], capture_output=True).returncode == 0
    wrong = subprocess.run([command, "rn"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "rn" in wrong.stderr


def test_everything_public_is_explained():
    for name in neuroc.__all__:
        thing = getattr(neuroc, name)
        if not (inspect.isclass(thing) or inspect.isroutine(thing)):
            continue
        assert thing.__doc__, name
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                described = inspect.isroutine(value) or isinstance(value, property) or inspect.isgetsetdescriptor(value)
                if not member.startswith("_") and described:
                    assert value.__doc__, f"{name}.{member}"


def test_the_types_of_the_part_in_rust_are_declared():
    stub = (pathlib.Path(neuroc.__file__).parent / "_core.pyi").read_text()
    for name in ["Differentiable", "Learning", "Model", "Recorded", "Saved", "Simulator", "Trained"]:
        declared = re.search(rf"class {name}:\n(.*?)(?=\nclass |\Z)", stub, re.S).group(1)
        members = set(re.findall(r"def (\w+)\(", declared))
        real = {n for n in vars(getattr(_core, name)) if not n.startswith("_")}
        real |= {n for n in ["__getitem__", "__setitem__", "__enter__", "__exit__"] if n in vars(getattr(_core, name))}
        assert members == real, name


def test_a_notebook_cell_is_a_model():
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "neuroc")
    cell = "cell C { state x = 1; x' = -x / 10 ms }\nnetwork main { population c: C[2] }\n"
    shell.run_cell_magic("neuro", "small", cell + "run { duration = 1 ms; dt = 0.1 ms; record c.x }")
    assert shell.user_ns["small"].run()["c.x"].shape == (11, 2)
    with pytest.raises(neuroc.ModelError) as caught:
        shell.run_cell_magic("neuro", "", cell.replace("-x", "-y"))
    # Lines as the notebook counts them: the magic is the first.
    assert (caught.value.line, caught.value.file) == (2, "model.neuro")
