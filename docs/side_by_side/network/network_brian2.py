"""The network in Brian2: linear equations, solved exactly."""
import json

import numpy as np
from brian2 import NeuronGroup, SpikeMonitor, Synapses, defaultclock, ms, mV, pA, pF, prefs, run

prefs.codegen.target = "numpy"
dt = defaultclock.dt = 0.1 * ms

eqs = """
dv/dt = (-70*mV - v)/(10*ms) + (500*pA + I)/(250*pF) : volt (unless refractory)
dI/dt = -I/(2*ms) : amp
"""
# In Brian2 the step of the spike is the first of the refractory ones, so that the time has one step more than elsewhere.
cells = NeuronGroup(200, eqs, method="exact", threshold="v >= -55*mV", reset="v = -70*mV", refractory=2 * ms + dt)
cells.v = "-70*mV + 15*mV*(i/200)"
source, target, weight, delay = np.loadtxt("edges.csv", delimiter=",", skiprows=1).T
synapses = Synapses(cells, cells, "w : amp", on_pre="I_post += w")
synapses.connect(i=source.astype(int), j=target.astype(int))
synapses.w = weight * pA
synapses.delay = delay * ms
spikes = SpikeMonitor(cells)
run(300 * ms)
print(json.dumps({"spikes": [[t + 0.1, int(i)] for t, i in zip(spikes.t / ms, spikes.i)]}))      # the end of the step
