"""Runs and their results."""

import copy
import dataclasses
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import neuroc

NAN = """
cell C { state x: mV = 1 mV; x' = x * x / (1 mV * 1 ms) }
network main { population c: C[2] }
run { duration = 5 ms; dt = 0.01 ms; method = rk4; record c.x every 0.1 ms }
"""


def command(*arguments, **options):
    line = [sys.executable, "-m", "neuroc", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, timeout=300, **options)


def test_spikes_are_where_the_message_says(squid):
    with pytest.raises(KeyError, match=r'result.spikes\["squid"\]'):
        neuroc.load(squid).run(duration=1)["squid.spikes"]


def test_results_are_the_commands_bit_for_bit(squid, tmp_path):
    cases = [
        ([], {}, {}),
        (["--set", "Na.gbar=110mS/cm2", "--set", "n=3", "--duration", "20ms"], {"Na.gbar": 110, "n": 3}, {"duration": 20}),
        (["--engine", "interp", "--dt", "0.025ms", "--duration", "5ms"], {}, dict(engine="interp", dt="25 us", duration=5)),
        (["--precision", "f32", "--duration", "20ms", "--seed", "7"], {}, dict(precision="f32", duration=20, seed=7)),
    ]
    for at, (line, settings, options) in enumerate(cases):
        done = command("run", squid, *line, "--quiet", "-o", tmp_path / f"command{at}.npz")
        assert done.returncode == 0, done.stderr
        result = neuroc.load(squid).set(settings).run(**options)
        assert result.save(tmp_path / f"python{at}.npz") == [tmp_path / f"python{at}.npz"]
        files = [(tmp_path / f"{who}{at}.npz").read_bytes() for who in ("command", "python")]
        assert files[0] == files[1], line
        with np.load(tmp_path / f"command{at}.npz") as archive:
            assert (archive["squid.soma.v"] == result["squid.soma.v"]).all()
            assert archive["squid.soma.v"].dtype == result["squid.soma.v"].dtype
            assert (archive["squid.spikes.t"] == result.spikes["squid"].t).all()
            assert json.loads(str(archive["meta"]))["steps"] == result.meta["steps"]


BRANCHED = """
channel Leak { param gbar = 0.1 mS/cm2; param erev = -65 mV }
cell C {
    section soma { length = 20 um; diam = 20 um; compartments = 1 }
    section dend { from soma(1); length = 100 um; diam = 2 um; compartments = 2 }
    region all { ra = 100 ohm*cm; cm = 1 uF/cm2; v_init = -65 mV; insert Leak }
}
network main { population c: C[2]\n population one: C\n input step: 0.1 nA -> c[1].soma(0.5) }
run { duration = 1 ms; dt = 0.1 ms; method = cnexp; record c.all.v; record one.all.v; record c.soma(0.5).v }
"""


def test_compartments_have_names_and_distances(tmp_path):
    (tmp_path / "m.neuro").write_text(BRANCHED)
    result = neuroc.load(tmp_path / "m.neuro").run(engine="interp")
    names = ["soma(0.5)", "dend(0.25)", "dend(0.75)"]
    for again in (result, neuroc.read(result.save(tmp_path / "r.npz")[0])):
        v = again["c.all.v"]
        assert v.compartments == names * 2 and v.cells.tolist() == [0, 0, 0, 1, 1, 1]
        assert v.distance.tolist() == [0.0, 35.0, 85.0] * 2
        assert (v[:, 3] == again["c.soma(0.5).v"][:, 1]).all() and again["c.soma(0.5).v"].compartments is None
        assert "11 samples of 6 compartments" in repr(v)
        assert pickle.loads(pickle.dumps(v)).compartments == v.compartments
        table = again.to_pandas()
        assert [column[1] for column in table.columns][:4] == [*(f"{name} of cell 0" for name in names), "soma(0.5) of cell 1"]
        assert list(table["one.all.v"].columns) == names
        data = again.to_xarray()
        assert data["one.all.v"].dims == ("time", "one.all.v.compartment")
        assert data["c.all.v.distance"].values.tolist() == v.distance.tolist()


