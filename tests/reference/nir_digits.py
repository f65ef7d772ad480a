"""A network that neuroc has trained on handwritten digits, exported to NIR and read by snnTorch: how often each of its output cells spikes for some samples.
Needs neuroc, torch, snntorch and nir. The weights are neuroc's, the counts snnTorch's."""

import pathlib
import tempfile

import neuroc
import nir
import numpy as np
import torch
from snntorch.import_nir import import_from_nir

from common import HERE, store, versions

DATA = HERE.parents[1] / "examples" / "data" / "digits.npz"
STEPS, SHOWN = 25, 60

# examples/digits.neuro with a reset to 0, which NIR has, and fewer cells. snnTorch reads NIR with steps of 0.1 ms.
MODEL = """\
cell Pixel {
    param x = 8
    state q = 0
    q' = x / 3.2 ms
    spike when q > 1 { q -= 1 }
}

cell Leaky {
    param tau = 1 ms
    state v: mV = 0 mV
    v' = -v / tau
    spike when v > 1 mV { v = 0 mV }
}

synapse Kick { on event(weight: mV) { v += weight } }

network main {
    population pixels: Pixel[64]
    population hidden: Leaky[20]
    population out: Leaky[10]
    connect pixels -> hidden via Kick { rule = all_to_all; weight ~ uniform(-0.125 mV, 0.125 mV); delay = 0.1 ms }
    connect hidden -> out via Kick { rule = all_to_all; weight ~ uniform(-0.2 mV, 0.2 mV); delay = 0.1 ms }
}

run {
    duration = 2.5 ms
    dt = 0.1 ms
    seed = 1
    record spikes of {pixels, hidden, out}
}
"""
TRAIN = """
train {
    data = "digits.npz"
    input = pixels.x
    learn {pixels.hidden, hidden.out}.Kick.weight
    loss = cross_entropy(spike_count(out))
    optimizer = adam(lr = 4e-3)
    surrogate = fast_sigmoid(slope = 5)
    epochs = 12
}
"""


def pixels(x):
    """Spikes `[step, pixel]` of cells that add up their brightness."""
    q, spikes = np.zeros(len(x)), []
    for _ in range(STEPS):
        q = q + x / 3.2 * 0.1
        s = q > 1
        q = q - s
        spikes.append(s.astype(np.float32))
    return np.array(spikes)


def main():
    data = np.load(DATA)
    model = neuroc.parse(MODEL + TRAIN, directory=DATA.parent)
    trained = model.train()
    score = trained.history[-1].test
    model.take(trained)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "digits.nir"
        model.to_nir(file)
        graph = nir.read(file)
    net = import_from_nir(graph)
    samples = data["x"][:SHOWN].astype(float)
    counts = []
    with torch.no_grad():
        for x in samples:
            for part in net.modules():
                if hasattr(part, "reset_mem"):
                    part.reset_mem()
            state, total = None, np.zeros(10, dtype=int)
            for frame in pixels(x):
                answer = net(torch.tensor(frame[None]), state)
                spikes, state = answer if isinstance(answer, tuple) else (answer, None)
                total += spikes.numpy()[0].astype(int)
            counts.append(total.tolist())
    right = float(np.mean(np.argmax(counts, axis=1) == data["y"][:SHOWN]))
    nodes = {
        name: {"type": type(node).__name__, **{k: np.asarray(v).tolist() for k, v in vars(node).items() if isinstance(v, np.ndarray)}}
        for name, node in graph.nodes.items()
    }
    store(
        "nir_digits",
        {
            "versions": versions("torch", "snntorch", "nir", "neuroc"),
            "model": MODEL,
            "weights": {name: values.tolist() for name, values in trained.weights.items()},
            "nodes": nodes,
            "edges": [list(edge) for edge in graph.edges],
            "samples": samples.astype(int).tolist(),
            "counts": counts,
            "cross_check": {"test_accuracy": score.accuracy, "right_of_those_shown": right},
        },
    )


if __name__ == "__main__":
    main()
