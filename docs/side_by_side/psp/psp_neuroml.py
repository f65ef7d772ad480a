"""Postsynaptic potentials in NeuroML (psp.net.nml), run by jNeuroML: forward Euler."""
import json

import numpy as np
from pyneuroml import pynml

pynml.run_lems_with_jneuroml("LEMS_psp.xml", nogui=True, verbose=False)
v = np.loadtxt("psp.v.dat")[:, 1] * 1e3                 # files are in SI units
print(json.dumps({"v": list(v[:40001:200])}))
