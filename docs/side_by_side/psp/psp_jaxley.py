"""Postsynaptic potentials in Jaxley. Its synapses know no events, so the conductance is a channel's state, clamped to its time course."""
import json
from math import pi, sqrt

import jax
import jaxley as jx
import numpy as np
from jaxley.channels import Channel, Leak

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platform_name", "cpu")


class Conductance(Channel):
    """A conductance (S/cm2) of given time course, with reversal at 0 mV."""

    def __init__(self, name=None):
        self.current_is_in_mA_per_cm2 = True
        super().__init__(name)
        self.channel_params, self.channel_states, self.current_name = {}, {"g_syn": 0.0}, "i_syn"

    def update_states(self, states, dt, v, params):
        return {"g_syn": states["g_syn"]}

    def compute_current(self, states, v, params):
        return states["g_syn"] * v

    def init_state(self, states, v, params, delta_t):
        return {}


cell = jx.Compartment()
cell.insert(Leak())
cell.insert(Conductance())
cell.set("length", sqrt(20000 / pi))
cell.set("radius", sqrt(20000 / pi) / 2)
cell.set("capacitance", 1.0)
cell.set("Leak_gLeak", 5e-5)
cell.set("Leak_eLeak", -65.0)
cell.set("v", -65.0)

rise, decay = 0.5, 5.0
peak = decay / (decay - rise) * (decay / rise) ** (rise / (decay - rise))
t = np.arange(1, 4001) * 0.025                  # a clamp holds from the end of a step on
since = [t - (at + 1.5) for at in (10, 20, 23, 60)]
course = sum(np.where(s > -1e-9, np.exp(-s / decay) - np.exp(-s / rise), 0) for s in since)
cell.clamp("g_syn", 2e-9 * peak * course / 20000e-8)
cell.record("v")
v = np.asarray(jx.integrate(cell, delta_t=0.025))[0]
print(json.dumps({"v": list(v[:4001:20])}))
