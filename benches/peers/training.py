"""Training a spiking network on one core or a GPU: images per second, forward, backward and update, by neuroc (natively and on XLA), snnTorch and JAX.

The network is 784-1000-10 (`--net dense`), or 12 features of 5 x 5 pixels averaged over 2 x 2, 64 features of 5 x 5 of these averaged over 2 x 2, and 10
(`--net convolution`). The images are made here (numbers of MNIST's shape: a fifth of the pixels is bright); cells of the first layer spike in proportion to
their brightness, the same spikes for all. Steps 25, batches of 128, leaky cells with subtraction, fast sigmoid, cross entropy of spike counts, Adam.
snnTorch and JAX get the spikes ready made; neuroc makes them itself.

    python benches/peers/training.py [--net dense] [--rounds 3] [--only neuroc,neuroc-xla,snntorch,jax] [--neuroc target/release/neuroc] [--processor]
                                     [--device cuda] [--plugin FILE] [--batch 128] [--batches 4]

With `--processor` counts the processor's time in place of that on the wall, for a machine that has other things to do: of neuroc it is what eight epochs
more take. With `--device cuda` all but neuroc's native engine are on the GPU, and the processor is used as each likes. Rounds alternate between the programs; the table has the best round of each. Needs numpy; torch and snntorch; jax.
"""

import argparse
import json
import math
import os
import pathlib
import resource
import subprocess
import tempfile
import time

ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
ap.add_argument("--net", choices=("dense", "convolution"), default="dense")
ap.add_argument("--rounds", type=int, default=3)
ap.add_argument("--only", default="neuroc,neuroc-xla,snntorch,jax")
ap.add_argument("--neuroc", default=str(pathlib.Path(__file__).resolve().parents[2] / "target/release/neuroc"))
ap.add_argument("--processor", action="store_true")
ap.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
ap.add_argument("--plugin", help="XLA's plugin for neuroc, instead of the one that it finds")
ap.add_argument("--batch", type=int, default=128)
ap.add_argument("--batches", type=int, default=4, help="in an epoch")
ARGS = ap.parse_args()

if ARGS.device == "cpu":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
else:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("JAX_PLATFORMS", ARGS.device)

import numpy

SIDE, HIDDEN, CLASSES, STEPS, BATCH, BATCHES = 28, 1000, 10, 25, ARGS.batch, ARGS.batches
PIXELS = SIDE * SIDE
TAU, SLOPE, RATE = 10.0, 5.0, 0.5
CLOCK = time.process_time if ARGS.processor else time.perf_counter

MODEL = """
cell Pixel {{ param x = 0.5; state q = 0; q' = x * {rate} / 1 ms; spike when q > 1 {{ q -= 1 }} }}
cell Leaky {{ param tau = {tau} ms; state v: mV = 0 mV; v' = -v / tau; spike when v > 1 mV {{ v -= 1 mV }} }}
synapse Kick {{ on event(weight: mV) {{ v += weight }} }}
network main {{
{network}}}
run {{ duration = {steps} ms; dt = 1 ms; record spikes of out }}
train {{
    data = "images.npz"
    input = pixels.x
    learn {{{learn}}}.Kick.weight
    loss = cross_entropy(spike_count(out))
    optimizer = adam(lr = 1e-3)
    surrogate = fast_sigmoid(slope = {slope})
    batch = {batch}
    epochs = {epochs}
    test = 0
}}
"""

FEATURES = [1, 12, 64]
WINDOWS = [25, 25 * FEATURES[1]]


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


def bound(inputs):
    """Weights begin within this; those of windows are larger, so that cells behind sparse spikes that are averaged spike, too."""
    return (4 if inputs in WINDOWS else 1) / math.sqrt(inputs)


