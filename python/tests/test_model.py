"""Models: what they have, what they are set to, their stages."""

import numpy as np
import pytest

import neuroc

TWO = """
//! Two populations.
cell P {
    /// How fast it decays.
    param tau = 10 ms
    param area = 3 um2
    state x: mV = 1 mV
    x' = -x / tau
}
network main {
    param n = 2
    population grid: P[2, 3]
    population row: P[n]
    param row.tau = 5 ms + index * 1 ms
}
run { duration = 1 ms; dt = 0.1 ms; record grid.x; record row.x }
"""


def test_what_a_model_has():
    model = neuroc.parse(TWO, name="two.neuro")
    assert (model.doc, model.file) == ("Two populations.", "two.neuro")
    tau = model.params["grid.tau"]
    assert (tau.name, tau.value, tau.unit, tau.doc) == ("grid.tau", 10.0, "ms", "How fast it decays.")
    assert model.params["row.tau"].value.tolist() == [5.0, 6.0]
    assert model.params["row.tau"].population == "row"
    assert model.states["grid.x"].unit == "mV"
    assert model.populations["grid"].shape == (3, 2)
    assert model.populations["row"] == neuroc.Population("row", 2, (2,), False)
    assert list(model.populations) == ["grid", "row"]
    with pytest.raises(KeyError, match="fits several"):
        model.params["tau"]
    with pytest.raises(KeyError, match="there is no population `col`"):
        model.populations["col"]
    assert "row.tau" in repr(model.params) and "<td>grid.tau</td>" in model.params._repr_html_()
    assert "grid (6), row (2)" in repr(model)


def test_numbers_are_in_the_unit_that_is_shown_and_texts_in_their_own(squid):
    model = neuroc.load(squid)
    for value, expected in [(100, 100.0), ("0.1 S/cm2", 100.0), (np.float32(2), 2.0), (np.array(7), 7.0), ("3mS/cm2", 3.0)]:
        assert model.set("Na.gbar", value) is model
        assert model.params["Na.gbar"].value == expected
    # An area has another canonical unit than um2; what is read can be set.
    model.set("area", 0.7)
    assert model.params["area"].value == 0.7
    text = neuroc.load(squid).set("area", "0.7 um2")
    assert model.ir("ir") == text.set("Na.gbar", "3mS/cm2").ir("ir")
    before = model.run(duration=1)["v"]
    model.set("area", model.params["area"].value)
    assert (model.run(duration=1)["v"] == before).all()
    model.set({"Na.gbar": 3}, n=2)
    assert model.settings == ["area=0.7um2", "Na.gbar=3mS/cm2", "n=2"]
    copy = model.copy().unset("n")
    assert model.populations["squid"].cells == 2 and copy.populations["squid"].cells == 1
    assert copy.unset().settings == []


def test_arrays_are_for_cells():
    model = neuroc.parse(TWO)
    tau = np.arange(1, 7)
    model.set({"grid.tau": tau, "grid.x": np.linspace(-1, 1, 6).reshape(3, 2)})
    assert model.params["grid.tau"].value.tolist() == tau.tolist()
    result = model.run()
    assert result["grid.x"][0].tolist() == np.linspace(-1, 1, 6).tolist()
    assert result.params["grid.tau"][0].tolist() == tau.tolist()
    # Each cell is as if all had its number.
    for cell in range(6):
        one = neuroc.parse(TWO).set({"grid.tau": int(tau[cell]), "grid.x": float(np.linspace(-1, 1, 6)[cell])}).run()
        # But for rounding: what all cells share is computed before the steps.
        assert np.allclose(one["grid.x"][:, cell], result["grid.x"][:, cell], rtol=1e-13, atol=0)
    # A unit that is not canonical: as the text says it.
    areas = neuroc.parse(TWO).set("grid.area", [0.1, 0.7, 3, 4, 5, 6])
    assert areas.params["grid.area"].value.tolist() == [0.1, 0.7, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("grid.tu", 1, "no parameter `grid.tu`"),
        ("tau", 1, "fits several parameters"),
        ("grid.tau", "3 mV", "is a time, but `3 mV` is a voltage"),
        ("grid.tau", "fast", "not a parameter setting"),
        ("grid.tau", float("nan"), "cannot be NaN"),
        ("grid.tau", float("inf"), "finite number"),
        ("grid.tau", [1, 2, float("nan"), 4, 5, 6], "number 2 of the array for `grid.tau` is NaN"),
        ("grid.tau", [1, 2, 3], r"shape \(3,\), but the population `grid` needs \(6,\) or \(3, 2\)"),
        ("grid.tau", np.ones((2, 3)), r"shape \(2, 3\)"),
        ("grid.tau", -1, "a time constant is above zero"),
        ("n", [1, 2], "one number for the whole model"),
        ("n", 2.5, None),
    ],
)
def test_wrong_settings_are_refused_and_change_nothing(name, value, said):
    model = neuroc.parse(TWO).set(n=3)
    if said is None:
        # What a size must be shows when there are cells.
        with pytest.raises(neuroc.ModelError, match="cannot have 2.5 cells"):
            model.set(name, value).run()
        return
    with pytest.raises(neuroc.SettingError, match=said):
        model.set({"row.x": 4, name: value})
    assert model.settings == ["n=3"]


