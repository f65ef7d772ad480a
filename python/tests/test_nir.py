"""NIR: graphs become models and models graphs; spikes are those of frameworks and of NumPy."""

import json
import pathlib

import numpy as np
import pytest

import neuroc

nir = pytest.importorskip("nir")

HERE = pathlib.Path(__file__).parent
DT = 1e-4
QUICK = {"engine": "interp"}


def reference(root, name):
    return json.loads((root / "tests" / "reference" / f"{name}.json").read_text())


# Graphs


def neurons(kind, shape, rng=None, tau=2e-3, tau_syn=1e-3, dt=DT, **other):
    """Neurons, as snnTorch writes them; with random numbers all of them differ."""
    ones = np.ones(shape)
    vary = (lambda: rng.uniform(0.7, 1.4, shape)) if rng is not None else (lambda: ones)
    of = {}
    if kind in ("I", "IF"):
        of["r"] = vary() / dt
    elif kind.startswith("Cuba"):
        of.update(tau_mem=tau * vary(), tau_syn=tau_syn * vary(), r=tau / dt * vary(), v_leak=0.1 * (vary() - 1), w_in=tau_syn / dt * vary())
    else:
        of.update(tau=tau * vary(), r=tau / dt * vary(), v_leak=0.1 * (vary() - 1))
    if kind.endswith("IF"):
        of.update(v_threshold=1.0 * vary(), v_reset=0.1 * (vary() - 1))
    return getattr(nir, kind)(**{**of, **other})


def chain(*nodes):
    """A graph of nodes in a row, with names."""
    named = dict(nodes)
    names = list(named)
    return nir.NIRGraph(named, list(zip(names, names[1:])), type_check=False)


def net(rng, kind="LIF", last=None, sizes=(6, 8, 4), scale=1.0):
    a, b, c = sizes
    return chain(
        ("input", nir.Input(np.array([a]))),
        ("fc1", nir.Affine(weight=scale * rng.normal(0.3, 0.5, (b, a)), bias=scale * rng.normal(0, 0.05, b))),
        ("lif1", neurons(kind, b, rng)),
        ("fc2", nir.Affine(weight=scale * rng.normal(0.2, 0.5, (c, b)), bias=scale * rng.normal(0, 0.05, c))),
        ("lif2", neurons(last or kind, c, rng)),
        ("output", nir.Output(np.array([c]))),
    )


def of_json(told):
    nodes = {}
    for name, node in told["nodes"].items():
        kind, fields = node["type"], {k: v for k, v in node.items() if k != "type"}
        if kind == "NIRGraph":
            nodes[name] = of_json(fields)
        elif kind in ("Input", "Output"):
            nodes[name] = getattr(nir, kind)(np.array(fields["shape"]))
        elif kind == "Flatten":
            nodes[name] = nir.Flatten({"input": np.array(fields["shape"])}, fields["start_dim"], fields["end_dim"])
        elif kind == "AvgPool2d":
            nodes[name] = nir.AvgPool2d(**{k: np.array(v) for k, v in fields.items()})
        else:
            whole = ("stride", "padding", "dilation", "input_shape", "groups")
            nodes[name] = getattr(nir, kind)(**{k: v if k in whole else np.array(v, dtype=np.float32) for k, v in fields.items()})
    return nir.NIRGraph(nodes, [tuple(edge) for edge in told["edges"]], type_check=False)


# The steps of frameworks, in NumPy: all layers in one step, loops one step later


