"""Gradients, fits and trainings."""

import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import neuroc


@pytest.fixture
def axon(root):
    return neuroc.load(root / "examples" / "squid_fit.neuro")


@pytest.fixture
def trace(root):
    return root / "examples" / "data" / "squid_fit.csv"


NET = """
cell Pixel { param x = 1  state q = 0  q' = x / 4 ms  spike when q > 1 { q -= 1 } }
cell Leaky { param tau = 10 ms  state v: mV = 0 mV  v' = -v / tau  spike when v > 1 mV { v -= 1 mV } }
synapse Kick { on event(weight: mV) { v += weight } }
network main {
    population pixels: Pixel[3]
    population out: Leaky[2]
    connect pixels -> out via Kick { rule = all_to_all; weight ~ uniform(0 mV, 1 mV); delay = 1 ms }
}
run { duration = 20 ms; dt = 1 ms; record out.v; record spikes of {pixels, out} }
train {
    data = "samples.npz"
    input = pixels.x
    learn {pixels.out.Kick.weight, out.tau}
    loss = cross_entropy(spike_count(out))
    optimizer = adam(lr = 5e-2)
    surrogate = fast_sigmoid(slope = 5)
    batch = 8
    epochs = 4
    test = 0.25
}
"""


@pytest.fixture
def net(tmp_path):
    rng = np.random.default_rng(1)
    y = np.arange(40) % 2
    x = np.stack([np.where(y == 0, 2.0, 0.2), np.where(y == 1, 2.0, 0.2), np.ones(40)], axis=1)
    np.savez(tmp_path / "samples.npz", x=x + 0.1 * rng.random(x.shape), y=y)
    (tmp_path / "net.neuro").write_text(NET)
    return tmp_path / "net.neuro"


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_gradients_are_those_of_differences(axon, trace, mode):
    gradient = axon.gradient(["Na.gbar", "K.gbar"], {"squid.axon.v": trace}, mode=mode, duration=6)
    assert gradient.names == ["squid.axon.Na.gbar", "squid.axon.K.gbar"] and gradient.units == ["mS/cm2", "mS/cm2"]
    assert gradient.start.tolist() == [120, 36] and (gradient.memory > 0) == (mode == "reverse")
    x = np.array([110.0, 33.0])
    loss, slopes = gradient(x)
    for at in range(2):
        h = 1e-4 * x[at]
        there, back = x.copy(), x.copy()
        there[at] += h
        back[at] -= h
        difference = (gradient(there)[0] - gradient(back)[0]) / (2 * h)
        assert slopes[at] == pytest.approx(difference, rel=1e-5)
    assert loss > 0 and gradient([120, 36])[0] < 1e-12
    # From arrays, in the unit that is shown.
    t, v = np.loadtxt(trace, delimiter=",", skiprows=1).T
    again = axon.gradient(["Na.gbar", "K.gbar"], {"v": (t, v)}, mode=mode, duration=6)
    assert again(x)[0] == loss and (again(x)[1] == slopes).all()
    with pytest.raises(neuroc.UsageError, match='there is no mode "both"'):
        axon.gradient(["K.gbar"], mode="both")


def test_a_loss_of_ones_own(axon):
    gradient = axon.gradient(["K.gbar"], duration=4)
    seen = {}

    def last(records):
        seen.update(records)
        slopes = np.zeros_like(records["squid.axon.v"])
        slopes[-1] = 1
        return records["squid.axon.v"][-1, 0], {"squid.axon.v": slopes}

    value, slopes = gradient([30], last)
    assert seen["squid.axon.v"].shape == (41, 1) == (len(gradient.times["squid.axon.v"]), 1)
    run = axon.copy().set("K.gbar", 30).run(duration=4)
    assert value == pytest.approx(run["v"][-1, 0], rel=1e-12)
    ends = [axon.copy().set("K.gbar", k).run(duration=4)["v"][-1, 0] for k in (30.01, 29.99)]
    assert slopes[0] == pytest.approx((ends[0] - ends[1]) / 0.02, rel=1e-5)
    with pytest.raises(neuroc.UsageError, match="no target"):
        gradient([30])
    with pytest.raises(ZeroDivisionError):
        gradient([30], lambda records: 1 / 0)
    with pytest.raises(neuroc.UsageError, match="has the shape|have the shape"):
        gradient([30], lambda records: (0.0, {"squid.axon.v": np.zeros(3)}))
    with pytest.raises(neuroc.UsageError, match="not recorded"):
        gradient([30], lambda records: (0.0, {"w": np.zeros(3)}))
    # It works on.
    assert gradient([30], last)[0] == value


