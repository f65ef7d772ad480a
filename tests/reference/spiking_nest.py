"""Nets of integrate-and-fire neurons in NEST, single neurons, and what NEST does in which step. See README.md."""
import math
import random

import nest
import numpy as np

from common import max_abs_diff, random_edges, spike_facts, store, versions

DT, N, N_EXC, STEPS, SAMPLED = 0.1, 100, 80, 10000, (0, 42, 95)
CELL = {"C_m": 250.0, "tau_m": 10.0, "E_L": -70.0, "V_th": -55.0, "V_reset": -70.0, "t_ref": 2.0}
SYN = {"tau_syn_ex": 2.0, "tau_syn_in": 5.0}
REF = round(CELL["t_ref"] / DT)


def kernel():
    nest.ResetKernel()
    nest.verbosity = nest.VerbosityLevel.ERROR
    nest.local_num_threads = 1
    nest.resolution = DT


def start(seed, n, i_lo, i_hi):
    rng = random.Random(seed)
    return {"I_e": [i_lo + (i_hi - i_lo) * int(rng.random() * 64) / 64 for _ in range(n)],
            "V_init": [-70.0 + 14.0 * int(rng.random() * 64) / 64 for _ in range(n)]}


# ---------------------------------------------------------------- nets
def run_net(model, params, net):
    kernel()
    cells = nest.Create(model, N, params=params)
    cells.V_m, cells.I_e = net["V_init_mV"], net["I_e_pA"]
    ids, e = np.array(cells.tolist()), net["edges"]
    nest.Connect(ids[e["pre"]], ids[e["post"]], "one_to_one",
                 {"weight": np.array(e["weight"], dtype=float), "delay": np.array(e["delay_steps"]) * DT})
    recorder = nest.Create("spike_recorder", {"time_in_steps": True})
    meter = nest.Create("multimeter", {"record_from": ["V_m"], "interval": 1.0, "stop": 100.0})
    nest.Connect(cells, recorder)
    for i in SAMPLED:
        nest.Connect(meter, cells[i])
    nest.Simulate(STEPS * DT)
    ev = recorder.events
    assert not np.any(ev["offsets"])
    spikes = sorted((int(s), int(i - ids[0])) for s, i in zip(ev["times"], ev["senders"]))
    ev = meter.events
    v = {i: ev["V_m"][ev["senders"] == ids[i]] for i in SAMPLED}
    t = ev["times"][ev["senders"] == ids[SAMPLED[0]]]
    return spikes, [round(x / DT) for x in t], [v[i] for i in SAMPLED]


def replay(model, net, disturbed=0.0):
    """The same net in a plain loop, with the semantics of the README; also how near a potential came to the threshold."""
    e, c = net["edges"], CELL
    out = [[] for _ in range(N)]
    for pre, post, w, d in zip(e["pre"], e["post"], e["weight"], e["delay_steps"]):
        out[pre].append((post, w, d))
    ring_ex, ring_in = np.zeros((16, N)), np.zeros((16, N))
    v = (np.array(net["V_init_mV"]) - c["E_L"]) * (1.0 + disturbed)
    i_e, ex, inh, refractory = np.array(net["I_e_pA"]), np.zeros(N), np.zeros(N), np.zeros(N, dtype=int)
    p22 = math.exp(-DT / c["tau_m"])
    p20 = c["tau_m"] / c["C_m"] * (1.0 - p22)
    decay, gain = {}, {}
    for k, tau in SYN.items():
        decay[k] = math.exp(-DT / tau)
        gain[k] = tau * c["tau_m"] / (c["C_m"] * (tau - c["tau_m"])) * (decay[k] - p22)
    theta, reset = c["V_th"] - c["E_L"], c["V_reset"] - c["E_L"]
    spikes, samples, margin = [], [], math.inf
    for step in range(1, STEPS + 1):                       # ends at t = step dt
        free, slot = refractory == 0, step % 16
        if model == "iaf_psc_delta":
            v = np.where(free, p22 * v + p20 * i_e + ring_ex[slot] + ring_in[slot], v)
        else:
            v = np.where(free, p22 * v + gain["tau_syn_ex"] * ex + gain["tau_syn_in"] * inh + p20 * i_e, v)
            ex = ex * decay["tau_syn_ex"] + ring_ex[slot]
            inh = inh * decay["tau_syn_in"] + ring_in[slot]
        ring_ex[slot], ring_in[slot] = 0.0, 0.0
        refractory = np.where(free, 0, refractory - 1)
        margin = min(margin, float(np.min(np.abs(v[free] - theta))))
        for i in np.flatnonzero(v >= theta):
            v[i], refractory[i] = reset, REF
            spikes.append((step, int(i)))
            for post, w, d in out[i]:
                (ring_ex if w > 0 else ring_in)[(step + d) % 16, post] += w
        if step % 10 == 0 and step <= 1000:
            samples.append(v[list(SAMPLED)] + c["E_L"])
    return spikes, np.array(samples).T, margin


