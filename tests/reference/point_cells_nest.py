"""Neurons with moving thresholds in NEST: MAT, and the generalized integrate-and-fire neuron. See README.md."""
import nest
import numpy as np

from common import store, versions
from spiking_nest import DT, kernel

STEPS = 10000
MAT = {"C_m": 100.0, "tau_m": 5.0, "E_L": -70.0, "omega": -51.0, "alpha_1": 37.0, "alpha_2": 2.0, "tau_1": 10.0,
       "tau_2": 200.0, "t_ref": 2.0, "tau_syn_ex": 2.0, "tau_syn_in": 3.0}
# Three with a constant current, and one with none that is driven.
I_E = [400.0, 550.0, 900.0, 0.0]
TIMES = {900.0: [5.0, 5.4, 9.0, 40.0, 41.5, 90.1], 700.0: [200.0 + 1.7 * k for k in range(60)], -300.0: [250.0 + 11.0 * k for k in range(5)]}
GIF = {"C_m": 80.0, "g_L": 4.0, "E_L": -70.0, "V_reset": -55.0, "Delta_V": 2.0, "V_T_star": -40.0, "lambda_0": 10.0, "t_ref": 4.0,
       "tau_sfa": [15.0, 150.0], "q_sfa": [8.0, 3.0], "tau_stc": [8.0, 90.0], "q_stc": [20.0, 6.0]}
GIF_I_E, GIF_N, GIF_MS = [120.0, 160.0, 240.0], 1000, 5000.0


def mat():
    kernel()
    cells = nest.Create("mat2_psc_exp", len(I_E), params=MAT)
    cells.I_e = I_E
    for weight, times in TIMES.items():
        source = nest.Create("spike_generator", {"spike_times": [round(t, 1) for t in times]})
        nest.Connect(source, cells[3], syn_spec={"weight": weight, "delay": 1.0})
    recorder = nest.Create("spike_recorder", {"time_in_steps": True})
    meter = nest.Create("multimeter", {"record_from": ["V_m", "V_th"], "interval": DT})
    nest.Connect(cells, recorder)
    nest.Connect(meter, cells)
    nest.Simulate((STEPS + 1) * DT)
    first = cells[0].global_id
    ev = recorder.events
    spikes = [[int(s) for s, i in zip(ev["times"], ev["senders"]) if i == first + at and s <= STEPS] for at in range(len(I_E))]
    ev, sampled = meter.events, list(range(50, STEPS + 1, 50))
    trace = {}
    for key in ("V_m", "V_th"):
        all_ = [dict(zip(np.rint(ev["times"][ev["senders"] == first + at] / DT).astype(int).tolist(),
                         ev[key][ev["senders"] == first + at].tolist())) for at in range(len(I_E))]
        trace[key + "_mV"] = [[of[k] for k in sampled] for of in all_]
    return {"parameters": MAT, "I_e_pA": I_E, "dt_ms": DT, "steps": STEPS, "delay_ms": 1.0,
            "arrivals": [{"weight_pA": w, "times_ms": [round(t, 1) for t in times]} for w, times in TIMES.items()],
            "spike_steps": spikes, "sample_steps": sampled, **trace}


def gif():
    """Rates and the variation of intervals of many neurons: what is random is so in every simulator."""
    facts = []
    for current in GIF_I_E:
        kernel()
        nest.rng_seed = 7
        cells = nest.Create("gif_psc_exp", GIF_N, params=GIF)
        cells.I_e = current
        recorder = nest.Create("spike_recorder")
        nest.Connect(cells, recorder)
        nest.Simulate(GIF_MS)
        ev = recorder.events
        trains = [np.sort(ev["times"][ev["senders"] == i]) for i in cells.tolist()]
        late = [t[t > 1000.0] for t in trains]
        rates = np.array([len(t) for t in late]) / (GIF_MS - 1000.0) * 1000.0
        cvs = [np.std(np.diff(t)) / np.mean(np.diff(t)) for t in late if len(t) > 5]
        early = [len(t[t <= 100.0]) for t in trains]
        facts.append({"I_e_pA": current, "rate_Hz": float(rates.mean()), "rate_error_Hz": float(rates.std() / np.sqrt(GIF_N)),
                      "cv": float(np.mean(cvs)), "cv_error": float(np.std(cvs) / np.sqrt(len(cvs))),
                      "spikes_in_100_ms": float(np.mean(early)), "spikes_error": float(np.std(early) / np.sqrt(GIF_N))})
    return {"parameters": GIF, "dt_ms": DT, "neurons": GIF_N, "duration_ms": GIF_MS, "from_ms": 1000.0, "facts": facts}


def main():
    store("point_cells_nest", {"what": "NEST: neurons with moving thresholds; see README.md", "mat": mat(), "gif": gif(),
                               "versions": versions("nest", "numpy")})


if __name__ == "__main__":
    main()
