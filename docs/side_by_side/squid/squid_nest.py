"""Squid axon in NEST: hh_psc_alpha, whose quantities are absolute (pF, nS, pA) and which steps adaptively in between."""
import json

import nest
import numpy as np

nest.verbosity = nest.VerbosityLevel.ERROR
nest.resolution = 0.025

area = 1000e-8                          # cm2
axon = nest.Create("hh_psc_alpha", params={
    "C_m": 1e6 * area, "g_Na": 120e6 * area, "g_K": 36e6 * area, "g_L": 0.3e6 * area,       # pF, nS
    "E_Na": 50.0, "E_K": -77.0, "E_L": -54.4, "t_ref": 0.0})
v0 = -65.0
axon.V_m = v0
rates = {"m": (1 / ((1 - np.exp(-(v0 + 40) / 10)) / ((v0 + 40) / 10)), 4 * np.exp(-(v0 + 65) / 18)),
         "h": (0.07 * np.exp(-(v0 + 65) / 20), 1 / (1 + np.exp(-(v0 + 35) / 10))),
         "n": (0.1 / ((1 - np.exp(-(v0 + 55) / 10)) / ((v0 + 55) / 10)), 0.125 * np.exp(-(v0 + 65) / 80))}
axon.set({name: a / (a + b) for name, key in (("Act_m", "m"), ("Inact_h", "h"), ("Act_n", "n")) for a, b in [rates[key]]})

# A current takes a delay of one step from the generator to the cell.
step = nest.Create("dc_generator", {"amplitude": 100.0, "start": 5.0 - 0.025, "stop": 45.0 - 0.025})    # pA, ms
nest.Connect(step, axon, syn_spec={"delay": 0.025})
meter = nest.Create("multimeter", {"record_from": ["V_m"], "interval": 0.025})
nest.Connect(meter, axon, syn_spec={"delay": 0.025})
nest.Simulate(60.0 + 0.025)

v = np.concatenate([[v0], meter.events["V_m"]])[:2401]      # the first sample is that of the first step's end
# hh_psc_alpha reports a spike at its peak; the others at the upward crossing of 0 mV, so that is looked for here.
crossed = np.flatnonzero((v[:-1] < 0) & (v[1:] >= 0)) + 1
print(json.dumps({"spikes": list(crossed * 0.025), "v": list(v[::4])}))
