"""Ball and stick in NeuroML (ball_and_stick.net.nml). jNeuroML itself has no cables: it writes a program for NEURON, and runs that."""
import json
import os
import sys

import numpy as np
from pyneuroml import pynml

os.environ["NEURON_HOME"] = sys.prefix                  # where bin/nrnivmodl is
os.environ["PATH"] = f"{sys.prefix}/bin:{os.environ['PATH']}"
pynml.run_lems_with_jneuroml_neuron("LEMS_ball_and_stick.xml", nogui=True, compile_mods=True, verbose=False)
t, soma, dend = np.loadtxt("ball_and_stick.v.dat").T * 1e3        # files are in SI units
crossed = np.flatnonzero((soma[:-1] < 0) & (soma[1:] >= 0)) + 1
print(json.dumps({"spikes": list(t[crossed]), "soma": list(soma[::20]), "dend": list(dend[::20])}))
