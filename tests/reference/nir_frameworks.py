"""Spikes of NIR graphs as snnTorch and Norse read them, on random spikes and random currents. Needs torch, snntorch, norse and nir.

The graphs are stored with the spikes. Loops are in a graph of their own: in a flat graph snnTorch 1.0.0 sends what comes from outside through the weights of the
loop. Both run in single precision, which is why graphs have numbers of it; no potential here comes so near to a threshold that it matters."""

import copy
import json

import nir
import norse.torch
import numpy as np
import torch
from snntorch.import_nir import import_from_nir

from common import store, versions

DT, STEPS = 1e-4, 60
RNG = np.random.default_rng(20)


def single(x):
    return np.asarray(x, dtype=np.float32)


def cells(kind, shape, dt=DT, tau=2e-3, tau_syn=1e-3, unit_r=False):
    """Neurons whose inputs are not scaled, as snnTorch writes them, or with a resistance of 1, as Norse reads them."""
    ones = np.ones(shape)
    of = {"r": (1.0 if unit_r else tau / dt) * ones, "v_leak": 0 * ones, "v_threshold": ones, "v_reset": 0 * ones}
    if kind == "LIF":
        of["tau"] = tau * ones
    else:
        of.update(tau_mem=tau * ones, tau_syn=tau_syn * ones, w_in=tau_syn / dt * ones)
    return getattr(nir, kind)(**{key: single(value) for key, value in of.items()})


def affine(rows, columns, mean, sd):
    return nir.Affine(weight=single(RNG.normal(mean, sd, (rows, columns))), bias=single(RNG.normal(0, 0.05, rows)))


def dense(kind, loop, **how):
    scale = (20.0 if how.get("unit_r") else 1.0) * (0.2 if kind == "CubaLIF" else 1.0)
    nodes = {
        "input": nir.Input(np.array([6])),
        "fc1": affine(8, 6, 0.3 * scale, 0.5 * scale),
        "lif1": cells(kind, 8, **how),
        "fc2": affine(4, 8, 0.2 * scale, 0.5 * scale),
        "lif2": cells(kind, 4, **how),
        "output": nir.Output(np.array([4])),
    }
    if loop:
        inside = {
            "input": nir.Input(np.array([8])),
            "lif": nodes["lif1"],
            "w_rec": nir.Linear(weight=single(RNG.normal(0, 0.4, (8, 8)))),
            "output": nir.Output(np.array([8])),
        }
        nodes["lif1"] = nir.NIRGraph(inside, [("input", "lif"), ("lif", "w_rec"), ("w_rec", "lif"), ("lif", "output")])
    names = list(nodes)
    return nir.NIRGraph(nodes, list(zip(names, names[1:])))


def convolved():
    def conv(size, to, of, sd, **how):
        weight, bias = single(RNG.normal(0.15, sd, (to, of, 3, 3))), single(RNG.normal(0, 0.02, to))
        return nir.Conv2d(input_shape=size, weight=weight, dilation=(1, 1), groups=1, bias=bias, **how)

    nodes = {
        "input": nir.Input(np.array([2, 8, 6])),
        "conv1": conv((8, 6), 3, 2, 0.2, stride=(1, 1), padding=(1, 1)),
        "lif1": cells("LIF", (3, 8, 6)),
        "pool": nir.AvgPool2d(kernel_size=np.array([2, 2]), stride=np.array([2, 2]), padding=np.array([0, 0])),
        "conv2": conv((4, 3), 4, 3, 0.3, stride=(2, 1), padding=(1, 0)),
        "lif2": cells("LIF", (4, 2, 1)),
        "flatten": nir.Flatten({"input": np.array([4, 2, 1])}, start_dim=0, end_dim=-1),
        "fc": affine(3, 8, 0.3, 0.5),
        "lif3": cells("LIF", 3),
        "output": nir.Output(np.array([3])),
    }
    names = list(nodes)
    return nir.NIRGraph(nodes, list(zip(names, names[1:])))


def told(graph):
    """A graph as JSON has it."""
    nodes = {}
    for name, node in graph.nodes.items():
        kind = type(node).__name__
        if kind == "NIRGraph":
            nodes[name] = {"type": kind, **told(node)}
        elif kind in ("Input", "Output"):
            nodes[name] = {"type": kind, "shape": node.input_type["input"].tolist()}
        else:
            fields = {k: v for k, v in vars(node).items() if k not in ("metadata", "input_type", "output_type")}
            if kind == "Flatten":
                fields["shape"] = node.input_type["input"]
            nodes[name] = {"type": kind, **{k: np.asarray(v).tolist() for k, v in fields.items()}}
    return {"nodes": nodes, "edges": [list(e) for e in graph.edges]}


def answers(net, x):
    state, out = None, []
    for frame in x:
        answer = net(torch.tensor(frame, dtype=torch.float32), state)
        spikes, state = answer if isinstance(answer, tuple) else (answer, None)
        out.append(spikes.detach().numpy().ravel().astype(int))
    return np.array(out)


def case(name, framework, graph, dt, x):
    if framework == "snntorch":
        net = import_from_nir(copy.deepcopy(graph))
    else:
        net = norse.torch.from_nir(copy.deepcopy(graph), dt=dt, ignore_warnings=True)
    with torch.no_grad():
        spikes = answers(net, x)
    assert 0.02 < spikes.mean() < 0.98, (name, spikes.mean())
    return {"name": name, "framework": framework, "dt_s": dt, "graph": told(graph), "x": x.tolist(), "spikes": spikes.tolist()}


def spikes(*shape, p=0.3):
    return (RNG.random((STEPS, *shape)) < p).astype(int)


def currents(*shape):
    return single(RNG.random((STEPS, *shape)))


def main():
    cases = []
    for kind in ("LIF", "CubaLIF"):
        for loop in (False, True):
            graph = dense(kind, loop)
            name = f"{kind}{' with a loop' if loop else ''}"
            cases.append(case(f"{name}, spikes", "snntorch", graph, DT, spikes(6)))
            cases.append(case(f"{name}, currents", "snntorch", graph, DT, currents(6)))
    cases.append(case("convolutions, spikes", "snntorch", convolved(), DT, spikes(2, 8, 6, p=0.2)))
    norse_lif = dense("LIF", False, dt=1e-3, tau=2e-2, unit_r=True)
    cases.append(case("LIF, spikes", "norse", norse_lif, 1e-3, spikes(6)))
    norse_cuba = dense("CubaLIF", False, dt=1e-3, tau=2e-2, tau_syn=1e-2, unit_r=True)
    cases.append(case("CubaLIF, spikes", "norse", norse_cuba, 1e-3, spikes(6)))
    store("nir_frameworks", {"versions": versions("torch", "snntorch", "norse", "nir"), "cases": json.loads(json.dumps(cases))})


if __name__ == "__main__":
    main()
