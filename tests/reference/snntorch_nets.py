"""Gradients of a small recurrent spiking network by PyTorch's automatic differentiation in double precision, with surrogates that are
compared with snnTorch's. A spike resets in the step in which it is sent. Needs torch and snntorch."""

import math

import snntorch
import snntorch.functional as SF
import torch

from common import store, versions

torch.set_default_dtype(torch.float64)
PIXELS, HIDDEN, OUT, TRIALS, STEPS = 5, 4, 3, 3, 20
DT, TAU = 1.0, 8.0


def spiking(slope):
    """A step function in double precision, with a derivative that is told; snnTorch's own ones are in single precision."""

    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (x > 0).double()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * slope(x)

    return Spike.apply


SURROGATES = {
    "fast_sigmoid(slope = 4)": (spiking(lambda x: 1 / (1 + 4 * x.abs()) ** 2), snntorch.surrogate.fast_sigmoid(slope=4), 1.0),
    # snnTorch's height is alpha / 2.
    "arctan(slope = 3.141592653589793)": (spiking(lambda x: 1 / (1 + (math.pi * x) ** 2)), snntorch.surrogate.atan(alpha=2.0), 1.0),
    # snnTorch's height is slope / 4, ours 1.
    "sigmoid(slope = 4)": (spiking(lambda x: 4 * torch.sigmoid(4 * x) * (1 - torch.sigmoid(4 * x))), snntorch.surrogate.sigmoid(slope=4), 1.0),
    "straight_through": (spiking(torch.ones_like), snntorch.surrogate.straight_through_estimator(), 1.0),
}
for name, (own, theirs, factor) in SURROGATES.items():
    x = torch.linspace(-2, 2, 41, requires_grad=True)
    ours = torch.autograd.grad(own(x).sum(), x)[0]
    reference = torch.autograd.grad(theirs(x).sum(), x)[0]
    assert torch.allclose(ours, factor * reference, rtol=1e-5), name



def bells(x):
    """Yin, Corradi and Bohte (2021)."""
    def normal(mean, sd):
        return torch.distributions.Normal(torch.tensor(mean), torch.tensor(sd)).log_prob(x).exp()
    return 1.15 * normal(0.0, 0.5) - 0.15 * normal(0.5, 3.0) - 0.15 * normal(-0.5, 3.0)


# Those that a model writes; one of them is not the same on both sides.
WRITTEN = {
    "multi_gaussian(x, 0.5, 0.15, 6)": spiking(lambda x: bells(x) / bells(torch.zeros(()))),
    "if x > 0 then 1 / (1 + x) else 1 / (1 - 4 * x)^2": spiking(lambda x: torch.where(x > 0, 1 / (1 + x), 1 / (1 - 4 * x) ** 2)),
}

# No cell is connected to itself.
OTHERS = 1.0 - torch.eye(HIDDEN)


def weights(rows, columns, phase):
    """Weights that are no random numbers: [source][target]."""
    grid = [[0.45 * math.sin(1.7 * i + 2.3 * j + phase) + 0.25 for j in range(columns)] for i in range(rows)]
    return torch.tensor(grid, requires_grad=True)


def pixels(x):
    """Spikes [step][trial][cell] of cells that add up their input."""
    q, spikes = torch.zeros_like(x), [torch.zeros_like(x)]
    for _ in range(STEPS):
        q = q + x * DT
        s = (q > 1.0).double()
        q = q - s
        spikes.append(s)
    return spikes


def off(values, low, high, within):
    """What bounds cost: of each cell the mean over trials counts."""
    mean = values.mean(0)
    return (((mean - mean.clamp(low, high)) / within) ** 2).mean()


