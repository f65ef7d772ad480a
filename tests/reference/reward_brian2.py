"""A net whose synapses learn where a reward follows, in Brian2: eligibility and dopamine of every synapse. See README.md."""
import random

import numpy as np
from brian2 import Network, NeuronGroup, SpikeGeneratorGroup, SpikeMonitor, Synapses, defaultclock, mV, ms, nS, pA, pF, second

from common import random_edges, spike_facts, store, versions
from spiking_brian2 import COBA, COBA_EQS, DT, N, N_EXC

STEPS = 5000
RULE = {"tau_pre_ms": 20.0, "tau_post_ms": 15.0, "a_plus": 1.0, "a_minus": 1.25, "tau_c_ms": 150.0, "tau_d_ms": 40.0,
        "rate_per_s": 2.0, "w_max_nS": 3.0}
# Eligibility and dopamine are there in every step, and the weight moves in each by the integral of their product: no closed form of a longer time.
EQS = """w : siemens
dapre/dt = -apre/tau_pre : 1 (event-driven)
dapost/dt = -apost/tau_post : 1 (event-driven)
dc/dt = -c/tau_c : 1 (clock-driven)
dd/dt = -d/tau_d : 1 (clock-driven)"""
MOVES = "w = clip(w + rate*w_max*c*d*tau_cd*(1 - exp(-dt/tau_cd)), 0*nS, w_max)"
PRE = """ge_post += w
apre += 1
c -= a_minus*apost"""
POST = """apost += 1
c += a_plus*apre"""
REWARDS, SOURCES = 40, 4


def run(net, disturbed=0.0):
    p, s = COBA, RULE
    ns = {"C": p["C_pF"] * pF, "gL": p["gL_nS"] * nS, "El": p["El_mV"] * mV, "Ee": p["Ee_mV"] * mV, "Ei": p["Ei_mV"] * mV,
          "Vt": p["Vt_mV"] * mV, "Vr": p["Vr_mV"] * mV, "tau_e": p["tau_e_ms"] * ms, "tau_i": p["tau_i_ms"] * ms,
          "tau_pre": s["tau_pre_ms"] * ms, "tau_post": s["tau_post_ms"] * ms, "a_plus": s["a_plus"], "a_minus": s["a_minus"],
          "tau_c": s["tau_c_ms"] * ms, "tau_d": s["tau_d_ms"] * ms, "rate": s["rate_per_s"] / second, "w_max": s["w_max_nS"] * nS}
    ns["tau_cd"] = ns["tau_c"] * ns["tau_d"] / (ns["tau_c"] + ns["tau_d"])
    defaultclock.dt = DT * ms
    cells = NeuronGroup(N, COBA_EQS, threshold="v > Vt", reset="v = Vr", refractory=p["refractory_ms"] * ms,
                        method="exponential_euler")
    cells.v, cells.I = np.array(net["v_init_mV"]) * (1 + disturbed) * mV, np.array(net["I_pA"]) * pA
    e = net["edges"]
    pre, post, w, d = (np.array(e[k]) for k in ("pre", "post", "weight", "delay_steps"))
    exc = pre < N_EXC
    learns = Synapses(cells, cells, EQS, on_pre=PRE, on_post=POST, method="exact")
    learns.connect(i=pre[exc], j=post[exc])
    learns.w, learns.pre.delay = w[exc] * nS, d[exc] * DT * ms
    # What arrives comes before what leaves, and the reward after both.
    learns.pre.order, learns.post.order = 0, 1
    learns.run_regularly(MOVES, when="before_groups")
    still = Synapses(cells, cells, "w : siemens (constant)", on_pre="gi_post += w")
    still.connect(i=pre[~exc], j=post[~exc])
    still.w, still.delay = w[~exc] * nS, d[~exc] * DT * ms
    r = net["rewards"]
    source = SpikeGeneratorGroup(SOURCES, r["source"], np.array(r["step"]) * DT * ms)
    reward = Synapses(source, learns, "amount : 1 (constant)", on_pre="d_post += amount")
    n = int(exc.sum())
    reward.connect(i=np.repeat(np.arange(SOURCES), n), j=np.tile(np.arange(n), SOURCES))
    reward.amount = np.array(r["amount"])[:, post[exc]].ravel()
    reward.delay = np.array(r["delay_steps"])[:, post[exc]].ravel() * DT * ms
    reward.pre.order = 2
    spikes = SpikeMonitor(cells)
    Network(cells, learns, still, source, reward, spikes).run(STEPS * DT * ms, namespace=ns)
    steps = np.rint(spikes.t / (DT * ms)).astype(int)
    return sorted(zip(steps.tolist(), spikes.i[:].tolist())), np.array(learns.w / nS), np.array(learns.c), np.array(learns.d)


def main():
    seed = 33
    rng = random.Random(seed)
    draw = lambda lo, hi, n: [lo + (hi - lo) * int(rng.random() * 64) / 64 for _ in range(n)]
    whole = lambda lo, hi, n: [rng.randrange(lo, hi) for _ in range(n)]
    # No source spikes twice in a step.
    when = sorted(rng.sample([(step, source) for step in range(100, 4800) for source in range(SOURCES)], REWARDS))
    net = {"equations": EQS.split("\n"), "moves": MOVES, "on_pre": PRE.split("\n"), "on_post": POST.split("\n"),
           "cells": COBA_EQS.split("\n"), "parameters": COBA | RULE, "dt_ms": DT, "steps": STEPS, "neurons": N, "excitatory": N_EXC,
           "I_pA": draw(105.0, 165.0, N), "v_init_mV": draw(-60.0, -50.0, N),
           "edges": random_edges(seed, N, N_EXC, 6, 4, (0.5, 0.75, 1.0, 1.5), (3.0, 4.0, 6.0), (5, 6, 8, 10, 13, 15, 20)),
           "rewards": {"step": [step for step, _ in when], "source": [source for _, source in when],
                       "amount": [draw(-0.5, 1.0, N) for _ in range(SOURCES)],
                       "delay_steps": [whole(1, 200, N) for _ in range(SOURCES)]}}
    spikes, weights, c, d = run(net)
    for x in (1e-12, -1e-12):
        assert run(net, x)[0] == spikes, "rounding decides a spike"
    steps, neurons = [s for s, _ in spikes], [i for _, i in spikes]
    begun = np.array([w for w, pre in zip(net["edges"]["weight"], net["edges"]["pre"]) if pre < N_EXC])
    net |= {"facts": spike_facts(steps, neurons, N, DT, STEPS * DT), "spike_steps": steps, "spike_neurons": neurons,
            "final_weights_nS": weights.tolist(), "final_c": c.tolist(), "final_d": d.tolist(),
            "weights_that_moved": int((np.abs(weights - begun) > 1e-3).sum()),
            "weights_at_a_bound": int(((weights == 0) | (weights == RULE["w_max_nS"])).sum())}
    store("reward_brian2", {"what": "Brian2: a net that learns where a reward follows; see README.md", "net": net,
                            "versions": versions("brian2", "numpy")})


if __name__ == "__main__":
    main()
