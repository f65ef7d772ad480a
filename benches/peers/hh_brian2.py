"""Brian2: C++ standalone, exponential_euler, compiled for this machine with -ffast-math; --default-flags, --plain-rates."""
import os
import tempfile
import time

import peer

a = peer.options(("f64", "f32"), [
    (("--build-dir",), dict(default=None, help="kept between runs; default: a fresh one")),
    (("--default-flags",), dict(action="store_true", help="Brian2's own compiler flags: with -fno-finite-math-only, "
                                                          "for which gcc does not vectorize exp")),
    (("--plain-rates",), dict(action="store_true", help="x/(1 - exp(-x)) as it stands: faster, 0/0 at x = 0"))])
try:
    import numpy as np
    import brian2 as b
except (ImportError, AttributeError) as e:      # AttributeError: Brian2 2.9 with NumPy 2.4
    peer.not_installed("brian2", e)
b.BrianLogger.suppress_name("base")
if not a.default_flags:
    b.prefs.codegen.cpp.extra_compile_args_gcc = ["-w", "-O3", "-ffast-math", "-march=native", "-std=c++11"]
b.prefs.core.default_float_dtype = np.float64 if a.precision == "f64" else np.float32
b.prefs.devices.cpp_standalone.openmp_threads = 0
b.set_device("cpp_standalone", build_on_run=False)

# exprel(x) = (exp(x) - 1) / x, safe at 0: x / (1 - exp(-x)) = 1 / exprel(-x)
EQUATIONS = """
dv/dt = (120*m**3*h*(50 - v) + 36*n**4*(-77 - v) + 0.3*(-54.4 - v) + 10) / ms : 1
dm/dt = (am*(1 - m) - bm*m) / ms : 1
dh/dt = (ah*(1 - h) - bh*h) / ms : 1
dn/dt = (an*(1 - n) - bn*n) / ms : 1
am = 1.0/exprel(-(v + 40)/10) : 1
bm = 4*exp(-(v + 65)/18) : 1
ah = 0.07*exp(-(v + 65)/20) : 1
bh = 1/(1 + exp(-(v + 35)/10)) : 1
an = 0.1/exprel(-(v + 55)/10) : 1
bn = 0.125*exp(-(v + 65)/80) : 1
"""
if a.plain_rates:
    for old, new in (("1.0/exprel(-(v + 40)/10)", "0.1*(v + 40)/(1 - exp(-(v + 40)/10))"),
                     ("0.1/exprel(-(v + 55)/10)", "0.01*(v + 55)/(1 - exp(-(v + 55)/10))")):
        assert old in EQUATIONS
        EQUATIONS = EQUATIONS.replace(old, new)
tool = "brian2" + "+default flags" * a.default_flags + "+plain rates" * a.plain_rates

t = time.perf_counter()
b.defaultclock.dt = peer.DT * b.ms
group = b.NeuronGroup(a.cells, EQUATIONS, method="exponential_euler")
v = peer.initial_v(a.cells)
group.v = v
group.m, group.h, group.n = peer.steady_gates(v)
b.run(a.steps * peer.DT * b.ms)
directory = a.build_dir or tempfile.mkdtemp(prefix="hh_brian2_")
os.makedirs(directory, exist_ok=True)
b.device.build(directory=directory, compile=True, run=False, debug=False)
setup = time.perf_counter() - t


def run():
    b.device.run(with_output=False)
    return float(b.device._last_run_time)            # the loop alone, as the program reports it


best = peer.timed(run, a.repeat)
peer.report(tool, b.__version__, a, setup, best, np.mean(group.v[:]))
