"""Izhikevich's neuron in Jaxley, which has it as a channel."""
import json
from math import pi, sqrt

import jax
import jaxley as jx
import numpy as np
from jaxley.channels.non_capacitive.izhikevich import Izhikevich

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platform_name", "cpu")

dt = 0.01
cell = jx.Compartment()
cell.insert(Izhikevich())
cell.set("length", sqrt(1000 / pi))             # 1000 um2, so 10 pF at 1 uF/cm2
cell.set("radius", sqrt(1000 / pi) / 2)
cell.set("capacitance", 1.0)
cell.set("v", -65.0)
cell.init_states()                              # u = b v
cell.stimulate(jx.step_current(i_delay=0, i_dur=300, i_amp=0.1, delta_t=dt, t_max=300))     # 0.1 nA / 10 pF = 10 mV/ms
cell.record("v")
v = np.asarray(jx.integrate(cell, delta_t=dt))[0]
spikes = np.flatnonzero((v[:-1] > -20) & (v[1:] < -60)) + 1                   # where it was reset
print(json.dumps({"spikes": list(spikes * dt)}))