def test_models_and_results_go_to_other_processes(tmp_path):
    (tmp_path / "mine.neuro").write_text("channel Leak { param gbar = 0.1 mS/cm2; param erev = -65 mV }\n")
    text = "use mine.{Leak}\n" + BRANCHED.split("\n", 2)[2]
    (tmp_path / "m.neuro").write_text(text)
    models = [neuroc.load(tmp_path / "m.neuro"), neuroc.parse(text, directory=tmp_path)]
    for model in models:
        model.set("c.all.Leak.erev", [-65.0, -60.0]).set("one.all.cm", "2 uF/cm2")
    packed = [pickle.dumps(model) for model in models]
    # They come back as they were, whatever has become of the files.
    (tmp_path / "mine.neuro").unlink()
    for model, bytes_ in zip(models, packed):
        again = pickle.loads(bytes_)
        assert again.settings == model.settings and again.file == model.file
        result = model.run(engine="interp")
        assert (again.run(engine="interp")["c.all.v"] == result["c.all.v"]).all()
        again.unset()
        assert len(model.settings) == 2
    of_cells = neuroc.parse(NAN).set("c.x", [1.0, 2.0])
    assert pickle.loads(pickle.dumps(of_cells)).states["c.x"].value.tolist() == [1.0, 2.0]
    once_more = pickle.loads(pickle.dumps(result))
    assert list(once_more) == list(result) and repr(once_more) == repr(result)
    assert (once_more["c.all.v"] == result["c.all.v"]).all() and once_more.params.keys() == result.params.keys()
    assert "11 samples of 6 compartments" in repr(once_more)
    sweep = models[0].copy().unset().sweep({"one.all.cm": [1, 2]}, engine="interp")
    assert (pickle.loads(pickle.dumps(sweep))["one.all.v"] == sweep["one.all.v"]).all()
    for copied in (copy.copy(result["c.all.v"]), copy.deepcopy(result["c.all.v"])):
        assert copied.name == "c.all.v" and copied.compartments == result["c.all.v"].compartments
        np.asarray(copied)[:] = 0
        assert (result["c.all.v"] != 0).all()


def test_arrays_give_all_compartments_of_a_cell_their_number(tmp_path):
    def of(erev, v):
        text = BRANCHED.replace("v_init = -65 mV", f"v_init = {v} mV").replace("insert Leak }", f"insert Leak(erev = {erev} mV) }}")
        return neuroc.parse(text).run(engine="interp")["c.all.v"]

    model = neuroc.parse(BRANCHED).set("c.all.Leak.erev", [-65.0, -60.0]).set("c.v", [-70.0, -62.0])
    for engine in ("interp", "native"):
        v = model.run(engine=engine)["c.all.v"]
        np.testing.assert_allclose(v[:, :3], of(-65, -70)[:, :3], rtol=1e-12)
        np.testing.assert_allclose(v[:, 3:], of(-60, -62)[:, 3:], rtol=1e-12)
    with pytest.raises(neuroc.SettingError, match="the population `c` needs"):
        model.set("c.all.Leak.erev", [1.0] * 6)


def test_a_trace_knows_its_time_and_unit(squid):
    result = neuroc.load(squid).set(n=2).run(duration=20)
    v = result["squid.soma.v"]
    assert (v.unit, v.name, v.population, v.shape) == ("mV", "squid.soma.v", "squid", (201, 2))
    assert v.t[[0, -1]].tolist() == [0.0, 20.0] and v.cells.tolist() == [0, 1]
    assert result["v"] is v and result.t is v.t
    # Records that are sampled together share their times, and nothing is a copy.
    assert result["K.n"].t is v.t
    assert v.base is not None and v.base.base is not None
    assert type(v[0]) is np.ndarray and type(v * 2) is np.ndarray and isinstance(v.max(), float)
    assert "201 samples of 2 cells" in repr(v)
    again = pickle.loads(pickle.dumps(v))
    assert (again == v).all() and again.unit == "mV"
    with pytest.raises(KeyError, match="recorded are squid.soma.v"):
        result["w"]
    with pytest.raises(KeyError, match="was not recorded"):
        result["squid.soma"]
    spikes = result.spikes["squid"]
    assert len(spikes) == 2 and spikes.counts.tolist() == [1, 1] and spikes.of(1).tolist() == [spikes.t[1]]
    assert "4 records" not in repr(result) and "squid.soma.v: 201 samples" in repr(result)
    assert "<code>squid.soma.v</code>" in result._repr_html_()


