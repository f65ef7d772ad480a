"""f-I curve in Brian2: the equation is linear, so it is solved exactly."""
import json

from brian2 import Mohm, NeuronGroup, SpikeMonitor, defaultclock, ms, mV, nA, prefs, run

prefs.codegen.target = "numpy"
dt = defaultclock.dt = 0.1 * ms

eqs = """
dv/dt = (-60*mV - v + 100*Mohm*I) / (20*ms) : volt (unless refractory)
I : amp
"""
# In Brian2 the step of the spike is the first of the refractory ones, so that the time has one step more than elsewhere.
cells = NeuronGroup(12, eqs, method="exact", threshold="v > -50*mV", reset="v = -60*mV", refractory=2 * ms + dt)
cells.v = -60 * mV
cells.I = "0.09*nA + 0.02*nA*i"
spikes = SpikeMonitor(cells)
run(500 * ms)
print(json.dumps({"spikes": [[t + 0.1, int(i)] for t, i in zip(spikes.t / ms, spikes.i)],       # the end of the step
                  "counts": [int(n) for n in spikes.count]}))
