"""Adaptation by calcium in Brian2: the pool is one more equation."""
import json
from math import pi

from brian2 import (NeuronGroup, SpikeMonitor, StateMonitor, cm, coulomb, defaultclock, mmolar, mole, ms, mV, nA, prefs, run, siemens, uF, um,
                    umolar)

prefs.codegen.target = "numpy"
defaultclock.dt = 0.05 * ms

area = pi * (20 * um)**2
Cm = 1 * uF / cm**2
g_na, g_k, g_l, g_ca, g_kca = (g * siemens / cm**2 for g in (0.12, 0.036, 3e-4, 5e-5, 1e-3))
e_na, e_k, e_l, e_ca = 50 * mV, -77 * mV, -54.3 * mV, 120 * mV
F, depth, rest, tau = 96485 * coulomb / mole, 1 * um, 0.05 * umolar, 80 * ms
eqs = """
dv/dt = (I/area - g_na*m**3*h*(v - e_na) - (g_k*n**4 + g_kca*c)*(v - e_k) - g_l*(v - e_l) - i_ca) / Cm : volt
I = 0.3*nA * int(t >= 5*ms) * int(t < 95*ms) : amp (constant over dt)
i_ca = g_ca*q**2*(v - e_ca) : amp/meter**2
dCa/dt = -i_ca/(2*F*depth) - (Ca - rest)/tau : mmolar
dq/dt = (1/(1 + exp(-(v + 20*mV)/(5*mV))) - q) / (1*ms) : 1
dc/dt = 0.05/ms * (Ca/umolar*(1 - c) - c) : 1
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
cell = NeuronGroup(1, eqs, method="rk4", threshold="v > 0*mV", refractory="v > 0*mV")
cell.v, cell.Ca = -65 * mV, rest
cell.m, cell.h, cell.n = "a_m/(a_m + b_m)", "a_h/(a_h + b_h)", "a_n/(a_n + b_n)"
cell.q, cell.c = "1/(1 + exp(-(v + 20*mV)/(5*mV)))", "Ca/(Ca + umolar)"
states = StateMonitor(cell, ["v", "Ca"], record=True, dt=0.1 * ms)
spikes = SpikeMonitor(cell)
run(100 * ms)
states.record_single_timestep()
print(json.dumps({"spikes": list(spikes.t / ms + 0.05), "v": list(states.v[0] / mV), "ca": list(states.Ca[0] / umolar)}))
