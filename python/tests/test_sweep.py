"""Sweeps: one model with many values."""

import os
import subprocess
import sys

import numpy as np
import pytest

import neuroc


def test_a_sweep_is_its_runs(squid):
    model = neuroc.load(squid)
    sweep = model.sweep({"Na.gbar": [90, "0.12 S/cm2"], "step.amplitude": np.array([2.0, 8.0, 20.0])}, duration=40)
    assert sweep.shape == (2, 3) and len(sweep) == 6 and sweep.units == {"Na.gbar": "mS/cm2", "step.amplitude": "uA/cm2"}
    v = sweep["squid.soma.v"]
    assert v.shape == (2, 3, 401, 1) and sweep.t.shape == (401,)
    one = model.copy().set({"Na.gbar": "120 mS/cm2", "amplitude": 8}).run(duration=40)
    assert (v[1, 1] == one["squid.soma.v"]).all() and (sweep[1, 1]["squid.soma.v"] == one["squid.soma.v"]).all()
    assert sweep.counts("squid")[1, 1, 0] == len(one.spikes["squid"]) > 0
    assert (sweep.rates("squid") == sweep.counts("squid") / 0.04).all()
    assert (sweep.map(lambda r: r["v"].max()) == v.max(axis=(2, 3))).all()
    # The model is as it was.
    assert model.settings == [] and "6 runs" in repr(sweep)
    assert [result.meta["complete"] for result in sweep] == [True] * 6
    for threads in (1, 3):
        assert (model.sweep(sweep.axes, duration=40, threads=threads)["squid.soma.v"] == v).all()


def test_values_that_belong_together_and_seeds(squid):
    model = neuroc.load(squid)
    sweep = model.sweep({"Na.gbar": [100, 120], "K.gbar": [30, 36]}, together=True, duration=20)
    assert sweep.shape == (2,)
    assert (sweep[1]["v"] == model.run(duration=20)["v"]).all()
    noisy = neuroc.parse(
        "cell C { input drive: /ms; state x = 0; x' = drive - x / 10 ms }\n"
        "network main { population c: C; input hum: white_noise(0 /ms, 1 /ms, per = 1 ms) -> c.drive }\n"
        "run { duration = 5 ms; dt = 0.1 ms; record c.x }"
    )
    sweep = noisy.sweep({"seed": range(4)})
    assert len({tuple(row) for row in sweep["c.x"][:, :, 0]}) == 4
    assert (sweep[2]["c.x"] == noisy.run(seed=2)["c.x"]).all()
    # Values for each cell.
    many = neuroc.load(squid).set(n=2).sweep({"soma.v": [[-65.0, -60.0], [-70.0, -50.0]]}, duration=1)
    assert many["v"][:, 0].tolist() == [[-65.0, -60.0], [-70.0, -50.0]]


def test_a_parameter_has_one_value_at_a_time(squid):
    model = neuroc.load(squid)
    for use in (model.set, model.sweep):
        with pytest.raises(neuroc.SettingError, match="`Na.gbar` and `soma.Na.gbar` are one parameter, `squid.soma.Na.gbar`; give it once"):
            use({"Na.gbar": [90.0], "soma.Na.gbar": [120.0]})
    assert model.settings == []


def test_other_shapes_of_sweeps(squid):
    pytest.importorskip("matplotlib").use("Agg")
    model = neuroc.load(squid)
    sweep = model.sweep({"n": [1, 2]}, duration=1)
    with pytest.raises(neuroc.UsageError, match="one by one"):
        sweep["v"]
    two = model.sweep({"Na.gbar": [90, 120], "K.gbar": [30, 33, 36]}, duration=30)
    figure = two.plot()
    assert figure.axes[0].get_xlabel() == "Na.gbar (mS/cm2)" and figure.axes[0].get_ylabel() == "K.gbar (mS/cm2)"
    line = model.sweep({"Na.gbar": [90, 120]}, duration=30).plot(lambda r: r["v"].max()).axes[0].lines[0]
    assert line.get_xdata().tolist() == [90, 120]
    pytest.importorskip("xarray")
    data = two.to_xarray()
    assert data["squid.soma.v"].dims[:2] == ("Na.gbar", "K.gbar") and data["squid.soma.v"].attrs["units"] == "mV"
    assert float(data["squid.spikes"].sel({"Na.gbar": 120, "K.gbar": 36}).item()) == two.counts("squid")[1, 2, 0]


def test_what_cannot_be_swept(squid):
    model = neuroc.load(squid)
    for axes, words in [
        ({}, "name what is swept"), ({"Na.gbar": 3}, "a list or an array"), ({"Na.gbar": "80..160"}, "a list or an array"),
        ({"Na.gbar": []}, "no value"), ({"Na.gbr": [1]}, "Na.gbar"), ({"Na.gbar": [1, float("inf")]}, "finite"),
        ({"Na.gbar": ["1 mV"]}, "a voltage"),
    ]:  # fmt: skip
        with pytest.raises((neuroc.UsageError, neuroc.SettingError), match=words):
            model.sweep(axes)
    with pytest.raises(neuroc.UsageError, match="are as many"):
        model.sweep({"Na.gbar": [1, 2], "K.gbar": [1]}, together=True)
    with pytest.raises(KeyError, match="squid"):
        model.sweep({"Na.gbar": [100]}, duration=1).counts("squids")
    with pytest.raises(neuroc.NotFiniteError) as caught:
        neuroc.parse(
            "cell C { param k = 1; state x = 1; x' = k * x * x / 1 ms }\nnetwork main { population c: C }\n"
            "run { duration = 5 ms; dt = 0.1 ms; record c.x }"
        ).sweep({"k": [-1, 100]})
    if sys.version_info >= (3, 11):
        assert caught.value.__notes__ == ["in the run with k = 100"]
    with pytest.raises(neuroc.UsageError, match="`threads` is a whole number from 1 on"):
        model.sweep({"Na.gbar": [100]}, threads=0)
    with pytest.raises(neuroc.UsageError, match="`seed` is an axis"):
        model.sweep({"seed": [1, 2]}, seed=4)


