"""Gradients of e-prop (Bellec et al. 2020, with symmetric feedback), added up along the way forward from eligibility traces in NumPy, for the network of
`snntorch_nets`: no derivative goes back through time or between hidden cells. Compared with PyTorch where what goes between hidden cells is detached."""

import math

import numpy as np
import torch

from common import store, versions
from snntorch_nets import DT, HIDDEN, OUT, PIXELS, SURROGATES, STEPS, TAU, TRIALS, pixels, weights

LABELS = np.arange(TRIALS) % OUT
SLOPE = 4.0


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def inputs():
    x = torch.tensor([[0.15 + 0.8 * ((3 * b + 2 * i) % 7) / 7 for i in range(PIXELS)] for b in range(TRIALS)])
    return np.array([s.numpy() for s in pixels(x)])


def psi(x):
    return 1 / (1 + SLOPE * np.abs(x)) ** 2


def forward_only(loss):
    """The potentials of the output cells are linear in what reaches them (their resets are detached), so that what a spike of a hidden cell is worth for
    their sum over time is known when it is sent: a learning signal for each output cell, which the loss weighs at the end."""
    w_in, w_rec, w_out = (w.detach().numpy() for w in (weights(PIXELS, HIDDEN, 0.3), weights(HIDDEN, HIDDEN, 1.1), weights(HIDDEN, OUT, 2.0)))
    others = 1.0 - np.eye(HIDDEN)
    beta, dbeta = math.exp(-DT / TAU), math.exp(-DT / TAU) * DT / TAU**2
    drive = inputs()
    v, u = np.zeros((TRIALS, HIDDEN)), np.zeros((TRIALS, OUT))
    hidden = [np.zeros((TRIALS, HIDDEN))]
    # Traces: how much of an earlier spike of the source is left in the potential; that of tau.
    of_in, of_rec, of_out = np.zeros((TRIALS, PIXELS)), np.zeros((TRIALS, HIDDEN)), np.zeros((TRIALS, HIDDEN))
    v_tau, u_tau = np.zeros_like(v), np.zeros_like(u)
    # For each output cell: eligibilities that have been added up.
    sums = {"in": np.zeros((TRIALS, OUT, PIXELS, HIDDEN)), "rec": np.zeros((TRIALS, OUT, HIDDEN, HIDDEN)), "out": np.zeros((TRIALS, OUT, HIDDEN)), "tau": np.zeros((TRIALS, OUT))}
    total = np.zeros((TRIALS, OUT))
    weigh = np.ones(STEPS) / STEPS
    for step in range(1, STEPS + 1):
        before = hidden[step - 2] if step >= 2 else np.zeros((TRIALS, HIDDEN))
        of_in, of_rec = beta * of_in + drive[step - 1], beta * of_rec + before
        v_tau = beta * v_tau + dbeta * v
        v = beta * v + drive[step - 1] @ w_in + before @ (w_rec * others)
        slope = psi(v - 1.0)
        s = (v > 1.0).astype(float)
        v = v - s
        of_out = beta * of_out + hidden[step - 1]
        u_tau = beta * u_tau + dbeta * u
        u = beta * u + hidden[step - 1] @ w_out
        so = (u > 1.0).astype(float)
        u = u - so
        hidden.append(s)
        total += u * weigh[step - 1]
        sums["out"] += weigh[step - 1] * of_out[:, None, :]
        sums["tau"] += weigh[step - 1] * u_tau
        # A spike that is sent now arrives in the next step and fades.
        left = sum(weigh[later - 1] * beta ** (later - step - 1) for later in range(step + 1, STEPS + 1))
        signal = left * w_out.T[None] * slope[:, None, :]
        sums["in"] += signal[:, :, None, :] * of_in[:, None, :, None]
        sums["rec"] += signal[:, :, None, :] * of_rec[:, None, :, None] * others
        sums["tau"] += (signal * v_tau[:, None, :]).sum(-1)
    assert loss == "cross_entropy(mean(out.v))"
    target = np.eye(OUT)[LABELS]
    delta = (softmax(total) - target) / TRIALS
    value = -np.log(softmax(total)[np.arange(TRIALS), LABELS]).mean()
    return {
        "value": value,
        "pixels": np.einsum("bk,bkij->ij", delta, sums["in"]).ravel(),
        "recurrent": np.einsum("bk,bkij->ij", delta, sums["rec"]).ravel(),
        "out": np.einsum("bk,bkj->jk", delta, sums["out"]).ravel(),
        "tau": np.einsum("bk,bk->", delta, sums["tau"]),
    }


def detached(loss, rule):
    """The same by PyTorch, backward."""
    w_in, w_rec, w_out = weights(PIXELS, HIDDEN, 0.3), weights(HIDDEN, HIDDEN, 1.1), weights(HIDDEN, OUT, 2.0)
    tau = torch.tensor(TAU, requires_grad=True)
    beta, drive, others = torch.exp(-DT / tau), torch.tensor(inputs()), 1.0 - torch.eye(HIDDEN)
    surrogate = SURROGATES["fast_sigmoid(slope = 4)"][0]
    zero = torch.zeros(TRIALS, HIDDEN)
    v, u, hidden, counts, mean = zero, torch.zeros(TRIALS, OUT), [zero], 0, 0
    for step in range(1, STEPS + 1):
        before = (hidden[step - 2] if step >= 2 else zero).detach()
        v = beta * v + drive[step - 1] @ w_in + before @ (w_rec * others)
        s = surrogate(v - 1.0)
        v = v - s.detach() if rule == "subtract" else v * (1 - s.detach())
        u = beta * u + hidden[step - 1] @ w_out
        so = surrogate(u - 1.0)
        u = u - so.detach() if rule == "subtract" else u * (1 - so.detach())
        hidden.append(s)
        counts, mean = counts + so, mean + u / STEPS
    value = torch.nn.functional.cross_entropy(mean if "mean" in loss else counts, torch.tensor(LABELS))
    value.backward()
    of = {"pixels": w_in, "recurrent": w_rec, "out": w_out, "tau": tau}
    return {"value": value.item(), **{name: x.grad.numpy().ravel() for name, x in of.items()}}


def main():
    cases = []
    for loss in ["cross_entropy(mean(out.v))", "cross_entropy(spike_count(out))"]:
        for rule in ["subtract", "zero"]:
            found = detached(loss, rule)
            if "mean" in loss and rule == "subtract":
                own = forward_only(loss)
                for name, values in own.items():
                    assert np.allclose(values, found[name], rtol=1e-12, atol=1e-15), name
                found = own
            of = {name: np.asarray(values).ravel().tolist() for name, values in found.items()}
            cases.append({"loss": loss, "reset": rule, **of})
    store("eprop", {"versions": versions("torch", "numpy"), "cases": cases})


if __name__ == "__main__":
    main()
