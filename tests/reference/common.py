"""Shared by the reference scripts: stable rate functions, tight ODE solutions, JSON output.

Every script writes `<its name>.json` next to itself. With `--check` it writes nothing, but recomputes and fails
when a number differs from the stored one by more than `--rtol` (default 1e-9) relative or `--atol` (1e-12) absolute.
"""
import argparse
import json
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


def linear_ratio(x):
    """x / (1 - exp(-x)), with its limit 1 at x = 0."""
    return 1.0 if x == 0.0 else x / -math.expm1(-x)


def exp_linear_rate(v, rate, midpoint, scale):
    return rate * linear_ratio((v - midpoint) / scale)


def exp_rate(v, rate, midpoint, scale):
    return rate * math.exp((v - midpoint) / scale)


def sigmoid_rate(v, rate, midpoint, scale):
    return rate / (1.0 + math.exp(-(v - midpoint) / scale))


def integrate(rhs, y0, breaks, method, tol=1e-12, threshold=None, max_step=math.inf, var=0):
    """Integrate from breaks[0] to breaks[-1]; no step straddles a break, so edges may sit on breaks.

    `rhs(t, y, k)` gets the index k of the piece, so that a stimulus is constant inside a piece.
    Returns the states at the breaks, and for each upward crossing of `threshold` by y[var] two estimates of its
    time: the root of the dense output, and a second one that does not use the dense output (from the state before
    the crossing, integrate with y[var] as the independent variable up to the threshold; Henon 1982).
    """
    import numpy as np
    from scipy.integrate import DOP853, Radau
    from scipy.optimize import brentq
    solver_of = {"DOP853": DOP853, "Radau": Radau}
    states, dense_roots, henon_roots, steps = [np.array(y0, dtype=float)], [], [], 0
    for k, (t0, t1) in enumerate(zip(breaks, breaks[1:])):
        f = lambda t, y, k=k: rhs(t, y, k)
        solver = solver_of[method](f, t0, states[-1], t1, rtol=tol, atol=tol, max_step=max_step)
        while solver.status == "running":
            before = solver.y.copy()
            message = solver.step()
            steps += 1
            if solver.status == "failed":
                raise RuntimeError(message)
            if threshold is not None and before[var] < threshold <= solver.y[var]:
                dense = solver.dense_output()
                dense_roots.append(brentq(lambda t: dense(t)[var] - threshold, solver.t_old, solver.t, xtol=1e-14))
                henon_roots.append(_henon(f, solver.t_old, before, var, threshold, tol))
        states.append(solver.y.copy())
    return {"states": np.array(states), "dense": dense_roots, "henon": henon_roots, "steps": steps}


def _henon(f, t, y, var, threshold, tol):
    import numpy as np
    from scipy.integrate import solve_ivp

    def g(x, z):                                    # z = (y with y[var] replaced by t), x = y[var]
        full = z.copy()
        full[var] = x
        d = f(z[var], full)
        out = d / d[var]
        out[var] = 1.0 / d[var]
        return out

    z0 = np.array(y)
    z0[var] = t
    s = solve_ivp(g, (y[var], threshold), z0, method="DOP853", rtol=max(tol, 3e-14), atol=tol)
    if not s.success:
        raise RuntimeError(s.message)
    return float(s.y[var, -1])


def max_abs_diff(a, b):
    import numpy as np
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    assert a.shape == b.shape, (a.shape, b.shape)
    return float(np.max(np.abs(a - b))) if a.size else 0.0


def versions(*modules):
    import importlib
    out = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in modules:
        out[name] = importlib.import_module(name).__version__
    return out


