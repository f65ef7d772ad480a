"""Passive cable in NeuroML (cable.net.nml). jNeuroML itself has no cables: it writes a program for NEURON, and runs that."""
import json
import os
import sys

import numpy as np
from pyneuroml import pynml

os.environ["NEURON_HOME"] = sys.prefix                  # where bin/nrnivmodl is
os.environ["PATH"] = f"{sys.prefix}/bin:{os.environ['PATH']}"
pynml.run_lems_with_jneuroml_neuron("LEMS_cable.xml", nogui=True, compile_mods=True, verbose=False)
v = np.loadtxt("cable.v.dat")[:, 1] * 1e3               # files are in SI units
print(json.dumps({"middle": list(v[::40])}))