def test_a_fit_finds_the_conductances(axon, trace):
    axon.set({"Na.gbar": 90, "K.gbar": 25})
    news = []
    fit = axon.fit(
        {"Na.gbar": (50, 300), "K.gbar": ("10 mS/cm2", "0.08 S/cm2")}, {"squid.axon.v": trace}, starts=1,
        progress=lambda *told: news.append(told),
    )  # fmt: skip
    assert fit.values == pytest.approx({"squid.axon.Na.gbar": 120, "squid.axon.K.gbar": 36}, rel=1e-6)
    assert fit.units["squid.axon.K.gbar"] == "mS/cm2" and fit.loss < 1e-12
    assert fit.off["squid.axon.v"][1] == "mV" and fit.off["squid.axon.v"][0] < 1e-4
    assert [start.begin for start in fit.starts] == [{"squid.axon.Na.gbar": 90, "squid.axon.K.gbar": 25}]
    assert "Na.gbar = 120" in str(fit)
    # The model is as it was, until it is told.
    assert axon.params["Na.gbar"].value == 90
    assert axon.set(fit.values).params["Na.gbar"].value == fit.values["squid.axon.Na.gbar"]


def test_the_file_says_what_is_fitted(axon):
    axon.set({"Na.gbar": 90, "K.gbar": 25})
    fit = axon.fit()
    found = {"squid.axon.Na.gbar": 120, "squid.axon.K.gbar": 36, "squid.axon.Leak.gbar": 0.3}
    assert fit.values == pytest.approx(found, rel=1e-6) and len(fit.starts) == 2
    # What is given stands instead of it.
    fit = axon.fit({"Na.gbar": (50, 300)}, starts=1, iterations=2)
    assert list(fit.values) == ["squid.axon.Na.gbar"] and len(fit.starts) == 1


def test_numbers_that_are_read_out_of_a_run(squid):
    model = neuroc.load(squid.parent / "adex_fit.neuro").set({"step.amplitude": "800 pA"})
    run = model.run()
    spikes = run.spikes["cells"].t
    targets = {"interval(cells)": (np.diff(spikes).mean(), 0.5), "spike_count(cells)": float(len(spikes))}
    fit = model.fit({"cells.b": (10, 300)}, targets)
    assert fit.values["cells.b"] == pytest.approx(80.5, rel=2e-2)
    assert fit.off["spike_count(cells)"] == (0, "1") and fit.off["interval(cells)"][1] == "ms"
    # A text has a unit; what is left out is what the file says.
    assert model.fit(targets={"max(w)": ("0.2862 nA", "3 pA")}, iterations=2).off["max(cells.w)"][1] == "pA"
    # So has one in the words of the file, where a window may stand.
    windowed = model.fit(targets={"rate(cells)": "40 Hz from 20 ms within 2 Hz"}, iterations=2)
    assert windowed.off["rate(cells) from 20 ms"][1] == "Hz"
    for targets, words in [
        ({"rate(cells)": "40 mV"}, "a rate"),
        ({"rate(others)": 1}, "does not record spikes of `others`"),
        ({"min(v)": 0}, "a tenth of zero"),
        ({"min(v)": [1, 2, 3]}, "3 numbers for `min\\(v\\)`"),
        ({"min(v)": (-70, -1)}, "greater than zero"),
    ]:
        with pytest.raises((neuroc.SettingError, neuroc.UsageError), match=words):
            model.fit(targets=targets)
    with pytest.raises(neuroc.UsageError, match="needs gradients"):
        model.fit(search="lbfgs")
    with pytest.raises(neuroc.UsageError, match="no gradient"):
        neuroc.load(squid.parent / "squid_fit.neuro").gradient(["Na.gbar"], {"max(v)": 40})
    with pytest.raises(neuroc.UsageError, match="`fit` block"):
        neuroc.load(squid).fit()
    for wrong in [dict(iterations=-1), dict(iterations=2.5), dict(starts=0), dict(starts=True)]:
        with pytest.raises(neuroc.UsageError, match="is a whole number from 1 on"):
            model.fit(**wrong)
    with pytest.raises(neuroc.UsageError, match="`epochs` is a whole number from 1 on, not -1"):
        model.train(epochs=-1)
    for names in ["Na.gbar", []]:
        with pytest.raises(neuroc.UsageError, match="a list of parameters"):
            neuroc.load(squid).gradient(names)


