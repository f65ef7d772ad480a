"""Gradients of a small convolutional spiking network with max pooling by PyTorch's automatic differentiation in double precision: of 2 x 2
places of a convolution the largest sum counts, of those that are the same the first, as in `max_pool2d`. Needs torch and snntorch."""

import math

import torch
from torch.nn import functional

from common import store, versions
from snntorch_nets import DT, SURROGATES, TAU, TRIALS
from torch_convolution import CHANNELS, HEIGHT, HIDDEN, OUT, SURROGATE, WIDTH, kernel, pixels

STEPS = 20


def main():
    surrogate, _, _ = SURROGATES[SURROGATE]
    # Spikes between features, too: what is pooled a second time has derivatives in spikes, where sums are often the same.
    first, second, third = kernel((HIDDEN, CHANNELS, 3, 3), 0.3), kernel((HIDDEN, HIDDEN, 1, 1), 0.7), kernel((OUT, HIDDEN, 1, 1), 1.1)
    cells = CHANNELS * HEIGHT * WIDTH
    values = [[0.1 + 0.5 * ((3 * b + 2 * i) % 7) / 7 for i in range(cells)] for b in range(TRIALS)]
    inputs = pixels(torch.tensor(values).reshape(TRIALS, CHANNELS, HEIGHT, WIDTH))
    beta = math.exp(-DT / TAU)

    def neuron(v, drive):
        v = beta * v + drive
        s = surrogate(v - 1.0)
        return s, v - s

    hidden, fewer, out = [torch.zeros(TRIALS, HIDDEN, 2, 3)], [torch.zeros(TRIALS, HIDDEN, 1, 1)], [torch.zeros(TRIALS, OUT, 1, 1)]
    v, w, u = hidden[0], fewer[0], out[0]
    ties = 0
    for step in range(1, STEPS + 1):
        s, v = neuron(v, functional.max_pool2d(functional.conv2d(inputs[step - 1], first, padding=1), 2))
        before = hidden[step - 2] if step >= 2 else hidden[0]
        sums = functional.conv2d(before, second)
        places = sums[..., :2].flatten(2)
        ties += int(((places == places.max(-1, keepdim=True).values).sum(-1) > 1).sum())
        sf, w = neuron(w, functional.max_pool2d(sums, 2))
        so, u = neuron(u, functional.conv2d(fewer[step - 1], third))
        hidden.append(s)
        fewer.append(sf)
        out.append(so)
    counts = sum(out).reshape(TRIALS, -1)
    labels = torch.tensor([b % OUT for b in range(TRIALS)])
    value = functional.cross_entropy(counts, labels)
    value.backward()
    store("torch_max_pooling", {
        "versions": versions("torch", "snntorch"),
        "value": value.item(),
        "spikes": int(sum(s.sum() for s in hidden + fewer + out + inputs).item()),
        "counts": counts.flatten().tolist(),
        "ties": ties,
        "first": first.grad.flatten().tolist(),
        "second": second.grad.flatten().tolist(),
        "third": third.grad.flatten().tolist(),
    })


if __name__ == "__main__":
    main()
