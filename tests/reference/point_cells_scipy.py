"""Known behaviour of point cells: closed forms, plain Euler loops, tight ODE solutions. Conventions: see README.md."""
import math

import numpy as np

from common import integrate, max_abs_diff, store, versions


# ---------------------------------------------------------------- leaky integrate and fire
def lif():
    tau, v_rest, v_th, v_reset, r_mohm, refractory = 20.0, -60.0, -50.0, -60.0, 100.0, 5.0
    rows = []
    for i_na in (0.11, 0.15, 0.2, 0.3, 0.5, 1.0):
        drive = r_mohm * i_na                                        # mV
        first = tau * math.log((v_rest + drive - v_rest) / (v_rest + drive - v_th))
        isi = refractory + tau * math.log((v_rest + drive - v_reset) / (v_rest + drive - v_th))
        rows.append({"i_nA": i_na, "first_spike_ms": first, "isi_ms": isi, "rate_Hz": 1000.0 / isi,
                     "isi_without_refractory_ms": isi - refractory})
    return {"tau_ms": tau, "v_rest_mV": v_rest, "v_threshold_mV": v_th, "v_reset_mV": v_reset, "r_Mohm": r_mohm,
            "refractory_ms": refractory, "rheobase_nA": (v_th - v_rest) / r_mohm, "closed_form": rows}


# ---------------------------------------------------------------- Izhikevich 2003
def leading_equal(reference, *others):
    """How many leading spikes are the same in all runs: beyond that, rounding decides."""
    n = len(reference)
    for other in others:
        same = next((k for k, (x, y) in enumerate(zip(reference, other)) if x != y), min(len(reference), len(other)))
        n = min(n, same) if same < len(reference) or len(other) != len(reference) else n
    return n


def izhikevich_2003(a, b, c, d, i, dt, duration, number=float, v_init=-65.0):
    """number=float is the reference; np.longdouble and a disturbed start show what rounding decides."""
    a, b, c, d, i, h = (number(x) for x in (a, b, c, d, i, dt))
    k1, k2, k3 = number(0.04), number(5), number(140)
    v = number(v_init)
    u = b * v
    steps = []
    for step in range(1, round(duration / dt) + 1):
        dv = k1 * v * v + k2 * v + k3 - u + i
        du = a * (b * v - u)
        v, u = v + h * dv, u + h * du
        if v >= 30:
            steps.append(step)
            v, u = c, u + d
    return steps, float(v), float(u)


def izhikevich_2003_all():
    out = {"i": 10.0, "dt_ms": 0.1, "duration_ms": 500.0, "v_init": -65.0, "types": {}}
    for name, (a, b, c, d) in {"RS": (0.02, 0.2, -65.0, 8.0), "FS": (0.1, 0.2, -65.0, 2.0),
                               "CH": (0.02, 0.2, -50.0, 2.0), "IB": (0.02, 0.2, -55.0, 4.0)}.items():
        steps, v, u = izhikevich_2003(a, b, c, d, 10.0, 0.1, 500.0)
        run = lambda **k: izhikevich_2003(a, b, c, d, 10.0, 0.1, 500.0, **k)[0]
        robust = leading_equal(steps, run(number=np.longdouble), run(v_init=-65.0 * (1 + 1e-12)),
                               run(v_init=-65.0 * (1 - 1e-12)))
        out["types"][name] = {"a": a, "b": b, "c": c, "d": d, "spike_steps": steps, "robust_spikes": robust,
                              "v_end": v, "u_end": u}
    return out


# ---------------------------------------------------------------- Izhikevich 2007
def izhikevich_2007(i_pa, number=float, scale=1.0, dt=0.1, duration=1000.0):
    cm, k, vr, vt, a, b, c, d, v_peak, i, h = (
        number(x) for x in (100.0, 0.7, -60.0, -40.0, 0.03, -2.0, -50.0, 100.0, 35.0, i_pa, dt))
    v, u = vr * number(scale), number(0)
    steps = []
    for step in range(1, round(duration / dt) + 1):
        dv = (k * (v - vr) * (v - vt) - u + i) / cm
        du = a * (b * (v - vr) - u)
        v, u = v + h * dv, u + h * du
        if v >= v_peak:
            steps.append(step)
            v, u = c, u + d
    return steps, float(v), float(u)


