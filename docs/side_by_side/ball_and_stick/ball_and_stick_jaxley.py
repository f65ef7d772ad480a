"""Ball and stick in Jaxley. Its synapses follow a voltage and know no events, so the conductance is a channel's state, clamped to its time course."""
import json
from math import pi

import jax
import jaxley as jx
import numpy as np
from jaxley.channels import HH, Channel, Leak

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


cell = jx.Cell([jx.Branch(ncomp=1), jx.Branch(ncomp=21)], parents=[-1, 0])
cell.set("axial_resistivity", 100.0)
cell.set("capacitance", 1.0)
cell.branch(0).set("length", 20.0)
cell.branch(0).set("radius", 10.0)
cell.branch(1).set("length", 400.0 / 21)
cell.branch(1).set("radius", 1.0)
cell.branch(0).insert(HH())                     # its leak reverses at -54.3 mV
cell.branch(1).insert(Leak())
cell.branch(1).set("Leak_gLeak", 5e-5)
cell.branch(1).set("Leak_eLeak", -65.0)
cell.branch(1).comp(10).insert(Conductance())
cell.set("v", -65.0)
cell.init_states()

t = np.arange(1, 1601) * 0.025                  # a clamp holds from the end of a step on
area = pi * 2e-4 * 400e-4 / 21                  # cm2
course = sum(np.where(t > at - 1e-9, np.exp(-(t - at) / 2), 0) for at in (6, 21, 23))
cell.branch(1).comp(10).clamp("g_syn", 10e-9 / area * course)
cell.branch(0).comp(0).record("v")
cell.branch(1).comp(10).record("v")
soma, dend = np.asarray(jx.integrate(cell, delta_t=0.025))[:, :1601]
crossed = np.flatnonzero((soma[:-1] < 0) & (soma[1:] >= 0)) + 1
print(json.dumps({"spikes": list(crossed * 0.025), "soma": list(soma[::4]), "dend": list(dend[::4])}))
