"""Nets of integrate-and-fire neurons in Brian2, and what Brian2 does in which step. See README.md."""
import math
import random

import numpy as np
from brian2 import (Network, NeuronGroup, SpikeGeneratorGroup, SpikeMonitor, StateMonitor, Synapses, defaultclock, mV, ms,
                    nS, pA, pF, prefs, start_scope)

from common import max_abs_diff, random_edges, spike_facts, store, versions

prefs.codegen.target = "numpy"
DT, N, N_EXC, STEPS, SAMPLED = 0.1, 100, 80, 10000, (0, 42, 95)
defaultclock.dt = DT * ms
COBA = {"C_pF": 200.0, "gL_nS": 10.0, "El_mV": -60.0, "Ee_mV": 0.0, "Ei_mV": -80.0, "Vt_mV": -50.0, "Vr_mV": -60.0,
        "tau_e_ms": 5.0, "tau_i_ms": 10.0, "refractory_ms": 5.0}
LIF = {"tau_m_ms": 20.0, "El_mV": -60.0, "R_Mohm": 100.0, "Vt_mV": -50.0, "Vr_mV": -60.0, "refractory_ms": 2.0}
COBA_EQS = """dv/dt = (ge*(Ee - v) + gi*(Ei - v) - gL*(v - El) + I)/C : volt (unless refractory)
dge/dt = -ge/tau_e : siemens
dgi/dt = -gi/tau_i : siemens
I : amp (constant)"""
LIF_EQS = """dv/dt = (El - v + drive)/tau_m : volt (unless refractory)
drive : volt (constant)"""


# ---------------------------------------------------------------- nets
def run_net(net, cells, sampled):
    """`cells` has its state set; edges are `connect`ed one by one, in two Synapses objects (excitatory, inhibitory)."""
    e, parts = net["edges"], []
    pre, post, w, d = (np.array(e[k]) for k in ("pre", "post", "weight", "delay_steps"))
    for chosen, target in ((pre < N_EXC, net["targets"][0]), (pre >= N_EXC, net["targets"][1])):
        unit, dim = (mV, "volt") if target == "v" else (nS, "siemens")
        s = Synapses(cells, cells, f"w : {dim} (constant)", on_pre=f"{target}_post += w", method="exact")
        s.connect(i=pre[chosen], j=post[chosen])
        assert np.array_equal(s.i[:], pre[chosen]) and np.array_equal(s.j[:], post[chosen])
        s.w, s.delay = w[chosen] * unit, d[chosen] * DT * ms
        parts.append(s)
    spikes, states = SpikeMonitor(cells), StateMonitor(cells, list(sampled), record=list(SAMPLED), dt=1 * ms)
    network = Network(cells, parts, spikes, states)
    network.run(100 * ms, namespace={})
    states.active = False
    network.run(STEPS * DT * ms - 100 * ms, namespace={})
    units = {"v": mV, "ge": nS, "gi": nS}
    steps = np.rint(spikes.t / (DT * ms)).astype(int)
    return (sorted(zip(steps.tolist(), spikes.i[:].tolist())), np.rint(states.t / (DT * ms)).astype(int),
            {k: np.array(getattr(states, k) / units[k]) for k in sampled})


def run_coba(net):
    p = net["parameters"]
    ns = {"C": p["C_pF"] * pF, "gL": p["gL_nS"] * nS, "El": p["El_mV"] * mV, "Ee": p["Ee_mV"] * mV, "Ei": p["Ei_mV"] * mV,
          "Vt": p["Vt_mV"] * mV, "Vr": p["Vr_mV"] * mV, "tau_e": p["tau_e_ms"] * ms, "tau_i": p["tau_i_ms"] * ms}
    cells = NeuronGroup(N, COBA_EQS, threshold="v > Vt", reset="v = Vr", refractory=p["refractory_ms"] * ms,
                        method="exponential_euler", namespace=ns)
    cells.v, cells.I = np.array(net["v_init_mV"]) * mV, np.array(net["I_pA"]) * pA
    return run_net(net, cells, ("v", "ge", "gi"))


def run_lif(net):
    p = net["parameters"]
    ns = {"El": p["El_mV"] * mV, "tau_m": p["tau_m_ms"] * ms, "Vt": p["Vt_mV"] * mV, "Vr": p["Vr_mV"] * mV}
    cells = NeuronGroup(N, LIF_EQS, threshold="v > Vt", reset="v = Vr", refractory=p["refractory_ms"] * ms, method="exact",
                        namespace=ns)
    cells.v, cells.drive = np.array(net["v_init_mV"]) * mV, np.array(net["drive_mV"]) * mV
    return run_net(net, cells, ("v",))