def izhikevich_2007_all():
    out = {"C_pF": 100.0, "k": 0.7, "vr_mV": -60.0, "vt_mV": -40.0, "a_per_ms": 0.03, "b_nS": -2.0, "c_mV": -50.0,
           "d_pA": 100.0, "v_peak_mV": 35.0, "dt_ms": 0.1, "duration_ms": 1000.0, "v_init_mV": -60.0, "u_init_pA": 0.0,
           "runs": []}
    for i in (40.0, 60.0, 70.0, 100.0):
        steps, v, u = izhikevich_2007(i)
        robust = leading_equal(steps, izhikevich_2007(i, np.longdouble)[0], izhikevich_2007(i, scale=1 + 1e-12)[0],
                               izhikevich_2007(i, scale=1 - 1e-12)[0])
        out["runs"].append({"i_pA": i, "spike_steps": steps, "robust_spikes": robust, "v_end": v, "u_end": u})
    return out


# ---------------------------------------------------------------- adaptive exponential integrate and fire
def adex(dt=0.01, duration=300.0, number=float):
    cm, gl, el, vt, delta, tau_w, a, b, v_reset, v_spike, i, h = (number(x) for x in (
        281.0, 30.0, -70.6, -50.4, 2.0, 144.0, 4.0, 80.5, -70.6, 20.0, 800.0, dt))
    exp = math.exp if number is float else np.exp
    v, w = el, number(0)
    steps = []
    for step in range(1, round(duration / dt) + 1):
        dv = (-gl * (v - el) + gl * delta * exp((v - vt) / delta) - w + i) / cm
        dw = (a * (v - el) - w) / tau_w
        v, w = v + h * dv, w + h * dw
        if v >= v_spike:
            steps.append(step)
            v, w = v_reset, w + b
    return steps, float(v), float(w)


def adex_all():
    steps, v, w = adex()
    assert adex(number=np.longdouble)[0] == steps
    return {"C_pF": 281.0, "gL_nS": 30.0, "EL_mV": -70.6, "VT_mV": -50.4, "DeltaT_mV": 2.0, "tau_w_ms": 144.0,
            "a_nS": 4.0, "b_pA": 80.5, "v_reset_mV": -70.6, "v_spike_mV": 20.0, "i_pA": 800.0, "dt_ms": 0.01,
            "duration_ms": 300.0, "v_init_mV": -70.6, "w_init_pA": 0.0,
            "spike_steps": steps, "spike_times_ms": [s / 100 for s in steps], "v_end": v, "w_end": w}


# ---------------------------------------------------------------- FitzHugh-Nagumo
def fitzhugh_nagumo():
    from scipy.optimize import brentq
    a, b, tau, i = 0.7, 0.8, 12.5, 0.5
    rhs = lambda t, y, k: np.array([y[0] - y[0]**3 / 3 - y[1] + i, (y[0] + a - b * y[1]) / tau])
    v0 = brentq(lambda v: v - v**3 / 3 - (v + a) / b + i, -3, 3, xtol=1e-15)
    w0 = (v0 + a) / b
    jac = np.array([[1 - v0**2, -1.0], [1 / tau, -b / tau]])
    eig = np.linalg.eigvals(jac)
    runs = {}
    for method in ("DOP853", "Radau"):
        r = integrate(rhs, (-1.0, 1.0), [0.0, 600.0], method, 1e-12, threshold=0.0,
                      max_step=0.05 if method == "DOP853" else math.inf)
        runs[method] = r["henon"]
    period = (runs["DOP853"][-1] - runs["DOP853"][5]) / (len(runs["DOP853"]) - 6)
    period_b = (runs["Radau"][-1] - runs["Radau"][5]) / (len(runs["Radau"]) - 6)
    # extrema on the limit cycle: zeros of v' and w' over one period
    from scipy.integrate import solve_ivp
    start = solve_ivp(lambda t, y: rhs(t, y, 0), (0.0, runs["DOP853"][8]), (-1.0, 1.0), method="DOP853",
                      rtol=1e-12, atol=1e-12).y[:, -1]
    events = [lambda t, y: rhs(t, y, 0)[0], lambda t, y: rhs(t, y, 0)[1]]
    s = solve_ivp(lambda t, y: rhs(t, y, 0), (0.0, period), start, method="DOP853", rtol=1e-12, atol=1e-12,
                  events=events, max_step=0.05)
    vs, ws = [y[0] for y in s.y_events[0]], [y[1] for y in s.y_events[1]]
    return {"a": a, "b": b, "tau": tau, "i": i, "fixed_point": {"v": v0, "w": w0},
            "eigenvalue_at_fixed_point": {"re": float(eig[0].real), "im": float(abs(eig[0].imag))},
            "period": period, "v_min": min(vs), "v_max": max(vs), "w_min": min(ws), "w_max": max(ws)}, \
           {"fitzhugh_nagumo_period_DOP853_minus_Radau": period - period_b}