def test_large_results_are_not_copied():
    model = neuroc.parse("cell C { state x = 1; x' = -x / 10 ms } network main { population c: C[100000] }"
                         " run { duration = 20 ms; dt = 0.1 ms; record c.x }")  # fmt: skip
    before = peak()
    result = model.run()
    samples = result["c.x"].nbytes
    assert samples == 201 * 100_000 * 8
    # The samples, and what the cells take; another copy would be 160 MB more.
    assert peak() - before < 1.6 * samples


def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def memory():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))


def test_many_runs_keep_memory_flat(squid):
    model = neuroc.load(squid)

    def runs(count):
        for at in range(count):
            result = model.set("Na.gbar", 100 + at % 7).run(duration=1)
            assert len(result) == 4

    runs(100)
    before = memory()
    runs(1000)
    # A kilobyte a run would be a leak.
    assert memory() - before < 1_000_000


def test_two_threads_run_two_models(squid):
    models = [neuroc.load(squid).set("n", 50), neuroc.parse(NAN.replace("duration = 5", "duration = 0.5"))]
    alone = [model.run()[name] for model, name in zip(models, ["v", "x"])]
    found = [[], []]

    def work(at, name):
        for _ in range(3):
            found[at].append(models[at].run()[name])

    threads = [threading.Thread(target=work, args=arguments) for arguments in [(0, "v"), (1, "x")]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for at in range(2):
        assert len(found[at]) == 3
        assert all((values == alone[at]).all() for values in found[at])


def test_the_interpreter_goes_on_while_a_model_runs(squid):
    model = neuroc.load(squid)
    model.run(duration=1)
    counted = [0]
    over = threading.Event()

    def count():
        while not over.is_set():
            counted[0] += 1
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    before = counted[0]
    result = model.run(duration="20 s", every="1 s")
    after = counted[0]
    over.set()
    counter.join()
    assert result.meta["complete"]
    # Two million steps take longer than a hundred naps.
    assert after - before > 20


INTERRUPTED = """
import neuroc, sys, threading, os, signal
model = neuroc.load(sys.argv[1])
model.run(duration=1)
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    model.run(duration="1e6 s", every="1 s")
except KeyboardInterrupt as stopped:
    result = stopped.result
    assert isinstance(stopped, neuroc.Interrupted) and not result.meta["complete"]
    assert result.meta["steps"] > 1000 and len(result["v"]) == result.meta["steps"] // 100_000 + 1
    print(model.run(duration=1).meta["complete"])
"""


def test_ctrl_c_stops_a_run_and_keeps_what_it_recorded(squid):
    line = [sys.executable, "-c", INTERRUPTED, str(squid)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.returncode) == ("True", 0), done.stderr


def test_ctrl_c_stops_the_command(squid, tmp_path):
    line = [sys.executable, "-m", "neuroc", "run", str(squid), "--duration", "1000000s", "--every", "1s", "-o"]
    running = subprocess.Popen([*line, str(tmp_path / "r.csv")], stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    while not (tmp_path / "r.csv").exists() and running.poll() is None:
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130 and "stopped at t" in said


def test_what_is_not_finite_is_told_with_what_was_before():
    with pytest.raises(neuroc.NotFiniteError, match="became infinite at t = 1") as caught:
        neuroc.parse(NAN).run()
    assert caught.value.code == "NU0601" or caught.value.code.startswith("NU0")
    assert caught.value.line == 2
    result = caught.value.result
    assert not result.meta["complete"] and np.isfinite(result["x"]).all() and len(result["x"]) > 5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (dict(engine="fast"), "there is no engine"),
        (dict(precision="f16"), "there is no precision"),
        (dict(engine="interp", precision="f32"), "f64 only"),
        (dict(engine="native", precision="bf16"), "bf16"),
        (dict(method="euler2"), "the methods are"),
        (dict(duration=-1), "above zero"),
        (dict(duration=float("nan")), "above zero"),
        (dict(duration=[1, 2]), "one time"),
        (dict(threads=0), "needs a thread"),
        (dict(seed=-1), "whole number"),
        (dict(accuracy="1e-3"), "there is no accuracy"),
        (dict(accuracy="1e-9", precision="f32"), "seven digits"),
        (dict(engine="native", device="cuda"), "XLA"),
    ],
)
def test_wrong_options_say_what_to_do(squid, options, said):
    with pytest.raises(neuroc.UsageError, match=said):
        neuroc.load(squid).run(**options)