@pytest.mark.parametrize("value", [True, None, object(), 1 + 2j, ["a"], b"1"])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(neuroc.UsageError, match="grid.tau"):
        neuroc.parse(TWO).set({"grid.tau": value})


def test_an_array_belongs_to_a_number_of_cells():
    model = neuroc.parse(TWO).set({"row.x": [1, 2]})
    with pytest.raises(neuroc.SettingError, match="in the same call"):
        model.set(n=3)
    model.set({"row.x": [1, 2, 3], "n": 3})
    assert model.run()["row.x"][0].tolist() == [1, 2, 3]


def test_stages_are_text(squid):
    model = neuroc.load(squid)
    assert "exp2" in model.ir() and "exp2" not in model.ir("ir")
    assert "fn " in model.rust()
    assert model.stage("ode").endswith("\n")
    assert model.rust(precision="f32") != model.rust()
    for wrong in [lambda: model.ir("rust"), lambda: model.stage("rst"), lambda: model.stage("rust", engine="interp")]:
        with pytest.raises(neuroc.UsageError):
            wrong()
    if neuroc.XLA:
        assert "stablehlo." in model.stablehlo()
    else:
        with pytest.raises(neuroc.UsageError, match="no XLA"):
            model.stablehlo()


WARM = """
cell C { state x = 1; x' = -x * 3 ^ ((celsius - 6.3 degC) / 10 K) / 1 ms }
network main { population c: C }
run { duration = 1 ms; dt = 0.1 ms; celsius = 20 degC; record c.x }
"""


def test_quantities_of_others_are_taken(squid):
    import astropy.units
    import pint
    import quantities

    registry = pint.UnitRegistry()
    for g, amount in [
        (0.1 * registry.S / registry.cm**2, 0.01 * registry.mA / registry.cm**2),
        (0.1 * astropy.units.S / astropy.units.cm**2, 0.01 * astropy.units.mA / astropy.units.cm**2),
        (0.1 * quantities.S / quantities.cm**2, 0.01 * quantities.mA / quantities.cm**2),
    ]:
        model = neuroc.load(squid).set({"Na.gbar": g, "step.amplitude": amount})
        assert model.params["squid.soma.Na.gbar"].value == pytest.approx(100, rel=1e-12)
        assert model.params["step.amplitude"].value == pytest.approx(10, rel=1e-12)
    model.set("soma.v", np.array([-0.07, -0.06]) * registry.volt, n=2)
    assert model.states["squid.soma.v"].value.tolist() == pytest.approx([-70, -60])
    assert neuroc.load(squid).set("soma.v_init", -0.07 * registry.volt).states["squid.soma.v"].value == pytest.approx(-70)
    for warm in (
        registry.Quantity(279.45, "kelvin"), registry.Quantity(6.3, "degC"), 279.45 * astropy.units.K, 6.3 * astropy.units.deg_C,
        279.45 * quantities.K, 6.3 * quantities.degC,
    ):  # fmt: skip
        assert neuroc.parse(WARM).set("celsius", warm).params["celsius"].value == pytest.approx(279.45)
    for wrong in (1 * registry.volt, 1 * astropy.units.V, 1 * quantities.V):
        with pytest.raises(neuroc.SettingError, match="has the unit mS/cm2"):
            model.set("Na.gbar", wrong)
    with pytest.raises(neuroc.SettingError, match="did you mean"):
        model.set("Na.gbr", 1 * registry.mS / registry.cm**2)