DENSE = f"""
    population pixels: Pixel[{PIXELS}]
    population hidden: Leaky[{HIDDEN}]
    population out: Leaky[{CLASSES}]
    connect pixels -> hidden via Kick {{ rule = all_to_all; weight ~ uniform(-{bound(PIXELS):.6f} mV, {bound(PIXELS):.6f} mV); delay = 1 ms }}
    connect hidden -> out via Kick {{ rule = all_to_all; weight ~ uniform(-{bound(HIDDEN):.6f} mV, {bound(HIDDEN):.6f} mV); delay = 1 ms }}
"""
WINDOW = "rule = convolution(kernel = 5, pool = 2); weight ~ uniform(-{0:.6f} mV, {0:.6f} mV); delay = 1 ms"
CONVOLUTION = f"""
    population pixels: Pixel[{SIDE}, {SIDE}]
    population first: Leaky[12, 12, {FEATURES[1]}]
    population second: Leaky[4, 4, {FEATURES[2]}]
    population out: Leaky[{CLASSES}]
    connect pixels -> first via Kick {{ {WINDOW.format(bound(25))} }}
    connect first -> second via Kick {{ {WINDOW.format(bound(25 * FEATURES[1]))} }}
    connect second -> out via Kick {{ rule = all_to_all; weight ~ uniform(-{bound(1024):.6f} mV, {bound(1024):.6f} mV); delay = 1 ms }}
"""
NETS = {"dense": (DENSE, "pixels.hidden, hidden.out"), "convolution": (CONVOLUTION, "pixels.first, first.second, second.out")}


class Neuroc:
    def __init__(self, binary, net, x, y, engine):
        self.binary, self.folder = binary, pathlib.Path(tempfile.mkdtemp())
        plugin = ["--plugin", ARGS.plugin] if ARGS.plugin else []
        self.engine = ["--engine", "xla", "--device", ARGS.device, *plugin] if engine == "xla" else ["--threads", "1"]
        network, learn = NETS[net]
        numpy.savez(self.folder / "images.npz", x=x, y=y)
        for epochs in (1, 3, 9):
            text = MODEL.format(rate=RATE, tau=TAU, network=network, learn=learn, steps=STEPS, slope=SLOPE, batch=BATCH, epochs=epochs)
            (self.folder / f"net{epochs}.neuro").write_text(text)

    def train(self, epochs):
        """What has come of each epoch, and how long the processor took for all of it."""
        command = [self.binary, "train", str(self.folder / f"net{epochs}.neuro"), "--precision", "f32", *self.engine, "--json", "--quiet"]
        used = lambda: resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime + resource.getrusage(resource.RUSAGE_CHILDREN).ru_stime
        begin = used()
        pin = ["taskset", "-c", "0"] if ARGS.device == "cpu" else []
        out = subprocess.run([*pin, *command], check=True, capture_output=True, text=True).stdout
        return json.loads(out)["epochs"], used() - begin

    def round(self):
        if CLOCK is time.process_time:
            (_, one), (epochs, nine) = self.train(1), self.train(9)
            return BATCH * BATCHES * 8 / (nine - one), epochs[-1]["train"]["loss"]
        epochs, _ = self.train(3)
        best = min(epoch["train"]["seconds"] for epoch in epochs[1:])
        return BATCH * BATCHES / best, epochs[-1]["train"]["loss"]


class SnnTorch:
    def __init__(self, net, x, y):
        import snntorch
        import torch
        from torch import nn

        if ARGS.device == "cpu":
            torch.set_num_threads(1)
        self.torch = torch
        linear = lambda inputs, outputs: nn.Linear(inputs, outputs, bias=False)
        window = lambda inputs, outputs: nn.Sequential(nn.Conv2d(inputs, outputs, 5, bias=False), nn.AvgPool2d(2))
        if net == "dense":
            self.layers = [linear(PIXELS, HIDDEN), linear(HIDDEN, CLASSES)]
        else:
            self.layers = [window(*FEATURES[:2]), window(*FEATURES[1:]), nn.Sequential(nn.Flatten(), linear(1024, CLASSES))]
        # Torch draws weights within the same bounds.
        for weight in self.weights():
            nn.init.uniform_(weight, -bound(weight[0].numel()), bound(weight[0].numel()))
        self.layers = [layer.to(ARGS.device) for layer in self.layers]
        make = lambda: snntorch.Leaky(beta=math.exp(-1 / TAU), spike_grad=snntorch.surrogate.fast_sigmoid(slope=SLOPE)).to(ARGS.device)
        self.cells = [make() for _ in self.layers]
        self.adam = torch.optim.Adam(self.weights(), lr=1e-3)
        self.x, self.y = torch.from_numpy(spikes(x)).to(ARGS.device), torch.from_numpy(y).to(ARGS.device)
        if net == "convolution":
            self.x = self.x.reshape(STEPS, -1, 1, SIDE, SIDE)

    def weights(self):
        return [weight for layer in self.layers for weight in layer.parameters()]

    def epoch(self):
        torch = self.torch
        for at in range(0, BATCH * BATCHES, BATCH):
            x, y = self.x[:, at : at + BATCH], self.y[at : at + BATCH]
            states, counts = [cell.init_leaky() for cell in self.cells], 0
            for step in range(STEPS):
                s = x[step]
                for number, (layer, cell) in enumerate(zip(self.layers, self.cells)):
                    s, states[number] = cell(layer(s), states[number])
                counts = counts + s
            loss = torch.nn.functional.cross_entropy(counts, y)
            self.adam.zero_grad()
            loss.backward()
            self.adam.step()
        return loss.item()

    def round(self):
        self.epoch()
        begin = CLOCK()
        loss = self.epoch()
        return BATCH * BATCHES / (CLOCK() - begin), loss


