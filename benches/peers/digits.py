"""How well digits are learnt: `examples/digits.neuro` by neuroc, and the same network with the same numbers in snnTorch, for five seeds.

    python benches/peers/digits.py [--seeds 5] [--neuroc target/release/neuroc]

Prints the share of the test samples that are right after the last epoch: of each seed, and the mean. The seed draws the weights, the split
and the order of samples, in each program by its own generator. Needs numpy, torch, snntorch.
"""

import argparse
import json
import math
import pathlib
import subprocess

import numpy
import snntorch
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS, BATCH, EPOCHS, TAU, SLOPE = 25, 32, 15, 10.0, 5.0


def neuroc(binary, seed):
    command = [binary, "train", ROOT / "examples/digits.neuro", "--seed", str(seed), "--json", "--quiet"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(out)["epochs"][-1]["test"]["accuracy"]


def by_snntorch(seed):
    torch.manual_seed(seed)
    data = numpy.load(ROOT / "examples/data/digits.npz")
    x, y = data["x"].astype(numpy.float32), torch.from_numpy(data["y"].astype(numpy.int64))
    q, spikes = numpy.zeros_like(x), []
    for _ in range(STEPS):
        q = q + x / 32
        s = (q > 1).astype(numpy.float32)
        q -= s
        spikes.append(s)
    spikes = torch.from_numpy(numpy.stack(spikes))
    order = torch.randperm(len(y))
    test, train = order[: len(y) // 5], order[len(y) // 5 :]
    first, second = torch.nn.Linear(64, 100, bias=False), torch.nn.Linear(100, 10, bias=False)
    torch.nn.init.uniform_(first.weight, -0.125, 0.125)
    torch.nn.init.uniform_(second.weight, -0.1, 0.1)
    surrogate = snntorch.surrogate.fast_sigmoid(slope=SLOPE)
    hidden, out = [snntorch.Leaky(beta=math.exp(-1 / TAU), spike_grad=surrogate) for _ in range(2)]
    adam = torch.optim.Adam([first.weight, second.weight], lr=2e-3)

    def counts(x):
        v, u, total = hidden.init_leaky(), out.init_leaky(), 0
        for step in range(STEPS):
            s, v = hidden(first(x[step]), v)
            o, u = out(second(s), u)
            total = total + o
        return total

    for _ in range(EPOCHS):
        for batch in train[torch.randperm(len(train))].split(BATCH):
            loss = torch.nn.functional.cross_entropy(counts(spikes[:, batch]), y[batch])
            adam.zero_grad()
            loss.backward()
            adam.step()
    with torch.no_grad():
        return (counts(spikes[:, test]).argmax(1) == y[test]).double().mean().item()


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--seeds", type=int, default=5)
    ap.add_argument("--neuroc", default=str(ROOT / "target/release/neuroc"))
    args = ap.parse_args()
    print("| | " + " | ".join(f"seed {seed}" for seed in range(args.seeds)) + " | mean |")
    print("|---" * (args.seeds + 2) + "|")
    for name, learn in [("neuroc", lambda seed: neuroc(args.neuroc, seed)), ("snnTorch", by_snntorch)]:
        found = [learn(seed) for seed in range(args.seeds)]
        shown = " | ".join(f"{100 * share:.2f} %" for share in [*found, sum(found) / len(found)])
        print(f"| {name} | {shown} |")


if __name__ == "__main__":
    main()
