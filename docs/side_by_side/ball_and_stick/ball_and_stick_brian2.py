"""Ball and stick in Brian2: a SpatialNeuron with one set of equations, whose conductances differ from place to place."""
import json

import numpy as np
from brian2 import (Cylinder, SpatialNeuron, SpikeGeneratorGroup, StateMonitor, Synapses, cm, defaultclock, ms, mV, nS, ohm, prefs, run, siemens,
                    uF, um)

prefs.codegen.target = "numpy"
dt = defaultclock.dt = 0.025 * ms

morphology = Cylinder(length=20 * um, diameter=20 * um, n=1)
morphology.dend = Cylinder(length=400 * um, diameter=2 * um, n=21)
e_na, e_k, tau = 50 * mV, -77 * mV, 2 * ms
eqs = """
Im = g_na*m**3*h*(e_na - v) + g_k*n**4*(e_k - v) + g_l*(e_l - v) : amp/meter**2
I = g*(0*mV - v) : amp (point current)
dg/dt = -g/tau : siemens
g_na : siemens/meter**2
g_k : siemens/meter**2
g_l : siemens/meter**2
e_l : volt
dm/dt = a_m*(1 - m) - b_m*m : 1
dh/dt = a_h*(1 - h) - b_h*h : 1
dn/dt = a_n*(1 - n) - b_n*n : 1
a_m = 1/ms / exprel(-(v + 40*mV)/(10*mV)) : Hz
b_m = 4/ms * exp(-(v + 65*mV)/(18*mV)) : Hz
a_h = 0.07/ms * exp(-(v + 65*mV)/(20*mV)) : Hz
b_h = 1/ms / (1 + exp(-(v + 35*mV)/(10*mV))) : Hz
a_n = 0.1/ms / exprel(-(v + 55*mV)/(10*mV)) : Hz
b_n = 0.125/ms * exp(-(v + 65*mV)/(80*mV)) : Hz
"""
cell = SpatialNeuron(morphology, eqs, Cm=1 * uF / cm**2, Ri=100 * ohm * cm, method="exponential_euler")
cell.v = -65 * mV
cell.m, cell.h, cell.n = "a_m/(a_m + b_m)", "a_h/(a_h + b_h)", "a_n/(a_n + b_n)"
cell.g_na[0], cell.g_k[0], cell.g_l[0], cell.e_l[0] = 0.12 * siemens / cm**2, 0.036 * siemens / cm**2, 3e-4 * siemens / cm**2, -54.3 * mV
cell.dend.g_l, cell.dend.e_l = 5e-5 * siemens / cm**2, -65 * mV

# An event of the step that begins at t reaches the synapse when this step has been taken, so at t + dt. The next step lets g decay
# before it is used, which the factor takes back: without it the current would be that of one step later.
events = SpikeGeneratorGroup(1, [0, 0, 0], [6, 21, 23] * ms - dt)
synapse = Synapses(events, cell, on_pre="g += 10*nS * exp(dt/tau)")
synapse.connect(i=0, j=1 + 10)                  # the middle of the dendrite's 21 compartments
v = StateMonitor(cell, "v", record=[0, 11])
run(40 * ms)
v.record_single_timestep()
soma, dend = v.v / mV
crossed = np.flatnonzero((soma[:-1] < 0) & (soma[1:] >= 0)) + 1
print(json.dumps({"spikes": list(crossed * 0.025), "soma": list(soma[::4]), "dend": list(dend[::4])}))
