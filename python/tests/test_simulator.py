"""Runs that are taken step by step."""

import subprocess
import sys
import threading

import numpy as np
import pytest
from conftest import ROOT
from test_run import memory

import neuroc


def test_steps_are_the_runs(squid):
    model = neuroc.load(squid).set(n=3)
    for engine in ["native", "interp"]:
        result = model.run(duration=20, engine=engine)
        with model.simulator(engine=engine) as s:
            assert (s.dt, s.time, s.steps) == (0.01, 0.0, 0)
            spikes, v = 0, [s["squid.soma.v"]]
            for _ in range(200):
                spikes += s.step(10)
                t, i = s.spikes("squid")
                assert len(t) == len(i) and all(s.time - 10 * s.dt < t) and all(t <= s.time)
                v.append(s["v"])
            assert s.steps == 2000 and s.time == 20.0
            assert (np.array(v) == result["squid.soma.v"]).all()
            assert spikes == len(result.spikes["squid"]) > 0
        assert s.closed


def test_states_and_parameters_are_written(squid):
    s = neuroc.load(squid).set(n=3).simulator()
    s["soma.v"] = -70
    assert s["soma.v"].tolist() == [-70.0] * 3
    s["soma.v"] = "-0.06 V"
    assert s["soma.v"].tolist() == [-60.0] * 3
    s["soma.v"] = [-70, -65, -60]
    assert s["squid.soma.v"].tolist() == [-70.0, -65.0, -60.0]
    assert s["step.amplitude"] == 10.0 and s.unit("step.amplitude") == "uA/cm2"
    s["step.amplitude"] = "5 uA/cm2"
    assert s["step.amplitude"] == 5.0 and isinstance(s["step.amplitude"], float)
    # Nothing that moves depends on the surface.
    with pytest.raises(neuroc.SettingError, match="nothing that a step computes"):
        s["area"] = 0.7


def test_units_that_are_not_canonical_come_back():
    model = neuroc.parse("cell P { param i = 1 nA; param c = 100 pF; state v: mV = 0 mV; v' = i / c } network main { population p: P[2] }"
                         " run { duration = 5 ms; dt = 0.1 ms; method = euler; record p.v }")  # fmt: skip
    s = model.simulator()
    assert (s["p.i"], s.about("i")) == (1.0, ("p.i", "nA"))
    s.step(10)
    assert s["v"] == pytest.approx([10.0, 10.0])
    for value in [0.7, "700 pA", "0.0007 uA"]:
        s["i"] = value
        assert s["i"] == 0.7
    s.step(10)
    assert s["v"] == pytest.approx([17.0, 17.0])
    # Set cell by cell before, it stays so, and may be written cell by cell.
    s = model.set("i", [1, 2]).simulator()
    s.step(10)
    s["i"] = [-1, 0.1]
    assert s["i"].tolist() == [-1.0, 0.1]
    s.step(10)
    assert s["v"] == pytest.approx([0.0, 21.0], abs=1e-9)


def test_a_closed_loop_changes_the_run(squid):
    # A clamp of the voltage by Python: a current that holds the cell near -50 mV.
    model = neuroc.load(squid).set({"step.delay": 0, "step.duration": "10 s"})
    with model.simulator() as s:
        for _ in range(3000):
            s["step.amplitude"] = 50.0 * (-50.0 - s["v"][0])
            s.step()
        assert abs(s["v"][0] + 50) < 2
    free = model.run(duration=30)
    assert np.ptp(free["v"]) > 50


@pytest.mark.skipif(not neuroc.XLA, reason="a build without XLA")
def test_parameters_change_on_a_device(squid):
    paths = []
    for engine in ["native", "xla"]:
        with neuroc.load(squid).set({"n": 2, "step.delay": 0}).simulator(engine=engine) as s:
            v = []
            for _ in range(40):
                s.step(10)
                s["step.amplitude"] = 10.0 if s["squid.soma.v"][0] < -40 else 0.0
                s["Na.gbar"] = 120 + s.steps / 100
                v.append(s["squid.soma.v"])
            paths.append(np.array(v))
    assert np.ptp(paths[0]) > 1 and np.allclose(paths[0], paths[1], rtol=0, atol=1e-9)


def test_spikes_on_their_way_are_gone_back_to():
    model = neuroc.load(ROOT / "examples" / "vogels_abbott_coba.neuro")
    s = model.simulator()
    s.step(300)
    saved = s.save()
    s.step(300)
    later = s["e.v"]
    s.restore(saved)
    s.step(300)
    assert (s["e.v"] == later).all() and np.ptp(later) > 1