def net_of(model, seed, w_exc, w_inh, unit, i_lo, i_hi):
    params = dict(CELL) if model == "iaf_psc_delta" else CELL | SYN
    first = start(seed, N, i_lo, i_hi)
    net = {"model": model, "parameters": params, "dt_ms": DT, "steps": STEPS, "neurons": N, "excitatory": N_EXC,
           "weight_unit": unit, "I_e_pA": first["I_e"], "V_init_mV": first["V_init"],
           "edges": random_edges(seed, N, N_EXC, 6, 4, w_exc, w_inh, (1, 2, 3, 5, 8, 10, 12, 15))}
    spikes, at, v = run_net(model, params, net)
    again, samples, margin = replay(model, net)
    assert again == spikes, f"{model}: the plain loop spikes otherwise"
    for x in (1e-12, -1e-12):
        assert replay(model, net, x)[0] == spikes, f"{model}: rounding decides a spike"
    steps, neurons = [s for s, _ in spikes], [i for _, i in spikes]
    net |= {"facts": spike_facts(steps, neurons, N, DT, STEPS * DT), "spike_steps": steps, "spike_neurons": neurons,
            "sampled_neurons": SAMPLED, "sample_steps": at, "V_m_mV": v}
    return net, {"plain_loop_has_the_same_spikes": True, "plain_loop_V_m_max_abs_diff_mV": max_abs_diff(v, samples),
                 "nearest_to_threshold_mV": margin}


# ---------------------------------------------------------------- single neurons
def run_one(model, params, arrivals, steps, record=("V_m",)):
    """`arrivals`: (stamp of the generator's spike, delay in steps, weight). States at steps 1..steps, spike stamps."""
    kernel()
    cell = nest.Create(model, params=params)
    recorder = nest.Create("spike_recorder", {"time_in_steps": True})
    meter = nest.Create("multimeter", {"record_from": list(record), "interval": DT})
    nest.Connect(cell, recorder)
    nest.Connect(meter, cell)
    for stamp, delay, weight in arrivals:
        source = nest.Create("spike_generator", {"spike_times": [round(stamp * DT, 1)]})
        nest.Connect(source, cell, syn_spec={"weight": weight, "delay": round(delay * DT, 1)})
    nest.Simulate(round((steps + 1) * DT, 1))
    ev = meter.events
    order = np.argsort(ev["times"])[:steps]
    assert [round(t / DT) for t in ev["times"][order]] == list(range(1, steps + 1))
    return {k: ev[k][order] for k in record}, [int(s) for s in recorder.events["times"] if s <= steps]


