"""NEURON: single-compartment cells with the built-in `hh`, fixed step; --tables, --coreneuron."""
import math
import os
import time

import peer

FLAG = dict(action="store_true")
a = peer.options(("f64",), [(("--tables",), FLAG | dict(help="NEURON's interpolated rate tables")),
                            (("--coreneuron",), FLAG), (("--fold-current",), FLAG | dict(
                                help="put the constant current into the leak's reversal"))])
tool = "coreneuron" if a.coreneuron else "neuron+tables" if a.tables else "neuron"
os.environ.setdefault("NEURON_MODULE_OPTIONS", "-nogui")
try:
    import neuron
    from neuron import h
    if a.coreneuron:
        from neuron import coreneuron
except ImportError as e:
    peer.not_installed(tool, e)

t = time.perf_counter()
pc = h.ParallelContext()
size = math.sqrt(peer.AREA_UM2 / math.pi)            # L = diam
cells, clamps, sources = [], [], []
for gid in range(a.cells):
    s = h.Section(name=f"c{gid}")
    s.L = s.diam = size
    s.insert("hh")
    hh = s(0.5).hh
    hh.el = peer.E_L + (peer.STIM / peer.G_L if a.fold_current else 0.0)
    s.ena, s.ek = peer.E_NA, peer.E_K
    cells.append(s)
    if not a.fold_current:
        c = h.IClamp(s(0.5))
        c.delay, c.dur, c.amp = 0.0, 1e9, peer.STIM_NA
        clamps.append(c)
    if a.coreneuron:                                 # CoreNEURON takes over cells that have a gid
        source = h.NetCon(s(0.5)._ref_v, None, sec=s)
        pc.set_gid2node(gid, pc.id())
        pc.cell(gid, source)
        sources.append(source)
h.celsius, h.dt = peer.CELSIUS, peer.DT
h.usetable_hh = 1 if a.tables else 0
cvode = h.CVode()
cvode.active(0)
if a.coreneuron:
    cvode.cache_efficient(1)
    coreneuron.enable = True
    coreneuron.verbose = 0
pc.set_maxstep(10)
for s, v in zip(cells, peer.initial_v(a.cells)):
    s.v = v
h.finitialize()                                      # without an argument: every v stays as set
setup = time.perf_counter() - t
means = []


def run():
    end = h.t + a.steps * peer.DT
    t = time.perf_counter()
    pc.psolve(end)
    t = time.perf_counter() - t
    means.append(sum(s(0.5).v for s in cells) / a.cells)
    return t


best = peer.timed(run, a.repeat)
peer.report(tool, neuron.__version__, a, setup, best, means[0], fold_current=a.fold_current)
