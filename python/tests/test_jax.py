"""Models inside JAX programs."""

import json
import subprocess
import sys

import numpy as np
import pytest

import neuroc

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.skipif(not neuroc.XLA, reason="a build without XLA")


@pytest.fixture(autouse=True)
def doubles():
    jax.config.update("jax_enable_x64", True)


def test_steps_in_jax_are_those_of_a_run(squid):
    model = neuroc.load(squid).set(n=3)
    run = model.run(duration=25)
    f = model.to_jax(duration=25)
    assert (f.dt, f.duration_steps) == (0.01, 2500) and "squid.soma.v" in f.states
    state = f.init()
    state, counts = jax.jit(f.steps)(state, 1500)
    assert int(state["step"]) == 1500
    assert np.allclose(state["squid.soma.v"], run["squid.soma.v"][150], rtol=0, atol=1e-9)
    before = [len(times[times <= 15.0001]) for times in map(run.spikes["squid"].of, range(3))]
    assert counts["squid"].tolist() == before and sum(before) > 0
    # One by one, and inside a loop of JAX's own.
    def body(carry, _):
        carry, spikes = f.step(carry)
        return carry, (carry["squid.soma.v"], spikes["squid"])

    _, (v, spikes) = jax.jit(lambda state: jax.lax.scan(body, state, length=200))(state)
    assert np.allclose(v[9::10], run["squid.soma.v"][151:171], rtol=0, atol=1e-9)
    assert spikes.shape == (200, 3) and spikes.dtype == bool


def test_states_and_parameters_of_cells_are_the_callers(squid):
    f = neuroc.load(squid).set({"n": 2, "soma.v": [-65.0, -60.0], "Na.gbar": [120.0, 0.0]}).to_jax(duration=1)
    assert f.init()["squid.soma.v"].tolist() == [-65.0, -60.0]
    assert f.init({"squid.soma.v": -70})["squid.soma.v"].tolist() == [-70.0, -70.0]
    kicked = f.init({"squid.soma.v": -50, "squid.soma.K.n": 0.3, "squid.soma.Na.m": 0.05, "squid.soma.Na.h": 0.6})
    same, _ = f.steps(kicked, 50)
    other, _ = f.steps({**kicked, "squid.soma.Na.gbar": np.array([0.0, 120.0])}, 50)
    assert same["squid.soma.v"][0] == other["squid.soma.v"][1] > same["squid.soma.v"][1]
    # Many at once.
    starts = {**kicked, "squid.soma.v": jax.numpy.array([[-50.0, -50.0], [-60.0, -60.0]])}
    axes = {name: 0 if name == "squid.soma.v" else None for name in kicked}
    many, spikes = jax.vmap(f.step, in_axes=(axes,))(starts)
    assert many["squid.soma.v"].shape == spikes["squid"].shape == (2, 2)
    assert (many["squid.soma.v"][0] == f.step(kicked)[0]["squid.soma.v"]).all()
    with pytest.raises(neuroc.SettingError, match="there is no state"):
        f.init({"w": 1})


def test_precision_and_networks(root):
    model = neuroc.load(root / "examples" / "vogels_abbott_cuba.neuro").set(n=100)
    run = model.run(duration=60)
    f = model.to_jax(duration=60)
    state, counts = jax.jit(f.steps)(f.init(), f.duration_steps)
    for name, train in run.spikes.items():
        assert counts[name].tolist() == train.counts.tolist()
    single = model.to_jax(duration=5, precision="f32")
    assert single.init()[single.states[0]].dtype == np.float32
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(neuroc.UsageError, match="jax_enable_x64"):
        model.to_jax()


JOINED = """
channel Leak { param gbar = 0.3 mS/cm2; param erev = -54 mV }
cell Leaky {
    compartment soma { area = 1000 um2; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }
}
junction Gap { param g = 0.05 mS/cm2; current i = g * dv * (0.2 + 0.8 * exp(-(dv / 10 mV)^2)) }
network main {
    population io: Leaky[4]
    init io.soma.v ~ uniform(-80 mV, -50 mV)
    connect io.soma -- io.soma via Gap { rule = fixed_in_degree(n = 2) }
    input push: sine(delay = 0 ms, duration = 5 ms, amplitude = 1 uA/cm2, period = 10 ms) -> io.soma
}
run { duration = 5 ms; dt = 0.1 ms; record io.soma.v }
"""