def single():
    out, cross = {}, {}
    for model, weight, stamp, delay in (("iaf_psc_delta", 2.0, 50, 15), ("iaf_psc_exp", 500.0, 50, 15)):
        params = dict(CELL) if model == "iaf_psc_delta" else CELL | SYN
        states, spikes = run_one(model, params, [(stamp, delay, weight)], 300,
                                 ("V_m",) if model == "iaf_psc_delta" else ("V_m", "I_syn_ex"))
        assert not spikes
        tm, arrival = CELL["tau_m"], stamp + delay
        after = [max(0, k - arrival) * DT for k in range(1, 301)]
        if model == "iaf_psc_delta":
            exact = [-70.0 + (weight * math.exp(-s / tm) if k >= arrival else 0.0) for k, s in enumerate(after, 1)]
        else:
            ts = SYN["tau_syn_ex"]
            exact = [-70.0 + weight / CELL["C_m"] * tm * ts / (tm - ts) * (math.exp(-s / tm) - math.exp(-s / ts))
                     for s in after]
        cross[model + "_closed_form_V_m_max_abs_diff_mV"] = max_abs_diff(exact, states["V_m"])
        out[model] = {"parameters": params | {"I_e": 0.0}, "weight": weight, "generator_stamp_step": stamp,
                      "delay_steps": delay, "steps": [1, 300], "V_m_mV": states["V_m"]}
        if model == "iaf_psc_exp":
            out[model]["I_syn_ex_pA"] = states["I_syn_ex"]
    return out, cross


# ---------------------------------------------------------------- what happens in which step
def first_moved(v):
    return next(k for k, x in enumerate(v, 1) if x != -70.0)


