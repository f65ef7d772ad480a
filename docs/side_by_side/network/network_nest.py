"""The network in NEST: iaf_psc_exp, exactly integrated."""
import json

import nest
import numpy as np

nest.verbosity = nest.VerbosityLevel.ERROR
nest.resolution = 0.1

cells = nest.Create("iaf_psc_exp", 200, params={"C_m": 250.0, "tau_m": 10.0, "E_L": -70.0, "V_th": -55.0, "V_reset": -70.0, "t_ref": 2.0,
                                                "tau_syn_ex": 2.0, "tau_syn_in": 2.0, "I_e": 500.0})
cells.V_m = list(-70.0 + 15.0 * (np.arange(200) / 200))
source, target, weight, delay = np.loadtxt("edges.csv", delimiter=",", skiprows=1).T
nest.Connect((source + 1).astype(int), (target + 1).astype(int), "one_to_one", {"weight": weight, "delay": delay})
recorder = nest.Create("spike_recorder")
nest.Connect(cells, recorder)
nest.Simulate(300.1)
events = recorder.events
print(json.dumps({"spikes": [[t, int(i) - 1] for t, i in zip(events["times"], events["senders"]) if t < 300.05]}))
