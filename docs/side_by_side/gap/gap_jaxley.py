"""Two cells and a gap junction in Jaxley: a synapse whose current depends on both voltages, in each direction."""
import json

import jax
import jaxley as jx
import numpy as np
from jaxley.channels import HH
from jaxley.connect import connect
from jaxley.synapses import Synapse

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platform_name", "cpu")
dt = 0.005


class HalfGap(Synapse):
    def __init__(self, name=None):
        super().__init__(name)
        self.synapse_params, self.synapse_states = {"HalfGap_g": 0.002}, {}         # uS

    def update_states(self, states, delta_t, pre_voltage, post_voltage, params):
        return {}

    def compute_current(self, states, pre_voltage, post_voltage, params):
        return params["HalfGap_g"] * (post_voltage - pre_voltage)                   # nA, out of the target


cell = jx.Cell(jx.Branch(jx.Compartment(), ncomp=1), parents=[-1])
pair = jx.Network([cell, cell])
pair.set("length", 20.0)
pair.set("radius", 10.0)
pair.set("capacitance", 1.0)
pair.insert(HH())
pair.set("v", -65.0)
pair.init_states()
for one, other in ((0, 1), (1, 0)):
    connect(pair.cell(one).branch(0).comp(0), pair.cell(other).branch(0).comp(0), HalfGap())
pair.cell(0).branch(0).comp(0).stimulate(jx.step_current(i_delay=5, i_dur=40, i_amp=0.15, delta_t=dt, t_max=60))
pair.cell([0, 1]).branch(0).comp(0).record("v")

v = np.asarray(jx.integrate(pair, delta_t=dt))
spikes = [[k * dt, i] for i in range(2) for k in np.flatnonzero((v[i, :-1] < 0) & (v[i, 1:] >= 0)).tolist()]
print(json.dumps({"spikes": [[t + dt, i] for t, i in spikes]}))
