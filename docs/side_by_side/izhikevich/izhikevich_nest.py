"""Izhikevich's neuron in NEST."""
import json

import nest

nest.verbosity = nest.VerbosityLevel.ERROR
nest.resolution = 0.1

# `consistent_integration` is one forward Euler step with the step of the simulation; without it there are two half steps for v.
cell = nest.Create("izhikevich", params={"a": 0.02, "b": 0.2, "c": -65.0, "d": 8.0, "V_m": -65.0, "U_m": -13.0, "V_th": 30.0, "I_e": 10.0,
                                         "consistent_integration": True})
meter = nest.Create("multimeter", {"record_from": ["V_m", "U_m"], "interval": 1.0})
nest.Connect(meter, cell)
recorder = nest.Create("spike_recorder")
nest.Connect(cell, recorder)
nest.Simulate(301.0)
v, u = ([first, *meter.events[key][:300]] for key, first in (("V_m", -65.0), ("U_m", -13.0)))
print(json.dumps({"spikes": [t for t in recorder.events["times"] if t < 300.05], "v": v, "u": u}))
