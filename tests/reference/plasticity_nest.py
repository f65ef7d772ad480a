"""A net whose synapses have NEST's pair STDP, which counts the whole delay as one of the dendrite. See README.md."""
import nest
import numpy as np

from common import random_edges, spike_facts, store, versions
from spiking_nest import CELL, DT, N, N_EXC, SYN, kernel, start

STEPS = 5000
STDP = {"tau_plus": 20.0, "tau_minus": 15.0, "lambda": 0.05, "alpha": 1.2, "mu_plus": 0.0, "mu_minus": 1.0, "Wmax": 600.0}


def run(net, disturbed=0.0):
    """Spikes, and for every plastic edge the steps in which a spike came to it and the weights that it sent."""
    kernel()
    cells = nest.Create("iaf_psc_exp", N, params=CELL | SYN | {"tau_minus": STDP["tau_minus"]})
    cells.V_m, cells.I_e = np.array(net["V_init_mV"]) * (1.0 + disturbed), net["I_e_pA"]
    ids, e = np.array(cells.tolist()), net["edges"]
    pre, post, w, d = (np.array(e[k]) for k in ("pre", "post", "weight", "delay_steps"))
    meter = nest.Create("weight_recorder")
    of_synapse = {k: x for k, x in STDP.items() if k != "tau_minus"}
    nest.CopyModel("stdp_synapse", "plastic", of_synapse | {"weight_recorder": meter})
    exc = pre < N_EXC
    for which, model in ((exc, "plastic"), (~exc, "static_synapse")):
        nest.Connect(ids[pre[which]], ids[post[which]], "one_to_one",
                     {"synapse_model": model, "weight": w[which].astype(float), "delay": d[which] * DT})
    recorder = nest.Create("spike_recorder", {"time_in_steps": True})
    nest.Connect(cells, recorder)
    nest.Simulate(STEPS * DT)
    ev = recorder.events
    spikes = sorted((int(s), int(i - ids[0])) for s, i in zip(ev["times"], ev["senders"]))
    ev, sent = meter.events, {}
    for i, j, t, weight in zip(ev["senders"], ev["targets"], ev["times"], ev["weights"]):
        sent.setdefault((int(i - ids[0]), int(j - ids[0])), []).append((round(t / DT), float(weight)))
    edges = list(zip(pre[exc].tolist(), post[exc].tolist()))
    assert len(set(edges)) == len(edges), "an edge is known by its ends"
    return spikes, [sorted(sent.get(edge, [])) for edge in edges]


def pairs_at_once(net, spikes):
    """How many spikes come to a plastic edge in the step in which one of its cell does."""
    of = [set() for _ in range(N)]
    for step, cell in spikes:
        of[cell].add(step)
    e = net["edges"]
    edges = [x for x in zip(e["pre"], e["post"], e["delay_steps"]) if x[0] < N_EXC]
    return sum(len({s + d for s in of[j]} & of[i]) for i, j, d in edges)


def main():
    first = start(41, N, 345.0, 455.0)
    net = {"model": "iaf_psc_exp", "parameters": CELL | SYN | STDP, "dt_ms": DT, "steps": STEPS, "neurons": N,
           "excitatory": N_EXC, "I_e_pA": first["I_e"], "V_init_mV": first["V_init"],
           "edges": random_edges(41, N, N_EXC, 6, 4, (120.0, 180.0, 300.0, 480.0), (-200.0, -300.0, -400.0),
                                 (1, 2, 3, 5, 8, 10, 12, 15))}
    spikes, sent = run(net)
    for x in (1e-12, -1e-12):
        assert run(net, x)[0] == spikes, "rounding decides a spike"
    steps, neurons = [s for s, _ in spikes], [i for _, i in spikes]
    net |= {"facts": spike_facts(steps, neurons, N, DT, STEPS * DT), "spike_steps": steps, "spike_neurons": neurons,
            "pairs_at_once": pairs_at_once(net, spikes),
            "sent_steps": [[s for s, _ in of] for of in sent], "sent_pA": [[w for _, w in of] for of in sent]}
    store("plasticity_nest", {"what": "NEST: a net with stdp_synapse; see README.md", "net_stdp": net,
                              "versions": versions("nest", "numpy")})


if __name__ == "__main__":
    main()