def replay(kind, net, disturbed=0.0):
    """The same net in a plain loop, with the semantics of the README; also how near a v came to the threshold."""
    p, e = net["parameters"], net["edges"]
    out = [[] for _ in range(N)]
    for pre, post, w, d in zip(e["pre"], e["post"], e["weight"], e["delay_steps"]):
        out[pre].append((post, w, d))
    ring = np.zeros((2, 32, N))
    v = np.array(net["v_init_mV"]) * (1.0 + disturbed)
    ge, gi, last = np.zeros(N), np.zeros(N), np.full(N, -10**6)
    held = round(p["refractory_ms"] / DT)
    spikes, samples, margin = [], [], math.inf
    for step in range(STEPS):                                          # t = step dt at its beginning
        if step % 10 == 0 and step < 1000:
            samples.append([v[list(SAMPLED)], ge[list(SAMPLED)], gi[list(SAMPLED)]])
        free = step - last >= held
        if kind == "coba":
            b = -(ge + gi + p["gL_nS"]) / p["C_pF"]
            a = (ge * p["Ee_mV"] + gi * p["Ei_mV"] + p["gL_nS"] * p["El_mV"] + np.array(net["I_pA"])) / p["C_pF"]
            v = np.where(free, -a / b + (v + a / b) * np.exp(b * DT), v)
            ge, gi = ge * math.exp(-DT / p["tau_e_ms"]), gi * math.exp(-DT / p["tau_i_ms"])
        else:
            inf = p["El_mV"] + np.array(net["drive_mV"])
            v = np.where(free, inf + (v - inf) * math.exp(-DT / p["tau_m_ms"]), v)
        margin = min(margin, float(np.min(np.abs(v[free] - p["Vt_mV"]))))
        fired = free & (v > p["Vt_mV"])
        for i in np.flatnonzero(fired):
            last[i] = step
            spikes.append((step, int(i)))
            for post, w, d in out[i]:
                ring[0 if i < N_EXC else 1, (step + d) % 32, post] += w
        arrived = ring[:, step % 32].copy()
        ring[:, step % 32] = 0.0
        if kind == "coba":
            ge, gi = ge + arrived[0], gi + arrived[1]
        else:
            v = np.where(free & ~fired, v + arrived[0] + arrived[1], v)
        v[fired] = p["Vr_mV"]
    return spikes, np.array(samples).transpose(1, 2, 0), margin


def net_of(kind, seed):
    rng = random.Random(seed)
    draw = lambda lo, hi: [lo + (hi - lo) * int(rng.random() * 64) / 64 for _ in range(N)]
    coba = kind == "coba"
    delays = (5, 6, 8, 10, 13, 15, 20) if coba else (1, 2, 3, 5, 8, 10, 12, 15)
    w_exc, w_inh = ((0.5, 0.75, 1.0, 1.5), (3.0, 4.0, 6.0)) if coba else ((0.5, 0.75, 1.0, 1.5, 2.0), (-2.0, -3.0, -4.0))
    net = {"equations": (COBA_EQS if coba else LIF_EQS).split("\n"), "method": "exponential_euler" if coba else "exact",
           "threshold": "v > Vt", "reset": "v = Vr", "targets": ("ge", "gi") if coba else ("v", "v"),
           "weight_unit": "nS" if coba else "mV", "parameters": COBA if coba else LIF, "dt_ms": DT, "steps": STEPS,
           "neurons": N, "excitatory": N_EXC}
    net |= {"I_pA": draw(105.0, 165.0)} if coba else {"drive_mV": draw(9.0, 14.0)}
    net |= {"v_init_mV": draw(-60.0, -50.0), "edges": random_edges(seed, N, N_EXC, 6, 4, w_exc, w_inh, delays)}
    spikes, at, states = (run_coba if coba else run_lif)(net)
    again, samples, margin = replay(kind, net)
    assert again == spikes, f"{kind}: the plain loop spikes otherwise"
    for x in (1e-12, -1e-12):
        assert replay(kind, net, x)[0] == spikes, f"{kind}: rounding decides a spike"
    steps, neurons = [s for s, _ in spikes], [i for _, i in spikes]
    net |= {"facts": spike_facts(steps, neurons, N, DT, STEPS * DT), "spike_steps": steps, "spike_neurons": neurons,
            "sampled_neurons": SAMPLED, "sample_steps": at}
    net |= {k + ("_mV" if k == "v" else "_nS"): x for k, x in states.items()}
    cross = {"plain_loop_has_the_same_spikes": True, "nearest_to_threshold_mV": margin}
    for k, x in zip(("v", "ge", "gi"), samples):
        if k in states:
            cross[f"plain_loop_{k}_max_abs_diff"] = max_abs_diff(x, states[k])
    return net, cross