def semantics():
    delta, exp = dict(CELL), CELL | SYN
    out = {"what": "steps are stamps: step k ends at t = k dt; V_m and I_syn are those that NEST records with stamp k"}
    # arrival of a spike with stamp 50, below the threshold
    rows = []
    for d in (1, 2, 15):
        v = run_one("iaf_psc_delta", delta, [(50, d, 2.0)], 80)[0]["V_m"]
        s = run_one("iaf_psc_exp", exp, [(50, d, 500.0)], 80, ("V_m", "I_syn_ex"))[0]
        rows.append({"delay_steps": d, "delta_first_V_m_moved": first_moved(v), "delta_V_m_there": v[first_moved(v) - 1],
                     "exp_first_I_syn": int(np.flatnonzero(s["I_syn_ex"])[0]) + 1,
                     "exp_I_syn_there": s["I_syn_ex"][np.flatnonzero(s["I_syn_ex"])[0]],
                     "exp_first_V_m_moved": first_moved(s["V_m"])})
        assert rows[-1] == {"delay_steps": d, "delta_first_V_m_moved": 50 + d, "delta_V_m_there": -68.0,
                            "exp_first_I_syn": 50 + d, "exp_I_syn_there": 500.0, "exp_first_V_m_moved": 51 + d}
    out["arrival_of_a_spike_with_stamp_50"] = rows
    # a jump over the threshold, and one exactly to it
    v, over = run_one("iaf_psc_delta", delta, [(50, 15, 20.0)], 100)
    equal = run_one("iaf_psc_delta", delta, [(50, 15, 15.0)], 100)[1]
    below = run_one("iaf_psc_delta", delta, [(50, 15, 15.0 - 2.0**-40)], 100)[1]
    out["jump_at_65_over_the_threshold"] = {"spike_stamps": over, "V_m_at_64_65": v["V_m"][63:65],
                                            "jump_exactly_to_V_th": equal, "jump_9e-13_mV_less": below}
    assert over == [65] and equal == [65] and below == []
    # neuron to neuron
    rows = []
    for d in (1, 15):
        kernel()
        a, b = nest.Create("iaf_psc_delta", params=delta), nest.Create("iaf_psc_delta", params=delta)
        source = nest.Create("spike_generator", {"spike_times": [3.0]})
        recorder = nest.Create("spike_recorder", {"time_in_steps": True})
        nest.Connect(source, a, syn_spec={"weight": 20.0, "delay": 0.1})
        nest.Connect(a, b, syn_spec={"weight": 20.0, "delay": round(d * DT, 1)})
        nest.Connect(a + b, recorder)
        nest.Simulate(10.0)
        rows.append({"delay_steps": d, "stamps": sorted(int(s) for s in recorder.events["times"])})
        assert rows[-1]["stamps"] == [31, 31 + d]
    out["chain_of_two_neurons"] = rows
    try:
        run_one("iaf_psc_delta", delta, [(50, 0, 2.0)], 60)
        out["delay_of_0_steps"] = "accepted"
    except Exception as error:                             # NEST makes its error classes as they occur
        out["delay_of_0_steps"] = type(error).__name__
    assert out["delay_of_0_steps"] == "BadDelay"
    # refractory: spike with stamp 10 made by a jump, and a current that moves V_m as soon as it is free
    rows = []
    for t_ref in (0.0, 0.1, 0.5, 2.0):
        for model, params in (("iaf_psc_delta", delta), ("iaf_psc_exp", exp)):
            v, spikes = run_one(model, params | {"t_ref": t_ref, "I_e": 400.0, "V_m": -55.0}, [], 60)
            s = spikes[0]
            free = next(k for k in range(s + 1, 61) if v["V_m"][k - 1] != -70.0)
            rows.append({"model": model, "t_ref_steps": round(t_ref / DT), "spike_stamp": s,
                         "V_m_at_spike": v["V_m"][s - 1], "first_V_m_not_at_reset": free})
            assert free == s + round(t_ref / DT) + 1
    out["refractory"] = rows
    v, spikes = run_one("iaf_psc_delta", delta, [(9, 1, 20.0)] + [(k, 1, 20.0) for k in range(10, 60)], 60)
    assert spikes == [10, 31, 52]
    out["a_20_mV_jump_at_every_step_from_10"] = {"spike_stamps": spikes}
    # jumps of 1 mV that arrive around a spike with stamp 10 (refractory in steps 11..30), V_m at step 40
    arrivals, rows = list(range(8, 35)), {}
    for refractory_input in (False, True):
        rows[refractory_input] = [
            run_one("iaf_psc_delta", delta | {"refractory_input": refractory_input},
                    [(9, 1, 20.0), (a - 1, 1, 1.0)], 40)[0]["V_m"][39] + 70.0 for a in arrivals]
    free = [math.exp(-(40 - a) * DT / CELL["tau_m"]) for a in arrivals]
    assert all(abs(x - (f if a > 30 else 0.0)) < 1e-12 for a, x, f in zip(arrivals, rows[False], free))
    assert all(abs(x - (f if a > 10 else 0.0)) < 1e-12 for a, x, f in zip(arrivals, rows[True], free))
    out["jump_of_1_mV_near_a_spike_with_stamp_10"] = {
        "arrival_steps": arrivals, "V_m_minus_E_L_at_40": rows[False],
        "V_m_minus_E_L_at_40_refractory_input_true": rows[True]}
    # iaf_psc_exp: the current goes on while V_m is held
    s, spikes = run_one("iaf_psc_exp", exp | {"V_m": -54.0}, [(4, 1, 500.0)], 25, ("V_m", "I_syn_ex"))
    assert spikes == [1] and first_moved(s["V_m"]) == 22
    out["exp_500_pA_at_5_refractory_from_1"] = {"spike_stamps": spikes, "I_syn_ex_at_5_6_21_22": s["I_syn_ex"][[4, 5, 20, 21]],
                                               "V_m_at_20_21_22_23": s["V_m"][19:23]}
    return out


def main():
    delta, cross_delta = net_of("iaf_psc_delta", 11, (1.0, 1.5, 2.0, 3.0), (-4.0, -6.0, -8.0), "mV", 330.0, 430.0)
    exp, cross_exp = net_of("iaf_psc_exp", 12, (120.0, 180.0, 300.0, 480.0), (-200.0, -300.0, -400.0), "pA", 345.0, 455.0)
    one, cross_one = single()
    store("spiking_nest", {
        "what": "NEST: nets with explicit edges, single neurons, semantics; see README.md", "net_psc_delta": delta,
        "net_psc_exp": exp, "single": one, "semantics": semantics(),
        "cross_check": {"net_psc_delta": cross_delta, "net_psc_exp": cross_exp, "single": cross_one},
        "versions": versions("nest", "numpy")})


if __name__ == "__main__":
    main()