def test_each_cell_has_its_number(squid):
    model = neuroc.load(squid.parent / "fi_fit.neuro")
    spikes = model.set({"cells.t_ref": "3 ms"}).run().spikes["cells"]
    rates = np.bincount(spikes.i, minlength=12) / 2  # spikes in 2 s: Hz
    fit = model.set({"cells.t_ref": 1}).fit({"cells.t_ref": (0.5, 5)}, {"rate(cells)": rates})
    assert fit.values["cells.t_ref"] == pytest.approx(3, abs=0.05) and fit.off["rate(cells)"][0] < 1
    assert fit.off["rate(cells)"][1] == "Hz"
    with pytest.warns(neuroc.ModelWarning, match="had the same loss, so that nothing said where to go"):
        model.set({"step.duration": "1 us"}).fit({"cells.t_ref": (0.5, 5)}, {"rate(cells)": 40}, iterations=2)


def test_what_cannot_be_fitted(axon, trace, squid, tmp_path):
    targets = {"v": trace}
    for free, words in [
        ({"Na.gbr": (1, 2)}, "Na.gbar"),
        ({"Na.gbar": (2, 1)}, "less than"),
        ({"Na.gbar": (1, float("nan"))}, "less than"),
        ({"Na.gbar": ("1 mV", "2 mV")}, "a voltage"),
        ({"Na.gbar": "50..300"}, "two numbers"),
        ({"low.delay": (0.5, 2)}, "low.delay"),
    ]:
        with pytest.raises((neuroc.SettingError, neuroc.UsageError), match=words):
            axon.fit(free, targets)
    for wrong, words in [
        ({"w": trace}, "does not record `w`"),
        ({"v": tmp_path / "nothing.csv"}, "no such file"),
        ({"v": ([0, 1], [1, 2])}, "needs 0 ms to 12"),
        ({"v": ([0, 20], [1, np.nan])}, "not finite"),
        ({"v": ([0, 1, 2], [1, 2])}, "3 times and 2 values"),
        ({"v": 3.0}, "pair of arrays"),
        ({}, "at least one target"),
    ]:
        with pytest.raises((neuroc.SettingError, neuroc.UsageError), match=words):
            axon.fit({"Na.gbar": (50, 300)}, wrong)
    for options, words in [
        ({"precision": "f32"}, "f64"), ({"search": "magic"}, "nelder-mead"), ({"starts": 0}, "whole number from 1 on"),
        ({"memory": "much"}, "2GB"), ({"colour": 1}, "no option"), ({"progress": 3}, "progress"),
    ]:  # fmt: skip
        with pytest.raises(neuroc.UsageError, match=words):
            axon.fit({"Na.gbar": (50, 300)}, targets, **options)
    with pytest.raises(neuroc.SettingError, match="takes no voltage|spike|reset|events"):
        neuroc.load(squid.parent / "lif_fi_curve.neuro").gradient(["tau"], {"v": trace})


def test_a_network_learns_as_the_command_lets_it(net, tmp_path):
    model = neuroc.load(net)
    for read in model._core.files():
        before = read.read_bytes()
        with pytest.raises(neuroc.SaveError, match="would be lost"):
            model.train(output=read)
        assert read.read_bytes() == before
    assert len(model._core.files()) >= 2
    news = []
    trained = model.train(output=tmp_path / "own.npz", progress=lambda *told: news.append(told))
    assert [epoch.number for epoch in trained.history] == [1, 2, 3, 4] and trained.epochs == 4
    assert trained.history[-1].train.loss < trained.history[0].train.loss
    assert trained.history[-1].test.accuracy > 0.9 and trained.history[0].test.samples == 10
    assert "epoch 4" in repr(trained)
    command = [sys.executable, "-m", "neuroc"]
    subprocess.run([*command, "train", net, "--quiet", "-o", tmp_path / "command.npz"], check=True)
    with np.load(tmp_path / "own.npz") as own, np.load(tmp_path / "command.npz") as other:
        assert sorted(own) == sorted(other)
        assert all((own[name] == other[name]).all() for name in own)
        assert (own["pixels.out.Kick.weight"] == trained.weights["pixels.out.Kick.weight"]).all()
    # It goes on to the same bits, from a file and from an object.
    half = model.train(2)
    half.save(tmp_path / "half.npz")
    for begun in [half, tmp_path / "half.npz"]:
        whole = model.train(4, resume=begun)
        assert [epoch.number for epoch in whole.history] == [3, 4]
        assert (whole.weights["pixels.out.Kick.weight"] == trained.weights["pixels.out.Kick.weight"]).all()
        assert whole.parameters == trained.parameters
    # What was learnt is what runs.
    learnt = ["--trained", tmp_path / "own.npz"]
    subprocess.run([*command, "run", net, "--quiet", *learnt, "-o", tmp_path / "run.npz"], check=True)
    mine = model.copy().take(trained)
    expected = neuroc.read(tmp_path / "run.npz")
    assert (mine.run()["out.v"] == expected["out.v"]).all()
    # It can be set on.
    assert mine.copy().set("out.v", [0.5, 0.5]).run()["out.v"][0].tolist() == [0.5, 0.5]
    assert (neuroc.load(net).take(tmp_path / "own.npz").run()["out.v"] == expected["out.v"]).all()
    assert not (model.run()["out.v"] == expected["out.v"]).all()