class Jax:
    def __init__(self, net, x, y):
        import jax
        import jax.numpy as np

        def window(x, w):
            x = jax.lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=("NCHW", "OIHW", "NCHW"))
            return jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4

        linear = lambda x, w: x.reshape(len(x), -1) @ w.T
        if net == "dense":
            layers, sizes, cells = [linear, linear], [(HIDDEN, PIXELS), (CLASSES, HIDDEN)], [(HIDDEN,), (CLASSES,)]
        else:
            layers, sizes = [window, window, linear], [(12, 1, 5, 5), (64, 12, 5, 5), (CLASSES, 1024)]
            cells = [(12, 12, 12), (64, 4, 4), (CLASSES,)]
        keys = jax.random.split(jax.random.key(1), len(sizes))
        draw = lambda key, size: jax.random.uniform(key, size, minval=-bound(math.prod(size[1:])), maxval=bound(math.prod(size[1:])))
        self.weights = tuple(draw(key, size) for key, size in zip(keys, sizes))
        self.state = [jax.tree.map(np.zeros_like, self.weights)] * 2
        self.count = 0
        self.x, self.y = np.asarray(spikes(x)), np.asarray(y)
        if net == "convolution":
            self.x = self.x.reshape(STEPS, -1, 1, SIDE, SIDE)
        beta = math.exp(-1 / TAU)

        @jax.custom_vjp
        def spike(x):
            return (x > 0).astype(np.float32)

        spike.defvjp(lambda x: (spike(x), x), lambda x, g: (g / (1 + SLOPE * np.abs(x)) ** 2,))

        def loss(weights, x, y):
            def step(states, s):
                after = []
                for layer, w, v in zip(layers, weights, states):
                    v = beta * v + layer(s, w)
                    s = spike(v - 1)
                    after.append(v - jax.lax.stop_gradient(s))
                return after, s

            begin = [np.zeros((BATCH, *size)) for size in cells]
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
        begin = CLOCK()
        loss = self.epoch()
        return BATCH * BATCHES / (CLOCK() - begin), loss


def main():
    if ARGS.device == "cpu":
        os.sched_setaffinity(0, {0})
    x, y = images()
    own = lambda engine: lambda: Neuroc(ARGS.neuroc, ARGS.net, x, y, engine)
    make = {"neuroc": own("native"), "neuroc-xla": own("xla"), "snntorch": lambda: SnnTorch(ARGS.net, x, y), "jax": lambda: Jax(ARGS.net, x, y)}
    programs = {name: make[name]() for name in ARGS.only.split(",")}
    best = {name: (0.0, math.nan) for name in programs}
    for _ in range(ARGS.rounds):
        for name, program in programs.items():
            best[name] = max(best[name], program.round(), key=lambda found: found[0])
    print("| | images/s | loss at the end |\n|---|---|---|")
    for name, (speed, loss) in best.items():
        print(f"| {name} | {speed:.0f} | {loss:.3f} |")


if __name__ == "__main__":
    main()
