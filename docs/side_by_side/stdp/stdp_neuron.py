"""Pair STDP in NEURON, by stdp.mod (`nrnivmodl` first): spikes of both sides are events of the synapse."""
import json

from neuron import h

h.load_file("stdrun.hoc")

host = h.Section(name="host")
synapses, keep = [], []


def train(first):
    source = h.NetStim()
    source.start, source.interval, source.number, source.noise = first, 100, 10, 0
    return source


for number in range(8):
    synapse = h.StdpSyn(host(0.5))
    before, behind = train(50), train(51 + 10 * number - 35)
    arrives, fires = h.NetCon(before, synapse), h.NetCon(behind, synapse)
    arrives.delay, arrives.weight[0] = 1, 1
    fires.delay, fires.weight[0] = 0, -1
    synapses.append(synapse)
    keep += [before, behind, arrives, fires]

h.dt, h.steps_per_ms, h.tstop = 0.1, 10, 1000
h.run()
print(json.dumps({"weights": [1000 * synapse.w for synapse in synapses]}))          # nS
