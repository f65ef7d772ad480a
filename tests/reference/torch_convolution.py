"""Gradients of a small convolutional spiking network by PyTorch's automatic differentiation in double precision: a padded convolution whose
outputs are averaged, and one with steps between its windows and two steps of delay. Needs torch and snntorch."""

import math

import torch
from torch.nn import functional

from common import store, versions
from snntorch_nets import DT, STEPS, SURROGATES, TAU, TRIALS

CHANNELS, HEIGHT, WIDTH = 2, 5, 6
HIDDEN, OUT = 3, 4
SURROGATE = "fast_sigmoid(slope = 4)"


def kernel(sizes, phase):
    """Weights that are no random numbers: [to][from][row][column]."""
    count = math.prod(sizes)
    return torch.tensor([0.5 * math.sin(1.7 * i + phase) + 0.1 for i in range(count)]).reshape(sizes).requires_grad_()


def pixels(x):
    """Spikes [step][trial][channel][row][column] of cells that add up their input."""
    q, spikes = torch.zeros_like(x), [torch.zeros_like(x)]
    for _ in range(STEPS):
        q = q + x * DT
        s = (q > 1.0).double()
        q = q - s
        spikes.append(s)
    return spikes


def main():
    surrogate, _, _ = SURROGATES[SURROGATE]
    first, second = kernel((HIDDEN, CHANNELS, 3, 3), 0.3), kernel((OUT, HIDDEN, 2, 2), 1.1)
    cells = CHANNELS * HEIGHT * WIDTH
    values = [[0.1 + 0.5 * ((3 * b + 2 * i) % 7) / 7 for i in range(cells)] for b in range(TRIALS)]
    inputs = pixels(torch.tensor(values).reshape(TRIALS, CHANNELS, HEIGHT, WIDTH))
    beta = math.exp(-DT / TAU)

    def neuron(v, drive):
        v = beta * v + drive
        s = surrogate(v - 1.0)
        return s, v - s

    hidden, out = [torch.zeros(TRIALS, HIDDEN, 2, 3)], [torch.zeros(TRIALS, OUT, 1, 1)]
    v, u = hidden[0], out[0]
    for step in range(1, STEPS + 1):
        s, v = neuron(v, functional.avg_pool2d(functional.conv2d(inputs[step - 1], first, padding=1), 2))
        before = hidden[step - 2] if step >= 2 else hidden[0]
        so, u = neuron(u, functional.conv2d(before, second, stride=2))
        hidden.append(s)
        out.append(so)
    counts = sum(out).reshape(TRIALS, -1)
    labels = torch.tensor([b % OUT for b in range(TRIALS)])
    value = functional.cross_entropy(counts, labels)
    value.backward()
    store("torch_convolution", {
        "versions": versions("torch", "snntorch"),
        "value": value.item(),
        "spikes": int(sum(s.sum() for s in hidden + out + inputs).item()),
        "counts": counts.flatten().tolist(),
        "first": first.grad.flatten().tolist(),
        "second": second.grad.flatten().tolist(),
    })


if __name__ == "__main__":
    main()