def test_quantities_keep_their_units_wherever_they_are_taken(squid):
    import astropy.units
    import pint
    import quantities

    registry = pint.UnitRegistry()

    class Own(astropy.units.Quantity):
        pass

    model = neuroc.load(squid)
    siemens = 0.1 * astropy.units.S / astropy.units.cm**2
    assert model.copy().set("Na.gbar", Own(siemens)).params["squid.soma.Na.gbar"].value == pytest.approx(100)
    assert model.copy().set("Na.gbar", [siemens]).params["squid.soma.Na.gbar"].value == pytest.approx(100)
    for amount in (0.01 * registry.mA / registry.cm**2, 0.01 * quantities.mA / quantities.cm**2, "0.01 mA/cm2"):
        simulator = model.simulator()
        simulator["step.amplitude"] = amount
        assert simulator["step.amplitude"] == pytest.approx(10)
        with pytest.raises(neuroc.SettingError):
            simulator["step.amplitude"] = 5 * registry.kg
    simulator["soma.v"] = [-0.07] * astropy.units.V
    assert simulator["soma.v"] == pytest.approx(-70)
    for time in (0.001 * registry.s, 1 * astropy.units.ms, 0.001 * quantities.s):
        assert model.run(duration=time, engine="interp").meta["steps"] == 100
    with pytest.raises(neuroc.SettingError):
        model.run(duration=20 * registry.kg)

    class Foreign:
        units = "mS/cm2"

        def __float__(self):
            return 1.0

    for strange in (Foreign(), np.ma.array([1.0], mask=[1])):
        with pytest.raises(neuroc.SettingError):
            model.set("Na.gbar", strange)
    sweep = model.sweep({"Na.gbar": np.array([0.1, 0.12]) * astropy.units.S / astropy.units.cm**2}, duration=1, engine="interp")
    assert sweep.axes["Na.gbar"].tolist() == pytest.approx([100, 120])
    with pytest.raises(neuroc.UsageError, match="whole number"):
        model.sweep({"seed": [1.5]})


def test_temperatures_below_all_experiments_are_refused():
    model = neuroc.parse(WARM)
    with pytest.raises(neuroc.SettingError, match='write "18.5 degC"'):
        model.set("celsius", 18.5)
    assert model.set("celsius", 291.65).params["celsius"].value == pytest.approx(291.65)


def test_sizes_that_cannot_be_are_refused_and_copies_are_apart(squid):
    import copy

    model = neuroc.load(squid)
    for wrong in (0, 2.5, -1):
        with pytest.raises(neuroc.SettingError):
            model.set("n", wrong)
    assert model.populations["squid"].cells == 1
    for other in (copy.copy(model), copy.deepcopy(model)):
        other.set("Na.gbar", 1)
    assert model.params["squid.soma.Na.gbar"].value == 120


def test_bounds_of_fits_take_quantities(root):
    import quantities

    model = neuroc.load(root / "examples" / "squid_fit.neuro")
    by_unit = model.fit({"Na.gbar": (0.05 * quantities.S / quantities.cm**2, 0.3 * quantities.S / quantities.cm**2)}, iterations=1, engine="interp")
    by_number = model.fit({"Na.gbar": (50, 300)}, iterations=1, engine="interp")
    assert by_unit.values == by_number.values
    with pytest.raises(neuroc.SettingError, match="plain numbers or texts"):
        model.fit({"Na.gbar": (50, 300)}, {"max(squid.axon.v)": 0.04 * quantities.V}, engine="interp")


def test_numbers_that_are_too_large_are_refused(squid):
    model = neuroc.load(squid)
    for name in ("soma.v", "Na.gbar"):
        with pytest.raises(neuroc.SettingError, match="too large"):
            model.set({name: 10**400})
    with pytest.raises(neuroc.SettingError, match="too large"):
        neuroc.parse(WARM).set("celsius", 10**400)
    assert model.settings == []


