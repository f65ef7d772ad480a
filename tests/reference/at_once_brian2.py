"""Nets in Brian2 whose spikes take no time, which is what Brian2 does unless told otherwise, and STDP in the order of pathways that it has by itself. See README.md."""
import random

import numpy as np
from brian2 import Network, NeuronGroup, SpikeMonitor, Synapses, defaultclock, mV, ms, nS, pA, pF, prefs

from common import random_edges, spike_facts, store, versions
from plasticity_brian2 import STDP, STDP_EQS, STDP_POST, STDP_PRE
from spiking_brian2 import COBA, COBA_EQS, DT, LIF, N, N_EXC

prefs.codegen.target = "numpy"
STEPS = 3000
FREE_EQS = """dv/dt = (El - v + drive)/tau_m : volt
drive : volt (constant)"""
COBA_NS = {"C": COBA["C_pF"] * pF, "gL": COBA["gL_nS"] * nS, "El": COBA["El_mV"] * mV, "Ee": COBA["Ee_mV"] * mV,
           "Ei": COBA["Ei_mV"] * mV, "Vt": COBA["Vt_mV"] * mV, "Vr": COBA["Vr_mV"] * mV, "tau_e": COBA["tau_e_ms"] * ms,
           "tau_i": COBA["tau_i_ms"] * ms, "tau_pre": STDP["tau_pre_ms"] * ms, "tau_post": STDP["tau_post_ms"] * ms,
           "A_pre": STDP["A_pre"], "A_post": STDP["A_post"], "w_max": STDP["w_max_nS"] * nS}
LIF_NS = {"El": LIF["El_mV"] * mV, "tau_m": LIF["tau_m_ms"] * ms, "Vt": LIF["Vt_mV"] * mV, "Vr": LIF["Vr_mV"] * mV}


def cells_of(kind, net, disturbed):
    if kind.startswith("jumps"):
        reset = {"jumps_set": "v = Vr", "jumps_less": "v -= 10*mV"}[kind]
        cells = NeuronGroup(N, FREE_EQS, threshold="v > Vt", reset=reset, method="exact", namespace=LIF_NS)
        cells.drive = np.array(net["drive_mV"]) * mV
    else:
        cells = NeuronGroup(N, COBA_EQS, threshold="v > Vt", reset="v = Vr", refractory=COBA["refractory_ms"] * ms,
                            method="exponential_euler", namespace=COBA_NS)
        cells.I = np.array(net["I_pA"]) * pA
    cells.v = np.array(net["v_init_mV"]) * (1 + disturbed) * mV
    return cells


def run(kind, net, disturbed=0.0):
    defaultclock.dt = DT * ms
    cells = cells_of(kind, net, disturbed)
    e = net["edges"]
    pre, post, w, d = (np.array(e[k]) for k in ("pre", "post", "weight", "delay_steps"))
    exc = pre < N_EXC
    jumps = kind.startswith("jumps")
    unit, dim = (mV, "volt") if jumps else (nS, "siemens")
    if kind.startswith("stdp"):
        first = Synapses(cells, cells, STDP_EQS, on_pre=STDP_PRE, on_post=STDP_POST, namespace=COBA_NS)
    else:
        first = Synapses(cells, cells, f"w : {dim} (constant)", on_pre=f"{'v' if jumps else 'ge'}_post += w")
    second = Synapses(cells, cells, f"w : {dim} (constant)", on_pre=f"{'v' if jumps else 'gi'}_post += w")
    for part, chosen in ((first, exc), (second, ~exc)):
        part.connect(i=pre[chosen], j=post[chosen])
        part.w = w[chosen] * unit
    if kind == "stdp_delayed":
        first.pre.delay, second.delay = d[exc] * DT * ms, d[~exc] * DT * ms
    spikes = SpikeMonitor(cells)
    Network(cells, first, second, spikes).run(STEPS * DT * ms, namespace={})
    steps = np.rint(spikes.t / (DT * ms)).astype(int)
    return sorted(zip(steps.tolist(), spikes.i[:].tolist())), np.array(first.w / unit)


def net_of(kind, seed):
    rng = random.Random(seed)
    draw = lambda lo, hi: [lo + (hi - lo) * int(rng.random() * 64) / 64 for _ in range(N)]
    jumps = kind.startswith("jumps")
    # Jumps that make others spike in the same step and the next ones: many meet a reset.
    w_exc, w_inh = ((0.5, 0.75, 1.0, 1.5), (3.0, 4.0, 6.0))
    if jumps:
        w_exc, w_inh = ((1.0, 2.0, 4.0, 8.0) if kind == "jumps_set" else (0.25, 0.5, 1.0, 2.0)), (-2.0, -4.0)
    delays = (5, 6, 8, 10, 13, 15, 20) if kind == "stdp_delayed" else (0,)
    net = {"dt_ms": DT, "steps": STEPS, "neurons": N, "excitatory": N_EXC,
           "parameters": LIF if jumps else COBA | (STDP if kind.startswith("stdp") else {}),
           "v_init_mV": draw(-60.0, -50.0), "edges": random_edges(seed, N, N_EXC, 6, 4, w_exc, w_inh, delays)}
    net |= {"drive_mV": draw(9.0, 14.0)} if jumps else {"I_pA": draw(105.0, 165.0)}
    spikes, weights = run(kind, net)
    for x in (1e-12, -1e-12):
        assert run(kind, net, x)[0] == spikes, f"{kind}: rounding decides a spike"
    steps, neurons = [s for s, _ in spikes], [i for _, i in spikes]
    net |= {"facts": spike_facts(steps, neurons, N, DT, STEPS * DT), "spike_steps": steps, "spike_neurons": neurons}
    if kind.startswith("stdp"):
        net["final_weights_nS"] = weights.tolist()
    return net


def main():
    kinds = {"jumps_set": 41, "jumps_less": 42, "coba": 43, "stdp": 44, "stdp_delayed": 45}
    store("at_once_brian2", {"what": "Brian2: nets without delays; see README.md"}
          | {f"net_{kind}": net_of(kind, seed) for kind, seed in kinds.items()} | {"versions": versions("brian2", "numpy")})


if __name__ == "__main__":
    main()