def random_edges(seed, n, n_exc, k_exc, k_inh, w_exc, w_inh, delays):
    """Every neuron gets k_exc edges from the neurons 0..n_exc and k_inh from the others, none from itself and none twice.

    Weights and delays (in steps) are drawn from the lists. Only `random()` is used, whose values Python promises to keep.
    Weights with few binary digits add up exactly, so that the order of arrivals inside a step does not matter.
    """
    import random
    rng = random.Random(seed)
    pick = lambda xs: xs[int(rng.random() * len(xs))]
    edges = {"pre": [], "post": [], "weight": [], "delay_steps": []}
    for post in range(n):
        for sources, k, weights in ((range(n_exc), k_exc, w_exc), (range(n_exc, n), k_inh, w_inh)):
            left = [i for i in sources if i != post]
            for _ in range(k):
                pre = left.pop(int(rng.random() * len(left)))
                for key, x in (("pre", pre), ("post", post), ("weight", pick(weights)), ("delay_steps", pick(delays))):
                    edges[key].append(x)
    return edges


def spike_facts(steps, neurons, n, dt_ms, duration_ms):
    """How a net fires: mean rate, rates of the slowest and fastest neuron, mean CV of intervals (neurons with 5 or more)."""
    import statistics
    of = [[] for _ in range(n)]
    for s, i in zip(steps, neurons):
        of[i].append(s)
    gaps = [[b - a for a, b in zip(x, x[1:])] for x in of]
    cvs = [statistics.pstdev(g) / statistics.mean(g) for g in gaps if len(g) >= 5]
    rate = [1000.0 * len(x) / duration_ms for x in of]
    return {"spikes": len(steps), "mean_rate_Hz": sum(rate) / n, "lowest_rate_Hz": min(rate),
            "highest_rate_Hz": max(rate), "mean_cv_of_intervals": statistics.mean(cvs) if cvs else 0.0}


def _plain(x):
    """NumPy values to plain Python ones."""
    if isinstance(x, dict):
        return {k: _plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [_plain(v) for v in x]
    if hasattr(x, "tolist"):
        return _plain(x.tolist())
    return x


def _differences(new, old, path, rtol, atol):
    if isinstance(new, dict) and isinstance(old, dict):
        for k in sorted(set(new) | set(old)):
            if k not in new or k not in old:
                yield f"{path}/{k}: on one side only"
            else:
                yield from _differences(new[k], old[k], f"{path}/{k}", rtol, atol)
    elif isinstance(new, list) and isinstance(old, list):
        if len(new) != len(old):
            yield f"{path}: length {len(new)} against stored {len(old)}"
        for i, (n, o) in enumerate(zip(new, old)):
            yield from _differences(n, o, f"{path}/{i}", rtol, atol)
    elif isinstance(new, (int, float)) and isinstance(old, (int, float)) and not isinstance(new, bool):
        if abs(new - old) > atol + rtol * abs(old):
            yield f"{path}: {new!r} against stored {old!r}"
    elif new != old:
        yield f"{path}: {new!r} against stored {old!r}"


def store(name, data):
    """Write `name`.json, or compare with it. Keys `versions` and `cross_check` are never compared."""
    ap = argparse.ArgumentParser()
    ap.add_argument("--check", action="store_true")
    ap.add_argument("--rtol", type=float, default=1e-9)
    ap.add_argument("--atol", type=float, default=1e-12)
    a = ap.parse_args()
    data = _plain(data)
    path = HERE / f"{name}.json"
    if not a.check:
        # one line per leaf list keeps the file readable; json writes floats with repr, so float64 round-trips
        path.write_text(_dump(data) + "\n")
        print(f"wrote {path.name}, {path.stat().st_size} bytes")
        return
    old = json.loads(path.read_text())
    skip = ("versions", "cross_check")
    bad = list(_differences({k: v for k, v in data.items() if k not in skip},
                            {k: v for k, v in old.items() if k not in skip}, name, a.rtol, a.atol))
    print("\n".join(bad) if bad else f"{path.name}: agrees")
    sys.exit(1 if bad else 0)


def _dump(x, indent=0):
    pad = " " * (indent + 1)
    if isinstance(x, dict):
        inner = ",\n".join(f"{pad}{json.dumps(k)}: {_dump(v, indent + 1)}" for k, v in x.items())
        return "{\n" + inner + "\n" + " " * indent + "}"
    return json.dumps(x, allow_nan=False)