# ---------------------------------------------------------------- what happens in which step
def run_cells(rows, steps, equations=LIF_EQS, target="v", unit=mV, refractory=LIF["refractory_ms"], variables=("v",)):
    """One neuron per row {v, drive, input: [(step, delay, weight)]}. States at the starts of steps 0..steps-1, spikes."""
    start_scope()
    ns = {"El": -60 * mV, "tau_m": 20 * ms, "Vt": -50 * mV, "Vr": -60 * mV, "tau_e": 5 * ms, "tau_i": 10 * ms, "C": 200 * pF,
          "gL": 10 * nS, "Ee": 0 * mV, "Ei": -80 * mV}
    cells = NeuronGroup(len(rows), equations, threshold="v > Vt", reset="v = Vr", refractory=refractory * ms,
                        method="exact" if target == "v" else "exponential_euler", namespace=ns)
    cells.v = [r.get("v", -60.0) for r in rows] * mV
    if target == "v":
        cells.drive = [r.get("drive", 0.0) for r in rows] * mV
    events = [(step, j, delay, w) for j, r in enumerate(rows) for step, delay, w in r.get("input", [])]
    source = SpikeGeneratorGroup(max(1, len(events)), range(len(events)), [x[0] * DT for x in events] * ms)
    parts = [cells, source]
    if events:
        s = Synapses(source, cells, f"w : {'volt' if target == 'v' else 'siemens'}", on_pre=f"{target}_post += w")
        s.connect(i=np.arange(len(events)), j=np.array([x[1] for x in events]))
        s.w, s.delay = [x[3] for x in events] * unit, [x[2] * DT for x in events] * ms
        parts.append(s)
    spikes, states = SpikeMonitor(cells), StateMonitor(cells, list(variables), record=True, when="start")
    Network(parts, spikes, states).run(steps * DT * ms, namespace={})
    fired = [[] for _ in rows]
    for t, i in zip(np.rint(spikes.t / (DT * ms)).astype(int), spikes.i):
        fired[i].append(int(t))
    units = {"v": mV, "ge": nS, "gi": nS}
    return {k: np.array(getattr(states, k) / units[k]) for k in variables}, fired


def first_moved(x):
    return int(np.flatnonzero(x != x[0])[0])


