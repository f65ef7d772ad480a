"""Postsynaptic potentials in NEST: iaf_cond_beta, whose conductances rise and decay exponentially and have their weight as the peak."""
import json

import nest

nest.verbosity = nest.VerbosityLevel.ERROR
nest.resolution = 0.025

cell = nest.Create("iaf_cond_beta", params={"C_m": 200.0, "g_L": 10.0, "E_L": -65.0, "V_m": -65.0, "E_ex": 0.0, "tau_rise_ex": 0.5, "tau_decay_ex": 5.0,
                                            "V_th": 1000.0})             # pF, nS, mV, ms; it never spikes
source = nest.Create("spike_generator", {"spike_times": [10.0, 20.0, 23.0, 60.0]})
nest.Connect(source, cell, syn_spec={"weight": 2.0, "delay": 1.5})
meter = nest.Create("multimeter", {"record_from": ["V_m"], "interval": 0.5})
nest.Connect(meter, cell)
nest.Simulate(101.0)
print(json.dumps({"v": [-65.0, *meter.events["V_m"][:200]]}))
