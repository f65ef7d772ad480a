"""Pair STDP in NEST. All of its delay is behind the synapse: it is the spike of the target that comes later to the synapse."""
import json

import nest
import numpy as np

nest.verbosity = nest.VerbosityLevel.ERROR
nest.resolution = 0.1

delay, pairs = 1.0, 100.0 * np.arange(10)
nest.CopyModel("stdp_synapse", "pair", {"Wmax": 1.0, "lambda": 0.05, "alpha": 1.05, "tau_plus": 20.0, "mu_plus": 0.0, "mu_minus": 0.0})
behind = nest.Create("parrot_neuron", 8, {"tau_minus": 20.0})
before = nest.Create("parrot_neuron", 8)
for number in range(8):
    apart = 10.0 * number - 35.0
    # Weights are brought up to date when a spike comes from before, so one comes long after all others.
    first = nest.Create("spike_generator", {"spike_times": [*(50.0 + pairs), 3000.0]})
    second = nest.Create("spike_generator", {"spike_times": 50.0 + apart - delay + pairs})
    nest.Connect(first, before[number], syn_spec={"delay": 0.1})
    nest.Connect(second, behind[number], syn_spec={"delay": 0.1})
# To its receptor 1 a parrot listens without repeating what comes.
nest.Connect(before, behind, "one_to_one", {"synapse_model": "pair", "weight": 0.5, "delay": delay, "receptor_type": 1})
nest.Simulate(3010.0)
synapses = nest.GetConnections(synapse_model="pair")
weights = dict(zip(synapses.source, synapses.weight))
print(json.dumps({"weights": [weights[cell] for cell in before.tolist()]}))