def run(surrogate, rule, detached, loss, keep=()):
    w_in, w_rec, w_out = weights(PIXELS, HIDDEN, 0.3), weights(HIDDEN, HIDDEN, 1.1), weights(HIDDEN, OUT, 2.0)
    tau = torch.tensor(TAU, requires_grad=True)
    x = torch.tensor([[0.15 + 0.8 * ((3 * b + 2 * i) % 7) / 7 for i in range(PIXELS)] for b in range(TRIALS)])
    labels = torch.tensor([b % OUT for b in range(TRIALS)])
    inputs = pixels(x)
    zero = torch.zeros(TRIALS, HIDDEN)
    hidden, v = [zero], zero
    out, u, traces, voltages = [torch.zeros(TRIALS, OUT)], torch.zeros(TRIALS, OUT), [], []
    beta = torch.exp(-DT / tau)

    def neuron(v, drive):
        v = beta * v + drive
        s = surrogate(v - 1.0)
        z = s.detach() if detached else s
        return s, (v - z if rule == "subtract" else v * (1 - z))

    for step in range(1, STEPS + 1):
        before = hidden[step - 2] if step >= 2 else zero
        s, v = neuron(v, inputs[step - 1] @ w_in + before @ (w_rec * OTHERS))
        so, u = neuron(u, hidden[step - 1] @ w_out)
        hidden.append(s)
        out.append(so)
        traces.append(u)
        voltages.append(v)
    counts = sum(out)
    if loss == "cross_entropy(spike_count(out))":
        value = torch.nn.functional.cross_entropy(counts, labels)
    elif loss == "mse(spike_count(out), correct = 8, incorrect = 2)":
        target = torch.full((TRIALS, OUT), 2.0)
        target[torch.arange(TRIALS), labels] = 8.0
        value = torch.nn.functional.mse_loss(counts, target)
    elif loss == "cross_entropy(mean(out.v))":
        value = torch.nn.functional.cross_entropy(sum(traces) / STEPS, labels)
    elif loss == "cross_entropy(max(out.v))":
        value = torch.nn.functional.cross_entropy(torch.stack(traces).max(0).values, labels)
    elif loss == "cross_entropy(every_step(out.v))":
        value = sum(torch.nn.functional.cross_entropy(u, labels) for u in traces) / STEPS
    elif loss == "cross_entropy(every_step(out))":
        value = sum(torch.nn.functional.cross_entropy(so, labels) for so in out[1:]) / STEPS
        # Added up in single precision.
        assert abs(SF.ce_rate_loss()(torch.stack(out[1:]), labels) - value) < 1e-6
    else:
        value = SF.ce_temporal_loss()(torch.stack(out[1:]), labels)
    for line in keep:
        value = value + (off(sum(hidden), 5, 8, 4) if "count" in line else off(sum(voltages) / STEPS, 0.5, 0.6, 0.2))
    value.backward()
    return {
        "reset": rule,
        "detached": detached,
        "loss": loss,
        **({"keep": keep} if keep else {}),
        "value": value.item(),
        "spikes": int(sum(s.sum() for s in hidden + out + inputs).item()),
        "pixels": w_in.grad.flatten().tolist(),
        "recurrent": w_rec.grad.flatten().tolist(),
        "out": w_out.grad.flatten().tolist(),
        "tau": tau.grad.item(),
    }


LOSSES = [
    "cross_entropy(spike_count(out))",
    "mse(spike_count(out), correct = 8, incorrect = 2)",
    "cross_entropy(mean(out.v))",
    "cross_entropy(max(out.v))",
]

KEEP = ["keep spike_count(hidden) = 5 .. 8 within 4", "keep mean(hidden.v) = 0.5 .. 0.6 mV within 0.2 mV"]
LATER = [
    ("cross_entropy(every_step(out.v))", []),
    ("cross_entropy(every_step(out))", []),
    ("cross_entropy(first_spike(out))", []),
    ("cross_entropy(spike_count(out))", KEEP[:1]),
    ("cross_entropy(mean(out.v))", KEEP),
]


def main():
    cases = []
    for name, (surrogate, _, _) in SURROGATES.items():
        for rule in ["subtract", "zero"]:
            for detached in [True, False]:
                for loss in LOSSES:
                    cases.append({**run(surrogate, rule, detached, loss), "surrogate": name})
    surrogate = SURROGATES["fast_sigmoid(slope = 4)"][0]
    for rule in ["subtract", "zero"]:
        for detached in [True, False]:
            for loss, keep in LATER:
                cases.append({**run(surrogate, rule, detached, loss, keep), "surrogate": "fast_sigmoid(slope = 4)"})
    for name, surrogate in WRITTEN.items():
        for detached in [True, False]:
            for loss in LOSSES[::2]:
                cases.append({**run(surrogate, "subtract", detached, loss), "surrogate": name})
    store("snntorch_nets", {"versions": versions("torch", "snntorch"), "cases": cases})


if __name__ == "__main__":
    main()