def test_gradients_go_through_steps(squid):
    models = [
        (neuroc.load(squid).set({"n": 2, "soma.v": [-50.0, -60.0], "Na.gbar": [120.0, 100.0]}), 120, "squid.soma.v", "squid.soma.Na.gbar"),
        (neuroc.parse(JOINED).set({"Leak.gbar": [0.3, 0.2, 0.4, 0.5]}), 50, "io.soma.v", "io.soma.Leak.gbar"),
    ]
    for model, steps, v, gbar in models:
        f = model.to_jax(duration=5)

        def loss(state, start):
            at = f.init()
            at = {**at, **state, "step": at["step"]}
            _, path = jax.lax.scan(lambda s, _: (f.step(s)[0], s[v] / 100), {**at, v: start}, length=steps)
            return (path**2 * jax.numpy.arange(1, 1 + path.shape[1])).mean()

        begin = f.init()
        given = {gbar: begin[gbar]}
        value, (of_gbar, of_v) = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(given, begin[v])
        assert value == loss(given, begin[v])
        for cell in range(2):
            for what, found in [("gbar", of_gbar[gbar][cell]), ("v", of_v[cell])]:
                def at(by, what=what, cell=cell):
                    if what == "v":
                        return loss(given, begin[v].at[cell].add(by))
                    return loss({gbar: begin[gbar].at[cell].add(by)}, begin[v])

                h = 1e-4
                expected = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
                assert expected != 0 and abs(found - expected) <= 1e-7 * abs(expected) + 1e-12, (v, what, cell)


def test_steps_back_need_what_states_have(root):
    gone = 0
    for path in sorted((root / "examples").glob("*.neuro")):
        model = neuroc.load(path)
        try:
            f = model.to_jax(device="cpu")
            back = json.loads(f._make_back()["manifest.json"])
        except neuroc.Error:
            continue
        gone += 1
        carried = {a["name"] for a in back["functions"]["step"]["arguments"] if a["from"] == "init"}
        assert carried <= {*f.states, *back["adjoints"].values()}, path
        changed = {r["name"] for r in f._manifest["functions"]["step"]["results"]} & set(f.states)
        assert changed <= set(back["adjoints"]), path
    assert gone > 10


def test_the_example_finds_the_conductances_of_every_cell(root):
    done = subprocess.run([sys.executable, root / "examples" / "jax_gradient.py"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    off = [float(line.split("at most ")[1].split()[0]) for line in done.stdout.splitlines() if "at most" in line]
    assert len(off) == 2 and max(off) < 0.1


def test_what_has_no_gradient_says_so(root):
    f = neuroc.load(root / "examples" / "izhikevich.neuro").to_jax(duration=1)
    state = f.init()
    name = next(name for name in f.states if name.endswith(".v"))
    with pytest.raises(neuroc.ModelError, match="changes by a jump when it spikes"):
        jax.grad(lambda v: f.step({**state, name: v})[0][name].sum())(state[name])


def test_what_is_observed_is_that_of_its_time():
    model = neuroc.parse("""
    cell Wave { param k = 0.5 /ms  state x = 1  let w = sin(t * 1 /ms) + x  x' = -k * x }
    network main { population p: Wave }
    run { duration = 10 ms; dt = 0.1 ms; method = euler; record p.{x, w} }
    """)
    f, w = model.to_jax(duration=10), model.run()["w"]
    state = f.init()
    for at in (0, 20, 100):
        state, _ = f.steps(state, at - int(state["step"]))
        assert float(f.observe(state)["p.w"][0]) == pytest.approx(float(w[at, 0]), abs=1e-12)
        assert float(jax.jit(f.observe)(state)["p.w"][0]) == pytest.approx(float(w[at, 0]), abs=1e-12)