def test_saved_states_are_gone_back_to(squid, tmp_path):
    model = neuroc.load(squid)
    s = model.simulator()
    s.step(1500)
    saved = s.save()
    assert (saved.time, saved.steps) == (15.0, 1500)
    s.step(500)
    later = s["v"]
    s.restore(saved)
    assert s.time == 15.0
    s.step(500)
    assert (s["v"] == later).all()
    # Over a file, and into another simulator.
    saved.write(tmp_path / "state.npz")
    other = model.simulator(engine="interp")
    other.restore(tmp_path / "state.npz")
    other.step(500)
    assert (other["v"] == later).all()
    for wrong, said in [("no.npz", "cannot read"), (3, "restore takes")]:
        with pytest.raises(neuroc.Error, match=said):
            s.restore(wrong)
    with pytest.raises(neuroc.UsageError, match="seed"):
        model.simulator(seed=5).restore(saved)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("n", 2, "how many cells"),
        ("w", 2, "no parameter `w`"),
        ("v", [1.0, 2.0], "2 numbers are given"),
        ("v", "3 mS", "is a voltage, but `3 mS` is a conductance"),
        ("v", "three", "no number with a unit"),
        ("v", float("nan"), "is NaN"),
        ("v", None, "takes a number"),
        ("K.n", 1.5, "from 0 to 1"),
        ("v", [[1.0]], "one side"),
        ("step.amplitude", [1.0, 2.0], "one number"),
    ],
)
def test_what_cannot_be_written_is_refused(squid, name, value, said):
    s = neuroc.load(squid).simulator()
    with pytest.raises(neuroc.Error, match=said):
        s[name] = value
    assert s["v"].tolist() == [-65.0]
    with pytest.raises(neuroc.UsageError, match="-1 steps"):
        s.step(-1)
    with pytest.raises(neuroc.UsageError, match="the populations are \"squid\""):
        s.spikes("cells")


def test_a_closed_simulator_says_so(squid):
    s = neuroc.load(squid).simulator()
    s.close()
    s.close()
    assert s.closed and "closed" in repr(s)
    for use in [s.step, s.save, lambda: s["v"], lambda: s.time, lambda: s.restore("x.npz"), lambda: s.spikes("squid")]:
        with pytest.raises(neuroc.ClosedError, match="model.simulator()"):
            use()


def test_after_an_error_it_goes_on_from_saved_states():
    model = neuroc.parse("cell C { state x = 1; x' = x * x / 1 ms } network main { population c: C[2] }"
                         " run { duration = 5 ms; dt = 0.01 ms; record c.x }")  # fmt: skip
    s = model.simulator()
    start = s.save()
    for _ in range(2):
        with pytest.raises(neuroc.NotFiniteError, match="(?s)`c.x` of cell 0.*steps at once, and was finite at t ="):
            s.step(1000)
    s.restore(start)
    s.step(10)
    assert s.steps == 10 and np.isfinite(s["x"]).all()
    # What is recorded and no state is computed for the time it is.
    assert s["c.x"].shape == (2,)


def test_threads_have_their_own(squid):
    model = neuroc.load(squid)
    s = model.set(n=2000).simulator()
    busy = threading.Thread(target=lambda: s.step(20_000))
    busy.start()
    said = []
    while busy.is_alive() and not said:
        try:
            s["v"]
        except neuroc.UsageError as error:
            said.append(str(error))
    busy.join()
    assert said and "another thread" in said[0]
    assert s.steps == 20_000


def test_simulators_leave_no_memory_behind(squid):
    model = neuroc.load(squid)

    def use(count):
        for _ in range(count):
            s = model.simulator()
            for at in range(20):
                s["step.amplitude"] = float(at)
                s.step(5)
            s.restore(s.save())

    use(50)
    before = memory()
    use(200)
    assert memory() - before < 1_000_000


def test_the_example_of_a_closed_loop_holds_the_rate(root):
    done = subprocess.run([sys.executable, root / "examples" / "closed_loop.py"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rate, speed = (float(line.split()[0]) for line in done.stdout.splitlines())
    assert 70 <= rate <= 80 and speed > 0


def test_numbers_of_steps_that_cannot_be(squid):
    s = neuroc.load(squid).simulator(engine="interp")
    for wrong in (-1, 2**63, -(2**63) - 1, 10**400):
        with pytest.raises(neuroc.UsageError, match="steps cannot be taken"):
            s.step(wrong)
    with pytest.raises(TypeError):
        s.step("1")
    assert s.steps == 0


def test_an_array_of_no_dimension_is_a_number():
    model = neuroc.parse(
        "cell P { state x = 1; x' = -x / 10 ms }\n"
        "network main { population a: P[2] }\nrun { duration = 1 ms; dt = 0.1 ms; record a.x }"
    )
    with model.simulator(engine="interp") as s:
        s["a.x"] = np.array(0.1)
        assert np.asarray(s["a.x"]).tolist() == [0.1, 0.1]