def convolved(x, weight, stride, padding, dilation, groups, bias):
    """A convolution, place by place."""
    dims = x.ndim - 1
    padded = np.pad(x, [(0, 0)] + [(p, q) for p, q in padding])
    spans = [dilation[d] * (weight.shape[2 + d] - 1) + 1 for d in range(dims)]
    outs = [(padded.shape[1 + d] - spans[d]) // stride[d] + 1 for d in range(dims)]
    y = np.zeros((weight.shape[0], *outs))
    inside, each = weight.shape[1], weight.shape[0] // groups
    for channel in range(weight.shape[0]):
        first = channel // each * inside
        for place in np.ndindex(*outs):
            window = tuple(slice(place[d] * stride[d], place[d] * stride[d] + spans[d], dilation[d]) for d in range(dims))
            y[(channel, *place)] = np.sum(padded[(slice(first, first + inside), *window)] * weight[channel]) + bias[channel]
    return y


def both(x, dims):
    return [int(n) for n in (np.atleast_1d(x) if np.size(x) == dims else np.repeat(x, dims))]


def linear(node, x):
    kind = type(node).__name__
    if kind in ("Affine", "Linear"):
        return node.weight @ (np.zeros(node.weight.shape[1]) if np.ndim(x) == 0 else x.ravel()) + (node.bias if kind == "Affine" else 0)
    if kind == "Scale":
        return node.scale * x
    if kind == "Flatten":
        first, last = node.start_dim % x.ndim, node.end_dim % x.ndim
        return x.reshape(*x.shape[:first], -1, *x.shape[last + 1 :])
    if kind in ("SumPool2d", "AvgPool2d"):
        size = both(node.kernel_size, 2)
        weight = np.ones((x.shape[0], 1, *size)) / (np.prod(size) if kind == "AvgPool2d" else 1)
        padding = [(p, p) for p in both(node.padding, 2)]
        return convolved(x, weight, both(node.stride, 2), padding, [1, 1], x.shape[0], np.zeros(x.shape[0]))
    dims = x.ndim - 1
    dilation = both(node.dilation, dims)
    if isinstance(node.padding, str):
        spans = [dilation[d] * (node.weight.shape[2 + d] - 1) for d in range(dims)]
        padding = [(s // 2, s - s // 2) if node.padding == "same" else (0, 0) for s in spans]
    else:
        padding = [(p, p) for p in both(node.padding, dims)]
    return convolved(x, node.weight, both(node.stride, dims), padding, dilation, node.groups, node.bias)


def framework(graph, x, dt=DT, order=None):
    """What each node gives in each step. Edges from a node to one that is not behind it in the order bring what was given in the step before."""
    order = order or list(graph.nodes)
    before = {name: [a for a, b in graph.edges if b == name] for name in graph.nodes}
    given, v, i, past = {}, {}, {}, {name: [] for name in order}
    for frame in x:
        for name in order:
            node, kind = graph.nodes[name], type(graph.nodes[name]).__name__
            if kind == "Input":
                given[name] = np.asarray(frame, dtype=float)
                past[name].append(given[name])
                continue
            coming = 0.0
            for a in before[name]:
                coming = coming + (given[a] if a in given else 0.0 if order.index(a) >= order.index(name) else None)
            if kind == "Delay":
                steps = np.rint(node.delay / dt).astype(int)
                now = len(past[name])
                i.setdefault(name, []).append(coming)
                given[name] = np.array([i[name][now - s].flat[k] if now >= s else 0.0 for k, s in enumerate(steps.ravel())]).reshape(steps.shape)
            elif kind in ("Output", "Flatten") or not hasattr(node, "r"):
                given[name] = coming if kind == "Output" else linear(node, coming)
            else:
                v.setdefault(name, np.array(getattr(node, "v_leak", np.zeros_like(node.r)), dtype=float))
                if kind.startswith("Cuba"):
                    i.setdefault(name, np.zeros_like(v[name]))
                    i[name] = i[name] + dt / node.tau_syn * (node.w_in * coming - i[name])
                    coming = i[name]
                if kind in ("I", "IF"):
                    v[name] = v[name] + dt * node.r * coming
                else:
                    tau = node.tau_mem if kind.startswith("Cuba") else node.tau
                    v[name] = v[name] + dt / tau * (node.v_leak - v[name] + node.r * coming)
                if kind.endswith("IF"):
                    spikes = v[name] > node.v_threshold
                    v[name] = np.where(spikes, node.v_reset, v[name])
                    given[name] = spikes.astype(float)
                else:
                    given[name] = v[name].copy()
            past[name].append(given[name])
    return {name: np.array(rows) for name, rows in past.items()}


def raster(rng, *shape, steps=80, p=0.3):
    return (rng.random((steps, *shape)) < p).astype(float)


def agrees(graph, x, dt=DT, order=None, **how):
    model = neuroc.from_nir(graph, dt=dt * 1e3, unit="s", **how)
    got, expected = model.present(x, **QUICK), framework(graph, x, dt, order)
    for name, rows in got.items():
        if rows.dtype == np.uint8:
            assert 0 < rows.mean() < 1, f"{name} never spikes or always, which shows nothing"
            np.testing.assert_array_equal(rows, expected[name], err_msg=name)
        else:
            np.testing.assert_allclose(rows, expected[name], rtol=1e-12, atol=1e-12, err_msg=name)
    return model


def single(graph):
    """A graph with numbers of single precision, as frameworks write them."""
    for node in graph.nodes.values():
        for key, value in vars(node).items():
            if isinstance(value, np.ndarray) and value.dtype == np.float64:
                setattr(node, key, value.astype(np.float32))
    return graph


def same(a, b, ulps=0):
    """Are graphs equal, to the last bit? Times are counted in other units in between, which rounds numbers of double precision."""
    assert set(a.nodes) == set(b.nodes)
    assert sorted(a.edges) == sorted(b.edges)
    for name, node in a.nodes.items():
        other = b.nodes[name]
        assert type(node) is type(other), name
        for key, value in vars(node).items():
            if key in ("metadata", "input_type", "output_type"):
                continue
            np.testing.assert_array_equal(np.shape(value), np.shape(getattr(other, key)), err_msg=f"{name}.{key}")
            if ulps and key.startswith("tau"):
                np.testing.assert_array_max_ulp(value, getattr(other, key), ulps)
            else:
                np.testing.assert_array_equal(value, getattr(other, key), err_msg=f"{name}.{key}")


# What frameworks answer


def cases():
    return json.loads((HERE.parents[1] / "tests" / "reference" / "nir_frameworks.json").read_text())["cases"]


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case['framework']}: {case['name']}")
def test_spikes_are_those_of_snntorch_and_norse(case):
    model = neuroc.from_nir(of_json(case["graph"]), dt=case["dt_s"] * 1e3, unit="s")
    answer = model.present(np.array(case["x"]), **QUICK)
    last = list(model.names)[-1]
    spikes = np.array(case["spikes"])
    assert spikes.sum() > 20
    np.testing.assert_array_equal(answer[last].reshape(spikes.shape), spikes)


def test_a_trained_network_is_read_by_snntorch(root, tmp_path):
    known = reference(root, "nir_digits")
    for name, values in known["weights"].items():
        np.save(tmp_path / f"{name}.npy", values)
    text = known["model"]
    for name, drawn in [("pixels.hidden", "uniform(-0.125 mV, 0.125 mV)"), ("hidden.out", "uniform(-0.2 mV, 0.2 mV)")]:
        assert f"weight ~ {drawn}" in text
        text = text.replace(f"weight ~ {drawn}", f'weight = file("{name}.Kick.weight.npy") * 1 mV')
    model = neuroc.parse(text, directory=tmp_path)
    # What snnTorch has read is what is written now.
    graph = model.to_nir(tmp_path / "digits.nir")
    assert sorted(map(list, graph.edges)) == sorted(known["edges"])
    assert {n: type(node).__name__ for n, node in graph.nodes.items()} == {n: node["type"] for n, node in known["nodes"].items()}
    for name, node in known["nodes"].items():
        for key, value in node.items():
            if key != "type":
                np.testing.assert_allclose(getattr(graph.nodes[name], key), value, rtol=1e-6, atol=1e-12, err_msg=f"{name}.{key}")
    np.testing.assert_array_equal(nir.read(tmp_path / "digits.nir").nodes["hidden"].tau, graph.nodes["hidden"].tau)
    # And what snnTorch has counted is counted here; two layers answer two steps later.
    for x, counts in zip(known["samples"], known["counts"]):
        out = model.set("pixels.x", np.array(x, dtype=float)).run(duration=2.7, **QUICK).spikes["out"]
        assert np.bincount(out.i, minlength=10).tolist() == counts


# There and back


@pytest.mark.parametrize("kind", ["LIF", "CubaLIF", "IF"])
@pytest.mark.parametrize("x", ["spikes", "currents"])
def test_neurons_take_the_steps_of_nir(kind, x):
    rng = np.random.default_rng(1)
    graph = net(rng, kind, scale=0.25 if kind == "CubaLIF" else 1.0)
    agrees(graph, raster(rng, 6) if x == "spikes" else rng.random((60, 6)))


@pytest.mark.parametrize("kind", ["LI", "CubaLI", "I"])
def test_integrators_are_read_out(kind):
    rng = np.random.default_rng(2)
    model = agrees(net(rng, last=kind), raster(rng, 6))
    assert "record lif2.v" in model.source and "record spikes of {input_1, lif1}" in model.source


@pytest.mark.parametrize("kind", ["LIF", "CubaLIF", "IF", "LI", "CubaLI", "I"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "step"])
def test_a_graph_goes_there_and_back(kind, unit, tmp_path):
    rng = np.random.default_rng(3)
    graph = net(rng, "LIF" if kind in ("LI", "CubaLI", "I") else kind, kind)
    scale = {"s": 1.0, "ms": 1e3, "us": 1e6, "step": 1e4}[unit]
    for node in graph.nodes.values():
        for key in ("tau", "tau_mem", "tau_syn"):
            if hasattr(node, key):
                setattr(node, key, getattr(node, key) * scale)
        if type(node) in (nir.I, nir.IF):
            node.r = node.r / scale
    single(graph)
    model = neuroc.from_nir(graph, dt="0.1 ms", unit=unit)
    same(graph, model.to_nir(tmp_path / "back.nir"))
    same(graph, nir.read(tmp_path / "back.nir"))


def test_numbers_of_double_precision_come_back():
    rng = np.random.default_rng(4)
    for kind in ["LIF", "CubaLIF", "LI", "CubaLI"]:
        graph = net(rng, "CubaLIF" if kind == "CubaLI" else "LIF", kind)
        same(graph, neuroc.from_nir(graph, dt="0.1 ms", unit="s").to_nir(dtype=np.float64), ulps=1)


def test_loops_take_a_step():
    rng = np.random.default_rng(5)
    for kind, scale in [("LIF", 1.0), ("CubaLIF", 0.25)]:
        graph = net(rng, kind, scale=scale)
        # With weights of cells to themselves, and without.
        graph.nodes["rec1"] = nir.Linear(weight=scale * rng.normal(0, 0.4, (8, 8)))
        weight = scale * rng.normal(0, 0.4, (4, 4))
        graph.nodes["rec2"] = nir.Linear(weight=weight - np.diag(np.diag(weight)))
        graph.edges += [("lif1", "rec1"), ("rec1", "lif1"), ("lif2", "rec2"), ("rec2", "lif2")]
        order = ["input", "fc1", "rec1", "lif1", "fc2", "rec2", "lif2", "output"]
        x = raster(rng, 6)
        model = agrees(graph, x, order=order)
        same(graph, model.to_nir(dtype=np.float64), ulps=1)


def test_layers_may_be_skipped():
    rng = np.random.default_rng(6)
    graph = net(rng)
    graph.nodes["skip"] = nir.Linear(weight=rng.normal(0.2, 0.4, (4, 6)))
    graph.edges += [("input", "skip"), ("skip", "lif2")]
    order = ["input", "fc1", "lif1", "fc2", "skip", "lif2", "output"]
    for x in (raster(rng, 6), rng.random((60, 6))):
        model = agrees(graph, x, order=order)
    assert model.late == {"input_1": 0, "lif1": 1, "lif2": 2}
    same(graph, model.to_nir(dtype=np.float64), ulps=1)


def test_delays_are_steps():
    rng = np.random.default_rng(7)
    for delay in (np.full(8, 3e-4), np.arange(8) * 1e-4):
        graph = net(rng)
        graph.nodes["wait"] = nir.Delay(delay=delay)
        graph.edges = [e for e in graph.edges if e != ("lif1", "fc2")] + [("lif1", "wait"), ("wait", "fc2")]
        order = ["input", "fc1", "lif1", "wait", "fc2", "lif2", "output"]
        model = agrees(graph, raster(rng, 6), order=order)
        back = model.to_nir(dtype=np.float64)
        (name,) = [n for n, node in back.nodes.items() if isinstance(node, nir.Delay)]
        np.testing.assert_allclose(back.nodes[name].delay, delay, rtol=1e-9, atol=1e-12)
        assert (name, "fc2") in back.edges


def windows(rng, source, node, target, flat=False):
    last = [("flatten", nir.Flatten({"input": np.array(target)}, 0, -1))] if flat else []
    return chain(
        ("input", nir.Input(np.array(source))),
        ("node", node),
        *last,
        ("lif", neurons("LIF", int(np.prod(target)) if flat else target, rng)),
        ("output", nir.Output(np.array(target))),
    )


def weights(*shape):
    return RNG.normal(0.3, 0.4, shape), RNG.normal(0, 0.05, shape[0])


def conv(size, shape, stride=1, padding=0, dilation=1, groups=1):
    """A convolution whose weight has this shape, `[out, in, window...]`."""
    weight, bias = weights(*shape)
    return (nir.Conv1d if len(shape) == 3 else nir.Conv2d)(size, weight, stride, padding, dilation, groups, bias)


def pool(kind, size, stride, padding=(0, 0)):
    return getattr(nir, kind)(np.array(size), np.array(stride), np.array(padding))


RNG = np.random.default_rng(8)
# What comes, the node, what goes out, and the rule of the language that says it.
WINDOWS = {
    "convolution": ((2, 7, 5), conv((7, 5), (3, 2, 3, 3), padding=1), (3, 7, 5), "convolution(kernel = 3, padding = 1)"),
    "stride": ((2, 7, 5), conv((7, 5), (3, 2, 3, 3), stride=2), (3, 3, 2), "convolution(kernel = 3, stride = 2)"),
    "line": ((2, 9), conv(9, (3, 2, 3), 2, 1), (3, 5), "convolution(kernel = 3, stride = 2, padding = 1)"),
    "same": ((2, 7, 5), conv((7, 5), (3, 2, 3, 3), padding="same"), (3, 7, 5), "convolution(kernel = 3, padding = 1)"),
    "same_even": ((2, 7, 5), conv((7, 5), (3, 2, 2, 2), padding="same"), (3, 7, 5), "edges"),
    "valid": ((2, 7, 5), conv((7, 5), (3, 2, 3, 3), padding="valid"), (3, 5, 3), "convolution(kernel = 3)"),
    "oblong": ((2, 7, 5), conv((7, 5), (3, 2, 3, 2), (2, 1), (0, 1)), (3, 3, 6), "edges"),
    "dilated": ((2, 7, 6), conv((7, 6), (3, 2, 3, 3), dilation=(2, 1)), (3, 3, 4), "edges"),
    "groups": ((4, 6, 5), conv((6, 5), (6, 2, 3, 3), groups=2), (6, 4, 3), "edges"),
    "sum": ((2, 6, 4), pool("SumPool2d", (2, 2), (2, 2)), (2, 3, 2), "pooling(kernel = 2)"),
    "mean": ((2, 7, 5), pool("AvgPool2d", (3, 3), (2, 2), (1, 1)), (2, 4, 3), "pooling(kernel = 3, stride = 2, padding = 1)"),
    "oblong_mean": ((2, 6, 4), pool("AvgPool2d", (3, 2), (3, 2)), (2, 2, 2), "edges"),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name, tmp_path):
    source, node, target, rule = WINDOWS[name]
    rng = np.random.default_rng(9)
    graph = windows(rng, source, node, target)
    model = agrees(graph, raster(rng, *source, p=0.4))
    assert f"rule = {rule}" in model.source
    nir.write(tmp_path / "net.nir", graph)
    again = neuroc.from_nir(tmp_path / "net.nir", dt="0.1 ms", unit="s")
    assert again.source.splitlines()[1:] == model.source.splitlines()[1:]
    for file, content in model.files.items():
        assert np.array_equal(again.files[file], content)
    if rule == "edges":
        # Not a rule of the language: a matrix with the same effect.
        matrix = model.to_nir(dtype=np.float64).nodes["node"].weight
        zero = linear(node, np.zeros(source))
        for place in rng.integers(0, np.prod(source), 10):
            x = np.zeros(source)
            x.flat[place] = 1
            np.testing.assert_allclose(matrix[:, place], (linear(node, x) - zero).ravel(), atol=1e-12)
    elif name not in ("same", "valid"):
        back = model.to_nir(dtype=np.float64)
        assert set(back.nodes) == set(graph.nodes) and type(back.nodes["node"]) is type(node)
        for key in ("weight", "bias", "stride", "padding", "kernel_size"):
            if hasattr(node, key):
                np.testing.assert_array_equal(np.ravel(getattr(back.nodes["node"], key)), np.ravel(getattr(node, key)))
    assert agrees(windows(rng, source, node, target, flat=True), raster(rng, *source, p=0.4))


def test_scales_and_direct_edges():
    rng = np.random.default_rng(10)
    graph = chain(
        ("input", nir.Input(np.array([5]))),
        ("scale", nir.Scale(scale=rng.uniform(0.3, 0.9, 5))),
        ("lif1", neurons("LIF", 5, rng)),
        ("lif2", neurons("LIF", 5, rng, v_threshold=np.full(5, 1.5))),
        ("output", nir.Output(np.array([5]))),
    )
    model = agrees(graph, raster(rng, 5, p=0.6))
    assert "rule = one_to_one; weight = 1 uA" in model.source
    back = model.to_nir(dtype=np.float64)
    assert ("lif1", "lif2") in back.edges


def test_one_number_stands_for_all_neurons():
    rng = np.random.default_rng(11)
    graph = net(rng)
    graph.nodes["lif1"] = neurons("LIF", (1,))
    whole = net(rng)
    whole.nodes.update(fc1=graph.nodes["fc1"], fc2=graph.nodes["fc2"], lif2=graph.nodes["lif2"], lif1=neurons("LIF", (8,)))
    x = raster(rng, 6)
    one, all_of_them = (neuroc.from_nir(g, dt="0.1 ms", unit="s").present(x, **QUICK) for g in (graph, whole))
    np.testing.assert_array_equal(one["lif2"], all_of_them["lif2"])


def test_a_folder_runs(tmp_path):
    rng = np.random.default_rng(12)
    graph = net(rng)
    for name in ("fc1", "fc2"):
        # Biases begin at once in a run, and when the first step reaches a layer in a framework.
        graph.nodes[name].bias[:] = 0
    nir.write(tmp_path / "net.nir", graph)
    x = raster(rng, 6)
    model = neuroc.from_nir(tmp_path / "net.nir", dt="0.1 ms", unit="s", spikes=x)
    assert model.doc.startswith("`net.nir`, from NIR")
    file = model.save(tmp_path / "folder")
    del model
    loaded = neuroc.load(file)
    result = loaded.run(**QUICK)
    expected = framework(graph, x)
    for name, late in [("lif1", 1), ("lif2", 2)]:
        train = result.spikes[name]
        steps = np.rint(train.t / 0.1).astype(int)
        rows = np.zeros((len(x) + 4, train.cells))
        # The spikes of a file come a step late, behind the first one of the cell that sends them; step 0 ends at 0.1 ms.
        rows[steps - 2 - late, train.i] = 1
        np.testing.assert_array_equal(rows[: len(x)], expected[name])
    assert sorted(p.name for p in (tmp_path / "folder").iterdir())[:2] == ["input_1.lif1.npy", "input_1.spikes.csv"]
    # Weights of a file are there to be learnt from.
    back = loaded.to_nir(inputs=["input_1"], dtype=np.float64)
    np.testing.assert_array_equal(back.nodes["lif1.lif2"].weight, graph.nodes["fc2"].weight)
    np.testing.assert_array_max_ulp(back.nodes["lif1"].tau, graph.nodes["lif1"].tau, 1)


# Networks of other origin

NET = """
cell Pixel {{ param x = 1  state q = 0  q' = x / 4 ms  spike when q > 1 {{ q -= 1 }} }}
cell Leaky {{
    param tau = 10 ms  param rest = 0.2 mV
    state v: mV = rest
    v' = (rest - v) / tau
    spike when v >= 1 mV {{ v = 0.1 mV }}
}}
synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
network main {{
    population pixels: Pixel[6]
    population hidden: Leaky[5]
    population out: Leaky[3]
    param out.tau = 5 ms
    param hidden.tau ~ uniform(5 ms, 15 ms)
    connect pixels -> hidden via Kick {{ rule = all_to_all; weight ~ uniform(0 mV, 0.6 mV); delay = 1 ms }}
    connect hidden -> hidden via Kick {{ rule = all_to_all; weight ~ uniform(-0.3 mV, 0.3 mV); delay = 1 ms }}
    connect hidden -> out via Kick {{ rule = all_to_all; weight ~ uniform(0 mV, 0.6 mV); delay = 3 ms }}
}}
run {{ duration = 80 ms; dt = 1 ms; method = {method}; record spikes of {{pixels, hidden, out}} }}
"""


@pytest.mark.parametrize("method", ["euler", "exp_euler", "cnexp", "exact", "crank_nicolson", "heun", "rk4"])
def test_frameworks_take_the_steps_of_a_model(method):
    model = neuroc.parse(NET.format(method=method))
    model.set("pixels.x", np.linspace(0.5, 2, 6))
    result = model.run(**QUICK)
    rows = {}
    for name, train in result.spikes.items():
        rows[name] = np.zeros((81, train.cells))
        rows[name][np.rint(train.t).astype(int), train.i] = 1
    graph = model.to_nir(dtype=np.float64)
    assert [type(graph.nodes[n]).__name__ for n in ("pixels", "hidden", "out")] == ["Input", "LIF", "LIF"]
    # Three steps from layer to layer are one that a framework does not have, and a delay of two.
    np.testing.assert_allclose(graph.nodes["hidden.out.delay"].delay, 2e-3)
    order = ["pixels", "pixels.hidden", "hidden.hidden", "hidden", "hidden.out.delay", "hidden.out", "out", "output"]
    expected = framework(graph, rows["pixels"][1:], 1e-3, order)
    for name, late in [("hidden", 1), ("out", 2)]:
        assert rows[name].sum() > 10
        np.testing.assert_array_equal(rows[name][1 + late :], expected[name][: 80 - late], err_msg=name)
    as_written = model.to_nir(steps=False, dtype=np.float64)
    np.testing.assert_array_equal(as_written.nodes["out"].tau, 5e-3)
    if method != "euler":
        assert abs(graph.nodes["out"].tau[0] - 5e-3) > 1e-6


def test_currents_of_the_library_are_nirs():
    text = """
    use std.synapses.{ExpCurr}
    cell Lif { param tau = 10 ms  param c = 100 pF  state v: mV = 0 mV  v' = -v / tau - i_syn / c  spike when v > 1 mV { v = 0 mV } }
    cell Source { state v: mV = 0 mV  v' = 0 /ms * v  spike when v > 0.5 mV { v = 0 mV } }
    network main {
        population trains: Source[4]
        population cells: Lif[3]
        connect trains -> cells via ExpCurr(tau = 5 ms) { rule = all_to_all; weight ~ uniform(-10 pA, 40 pA); delay = 0.5 ms }
    }
    run { duration = 50 ms; dt = 0.5 ms; method = euler; record spikes of {trains, cells} }
    """
    model = neuroc.parse(text)
    graph = model.to_nir(dtype=np.float64)
    cuba = graph.nodes["cells"]
    assert type(cuba).__name__ == "CubaLIF"
    np.testing.assert_allclose([cuba.tau_syn[0], cuba.tau_mem[0], cuba.v_threshold[0]], [5e-3, 10e-3, 1.0])
    # The current of such a synapse reaches the potential a step later than in NIR.
    (delay,) = [node for node in graph.nodes.values() if isinstance(node, nir.Delay)]
    np.testing.assert_allclose(delay.delay, 0.5e-3)
    x = raster(np.random.default_rng(13), 4, steps=100)
    expected = framework(graph, x, 5e-4, ["trains", "trains.cells.delay", "trains.cells", "cells", "output"])["cells"]
    got = np.zeros_like(expected)
    with model.simulator(**QUICK) as run:
        for step in range(101):
            if step < 100:
                run["trains.v"] = x[step]
            run.step()
            if step:
                got[step - 1, run.spikes("cells")[1]] = 1
    assert got.sum() > 20
    np.testing.assert_array_equal(got, expected)


def test_a_trained_convolution_becomes_one(root):
    model = neuroc.load(root / "examples" / "digits_convolution.neuro")
    with pytest.warns(neuroc.ModelWarning, match="NIR has no reset that subtracts"):
        graph = model.to_nir()
    kinds = [type(node).__name__ for node in graph.nodes.values()]
    assert "Conv2d" in kinds and "AvgPool2d" in kinds and "Flatten" in kinds
    # Shapes fit from node to node.
    nir.NIRGraph(graph.nodes, graph.edges, type_check=True)


def test_receptors_that_add_differently_have_their_weights_scaled():
    text = """
    cell Source { state v: mV = 0 mV  v' = 0 /ms * v  spike when v > 0.5 mV { v = 0 mV } }
    cell Leaky { state v: mV = 0 mV  v' = -v / 5 ms  spike when v > 1 mV { v = 0 mV } }
    synapse Kick { param gain = 1  on event(weight: mV) { v += gain * weight } }
    network main {
        population a: Source[4]
        population b: Source[3]
        population cells: Leaky[3]
        param cells.second.gain = -0.5 * (index + 1)
        connect a -> cells via Kick as first { rule = all_to_all; weight ~ uniform(0 mV, 0.8 mV); delay = 0.1 ms }
        connect b -> cells via Kick as second(gain = 2) { rule = probability(p = 0.5); weight ~ uniform(0 mV, 0.3 mV); delay = 0.1 ms }
    }
    run { duration = 10 ms; dt = 0.1 ms; method = euler; record spikes of cells }
    """
    model = neuroc.parse(text)
    graph = model.to_nir(dtype=np.float64)
    assert [n for n, node in graph.nodes.items() if isinstance(node, nir.Input)] == ["a", "b"]
    rng = np.random.default_rng(16)
    x = {"a": raster(rng, 4), "b": raster(rng, 3)}
    # There and back again: the graph is read, with both of its inputs.
    again = neuroc.from_nir(graph, dt="0.1 ms", unit="s").present(x, **QUICK)["cells"]
    got = np.zeros_like(again)
    with model.simulator(**QUICK) as run:
        for step in range(81):
            for name in x:
                if step < 80:
                    run[f"{name}.v"] = x[name][step]
            run.step()
            if step:
                got[step - 1, run.spikes("cells")[1]] = 1
    assert got.sum() > 20
    np.testing.assert_array_equal(again, got)
    with pytest.raises(neuroc.UsageError, match="2 Inputs: a, b; give a dict"):
        neuroc.from_nir(graph, dt="0.1 ms", unit="s").present(x["a"])


# What cannot be said


def refused(graph, **how):
    with pytest.raises(neuroc.UsageError) as caught:
        neuroc.from_nir(graph, **{"dt": "0.1 ms", "unit": "s", **how})
    return str(caught.value)


def test_all_nodes_that_cannot_be_carried_are_told():
    rng = np.random.default_rng(14)
    graph = net(rng)
    graph.nodes["step"] = nir.Threshold(threshold=np.ones(6))
    graph.nodes["wide"] = nir.Linear(weight=np.ones((2, 3, 4)))
    said = refused(graph)
    assert "`step` (Threshold)" in said and "`wide` (Linear): its weight has 3 dimensions" in said
    graph = net(rng, last="LI")
    graph.nodes["again"] = neurons("LIF", 4)
    graph.edges += [("lif2", "again")]
    graph.nodes["readout"] = nir.Linear(weight=np.ones((2, 8)))
    graph.nodes["out2"] = nir.Output(np.array([2]))
    graph.edges += [("lif1", "readout"), ("readout", "out2")]
    said = refused(graph)
    assert "`lif2` (LI): its potential goes to `again` (LIF)" in said
    assert "`out2` (Output): what `lif1` (LIF) sends comes there through `readout` (Linear) without a neuron" in said
    assert "no neurons" in refused(chain(("input", nir.Input(np.array([3]))), ("output", nir.Output(np.array([3])))))


def test_nodes_may_have_any_names():
    rng = np.random.default_rng(17)
    graph = net(rng)
    x = raster(rng, 6)
    expected = neuroc.from_nir(graph, dt="0.1 ms", unit="s").present(x, **QUICK)["lif2"]
    for first, last in [("0", "1"), ("spikes", "trains"), ("a.b", "a_b"), ("Lif", "Pulse"), ("init", "train"), ("\n}", "ü")]:
        named = {"input": "t", "lif1": first, "lif2": last}
        nodes = {named.get(name, name): node for name, node in graph.nodes.items()}
        other = nir.NIRGraph(nodes, [tuple(named.get(n, n) for n in edge) for edge in graph.edges], type_check=False)
        model = neuroc.from_nir(other, dt="0.1 ms", unit="s", spikes=x)
        np.testing.assert_array_equal(model.present(x, **QUICK)[last], expected)
        same(other, model.to_nir(dtype=np.float64), ulps=1)


def test_odd_graphs_are_told():
    rng = np.random.default_rng(15)
    graph = net(rng)
    assert "shorter than the time step of 0.1 ms; is `unit` the unit" in refused(graph, unit="ms")
    assert '`unit` is "s", "ms", "us" or "step"' in refused(graph, unit="h")
    assert "0.1 parsec" in refused(graph, dt="0.1 parsec")
    assert "above zero" in refused(graph, dt=0)
    assert "not int" in refused(3)
    graph.nodes["back"] = nir.Linear(weight=np.ones((8, 4)))
    graph.edges += [("lif2", "back"), ("back", "lif1")]
    assert "`lif2` leads back to `lif1`, 1 layers before it" in refused(graph)
    graph = net(rng)
    graph.nodes["fc2"].weight = np.ones((4, 7))
    assert "`fc2` (Affine) takes 7 numbers" in refused(graph)
    graph = net(rng)
    graph.nodes["fc2"].weight = np.ones((5, 8))
    graph.nodes["fc2"].bias = np.ones(5)
    assert "`lif2` (LIF) has the shape (4,), but (5,) come from `lif1`" in refused(graph)
    graph = net(rng)
    graph.edges += [("lif1", "nowhere")]
    assert "names `nowhere`" in refused(graph)
    graph = net(rng)
    graph.nodes["lif1"].tau[2] = np.nan
    assert "tau is not finite" in refused(graph)
    graph = net(rng)
    graph.nodes["lif1"].r = np.ones(5)
    assert "of `lif1` (LIF) have shapes that do not fit: tau (8,), r (5,)" in refused(graph)
    graph = net(rng)
    graph.nodes["fc1"].weight[0, 0] = np.inf
    assert "`fc1` (Affine): weight is not finite everywhere" in refused(graph)
    model = neuroc.from_nir(net(rng), dt="0.1 ms", unit="s")
    with pytest.raises(neuroc.UsageError, match=r"\[step, 6\], not \(10, 5\)"):
        model.present(np.ones((10, 5)))
    graph = net(rng)
    graph.nodes["wait"] = nir.Delay(delay=np.full(6, 2e-4))
    graph.edges = [("input", "wait"), ("wait", "fc1"), *[e for e in graph.edges if e[0] != "input"]]
    with pytest.raises(neuroc.UsageError, match="through a Delay, which delays spikes and not currents"):
        neuroc.from_nir(graph, dt="0.1 ms", unit="s").present(np.full((5, 6), 0.5))
    assert "not all 0 or 1" in refused(net(rng), spikes=np.full((10, 6), 0.5))


def test_a_file_that_is_none(tmp_path):
    (tmp_path / "bad.nir").write_text("no")
    for name in ("bad.nir", "absent.nir"):
        with pytest.raises(neuroc.SaveError, match=f"`{name}` cannot be read as NIR"):
            neuroc.from_nir(tmp_path / name, dt="0.1 ms", unit="s")


CELLS = {
    "v' = -v / 10 ms + 1 /ms/mV * v * v": "not linear in `cells.v`",
    "v' = -v / 10 ms + 1 mV/ms * sin(t / 1 ms)": "depends on the time",
    "state w: mV = 0 mV  w' = (v - w) / 5 ms  v' = -v / 10 ms - w / 1 ms": "are not a current that decays",
    "state w: mV = 0 mV  state u: mV = 0 mV  u' = -u / 1 ms  w' = -w / 5 ms  v' = -v / 10 ms - w / 1 ms": "it has 3 states",
    "v' = v / 10 ms": "does not decay",
}


@pytest.mark.parametrize("equations", CELLS)
def test_cells_that_are_no_nodes_are_told(equations):
    text = """
    cell Source {{ state v: mV = 0 mV  v' = 0 /ms * v  spike when v > 0.5 mV {{ v = 0 mV }} }}
    cell Strange {{ state v: mV = 0 mV  {0}  spike when v > 1 mV {{ {1} }} }}
    synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
    network main {{
        population trains: Source[2]
        population cells: Strange[2]
        connect trains -> cells via Kick {{ rule = all_to_all; weight = 1 mV; delay = 1 ms }}
    }}
    run {{ duration = 5 ms; dt = 0.1 ms; record cells.v }}
    """
    with pytest.raises(neuroc.UsageError) as caught:
        neuroc.parse(text.format(equations, "v = 0 mV")).to_nir()
    assert "population `cells` (cell `Strange`)" in str(caught.value) and CELLS[equations] in str(caught.value)
    with pytest.raises(neuroc.UsageError, match="refractory time"):
        neuroc.parse(text.format("v' = -v / 10 ms", "v = 0 mV; refractory 2 ms")).to_nir()


def test_models_that_are_no_networks_of_such_cells_are_told(squid, root):
    with pytest.raises(neuroc.UsageError, match="population `squid` \\(cell `Squid`\\)"):
        neuroc.load(squid).to_nir()
    with pytest.raises(neuroc.UsageError, match="its synapses remember"):
        neuroc.load(root / "examples" / "stdp.neuro").to_nir()
    model = neuroc.parse(NET.format(method="euler"))
    with pytest.raises(neuroc.UsageError, match='no population "nobody"'):
        model.to_nir(inputs=["nobody"])
    with pytest.raises(neuroc.UsageError, match="unit"):
        model.to_nir(unit="h")


def test_adaptive_steps_have_no_time_constants():
    text = """
    cell Leaky { state v: mV = 0 mV  v' = -v / 10 ms  spike when v > 1 mV { v = 0 mV } }
    network main { population cells: Leaky[2] }
    run { duration = 5 ms; dt = 0.1 ms; method = adaptive; record cells.v }
    """
    with pytest.raises(neuroc.UsageError, match="steps=False"):
        neuroc.parse(text).to_nir()
    assert any(isinstance(node, nir.LIF) for node in neuroc.parse(text).to_nir(steps=False).nodes.values())