def test_what_the_command_wrote_is_read(squid, tmp_path):
    file = tmp_path / "sweep.npz"
    command = [os.fspath(squid), "--sweep", "Na.gbar=90,120mS/cm2", "--sweep", "step.amplitude=2..20uA/cm2:3", "--duration", "40ms"]
    subprocess.run([sys.executable, "-m", "neuroc", "run", *command, "-o", os.fspath(file), "--quiet"], check=True)
    read = neuroc.read(file)
    made = neuroc.load(squid).sweep({"Na.gbar": [90, 120], "step.amplitude": np.linspace(2, 20, 3)}, duration=40)
    assert isinstance(read, neuroc.Sweep) and read.shape == made.shape == (2, 3) and read.units == made.units
    assert all((read.axes[name] == values).all() for name, values in made.axes.items())
    assert (read["squid.soma.v"] == made["squid.soma.v"]).all() and (read.counts("squid") == made.counts("squid")).all()
    assert (read.rates("squid") == made.rates("squid")).all() and read[1, 2].params == made[1, 2].params
    with np.load(file) as arrays:
        assert arrays["squid.soma.v"].shape == (2, 3, 401, 1) and arrays["sweep.Na.gbar"].tolist() == [90, 120]
        assert np.bincount(arrays["squid.spikes.run"], minlength=6).tolist() == made.counts("squid").ravel().tolist()


def test_a_run_that_goes_on_knows_where_it_began(squid, tmp_path):
    first, second, state = (os.fspath(tmp_path / name) for name in ("first.npz", "second.npz", "state.npz"))
    command = [sys.executable, "-m", "neuroc", "run", os.fspath(squid), "--quiet"]
    subprocess.run([*command, "--duration", "20ms", "--save", state, "-o", first], check=True)
    subprocess.run([*command, "--duration", "50ms", "--load", state, "-o", second], check=True)
    read = neuroc.read(second)
    assert repr(read).startswith("squid: 30 ms from 20 ms on in 3000 steps")
    pytest.importorskip("neo")
    assert [float(train.t_start) for train in read.to_neo().segments[0].spiketrains] == [20]


def test_what_ended_before_is_not_lost(tmp_path):
    model = neuroc.parse(
        "cell P { param k = 1 /ms; state x = 1; x' = k * x * x }\n"
        "network main { population p: P }\nrun { duration = 5 ms; dt = 0.1 ms; method = euler; record p.x }"
    )
    with pytest.raises(neuroc.NotFiniteError) as failed:
        model.sweep({"k": [0.01, 0.02, 50]}, threads=1)
    results = failed.value.results
    assert results.shape == (3,) and results[2] is None
    assert results[1]["p.x"][-1, 0] > results[0]["p.x"][-1, 0] > 1

    def stop(done, _):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(neuroc.Interrupted) as stopped:
        model.sweep({"k": [0.01, 0.02, 0.03, 0.04]}, threads=1, progress=stop)
    assert stopped.value.results[0] is not None and stopped.value.results.shape == (4,)


def test_a_swept_state_that_is_recorded_is_in_a_dataset():
    pytest.importorskip("xarray")
    model = neuroc.parse(
        "cell P { state x: mV = 1 mV; x' = -x / 10 ms }\n"
        "network main { population p: P }\nrun { duration = 1 ms; dt = 0.1 ms; record p.x }"
    )
    sweep = model.sweep({"p.x": [1, 2, 3]}, engine="interp")
    data = sweep.to_xarray()
    assert data["p.x"].dims[0] == "p.x.swept" and data["p.x.swept"].attrs["units"] == "mV"
    assert float(data["p.x"].sel({"p.x.swept": 2})[0].item()) == 2
    assert "x" in model.sweep({"x": [1, 2]}, engine="interp").to_xarray().dims


def test_whatever_progress_raises_has_the_results():
    model = neuroc.parse(
        "cell P { state x = 1; x' = -x / 10 ms }\n"
        "network main { population p: P }\nrun { duration = 1 ms; dt = 0.1 ms; record p.x }"
    )

    def fail(done, _):
        if done == 2:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as failed:
        model.sweep({"p.x": [1, 2, 3]}, engine="interp", threads=1, progress=fail)
    assert failed.value.results.shape == (3,) and failed.value.results[0] is not None
    with pytest.raises(neuroc.UsageError, match="a list or an array"):
        model.sweep({"p.x": np.array(3)}, engine="interp")
