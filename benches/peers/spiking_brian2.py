"""Brian2: C++ standalone, compiled for this machine with -ffast-math; --default-flags, --sample."""
import os
import tempfile
import time

import peer
import spiking

a = spiking.options(("f64", "f32"), [
    (("--build-dir",), dict(default=None, help="kept between runs; default: a fresh one")),
    (("--default-flags",), dict(action="store_true", help="Brian2's own compiler flags")),
    (("--sample",), dict(action="store_true", help="brunel's synapses drawn by Brian2, in the order of their targets, "
                                                   "and not by NumPy, in that of their sources"))])
try:
    import numpy as np
    import brian2 as b
except (ImportError, AttributeError) as e:      # AttributeError: Brian2 2.9 with NumPy 2.4
    peer.not_installed("brian2", e)
b.BrianLogger.suppress_name("base")
if not a.default_flags:
    b.prefs.codegen.cpp.extra_compile_args_gcc = ["-w", "-O3", "-ffast-math", "-march=native", "-std=c++11"]
b.prefs.codegen.cpp.headers += ["<chrono>", "<cstdio>"]
b.prefs.core.default_float_dtype = np.float64 if a.precision == "f64" else np.float32
b.prefs.devices.cpp_standalone.openmp_threads = 0
b.set_device("cpp_standalone", build_on_run=False)
mV, ms, nS, pF = b.mV, b.ms, b.nS, b.pF
directory = a.build_dir or tempfile.mkdtemp(prefix="spiking_brian2_")
os.makedirs(directory, exist_ok=True)


def stamp(name):
    """C++ that prints the time on the wall; time.perf_counter() is the same clock."""
    return (f'std::printf("{name} %.9f\\n", std::chrono::duration<double>('
            "std::chrono::steady_clock::now().time_since_epoch()).count());")


b.device.insert_code("before_network_run", stamp("ready"))
b.device.insert_code("after_network_run", stamp("done"))


def normal(mean_sd, unit):
    return f"{mean_sd[0]}*{unit} + {mean_sd[1]}*{unit}*randn()"


def coba(cells, excitatory, degree, learns=False):
    p, s = spiking.COBA, spiking.STDP
    ns = {"C": p["C_pF"] * pF, "gL": p["gL_nS"] * nS, "El": p["El_mV"] * mV, "Ee": p["Ee_mV"] * mV, "Ei": p["Ei_mV"] * mV,
          "Vt": p["Vt_mV"] * mV, "Vr": p["Vr_mV"] * mV, "tau_e": p["tau_e_ms"] * ms, "tau_i": p["tau_i_ms"] * ms,
          "we": p["we_nS"] * nS, "wi": p["wi_nS"] * nS, "tau_s": s["tau_ms"] * ms, "step": s["step"],
          "w_max": s["w_max_nS"] * nS}
    group = b.NeuronGroup(cells, """dv/dt = (ge*(Ee - v) + gi*(Ei - v) - gL*(v - El))/C : volt (unless refractory)
        dge/dt = -ge/tau_e : siemens
        dgi/dt = -gi/tau_i : siemens""", threshold="v > Vt", reset="v = Vr", refractory=p["refractory_ms"] * ms,
        method="exponential_euler", namespace=ns)
    group.v, group.ge, group.gi = normal(p["v_init_mV"], "mV"), normal(p["ge_init_nS"], "nS"), normal(p["gi_init_nS"], "nS")
    parts = [group]
    for source, action in ((group[:excitatory], "ge_post += we"), (group[excitatory:], "gi_post += wi")):
        if learns and action.startswith("ge"):
            parts.append(b.Synapses(source, group, STDP, on_pre=STDP_PRE, on_post=STDP_POST, namespace=ns))
            parts[-1].connect(p=degree / cells)
            parts[-1].w, parts[-1].pre.delay = p["we_nS"] * nS, p["delay_ms"] * ms
            # What arrives comes before what leaves, as in neuroc.
            parts[-1].pre.order, parts[-1].post.order = 0, 1
            continue
        parts.append(b.Synapses(source, group, on_pre=action, delay=p["delay_ms"] * ms, namespace=ns))
        parts[-1].connect(p=degree / cells)
    return parts


STDP = """w : siemens
dpre_trace/dt = -pre_trace/tau_s : 1 (event-driven)
dpost_trace/dt = -post_trace/tau_s : 1 (event-driven)"""
STDP_PRE = """ge_post += w
pre_trace += step
w = clip(w - w_max*post_trace, 0*nS, w_max)"""
STDP_POST = """post_trace += step
w = clip(w + w_max*pre_trace, 0*nS, w_max)"""


def stdp(cells, excitatory, degree):
    return coba(cells, excitatory, degree, learns=True)


def drawn(rng, sources, targets, degree):
    """Every target gets `degree` different sources; in the order of the sources."""
    pre = np.concatenate([rng.choice(sources, degree, replace=False, shuffle=False) for _ in range(targets)])
    order = np.argsort(pre.astype(np.uint16 if sources <= 65536 else np.int32), kind="stable")      # 16 bits: a radix sort
    return pre[order], np.repeat(np.arange(targets), degree)[order]


def brunel(cells, excitatory, degree):
    p = spiking.BRUNEL
    ns = {"tau": p["tau_ms"] * ms, "Vt": p["Vt_mV"] * mV, "Vr": p["Vr_mV"] * mV, "we": p["j_mV"] * mV,
          "wi": -p["g"] * p["j_mV"] * mV}
    group = b.NeuronGroup(cells, "dv/dt = -v/tau : volt (unless refractory)", threshold="v >= Vt", reset="v = Vr",
                          refractory=p["refractory_ms"] * ms, method="exact", namespace=ns)
    parts, rng = [group], np.random.default_rng(a.seed)
    for source, weight, each in ((group[:excitatory], "we", 4 * degree // 5), (group[excitatory:], "wi", degree // 5)):
        parts.append(b.Synapses(source, group, on_pre=f"v_post += {weight}", delay=p["delay_ms"] * ms, namespace=ns))
        if a.sample:
            parts[-1].connect(i=f"k for k in sample(N_pre, size={each})")
        else:
            t = time.perf_counter()
            pre, post = drawn(rng, len(source), cells, each)
            parts[-1].connect(i=pre, j=post)
            drawing_s[0] += time.perf_counter() - t
    inputs = 4 * degree // 5
    parts.append(b.PoissonInput(group, "v", inputs, p["drive_kHz"] * 1000 / inputs * b.Hz, p["j_mV"] * mV))
    return parts


drawing_s = [0.0]                               # what the building of the network takes in Python
t = time.perf_counter()
b.seed(a.seed)
b.defaultclock.dt = spiking.DT * ms
parts = {"coba": coba, "brunel": brunel, "stdp": stdp}[a.model](*spiking.scaled(a))
spikes = b.SpikeMonitor(parts[0])
b.Network(parts, spikes).run(a.seconds * b.second)
b.device.build(directory=directory, compile=True, run=False, debug=False)
compile_s = time.perf_counter() - t - drawing_s[0]
started = time.perf_counter()
b.device.run(with_output=False)
with open(os.path.join(b.device.results_dir, "stdout.txt")) as f:
    at = {name: float(x) for name, x in (line.split() for line in f)}
tool = "brian2" + "+default flags" * a.default_flags + "+sample" * (a.sample and a.model == "brunel")
spiking.report(tool, b.__version__, a, a.precision, compile_s, drawing_s[0] + at["ready"] - started,
               at["done"] - at["ready"], spikes.t / ms, spikes.i[:], processor_s=round(float(b.device._last_run_time), 5))
