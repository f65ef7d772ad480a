"""Cells of the library: exact solutions of their equations, from the formulas of library_channels.py.

DOP853 at 1e-11; spike times by Henon's method. Integrate-and-fire cells have closed forms. Sources: README.md.
"""
import math
from functools import partial

import numpy as np

import library_channels as lib
from common import integrate, max_abs_diff, store, versions


class Patch:
    """One compartment: which channels of a module it has, with other conductances where they are given."""

    def __init__(self, formulas, channels, g=None, cm=1.0, celsius=None, ca_first=None, ca_rate=None):
        self.formulas, self.names, self.g, self.cm = formulas, channels, g or {}, cm
        self.kelvin = None if celsius is None else celsius + 273.15
        self.ca_first, self.ca_rate = ca_first, ca_rate

    def channels(self, v, ca):
        table = self.formulas(v, self.kelvin, ca)
        chosen = {k: table[k] for k in self.names}
        for k, g in self.g.items():
            chosen[k].g = g
        return chosen

    def first(self, v):
        gates = [inf for ch in self.channels(v, self.ca_first).values()
                 for power, inf, tau, q in ch.gates.values() if tau is not None]
        return [v, *gates] + ([] if self.ca_rate is None else [self.ca_first])

    def slopes(self, y, drive):
        """dy/dt where `drive` is the current (uA/cm2) that comes in."""
        v, ca = y[0], None if self.ca_rate is None else y[-1]
        at, total, out, currents, gates = 1, 0.0, [0.0], {}, {}
        for name, ch in self.channels(v, ca).items():
            x = {}
            for gate, (power, inf, tau, q) in ch.gates.items():
                if tau is None:
                    x[gate] = inf
                else:
                    x[gate] = y[at]
                    out.append(q * (inf - y[at]) / tau)
                    at += 1
            i = ch.current(x, ch) if ch.current else (
                ch.g * math.prod(x[g]**ch.gates[g][0] for g in ch.gates) * (v - ch.e))
            currents[name], total = i, total + i
            gates[name] = x
        out[0] = (drive - total) / self.cm
        if self.ca_rate is not None:
            out.append(self.ca_rate(ca, currents, gates, v))
        return out


def one(patch, drive):
    return lambda t, y, k: np.array(patch.slopes(y, drive))


def pinsky_rinzel(drive, g_c=2.1, p=0.5):
    def both(v, kelvin, ca):
        return lib.ca3(v, kelvin, ca) | lib.pinsky_rinzel(v, kelvin, ca)

    soma = Patch(lambda v, kelvin, ca: both(v, kelvin, 0.0), ["Na", "Kdr", "Leak"], cm=3.0)
    dend = Patch(both, ["CaHVA", "KC", "KAHP", "Leak"], {"KC": 15.0}, 3.0, None, 0.0,
                 lambda ca, i, x, v: -0.13 * i["CaHVA"] - 0.075 * ca)
    first = soma.first(-60.0)
    n = len(first)

    def rhs(t, y, k):
        flow = g_c * (y[n] - y[0])
        return np.array(soma.slopes(y[:n], (drive + flow) / p) + dend.slopes(y[n:], -flow / (1.0 - p)))

    return rhs, first + dend.first(-60.0), n


def run(rhs, y0, duration, every, tol, max_step=math.inf):
    breaks = [every * k for k in range(round(duration / every) + 1)]
    return integrate(rhs, y0, breaks, "DOP853", tol, threshold=0.0, max_step=max_step)