def semantics():
    out = {"what": "steps are Brian2's: step k begins at t = k dt; states are those at the beginning of step k (when='start')"}
    # arrival of a spike of step 50
    delays = (0, 1, 5, 15)
    states, _ = run_cells([{"input": [(50, d, 2.0)]} for d in delays], 80)
    rows = [{"delay_steps": d, "first_v_moved": first_moved(v), "v_there_mV": v[first_moved(v)]}
            for d, v in zip(delays, states["v"])]
    assert all(r["first_v_moved"] == 51 + d and abs(r["v_there_mV"] + 58.0) < 1e-12 for d, r in zip(delays, rows))
    cond, _ = run_cells([{"input": [(50, d, 2.0)]} for d in delays], 80, COBA_EQS, "ge", nS, 5.0, ("v", "ge"))
    for d, r, v, g in zip(delays, rows, cond["v"], cond["ge"]):
        r |= {"first_ge_moved": first_moved(g), "ge_there_nS": g[first_moved(g)],
              "first_v_moved_by_ge": int(np.flatnonzero(np.abs(v + 60.0) > 1e-9)[0])}
        assert r["first_ge_moved"] == 51 + d and r["first_v_moved_by_ge"] == 52 + d
    out["arrival_of_a_spike_of_step_50"] = rows
    # a jump over the threshold of a spike of step 50; a target that passes the threshold itself
    states, fired = run_cells([{"input": [(50, d, 20.0)]} for d in delays], 80)
    out["jump_over_the_threshold"] = {"delay_steps": delays, "spike_steps": fired,
                                      "v_at_65_66_67_of_the_last_mV": states["v"][3][65:68]}
    assert fired == [[51 + d] for d in delays]
    # v == Vt is no spike with 'v > Vt': start at the fixed point of drive 10 mV
    _, fired = run_cells([{"v": -50.0, "drive": 10.0}, {"v": -50.0, "drive": 10.0 + 1e-9}], 20)
    out["v_exactly_at_Vt_with_strict_threshold"] = {"spike_steps": fired[0], "with_1e-9_mV_more_drive": fired[1][:1]}
    assert fired[0] == [] and fired[1][:1] == [0]
    # neuron to neuron
    rows = []
    for d in (0, 1, 15):
        start_scope()
        ns = {"El": -60 * mV, "tau_m": 20 * ms, "Vt": -50 * mV, "Vr": -60 * mV}
        cells = NeuronGroup(2, LIF_EQS, threshold="v > Vt", reset="v = Vr", refractory=2 * ms, method="exact", namespace=ns)
        source = SpikeGeneratorGroup(1, [0], [3] * ms)
        first = Synapses(source, cells, on_pre="v_post += 20*mV")
        first.connect(i=0, j=0)
        second = Synapses(cells, cells, on_pre="v_post += 20*mV")
        second.connect(i=0, j=1)
        second.delay = d * DT * ms
        cells.v = -60 * mV
        mon = SpikeMonitor(cells)
        Network(cells, source, first, second, mon).run(10 * ms, namespace={})
        rows.append({"delay_steps": d, "spike_steps": np.rint(mon.t / (DT * ms)).astype(int).tolist()})
        assert rows[-1]["spike_steps"] == [31, 32 + d]
    out["chain_of_two_neurons"] = rows
    # refractory: spike in step 0, a drive that moves v as soon as it is free
    rows = []
    for r in (0.0, 0.1, 0.2, 0.5, 2.0, 5.0):
        states, fired = run_cells([{"v": -49.0, "drive": 11.0}], 80, refractory=r)
        v = states["v"][0]
        free = next(k for k in range(1, 80) if abs(v[k] + 60.0) > 1e-9)
        again = run_cells([{"v": -49.0, "drive": 1e5}], 120, refractory=r)[1][0]
        rows.append({"refractory_steps": round(r / DT), "spike_step": fired[0][0], "v_at_start_of_next_step": v[1],
                     "first_v_not_at_reset": free, "spike_steps_under_an_enormous_drive": again[:3]})
        every = max(1, round(r / DT))
        assert fired[0][0] == 0 and free == every + 1 and again[:3] == [0, every, 2 * every]
    out["refractory"] = rows
    # jumps of 1 mV around a spike in step 10 (made by a jump that arrives in step 9), v at the start of step 40
    arrivals, kept = list(range(7, 35)), {}
    rows = [{"input": [(9, 0, 20.0), (a, 0, 1.0)]} for a in arrivals]
    for name, eqs in (("unless_refractory", LIF_EQS), ("without_the_flag", LIF_EQS.replace(" (unless refractory)", ""))):
        states, fired = run_cells(rows, 41, eqs)
        assert all(f == [10] for f in fired)
        kept[name] = states["v"][:, 40] + 60.0
    exact = np.array([math.exp(-(39 - a) * DT / 20.0) for a in arrivals])
    assert max_abs_diff(kept["unless_refractory"], np.where(np.array(arrivals) >= 30, exact, 0.0)) < 1e-10
    assert max_abs_diff(kept["without_the_flag"], np.where(np.array(arrivals) > 10, exact, 0.0)) < 1e-10
    out["jump_of_1_mV_near_a_spike_in_step_10"] = {"arrival_steps": arrivals, "v_minus_El_at_40_mV": kept["unless_refractory"],
                                                  "v_minus_El_at_40_without_the_flag_mV": kept["without_the_flag"]}
    # without the flag and with a jump over the threshold while refractory: the test waits, v does not
    states, fired = run_cells([{"input": [(9, 0, 20.0), (15, 0, 20.0)]}], 41, LIF_EQS.replace(" (unless refractory)", ""))
    out["without_the_flag_20_mV_in_step_15_refractory_from_10"] = {
        "spike_steps": fired[0], "v_at_16_30_31_mV": states["v"][0][[16, 30, 31]]}
    assert fired[0] == [10, 30]
    # conductances go on while v is held
    states, fired = run_cells([{"v": -49.0, "input": [(5, 0, 2.0)]}], 60, COBA_EQS, "ge", nS, 5.0, ("v", "ge"))
    out["ge_2_nS_in_step_5_refractory_from_0"] = {"spike_steps": fired[0], "ge_at_5_6_7_50_nS": states["ge"][0][[5, 6, 7, 50]],
                                                 "v_at_49_50_51_mV": states["v"][0][49:52]}
    assert fired[0] == [0] and np.all(states["v"][0][1:51] == states["v"][0][1]) and states["v"][0][51] > -59.99
    # delays that are no whole step
    asked = (0.0, 0.04, 0.06, 0.14, 0.16, 1.24, 1.26)
    states, _ = run_cells([{"input": [(50, d / DT, 2.0)]} for d in asked], 80)
    out["rounding_of_delays"] = {"delay_ms": asked, "steps": [first_moved(v) - 51 for v in states["v"]]}
    return out


def main():
    coba, cross_coba = net_of("coba", 21)
    lif, cross_lif = net_of("lif", 22)
    store("spiking_brian2", {
        "what": "Brian2: nets with explicit edges, semantics; see README.md", "net_coba": coba, "net_lif_delta": lif,
        "semantics": semantics(), "cross_check": {"net_coba": cross_coba, "net_lif_delta": cross_lif},
        "versions": versions("brian2", "numpy")})


if __name__ == "__main__":
    main()
