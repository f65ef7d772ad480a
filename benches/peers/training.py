"""Training a spiking network 784-1000-10 on one core: images per second, forward, backward and update, by neuroc, snnTorch and JAX.

The images are made here (numbers of MNIST's shape: a fifth of the pixels is bright); cells of the first layer spike in proportion to their
brightness, the same spikes for all. Steps 25, batches of 128, leaky cells with subtraction, fast sigmoid, cross entropy of spike counts, Adam.
snnTorch and JAX get the spikes ready made; neuroc makes them itself.

    python benches/peers/training.py [--rounds 3] [--only neuroc,snntorch,jax] [--neuroc target/release/neuroc]

Rounds alternate between the programs; the table has the best round of each. Needs numpy; torch and snntorch; jax.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy

PIXELS, HIDDEN, CLASSES, STEPS, BATCH, BATCHES = 784, 1000, 10, 25, 128, 4
TAU, SLOPE, RATE = 10.0, 5.0, 0.5
ROOT = pathlib.Path(__file__).resolve().parents[2]

MODEL = """
cell Pixel {{ param x = 0.5; state q = 0; q' = x * {rate} / 1 ms; spike when q > 1 {{ q -= 1 }} }}
cell Leaky {{ param tau = {tau} ms; state v: mV = 0 mV; v' = -v / tau; spike when v > 1 mV {{ v -= 1 mV }} }}
synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
network main {{
    population pixels: Pixel[{pixels}]
    population hidden: Leaky[{hidden}]
    population out: Leaky[{classes}]
    connect pixels -> hidden via Kick {{ rule = all_to_all; weight ~ uniform(-{a:.6f} mV, {a:.6f} mV); delay = 1 ms }}
    connect hidden -> out via Kick {{ rule = all_to_all; weight ~ uniform(-{b:.6f} mV, {b:.6f} mV); delay = 1 ms }}
}}
run {{ duration = {steps} ms; dt = 1 ms; record spikes of out }}
train {{
    data = "images.npz"
    input = pixels.x
    learn {{pixels.hidden, hidden.out}}.Kick.weight
    loss = cross_entropy(spike_count(out))
    optimizer = adam(lr = 1e-3)
    surrogate = fast_sigmoid(slope = {slope})
    batch = {batch}
    epochs = {epochs}
    test = 0
}}
"""


def images():
    random = numpy.random.default_rng(1)
    count = BATCH * BATCHES
    y = random.integers(0, CLASSES, count)
    centres = random.random((CLASSES, PIXELS)) < 0.19
    x = centres[y] * random.uniform(0.4, 1.0, (count, PIXELS))
    return x.astype(numpy.float32), y.astype(numpy.int64)


def spikes(x):
    q, out = numpy.zeros_like(x), []
    for _ in range(STEPS):
        q = q + x * numpy.float32(RATE)
        s = (q > 1).astype(numpy.float32)
        q -= s
        out.append(s)
    return numpy.stack(out)


def bounds():
    return 1 / math.sqrt(PIXELS), 1 / math.sqrt(HIDDEN)


class Neuroc:
    def __init__(self, binary, x, y):
        self.binary, self.folder = binary, pathlib.Path(tempfile.mkdtemp())
        a, b = bounds()
        numpy.savez(self.folder / "images.npz", x=x, y=y)
        text = MODEL.format(rate=RATE, tau=TAU, pixels=PIXELS, hidden=HIDDEN, classes=CLASSES, a=a, b=b, steps=STEPS, slope=SLOPE, batch=BATCH, epochs=3)
        (self.folder / "net.neuro").write_text(text)

    def round(self):
        command = [self.binary, "train", str(self.folder / "net.neuro"), "--precision", "f32", "--threads", "1", "--json", "--quiet"]
        out = subprocess.run(["taskset", "-c", "0", *command], check=True, capture_output=True, text=True).stdout
        epochs = json.loads(out)["epochs"]
        best = min(epoch["train"]["seconds"] for epoch in epochs[1:])
        return BATCH * BATCHES / best, epochs[-1]["train"]["loss"]


class SnnTorch:
    def __init__(self, x, y):
        import snntorch
        import torch

        torch.set_num_threads(1)
        self.torch = torch
        a, b = bounds()
        self.first, self.second = torch.nn.Linear(PIXELS, HIDDEN, bias=False), torch.nn.Linear(HIDDEN, CLASSES, bias=False)
        torch.nn.init.uniform_(self.first.weight, -a, a)
        torch.nn.init.uniform_(self.second.weight, -b, b)
        make = lambda: snntorch.Leaky(beta=math.exp(-1 / TAU), spike_grad=snntorch.surrogate.fast_sigmoid(slope=SLOPE))
        self.hidden, self.out = make(), make()
        self.adam = torch.optim.Adam([self.first.weight, self.second.weight], lr=1e-3)
        self.x, self.y = torch.from_numpy(spikes(x)), torch.from_numpy(y)

    def epoch(self):
        torch = self.torch
        for at in range(0, BATCH * BATCHES, BATCH):
            x, y = self.x[:, at : at + BATCH], self.y[at : at + BATCH]
            v, u, counts = self.hidden.init_leaky(), self.out.init_leaky(), 0
            for step in range(STEPS):
                s, v = self.hidden(self.first(x[step]), v)
                o, u = self.out(self.second(s), u)
                counts = counts + o
            loss = torch.nn.functional.cross_entropy(counts, y)
            self.adam.zero_grad()
            loss.backward()
            self.adam.step()
        return loss.item()

    def round(self):
        self.epoch()
        begin = time.perf_counter()
        loss = self.epoch()
        return BATCH * BATCHES / (time.perf_counter() - begin), loss


class Jax:
    def __init__(self, x, y):
        import jax
        import jax.numpy as np

        a, b = bounds()
        keys = jax.random.split(jax.random.key(1))
        self.weights = (jax.random.uniform(keys[0], (PIXELS, HIDDEN), minval=-a, maxval=a), jax.random.uniform(keys[1], (HIDDEN, CLASSES), minval=-b, maxval=b))
        self.state = [jax.tree.map(np.zeros_like, self.weights)] * 2
        self.count = 0
        self.x, self.y = np.asarray(spikes(x)), np.asarray(y)
        beta = math.exp(-1 / TAU)

        @jax.custom_vjp
        def spike(x):
            return (x > 0).astype(np.float32)

        spike.defvjp(lambda x: (spike(x), x), lambda x, g: (g / (1 + SLOPE * np.abs(x)) ** 2,))

        def loss(weights, x, y):
            def step(carry, x):
                v, u = carry
                v = beta * v + x @ weights[0]
                s = spike(v - 1)
                v = v - jax.lax.stop_gradient(s)
                u = beta * u + s @ weights[1]
                o = spike(u - 1)
                return (v, u - jax.lax.stop_gradient(o)), o

            begin = np.zeros((BATCH, HIDDEN)), np.zeros((BATCH, CLASSES))
            counts = jax.lax.scan(step, begin, x)[1].sum(0)
            return -np.take_along_axis(jax.nn.log_softmax(counts), y[:, None], 1).mean()

        @jax.jit
        def update(weights, first, second, count, x, y):
            value, slopes = jax.value_and_grad(loss)(weights, x, y)
            first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slopes)
            second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, slopes)
            move = lambda w, m, v: w - 1e-3 * (m / (1 - 0.9**count)) / (np.sqrt(v / (1 - 0.999**count)) + 1e-8)
            return jax.tree.map(move, weights, first, second), first, second, value

        self.update = update

    def epoch(self):
        for at in range(0, BATCH * BATCHES, BATCH):
            self.count += 1
            x, y = self.x[:, at : at + BATCH], self.y[at : at + BATCH]
            self.weights, *self.state, value = self.update(self.weights, *self.state, float(self.count), x, y)
        return float(value)

    def round(self):
        self.epoch()
        begin = time.perf_counter()
        loss = self.epoch()
        return BATCH * BATCHES / (time.perf_counter() - begin), loss


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--only", default="neuroc,snntorch,jax")
    ap.add_argument("--neuroc", default=str(ROOT / "target/release/neuroc"))
    args = ap.parse_args()
    os.sched_setaffinity(0, {0})
    x, y = images()
    make = {"neuroc": lambda: Neuroc(args.neuroc, x, y), "snntorch": lambda: SnnTorch(x, y), "jax": lambda: Jax(x, y)}
    programs = {name: make[name]() for name in args.only.split(",")}
    best = {name: (0.0, math.nan) for name in programs}
    for _ in range(args.rounds):
        for name, program in programs.items():
            best[name] = max(best[name], program.round(), key=lambda found: found[0])
    print("| | images/s | loss at the end |\n|---|---|---|")
    for name, (speed, loss) in best.items():
        print(f"| {name} | {speed:.0f} | {loss:.3f} |")


if __name__ == "__main__":
    main()
