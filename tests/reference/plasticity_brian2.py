"""Nets whose synapses remember, in Brian2: pair STDP, and Tsodyks-Markram synapses. See README.md."""
import random

import numpy as np
from brian2 import Network, NeuronGroup, SpikeMonitor, Synapses, defaultclock, mV, ms, nS, pA, pF

from common import random_edges, spike_facts, store, versions
from spiking_brian2 import COBA, COBA_EQS, DT, N, N_EXC

STEPS = 5000
STDP = {"tau_pre_ms": 20.0, "tau_post_ms": 15.0, "A_pre": 0.02, "A_post": -0.025, "w_max_nS": 3.0}
STDP_EQS = """w : siemens
dapre/dt = -apre/tau_pre : 1 (event-driven)
dapost/dt = -apost/tau_post : 1 (event-driven)"""
STDP_PRE = """ge_post += w
apre += A_pre
w = clip(w + apost*w_max, 0*nS, w_max)"""
STDP_POST = """apost += A_post
w = clip(w + apre*w_max, 0*nS, w_max)"""
TM = {"U": 0.2, "tau_rec_ms": 120.0, "tau_facil_ms": 250.0}
TM_EQS = """w : siemens (constant)
dx/dt = (1 - x)/tau_rec : 1 (event-driven)
du/dt = (U - u)/tau_facil : 1 (event-driven)"""
TM_PRE = """u += U*(1 - u)
ge_post += w*u*x
x -= u*x"""


def run(kind, net, disturbed=0.0):
    p, s = COBA, STDP
    ns = {"C": p["C_pF"] * pF, "gL": p["gL_nS"] * nS, "El": p["El_mV"] * mV, "Ee": p["Ee_mV"] * mV, "Ei": p["Ei_mV"] * mV,
          "Vt": p["Vt_mV"] * mV, "Vr": p["Vr_mV"] * mV, "tau_e": p["tau_e_ms"] * ms, "tau_i": p["tau_i_ms"] * ms,
          "tau_pre": s["tau_pre_ms"] * ms, "tau_post": s["tau_post_ms"] * ms, "A_pre": s["A_pre"], "A_post": s["A_post"],
          "w_max": s["w_max_nS"] * nS, "U": TM["U"], "tau_rec": TM["tau_rec_ms"] * ms, "tau_facil": TM["tau_facil_ms"] * ms}
    defaultclock.dt = DT * ms
    cells = NeuronGroup(N, COBA_EQS, threshold="v > Vt", reset="v = Vr", refractory=p["refractory_ms"] * ms,
                        method="exponential_euler")
    cells.v, cells.I = np.array(net["v_init_mV"]) * (1 + disturbed) * mV, np.array(net["I_pA"]) * pA
    e = net["edges"]
    pre, post, w, d = (np.array(e[k]) for k in ("pre", "post", "weight", "delay_steps"))
    exc = pre < N_EXC
    plastic = (Synapses(cells, cells, STDP_EQS, on_pre=STDP_PRE, on_post=STDP_POST) if kind == "stdp" else
               Synapses(cells, cells, TM_EQS, on_pre=TM_PRE))
    plastic.connect(i=pre[exc], j=post[exc])
    plastic.w, plastic.pre.delay = w[exc] * nS, d[exc] * DT * ms
    if kind == "stdp":
        # What arrives comes before what leaves, as it would without a word.
        plastic.pre.order, plastic.post.order = 0, 1
    else:
        plastic.x, plastic.u = 1.0, TM["U"]
    still = Synapses(cells, cells, "w : siemens (constant)", on_pre="gi_post += w")
    still.connect(i=pre[~exc], j=post[~exc])
    still.w, still.delay = w[~exc] * nS, d[~exc] * DT * ms
    spikes = SpikeMonitor(cells)
    Network(cells, plastic, still, spikes).run(STEPS * DT * ms, namespace=ns)
    steps = np.rint(spikes.t / (DT * ms)).astype(int)
    found = sorted(zip(steps.tolist(), spikes.i[:].tolist()))
    return found, np.array(plastic.w / nS)


def net_of(kind, seed):
    rng = random.Random(seed)
    draw = lambda lo, hi: [lo + (hi - lo) * int(rng.random() * 64) / 64 for _ in range(N)]
    w_exc = (0.5, 0.75, 1.0, 1.5) if kind == "stdp" else (2.0, 3.0, 4.0)
    net = {"equations": (STDP_EQS if kind == "stdp" else TM_EQS).split("\n"),
           "on_pre": (STDP_PRE if kind == "stdp" else TM_PRE).split("\n"), "cells": COBA_EQS.split("\n"),
           "parameters": COBA | (STDP if kind == "stdp" else TM), "dt_ms": DT, "steps": STEPS, "neurons": N,
           "excitatory": N_EXC, "I_pA": draw(105.0, 165.0), "v_init_mV": draw(-60.0, -50.0),
           "edges": random_edges(seed, N, N_EXC, 6, 4, w_exc, (3.0, 4.0, 6.0), (5, 6, 8, 10, 13, 15, 20))}
    if kind == "stdp":
        net["on_post"] = STDP_POST.split("\n")
    spikes, weights = run(kind, net)
    for x in (1e-12, -1e-12):
        again, others = run(kind, net, x)
        assert again == spikes, f"{kind}: rounding decides a spike"
    steps, neurons = [s for s, _ in spikes], [i for _, i in spikes]
    net |= {"facts": spike_facts(steps, neurons, N, DT, STEPS * DT), "spike_steps": steps, "spike_neurons": neurons}
    if kind == "stdp":
        net["final_weights_nS"] = weights.tolist()
    return net


def main():
    store("plasticity_brian2", {"what": "Brian2: nets whose synapses remember; see README.md", "net_stdp": net_of("stdp", 31),
                                "net_tsodyks_markram": net_of("tm", 32), "versions": versions("brian2", "numpy")})


if __name__ == "__main__":
    main()