def conductance_based():
    shell = 1e3 * 1e-6 / (2.0 * lib.FARADAY * 82.6e-7)              # mM/ms for 1 uA/cm2
    calcium_granule = lambda ca, i, x, v: -i["CaHVA"] * shell - (ca - 7.55e-5) / 10.0
    calcium_pacemaker = lambda ca, i, x, v: (5e-5 - 14.96e-3 * 0.628 * (i["CaT"] + i["CaS"]) - ca) / 200.0
    calcium_plant = lambda ca, i, x, v: 0.0003 * (0.0085 * x["Slow"]["x"] * (140.0 - v) - ca)
    class_1 = partial(lib.morris_lecar, ca_g=4.0, v3=12.0, v4=17.4, phi=0.0667)
    ml, granule = ["Ca", "K", "Leak"], ["NaF", "Kdr", "KA", "H", "CaHVA", "KCa", "Leak"]
    out, cross = {}, {}
    pr, pr_first, pr_dend = pinsky_rinzel(0.75)
    cases = {
        "connor_stevens": (Patch(lib.connor_stevens, ["Na", "K", "A", "Leak"]), 20.0, -68.0, 40.0, 5.0),
        "wang_buzsaki": (Patch(lib.wang_buzsaki, ["Na", "K", "Leak"]), 1.0, -64.0, 40.0, 5.0),
        "granule": (Patch(lib.granule, granule, ca_first=7.55e-5, ca_rate=calcium_granule),
                    10.0 / (math.pi * 100.0) * 100.0, -65.0, 40.0, 5.0),
        "pacemaker": (Patch(lib.stomatogastric, ["Na", "CaT", "CaS", "A", "KCa", "Kd", "H"], celsius=10.0,
                            ca_first=5e-5, ca_rate=calcium_pacemaker), 0.0, -50.0, 100.0, 10.0),
        "morris_lecar_class_2": (Patch(lib.morris_lecar, ml, cm=20.0), 100.0, -60.0, 100.0, 10.0),
        "morris_lecar_class_1": (Patch(class_1, ml, cm=20.0), 45.0, -60.0, 100.0, 10.0),
        "butera": (Patch(lib.butera, ["NaP", "Na", "K", "Leak"], cm=21.0), 0.0, -60.0, 100.0, 10.0),
        "plant": (Patch(lib.plant, ["Fast", "K", "Slow", "KCa", "Leak"], ca_first=0.46, ca_rate=calcium_plant),
                  0.0, -42.0, 100.0, 10.0),
        "pinsky_rinzel": (pr, pr_first, None, 100.0, 10.0),
    }
    for name, (patch, drive, v0, duration, every) in cases.items():
        rhs, y0 = (patch, drive) if v0 is None else (one(patch, drive), patch.first(v0))
        a, b = (run(rhs, y0, duration, every, tol) for tol in (1e-11, 1e-9))
        s = a["states"]
        out[name] = {"t_ms": [every * k for k in range(len(s))], "v": s[:, 0], "spike_times_ms": a["henon"]}
        if name == "pinsky_rinzel":
            out[name] |= {"v_dend": s[:, pr_dend]}
        if v0 is None or patch.ca_rate:
            out[name] |= {"Ca": s[:, -1]}
        cross[name] = {"v_at_1e-11_against_1e-9": max_abs_diff(s[:, 0], b["states"][:, 0]),
                       "spikes": max_abs_diff(a["henon"], b["henon"])}
        print(name, len(a["henon"]), a["henon"][:3], a["henon"][-1:], cross[name], flush=True)
    return out, cross


def integrate_and_fire():
    from scipy.integrate import quad
    root = math.sqrt(0.01)
    quadratic = (math.atan(30.0 / root) - math.atan(-30.0 / root)) / root

    def exp_if(v, i=0.5):
        return 0.1 * (-65.0 - v) + 0.1 * 3.48 * math.exp((v + 59.9) / 3.48) + i

    free = lambda start: quad(lambda v: 1.0 / exp_if(v), start, -30.0, epsabs=1e-12, epsrel=1e-12, limit=500)[0]
    return {"input": 0.01, "theta": {"first": math.pi / (2.0 * root), "period": math.pi / root},
            "quadratic": {"first": math.atan(30.0 / root) / root, "period": quadratic},
            "exponential": {"i_uA_per_cm2": 0.5, "first": free(-65.0), "period": 1.7 + free(-68.0)}}


def main():
    cells, cross = conductance_based()
    fire = integrate_and_fire()
    print(fire)
    store("library_cells", {"what": "cells of the library; parameters are in the script", "cells": cells,
                            "integrate_and_fire": fire, "cross_check": cross, "versions": versions("numpy", "scipy")})


if __name__ == "__main__":
    main()