def test_patience_keeps_what_was_best(net, tmp_path):
    text = net.read_text()
    (net.parent / "patient.neuro").write_text(re.sub(r"epochs = \d+", "epochs = 200\n    patience = 3", text))
    trained = neuroc.load(net.parent / "patient.neuro").train(output=tmp_path / "best.npz")
    losses = [epoch.test.loss for epoch in trained.history]
    assert len(losses) == trained.epochs + 3 < 200
    assert losses.index(min(losses)) + 1 == trained.epochs
    plain = neuroc.load(net).train(trained.epochs)
    weights = "pixels.out.Kick.weight"
    assert (plain.weights[weights] == trained.weights[weights]).all()
    assert (neuroc.read_trained(tmp_path / "best.npz").weights[weights] == trained.weights[weights]).all()


def test_what_cannot_learn(net, squid, tmp_path):
    with pytest.raises(neuroc.Error, match="no `train` block"):
        neuroc.load(squid).train()
    model = neuroc.load(net)
    with pytest.raises(neuroc.UsageError, match="whole number from 1 on"):
        model.train(0)
    with pytest.raises(neuroc.UsageError, match="a larger `epochs`"):
        model.train(1, resume=model.train(1))
    with pytest.raises(neuroc.Error, match="may be used"):
        model.train(memory="1 kB")
    np.savez(tmp_path / "other.npz", other=np.zeros(3))
    with pytest.raises(neuroc.SaveError, match="other"):
        model.take(tmp_path / "other.npz")
    with pytest.raises(neuroc.SettingError):
        neuroc.load(squid).take(model.train(1))


def test_ctrl_c_keeps_what_was_learnt(net):
    model = neuroc.load(net)
    def press(number, *_):
        if number == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as caught:
        model.train(1_000, progress=press)
    assert caught.value.trained.epochs >= 2


def test_bars_are_drawn_where_they_are_asked_for(squid, net, capfd):
    neuroc.load(squid).run(duration=1, progress=True)
    assert "squid" in capfd.readouterr().err
    neuroc.load(squid).sweep({"Na.gbar": [100, 120]}, duration=1, progress=True)
    assert "/2 runs" in capfd.readouterr().err
    neuroc.load(net).train(1, progress=True)
    assert "/30 samples" in capfd.readouterr().err
    neuroc.load(squid).run(duration=1)
    assert capfd.readouterr().err == ""


def test_progress_is_told(squid):
    model = neuroc.load(squid)
    model.set(n=2000)
    told = []
    quiet = model.run(duration=50, threads=1, progress=False)
    watched = model.run(duration=50, threads=1, progress=lambda done, whole: told.append((done, whole)))
    assert (quiet["v"] == watched["v"]).all()
    assert told == sorted(told) and all(whole == 50 for _, whole in told)
    with pytest.raises(ZeroDivisionError):
        model.run(duration=5000, progress=lambda done, whole: 1 / 0)


def test_devices_are_options_of_what_learns(axon, net):
    wrong = {"engine": "interp", "device": "cpu"}
    for learn in (
        lambda: axon.gradient(["Na.gbar"], **wrong),
        lambda: axon.fit({"Na.gbar": (50, 300)}, **wrong),
        lambda: neuroc.load(net).train(1, **wrong),
    ):
        with pytest.raises(neuroc.UsageError, match="`device` is what the XLA engine runs on"):
            learn()
