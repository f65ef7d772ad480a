"""f-I curve in NEST: iaf_psc_delta, exactly integrated. Time constant and capacitance say what the resistance is."""
import json

import nest

nest.verbosity = nest.VerbosityLevel.ERROR
nest.resolution = 0.1

cells = nest.Create("iaf_psc_delta", 12, params={"C_m": 200.0, "tau_m": 20.0, "E_L": -60.0, "V_m": -60.0, "V_th": -50.0, "V_reset": -60.0,
                                                 "t_ref": 2.0})          # pF, ms, mV
cells.I_e = [90.0 + 20.0 * number for number in range(12)]               # pA
recorder = nest.Create("spike_recorder")
nest.Connect(cells, recorder)
nest.Simulate(500.0)
events = recorder.events
spikes = [[t, int(i) - 1] for t, i in zip(events["times"], events["senders"])]
print(json.dumps({"spikes": spikes, "counts": [sum(i == number for _, i in spikes) for number in range(12)]}))
