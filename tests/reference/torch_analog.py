"""Gradients of a spiking network whose input are numbers, not spikes, by PyTorch's automatic differentiation in double precision: the sum of a
dense layer with biases and of a convolution with pooling drives leaky cells, whose spikes drive others. Samples stay, or change from frame to frame.
Needs torch."""

import math

import torch

from common import store, versions

torch.set_default_dtype(torch.float64)
WIDTH, HEIGHT, HIDDEN, OUT, TRIALS, STEPS = 4, 4, (2, 2, 2), 3, 3, 20
PIXELS, CELLS = WIDTH * HEIGHT, math.prod(HIDDEN)
BETA = math.exp(-1 / 8)


class Spike(torch.autograd.Function):
    """A step with the derivative of a fast sigmoid, slope 4."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).double()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g / (1 + 4 * x.abs()) ** 2


def numbers(count, phase):
    """Numbers that are not random."""
    return torch.tensor([0.5 * math.sin(1.7 * i + phase) + 0.1 for i in range(count)], requires_grad=True)


def frame(number):
    """Pixels, row by row, of all trials."""
    x = [[0.2 + 2.5 * ((3 * b + 2 * i + 5 * number) % 7) / 7 for i in range(PIXELS)] for b in range(TRIALS)]
    return torch.tensor(x)


def run(frames):
    # [target][source], as projections have it.
    dense, bias, kernel, out = numbers(CELLS * PIXELS, 0.3), numbers(CELLS, 0.9), numbers(2 * 9, 1.3), numbers(OUT * CELLS, 2.0)

    def drive(x):
        grid = x.reshape(TRIALS, 1, HEIGHT, WIDTH)
        convolved = torch.nn.functional.conv2d(grid, kernel.reshape(2, 1, 3, 3), padding=1)
        pooled = torch.nn.functional.avg_pool2d(convolved, 2).reshape(TRIALS, CELLS)
        return x @ dense.reshape(CELLS, PIXELS).T + 0.5 * bias + pooled

    v, u = torch.zeros(TRIALS, CELLS), torch.zeros(TRIALS, OUT)
    hidden, counts, spikes = torch.zeros(TRIALS, CELLS), torch.zeros(TRIALS, OUT), 0
    for step in range(STEPS):
        v = BETA * v + (1 - BETA) * drive(frame(step * frames // STEPS))
        u = BETA * u + hidden @ out.reshape(OUT, CELLS).T
        hidden, last = Spike.apply(v - 1), Spike.apply(u - 1)
        v, u, counts = v - hidden, u - last, counts + last
        spikes += int(hidden.sum() + last.sum())
    value = torch.nn.functional.cross_entropy(counts, torch.arange(TRIALS) % OUT)
    value.backward()
    names = {"dense": dense, "bias": bias, "kernel": kernel, "out": out}
    gradients = {name: values.grad.tolist() for name, values in names.items()}
    return {"frames": frames, "value": value.item(), "spikes": spikes, "counts": counts.flatten().tolist(), **gradients}


if __name__ == "__main__":
    store("torch_analog", {"versions": versions("torch"), "cases": [run(1), run(4)]})
