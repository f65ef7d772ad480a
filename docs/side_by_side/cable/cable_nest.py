"""Passive cable in NEST: a chain of the compartments of cm_default, whose quantities are computed by hand."""
import json
from math import pi

import nest
import numpy as np

nest.verbosity = nest.VerbosityLevel.ERROR
nest.resolution = 0.025

n, length, diam, ra = 101, 1000e-4 / 101, 2e-4, 100.0          # cm, ohm cm
area = pi * diam * length
passive = {"C_m": 1e3 * area, "g_L": 50.0 * area, "e_L": -65.0,  # nF, uS, mV
           "g_C": 1e6 * pi * diam**2 / 4 / (ra * length),        # uS, between the middles of neighbours
           "v_comp": -65.0}
cable = nest.Create("cm_default")
cable.compartments = [{"parent_idx": i - 1, "params": passive} for i in range(n)]
cable.V_th = 1e9

step = nest.Create("dc_generator", {"amplitude": 0.05})          # nA in this model
nest.Connect(step, cable, syn_spec={"delay": 0.025, "receptor_type": 0})
meter = nest.Create("multimeter", {"record_from": ["v_comp50", "v_comp100"], "interval": 0.025})
nest.Connect(meter, cable, syn_spec={"delay": 0.025})
nest.Simulate(60.05)
at = lambda key: [-65.0, *meter.events[key][40::40]]        # the current has come a step late, so the samples are taken a step later
print(json.dumps({"middle": at("v_comp50"), "end": at("v_comp100")}))