def test_a_wrong_unit_and_a_wrong_step(squid):
    model = neuroc.load(squid)
    with pytest.raises(neuroc.SettingError, match="is a time, but `3 mV` is a voltage"):
        model.run(duration="3 mV")
    with pytest.raises(neuroc.SettingError, match="not a multiple of dt"):
        model.run(duration=1, dt=0.3)
    with pytest.raises(neuroc.EngineError, match="of memory, but the machine has"):
        model.set(n=4_000_000_000).run()


WITHOUT = """
import neuroc, sys, warnings
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    results = [neuroc.load(sys.argv[1]).run(duration=20, every=1) for _ in range(2)]
print([w.category.__name__ for w in said], [r.meta["options"]["engine"] for r in results])
print(said[0].message, said[0].filename)
"""


def test_without_rustc_another_engine_runs_and_says_so_once(squid, tmp_path):
    environment = {"HOME": str(tmp_path), "PATH": "/nowhere"}
    for name in ("LD_LIBRARY_PATH", "PYTHONPATH"):
        if name in os.environ:
            environment[name] = os.environ[name]
    line = [sys.executable, "-c", WITHOUT, str(squid)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, env=environment)
    first, second = done.stdout.splitlines()
    assert first == "['EngineWarning'] ['interp', 'interp']", done.stderr
    assert "rustup.rs" in second and "hundreds of times" in second and second.endswith("<string>")
    done = subprocess.run([sys.executable, "-c", WITHOUT.replace("run(", "run(engine='native', "), str(squid)],
                          capture_output=True, text=True, timeout=300, env=environment)  # fmt: skip
    assert "EngineError: there is no `rustc` in PATH" in done.stderr
    plugins = os.path.expanduser("~/.cache/neuroc/plugins/cpu")
    if neuroc.XLA and os.path.isdir(plugins):
        (tmp_path / ".cache/neuroc/plugins").mkdir(parents=True)
        os.symlink(plugins, tmp_path / ".cache/neuroc/plugins/cpu")
        done = subprocess.run(line, capture_output=True, text=True, timeout=300, env=environment)
        assert done.stdout.startswith("['EngineWarning'] ['xla', 'xla']"), done.stderr


def test_others_take_results(squid, tmp_path):
    pandas, xarray = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    result = neuroc.load(squid).set(n=2).run(duration=20)
    frame = result.to_pandas()
    assert frame.shape == (201, 8) and frame.index.name == "t" and frame.attrs["units"]["squid.soma.v"] == "mV"
    assert (frame["squid.soma.v"][1].to_numpy() == result["v"][:, 1]).all()
    assert isinstance(frame, pandas.DataFrame)
    assert result.spikes_to_pandas()["cell"].tolist() == [0, 1]
    data = result.to_xarray()
    assert isinstance(data, xarray.Dataset)
    assert data["squid.soma.v"].sel(time=10.0, squid=1) == result["v"][100, 1]
    assert data["squid.soma.v"].attrs["units"] == "mV" and data["squid.spikes.i"].values.tolist() == [0, 1]


def test_records_of_other_times_have_their_own():
    pytest.importorskip("pandas")
    model = neuroc.parse(NAN.replace("duration = 5", "duration = 0.5").replace(
        "record c.x every 0.1 ms", "record c.x every 0.1 ms; record c[1].x every 0.25 ms"))  # fmt: skip
    result = model.run()
    frame = result.to_pandas()
    assert frame.index.tolist() == pytest.approx([0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5]) and frame["c[1].x"][1].count() == 3
    data = result.to_xarray()
    assert data["c.x"].dims == ("time", "c") and data["c[1].x"].dims == ("c[1].x.t", "c[1].x.cell")