# ---------------------------------------------------------------- Hindmarsh-Rose
def hindmarsh_rose():
    a, b, c, d, r, s, x_rest, i = 1.0, 3.0, 1.0, 5.0, 0.006, 4.0, -1.6, 2.0
    rhs = lambda t, y, k: np.array([y[1] - a * y[0]**3 + b * y[0]**2 - y[2] + i, c - d * y[0]**2 - y[1],
                                    r * (s * (y[0] - x_rest) - y[2])])
    y0 = (-1.6, -11.8, 2.0)              # any start: 2500 time units are discarded
    end = 5000.0
    spikes = {}
    for method, tol in (("DOP853", 1e-12), ("Radau", 1e-11)):
        spikes[method] = integrate(rhs, y0, [0.0, end], method, tol, threshold=0.0,
                                   max_step=0.1 if method == "DOP853" else math.inf)["henon"]
    result = {}
    for method, t in spikes.items():
        bursts = [[t[0]]]
        for before, now in zip(t, t[1:]):
            if now - before > 60.0:
                bursts.append([])
            bursts[-1].append(now)
        whole = [x for x in bursts[:-1] if x[0] > 2500.0]      # the last one may be cut off by the end
        starts = [x[0] for x in whole]
        result[method] = (whole, (starts[-1] - starts[0]) / (len(starts) - 1))
    whole, period = result["DOP853"]
    counts = sorted({len(x) for x in whole})
    gaps = [[y - x for x, y in zip(w, w[1:])] for w in whole]
    spread = max(max(g[k] for g in gaps) - min(g[k] for g in gaps) for k in range(min(map(len, gaps))))
    return {"a": a, "b": b, "c": c, "d": d, "r": r, "s": s, "x_rest": x_rest, "i": i, "threshold_x": 0.0,
            "bursts_seen": len(whole), "spikes_per_burst": counts, "burst_period": period,
            "intervals_inside_a_burst": gaps[-1]}, \
           {"hindmarsh_rose_period_DOP853_minus_Radau": period - result["Radau"][1],
            "hindmarsh_rose_largest_spread_of_an_interval_over_bursts": spread,
            "hindmarsh_rose_burst_starts": [w[0] for w in whole][:3]}


def main():
    fhn, cross_fhn = fitzhugh_nagumo()
    hr, cross_hr = hindmarsh_rose()
    data = {"what": "point cells; conventions in README.md", "lif": lif(), "izhikevich_2003": izhikevich_2003_all(),
            "izhikevich_2007": izhikevich_2007_all(), "adex": adex_all(), "fitzhugh_nagumo": fhn, "hindmarsh_rose": hr,
            "cross_check": cross_fhn | cross_hr, "versions": versions("numpy", "scipy")}
    store("point_cells", data)
    for k, x in data["izhikevich_2003"]["types"].items():
        print(k, len(x["spike_steps"]), x["robust_spikes"], x["spike_steps"][:6])
    for x in data["izhikevich_2007"]["runs"]:
        print(x["i_pA"], len(x["spike_steps"]), x["robust_spikes"], x["spike_steps"][:6])
    print("adex", data["adex"]["spike_times_ms"], fhn, hr, data["cross_check"], sep="\n")


if __name__ == "__main__":
    main()
