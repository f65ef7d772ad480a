"""Arbor: one control volume per cell, its own `hh`, cpu_group_size 1024 (the default of 1 is many times slower)."""
import math
import time

import peer

a = peer.options(("f64",), [(("--group",), dict(type=int, default=1024)),
                            (("--fold-current",), dict(action="store_true",
                                                       help="put the constant current into the leak's reversal")),
                            (("--all-probes",), dict(action="store_true", help="mean voltage over all cells, not "
                                                     "over every 100th (slows the set-up down, not the run)"))])
STRIDE = 1 if a.all_probes else 100
try:
    import arbor as A
    from arbor import units as U
except ImportError as e:
    peer.not_installed("arbor", e)


class Recipe(A.recipe):
    def __init__(self):
        A.recipe.__init__(self)
        self.v = peer.initial_v(a.cells)
        self.properties = A.neuron_cable_properties()
        self.properties.catalogue = A.default_catalogue()
        self.properties.set_property(tempK=(peer.CELSIUS + 273.15) * U.Kelvin, cm=0.01 * U.F / U.m2)
        self.properties.set_ion("na", rev_pot=peer.E_NA * U.mV)
        self.properties.set_ion("k", rev_pot=peer.E_K * U.mV)
        self.tree = A.segment_tree()
        size = math.sqrt(peer.AREA_UM2 / math.pi)    # L = diam
        self.tree.append(A.mnpos, A.mpoint(0, 0, 0, size / 2), A.mpoint(size, 0, 0, size / 2), tag=1)
        el = peer.E_L + (peer.STIM / peer.G_L if a.fold_current else 0.0)
        self.hh = A.density("hh", {"gnabar": 0.12, "gkbar": 0.036, "gl": 0.0003, "el": el})
        self.clamp = A.i_clamp(peer.STIM_NA * U.nA)
        self.policy = A.cv_policy_single()

    def num_cells(self):
        return a.cells

    def cell_kind(self, gid):
        return A.cell_kind.cable

    def global_properties(self, kind):
        return self.properties

    def cell_description(self, gid):
        decor = A.decor().set_property(Vm=self.v[gid] * U.mV).paint("(all)", self.hh)
        if not a.fold_current:
            decor.place("(location 0 0.5)", self.clamp)
        return A.cable_cell(self.tree, decor, A.label_dict(), self.policy)

    def probes(self, gid):
        return [A.cable_probe_membrane_voltage("(location 0 0.5)", "v")] if gid % STRIDE == 0 else []


t = time.perf_counter()
recipe = Recipe()
context = A.context(threads=1)
hint = A.partition_hint()
hint.cpu_group_size = a.group
simulation = A.simulation(recipe, context, A.partition_load_balance(recipe, context, {A.cell_kind.cable: hint}))
handles = [simulation.sample((g, "v"), A.explicit_schedule([(a.steps - 1) * peer.DT * U.ms]))
           for g in range(0, a.cells, STRIDE)]
setup = time.perf_counter() - t
end = 0.0


def run():
    global end
    end += a.steps * peer.DT
    simulation.run(end * U.ms, peer.DT * U.ms)


best = peer.timed(run, a.repeat)
samples = [simulation.samples(h)[0][0][0, 1] for h in handles]
config = A.config()
peer.report("arbor", A.__version__, a, setup, best, sum(samples) / len(samples), group=a.group,
            vectorize=config["vectorize"], arch=config.get("arch"), fold_current=a.fold_current)