@pytest.mark.skipif(not neuroc.XLA, reason="a build without XLA")
def test_modules_have_the_precisions_and_accuracies_of_xla(squid):
    model = neuroc.load(squid)
    assert "func.func @step(" in model.stablehlo(precision="bf16")
    with pytest.raises(neuroc.UsageError, match="XLA's functions have their own"):
        model.stablehlo(accuracy="1e-6")
    with pytest.raises(neuroc.UsageError, match="bf16"):
        model.rust(precision="bf16")
    assert model.rust(accuracy="1e-6") != model.rust()


def test_what_is_forgotten_leaves_settings_that_fit():
    model = neuroc.parse(
        "cell P { param tau = 10 ms; state x = 1; x' = -x / tau }\n"
        "network main { param n = 2\n population p: P[n] }\nrun { duration = 1 ms; dt = 0.1 ms; record p.x }"
    )
    model.set({"n": 3, "p.tau": [1, 2, 3]})
    with pytest.raises(neuroc.SettingError, match=r"has the shape \(3,\), .* needs \(2,\); forget it in the same call"):
        model.unset("n")
    assert model.populations["p"].cells == 3 and len(model.settings) == 2
    assert model.unset("n", "p.tau").settings == []
    with pytest.raises(neuroc.UsageError, match="the name of a parameter is a text, not 3"):
        model.set({3: 3})


WIRED = """
use std.cells.lif.LifCond
use std.plasticity.{Stdp, TsodyksMarkram}
use std.synapses.ExpCond
cell Bare { state v: mV = 0 mV; v' = -v / 10 ms }
synapse Kick { on event(weight: mV) { v += weight } }
network main {
    population e: LifCond[20]
    population b: Bare[2, 3]
    connect e -> e via Stdp { rule = probability(p = 0.3); weight ~ uniform(1 nS, 2 nS); delay ~ uniform(1 ms, 3 ms) }
    connect e -> e via ExpCond { rule = edges("edges.csv"); weight = file("edges.csv", column = "w") * 1 nS; delay = 1.5 ms }
    connect e -> b via Kick { rule = fixed_in_degree(n = 4); weight = 0.25 mV; delay = 2 ms }
    drive e via ExpCond from poisson(rate = 100 Hz) { weight = 1 nS }
}
run { duration = 1 ms; dt = 0.1 ms; record e.e.Stdp.weight every 1 ms }
"""


def test_connections_are_those_of_a_run(tmp_path):
    rows = [(7, 0, 3.0), (2, 0, 1.0), (5, 19, 2.0), (2, 0, 4.0)]
    (tmp_path / "edges.csv").write_text("source,target,w\n" + "".join(f"{a},{b},{w}\n" for a, b, w in rows))
    model = neuroc.parse(WIRED, directory=tmp_path)
    found = model.connections
    assert list(found) == ["e.e.Stdp", "e.e.ExpCond", "e.b.Kick"]
    listed = found["ExpCond"]
    assert (listed.source, listed.target, listed.number, listed.unit) == ("e", "e", 4, "nS")
    given = sorted((b, a) for a, b, _ in rows)
    assert list(zip(listed.targets.tolist(), listed.sources.tolist())) == given
    assert listed.weights.tolist() == [1.0, 4.0, 3.0, 2.0] and listed.delays.tolist() == [1.5] * 4
    drawn = found["Stdp"]
    start = model.run()["e.e.Stdp.weight"][0]
    assert drawn.weights.tolist() == start.tolist() and len(set(start.tolist())) > 50
    assert 1 <= drawn.delays.min() < 1.2 and 2.8 < drawn.delays.max() <= 3
    assert (np.diff(drawn.targets.astype(int)) >= 0).all() and not (drawn.sources == drawn.targets).any()
    kicks = found["e.b.Kick"]
    assert np.bincount(kicks.targets).tolist() == [4] * 6 and kicks.sources.max() < 20
    assert (kicks.weights == 0.25).all() and kicks.unit == "mV"
    assert "4 numbers, 1 to 4" in repr(found) and "<td>e.b.Kick</td>" in found._repr_html_()
    # What is set from outside is what a run begins with.
    other = model.copy().set("e.e.Stdp.weight", "3 nS")
    assert set(other.connections["Stdp"].weights) == {3.0}
    assert neuroc.parse(TWO).connections == {}
    (tmp_path / "edges.csv").write_text("source,target,w\n7,20,1\n")
    with pytest.raises(neuroc.ModelError, match="20"):
        neuroc.parse(WIRED, directory=tmp_path).connections
