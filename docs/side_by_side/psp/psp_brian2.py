"""Postsynaptic potentials in Brian2: the two exponentials are two equations, and the factor for a peak of 1 is computed by hand."""
import json

from brian2 import (NeuronGroup, SpikeGeneratorGroup, StateMonitor, Synapses, defaultclock, ms, mV, nS, pF, prefs, run)

prefs.codegen.target = "numpy"
dt = defaultclock.dt = 0.1 * ms

rise, decay = 0.5 * ms, 5 * ms
peak = decay / (decay - rise) * (decay / rise) ** (rise / (decay - rise))
eqs = """
dv/dt = (10*nS*(-65*mV - v) + g*(0*mV - v)) / (200*pF) : volt
g = peak*(falling - rising) : siemens
dfalling/dt = -falling/decay : siemens
drising/dt = -rising/rise : siemens
"""
cell = NeuronGroup(1, eqs, method="rk4")
cell.v = -65 * mV
source = SpikeGeneratorGroup(1, [0] * 4, [10, 20, 23, 60] * ms)
# What arrives in the step that begins at t is there when the step has been taken, at t + dt.
synapse = Synapses(source, cell, on_pre="falling += 2*nS; rising += 2*nS", delay=1.5 * ms - dt)
synapse.connect()
v = StateMonitor(cell, "v", record=True, dt=0.5 * ms)
run(100 * ms)
v.record_single_timestep()
print(json.dumps({"v": list(v.v[0] / mV)}))
