"""What the peer scripts share: options, pinning, the model's numbers, the JSON line."""
import argparse
import json
import os
import sys
import time

# squid axon patch: mS/cm2, mV, uF/cm2, uA/cm2; um2
G_NA, G_K, G_L, E_NA, E_K, E_L, CM = 120.0, 36.0, 0.3, 50.0, -77.0, -54.4, 1.0
STIM, DT, AREA_UM2, CELSIUS = 10.0, 0.025, 1000.0, 6.3
STIM_NA = STIM * AREA_UM2 * 1e-5                     # uA/cm2 over um2, as nA: 0.1


CELLS = (("--cells",), dict(type=int, default=10_000))


def options(precisions=("f64",), extra=(), size=CELLS):
    ap = argparse.ArgumentParser()
    ap.add_argument(*size[0], **size[1])
    ap.add_argument("--steps", type=int, default=2_000, help="time steps in one timed run")
    ap.add_argument("--repeat", type=int, default=5, help="timed runs after one warm-up; the best counts")
    ap.add_argument("--precision", choices=precisions, default=precisions[0])
    ap.add_argument("--core", type=int, default=None, help="pin to this core (default: first core allowed)")
    for args, kwargs in extra:
        ap.add_argument(*args, **kwargs)
    a = ap.parse_args()
    if getattr(a, "platform", "cpu") != "cpu":
        return a                                     # what drives a device may use all cores
    # one thread, one core, whatever the library would like; before it is imported
    core = a.core if a.core is not None else min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    return a


def not_installed(tool, error):
    print(json.dumps({"tool": tool, "error": "not installed", "detail": str(error)}))
    sys.exit(3)


def initial_v(cells):
    import numpy as np
    return np.random.default_rng(1).normal(-65.0, 3.0, cells)


def steady_gates(v):
    import numpy as np
    ratio = lambda x: x / -np.expm1(-x)
    am, bm = ratio((v + 40) / 10), 4 * np.exp(-(v + 65) / 18)
    ah, bh = 0.07 * np.exp(-(v + 65) / 20), 1 / (1 + np.exp(-(v + 35) / 10))
    an, bn = 0.1 * ratio((v + 55) / 10), 0.125 * np.exp(-(v + 65) / 80)
    return am / (am + bm), ah / (ah + bh), an / (an + bn)


def timed(run, repeat):
    """Warm up once, then the best of `repeat`; `run` may return its own time in seconds."""
    best = None
    for k in range(repeat + 1):
        t = time.perf_counter()
        own = run()
        t = time.perf_counter() - t if own is None else own
        if k and (best is None or t < best):
            best = t
    return best


def report(tool, version, a, setup_s, run_s, mean_v, **more):
    """`mean_v_mV`: mean voltage of all cells after the first `steps` steps, so that one sees the same model was run."""
    print(json.dumps({"tool": tool, "version": version, "precision": a.precision, "cells": a.cells, "steps": a.steps,
                      "setup_s": round(setup_s, 4), "run_s": round(run_s, 5),
                      "cell_steps_per_s": round(a.cells * a.steps / run_s), "mean_v_mV": round(float(mean_v), 4), **more}))
