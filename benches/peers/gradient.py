"""Gradients of a run of squid axons in neuroc, forward with the run and back from the loss, and in Jaxley alternately, on one core; prints a markdown table.

    python gradient.py [--neuroc PATH/TO/neuroc] [--python jaxley=PATH] [--only neuroc,back,jaxley]
                       [--cells 1000] [--ms 100] [--rounds 3]

All differentiate the mean squared distance of every cell's voltage from -65 mV, sampled every 0.1 ms, in the maximal conductances of the sodium, potassium and leak
channels that all cells share, in double precision with implicit steps of 0.025 ms. Counted are cells times steps, over the time of a run with its gradient: of
neuroc the mean of those of a short search (`neuroc fit`), of Jaxley the best of three. Exit code 1 if a contestant failed or the mean squares are not alike.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from compare import alternate, interpreters, pin, table

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DT = 0.025
TOOLS = {"neuroc": "neuroc", "back": "neuroc, back", "jaxley": "Jaxley"}
MODEL = """use std.channels.hh.{{Na, K, Leak}}
cell Squid {{
    compartment axon {{ area = 1000 um2; cm = 1 uF/cm2; v_init = -65 mV; insert Na, K, Leak(erev = -54.4 mV) }}
}}
network main {{
    population squid: Squid[{cells}]
    input step: pulse(delay = 1 ms, duration = {ms} ms, amplitude = 10 uA/cm2) -> squid.axon
}}
run {{ duration = {ms} ms; dt = 0.025 ms; method = cnexp; celsius = 6.3 degC; record squid.axon.v every 0.1 ms }}
"""


def told(a, version, seconds, setup, square):
    print(json.dumps({"version": version, "cell_steps_per_s": a.cells * round(a.ms / DT) / seconds, "setup_s": setup, "square": square}))


def neuroc(a, mode):
    import numpy
    with tempfile.TemporaryDirectory() as folder:
        model, trace = pathlib.Path(folder, "squid.neuro"), pathlib.Path(folder, "trace.csv")
        model.write_text(MODEL.format(cells=a.cells, ms=f"{a.ms:g}"))
        # Targets are divided by their variance, which is of no account here.
        times = [k / 10 for k in range(round(a.ms * 10) + 1)]
        trace.write_text("t,v\n" + "".join(f"{t:g},{-65 + k % 2 * 1e-6:.6f}\n" for k, t in enumerate(times)))
        free = [["--free", f"{name}={low}..{high}mS/cm2"] for name, low, high in
                [("Na.gbar", 115, 125), ("K.gbar", 35, 37), ("Leak.gbar", 0.29, 0.31)]]
        command = [a.neuroc, "fit", str(model), "--json", "--quiet", "--threads", "1", "--mode", mode, "--iterations", "2",
                   "--memory", "8GB", "--target", f"squid.axon.v={trace}", "-o", os.path.join(folder, "best.set"), *sum(free, [])]
        said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        out = os.path.join(folder, "out.npz")
        subprocess.run([a.neuroc, "run", str(model), "--quiet", "-o", out], check=True)
        v = numpy.load(out)["squid.axon.v"]
    told(a, "", said["run_s"] / said["runs"], said["compile_s"], float(((v + 65) ** 2).mean()))


def jaxley(a):
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    from importlib.metadata import version
    from math import pi, sqrt
    import jax
    import jax.numpy as jnp
    import jaxley as jx
    from jaxley.channels import HH
    jax.config.update("jax_enable_x64", True)
    begin = time.perf_counter()
    cell = jx.Cell(jx.Branch(jx.Compartment(), ncomp=1), parents=[-1])
    net = jx.Network([cell for _ in range(a.cells)])
    net.insert(HH())
    for name, value in [("length", sqrt(1000 / pi)), ("radius", sqrt(1000 / pi) / 2), ("capacitance", 1.0), ("HH_eLeak", -54.4), ("v", -65.0)]:
        net.set(name, value)
    net.init_states()
    places = net.cell("all").branch(0).comp(0)
    places.record("v", verbose=False)
    # 10 uA/cm2 of 1000 um2
    current = jx.step_current(i_delay=1, i_dur=a.ms, i_amp=0.1, delta_t=DT, t_max=a.ms)
    stimuli = places.data_stimulate(jnp.tile(current, (a.cells, 1)), None)
    for name in ["HH_gNa", "HH_gK", "HH_gLeak"]:
        net.make_trainable(name, verbose=False)

    def loss(parameters):
        v = jx.integrate(net, params=parameters, data_stimuli=stimuli, delta_t=DT, t_max=a.ms)
        return ((v[:, ::4] + 65) ** 2).mean()

    step = jax.jit(jax.value_and_grad(loss))
    parameters = net.get_parameters()
    jax.block_until_ready(step(parameters))
    setup, best = time.perf_counter() - begin, float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        square, _ = jax.block_until_ready(step(parameters))
        best = min(best, time.perf_counter() - begin)
    told(a, version("jaxley"), best, setup, float(square))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--neuroc", default=str(ROOT / "target/release/neuroc"))
    ap.add_argument("--python", action="append", default=[], metavar="[NAME=]PATH")
    ap.add_argument("--only", default=",".join(TOOLS))
    ap.add_argument("--cells", type=int, default=1000)
    ap.add_argument("--ms", type=float, default=100.0)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--core", type=int, default=None)
    ap.add_argument("--tool", choices=TOOLS, help="be one contestant")
    a = ap.parse_args()
    pin(a)
    if a.tool:
        try:
            return {"neuroc": lambda a: neuroc(a, "auto"), "back": lambda a: neuroc(a, "reverse"), "jaxley": jaxley}[a.tool](a)
        except ImportError as error:
            print(json.dumps({"error": "not installed", "detail": str(error)}))
            return 1
    default, by_name = interpreters(a)
    contestants = []
    for tool in a.only.split(","):
        command = [by_name.get(tool, default), str(HERE / "gradient.py"), "--tool", tool, "--neuroc", a.neuroc,
                   "--cells", str(a.cells), "--ms", str(a.ms)]
        contestants.append((TOOLS[tool], "f64", command))
    results = alternate(contestants, a.rounds)
    print(f"{a.cells} squid axons, {a.ms:g} ms in steps of {DT} ms, three conductances\n")
    fine = table(contestants, results)
    squares = [rows[0]["square"] for rows in results if rows and "error" not in rows[0]]
    print(f"\nmean squares: {', '.join(f'{square:.2f}' for square in squares)} mV2")
    return 0 if fine and squares and all(abs(square / squares[0] - 1) < 0.02 for square in squares) else 1


if __name__ == "__main__":
    sys.exit(main())