def test_a_plot_has_a_panel_for_each_record(squid, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    result = neuroc.load(squid).run()
    figure = result.plot()
    assert len(figure.axes) == 5 and figure.axes[0].get_ylabel() == "squid.soma.v (mV)"
    assert (figure.axes[0].lines[0].get_ydata() == result["v"][:, 0]).all()
    assert len(result.plot("v").axes) == 1
    figure.savefig(tmp_path / "plot.png")


def test_a_missing_package_is_named(squid, monkeypatch):
    result = neuroc.load(squid).run(duration=1)
    for package, call in [("pandas", result.to_pandas), ("xarray", result.to_xarray), ("matplotlib.pyplot", result.plot)]:
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(neuroc.MissingError, match="pip install"):
            call()


def test_a_result_that_was_changed_is_saved_as_it_is(squid, tmp_path):
    result = neuroc.load(squid).run(duration=1)
    np.asarray(result["v"])[0] = 1.5
    result.save(tmp_path / "r.npz")
    assert np.load(tmp_path / "r.npz")["squid.soma.v"][0, 0] == 1.5
    with pytest.raises(neuroc.SaveError, match="must end in .npz"):
        result.save(tmp_path / "r.txt")
    with pytest.raises(neuroc.SaveError, match="cannot write"):
        result.save(tmp_path / "no" / "r.npz")


def test_a_report_is_one_page(squid, tmp_path):
    result = neuroc.load(squid).set({"Na.gbar": 110}).run(duration=20)
    text = result.report()
    assert text.startswith("<!doctype html>") and "squid.neuro" in text and "channel Na" in text.replace("<span class=\"k\">", "").replace("</span>", "")
    assert "computed in" in text and '<tr class="set"><td class="name">squid.soma.Na.gbar' in text
    assert result.report(tmp_path / "r.html") is None
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == text
    result.save(tmp_path / "r.npz")
    again = neuroc.read(tmp_path / "r.npz").report()

    def data(page):
        return page.split('id="data"')[1].split(">", 1)[1].split("</script>")[0]

    assert data(again) == data(text) and "do not hold the text of the model" in again
    np.asarray(result["v"])[0] = 1.5
    assert data(result.report()) != data(text)
    for wrong, said in (("r.txt", "must end in .html"), ("no/r.html", "cannot write")):
        with pytest.raises(neuroc.SaveError, match=said):
            result.report(tmp_path / wrong)


def test_results_come_back_from_files(squid, tmp_path):
    result = neuroc.load(squid).set(n=3).run(duration=20)
    for name in ("r.npz", "folder/"):
        result.save(f"{tmp_path}/{name}")
        again = neuroc.read(f"{tmp_path}/{name}")
        assert sorted(again) == sorted(result) and again.shapes == result.shapes and again.meta == result.meta
        for record, trace in result.items():
            assert (again[record] == trace).all() and (again[record].t == trace.t).all() and again[record].unit == trace.unit
        assert (again.spikes["squid"].t == result.spikes["squid"].t).all() and len(again.spikes["squid"]) == 3
        again.save(tmp_path / "again.npz")
        assert neuroc.read(tmp_path / "again.npz").meta == result.meta
        assert "20 ms in 2000 steps" in repr(again) and "nan" not in repr(again)
    for wrong in (tmp_path / "none.npz", squid):
        with pytest.raises(neuroc.SaveError, match="cannot read"):
            neuroc.read(wrong)


def test_sonata_files_are_read_by_its_own_library(squid, tmp_path):
    import libsonata

    result = neuroc.load(squid).set(n=3).run(duration=20)
    files = result.to_sonata(tmp_path / "sonata")
    assert sorted(path.name for path in files) == sorted(
        ["spikes.h5", *(f"{name}.h5" for name in result)]
    )
    spikes = libsonata.SpikeReader(str(tmp_path / "sonata" / "spikes.h5"))
    assert spikes.get_population_names() == ["squid"] and spikes["squid"].time_units == "ms"
    times = spikes["squid"].get_dict()
    train = result.spikes["squid"]
    assert times["timestamps"].tolist() == train.t.tolist() and times["node_ids"].tolist() == train.i.tolist()
    report = libsonata.SomaReportReader(str(tmp_path / "sonata" / "squid.soma.v.h5"))["squid"]
    v = result["squid.soma.v"]
    assert report.times == pytest.approx((0, 20.1, 0.1)) and report.data_units == "mV"
    frame = report.get(node_ids=[2])
    assert frame.ids.tolist() == [2] and frame.data.shape == (201, 1)
    assert np.abs(frame.data[:, 0] - v[:, 2]).max() < 1e-4
    assert sorted(path.name for path in (tmp_path / "sonata").iterdir()) == sorted(path.name for path in files)
    (tmp_path / "file").write_text("")
    with pytest.raises(neuroc.SaveError, match="cannot write SONATA files"):
        result.to_sonata(tmp_path / "file")


def test_compartments_are_elements_in_sonata(root, tmp_path):
    import libsonata

    result = neuroc.load(root / "examples" / "rallpack3.neuro").run(duration=1, engine="interp")
    result.to_sonata(tmp_path)
    trace = result["squid.all.v"]
    report = libsonata.ElementReportReader(str(tmp_path / "squid.all.v.h5"))["squid"]
    found = report.get(node_ids=[0])
    assert np.asarray(found.data).shape == trace.shape and trace.shape[1] > 1
    assert np.asarray(found.data) == pytest.approx(np.asarray(trace), rel=1e-6)
    assert [element for _, element in np.asarray(found.ids)] == list(range(trace.shape[1]))


def test_spikes_of_sonata_drive_cells(squid, tmp_path):
    import h5py

    result = neuroc.load(squid).set(n=3).run(duration=20)
    result.to_sonata(tmp_path)
    train = result.spikes["squid"]
    path = neuroc.spikes_from_sonata(tmp_path / "spikes.h5", tmp_path / "all.npz")
    arrays = np.load(path)
    assert sorted(arrays) == ["squid.spikes.i", "squid.spikes.t"] and len(train) > 0
    assert sorted(zip(arrays["squid.spikes.t"], arrays["squid.spikes.i"])) == sorted(zip(train.t, train.i))
    model = """
    synapse Count { state n: 1 = 0; n' = 0 / 1 ms; on event(weight) { n += weight } current i = n * 0 nA }
    cell Lif { state v: mV = 0 mV; v' = -v / 1 ms + i_syn / 1 nF }
    network main { population a: Lif[3]; drive a via Count from spikes("all.npz") { weight = 1 } }
    run { duration = 20 ms; dt = 0.01 ms; record a.Count.n }
    """
    counts = neuroc.parse(model, directory=str(tmp_path)).run()["a.Count.n"]
    assert counts[-1].tolist() == train.counts.tolist()
    with h5py.File(tmp_path / "two.h5", "w") as file:
        for name, unit in [("a", "s"), ("b", "fortnights")]:
            times = file.create_dataset(f"spikes/{name}/timestamps", data=[0.5])
            times.attrs["units"] = unit
            file[f"spikes/{name}/node_ids"] = [7]
    arrays = np.load(neuroc.spikes_from_sonata(tmp_path / "two.h5", tmp_path / "a.npz", population="a"))
    assert {name: array.tolist() for name, array in arrays.items()} == {"a.spikes.t": [500.0], "a.spikes.i": [7]}
    for file, wanted, message in [
        ("two.h5", None, "fortnights"),
        ("two.h5", "c", "no spikes of `c`, but of a, b"),
        ("none.h5", None, "cannot read"),
        ("squid.soma.v.h5", None, "has no spikes"),
    ]:
        with pytest.raises(neuroc.SaveError, match=message):
            neuroc.spikes_from_sonata(tmp_path / file, tmp_path / "b.npz", population=wanted)
    assert not (tmp_path / "b.npz").exists()


def test_neo_has_the_same_numbers(squid):
    import quantities as pq

    result = neuroc.load(squid).set(n=2).run(duration=20)
    segment = result.to_neo().segments[0]
    names = {signal.name: signal for signal in segment.analogsignals}
    v = names["squid.soma.v"]
    assert v.units == pq.mV and v.sampling_period.rescale("ms").magnitude == pytest.approx(0.1)
    assert (v.magnitude == result["squid.soma.v"]).all() and names["squid.soma.Na.m"].dimensionality.string == "dimensionless"
    assert [train.annotations["cell"] for train in segment.spiketrains] == [0, 1]
    assert segment.spiketrains[1].magnitude.tolist() == result.spikes["squid"].of(1).tolist()


def test_records_around_spikes_have_gaps(squid, tmp_path):
    text = squid.read_text()
    text = text.replace("record squid.soma.{v, Na.m, Na.h, K.n} every 0.1 ms", "record squid.soma.v every 0.1 ms around spikes of squid from -1 ms to 2 ms")
    result = neuroc.parse(text, directory=str(squid.parent)).run(duration=40)
    (spike,) = result.spikes["squid"].t[:1]
    t = result["squid.soma.v"].t
    assert len(result.spikes["squid"]) >= 2 and (np.diff(t) > 1).any()
    assert t[0] == pytest.approx(np.ceil((spike - 1) * 10 - 1e-6) / 10)
    with pytest.raises(neuroc.UsageError, match="not equally far apart"):
        result.to_sonata(tmp_path)
    assert len(result.to_neo().segments[0].irregularlysampledsignals) == 1
    line = result.plot("v").axes[0].lines[0].get_ydata()
    assert np.isnan(line).sum() == (np.diff(t) > 1).sum() and len(line) > len(t)
    assert not np.isnan(neuroc.load(squid).run(duration=5).plot("v").axes[0].lines[0].get_ydata()).any()


def test_adaptive_steps(squid):
    model = neuroc.load(squid)
    coarse, fine, finer = (model.run(method="adaptive", rtol=tol, atol=tol).spikes["squid"].t for tol in (1e-4, 1e-8, 1e-10))
    assert len(fine) == len(finer) > 0
    off = [np.abs(found - finer).max() for found in (coarse, fine)]
    assert off[1] < 1e-5 < off[0]
    capped = model.run(method="adaptive", rtol=1e-4, max_step="0.1 ms").spikes["squid"].t
    assert (capped != coarse).any()
    for wrong, words in [({"rtol": 2.0}, "between 0 and 1"), ({"atol": "small"}, "between 0 and 1"), ({"max_step": 0}, "above zero")]:
        with pytest.raises(neuroc.UsageError, match=words):
            model.run(method="adaptive", **wrong)


def test_times_that_are_none_are_not_saved(squid, tmp_path):
    for wrong in (float("nan"), float("inf"), -1.0):
        result = neuroc.load(squid).run(duration=2)
        result["v"].t[3] = wrong
        with pytest.raises(neuroc.UsageError, match="do not go backwards"):
            result.save(tmp_path / "r.npz")
        with pytest.raises(neuroc.UsageError, match="do not go backwards"):
            result.report()
    assert not list(tmp_path.iterdir())


def test_spikes_are_saved_by_the_names_of_their_populations(tmp_path):
    (tmp_path / "m.neuro").write_text(
        """cell C { param rate = 0.5; state w = 0; w' = rate / (1 ms); spike when w > 1 { w = 0 } }
        network main { population a: C; population b: C[2]; param b.rate = 1 }
        run { duration = 20 ms; dt = 0.1 ms; record spikes of a; record spikes of b }"""
    )
    model = neuroc.load(tmp_path / "m.neuro")
    result = model.run(engine="interp")
    result.spikes = dict(reversed(result.spikes.items()))
    again = neuroc.read(result.save(tmp_path / "r.npz")[0])
    for name in ("a", "b"):
        assert len(result.spikes[name]) > 0 and again.spikes[name].t.tolist() == result.spikes[name].t.tolist()
    page = result.report()
    result.spikes = dict(reversed(result.spikes.items()))
    assert result.report() == page

    def spoilt(change, words):
        result = model.run(engine="interp")
        change(result.spikes)
        for use in (lambda: result.save(tmp_path / "none.npz"), result.report):
            with pytest.raises(neuroc.UsageError, match=words):
                use()

    spoilt(lambda spikes: spikes.pop("a"), "lacks `a` now")
    spoilt(lambda spikes: spikes.update(c=spikes["a"]), "has `c` now")
    spoilt(lambda spikes: spikes.update(a=dataclasses.replace(spikes["a"], t=spikes["a"].t[1:])), "other lengths")
    spoilt(lambda spikes: spikes["a"].i.__setitem__(0, 1), "those from 0 to 0")
    spoilt(lambda spikes: spikes["b"].i.__setitem__(0, -1), "those from 0 to 1")
    spoilt(lambda spikes: spikes["b"].t.__setitem__(0, np.nan), "finite numbers")
    assert not (tmp_path / "none.npz").exists()


def test_what_is_made_of_a_trace_is_copied_as_an_array(squid):
    v = neuroc.load(squid).run(duration=2)["v"]
    for made in (v.T, v.copy(), v.ravel(), v.astype(np.float32), v.reshape(1, -1)):
        for copied in (pickle.loads(pickle.dumps(made)), pickle.loads(pickle.dumps(made, 2)), copy.copy(made), copy.deepcopy(made)):
            assert type(copied) is np.ndarray and copied.dtype == made.dtype and (copied == np.asarray(made)).all()
            assert not np.shares_memory(copied, v)
    assert copy.copy(v).name == copy.deepcopy(v).name == pickle.loads(pickle.dumps(v)).name == v.name


def test_a_result_is_itself(squid):
    one, other = (neuroc.load(squid).run(duration=2) for _ in range(2))
    assert one == one and one != other and other not in [one] and len({one, other, one}) == 2
