"""Quotients that are 0/0 at one voltage, in many spellings: values around it, and one step of every method, to full precision.

Every spelling is an expression of the language in a voltage V around M (both in mV), of order 1. The equation of the steps is
V' = 2 mV/ms - 0.05 /ms * F(V) * (V - 50 mV), dt = 0.5 ms. `exp_euler` moves V by n dt (e^z - 1) / z and `cnexp` by n dt / (1 - z), with n
the derivative V', z = dt dn/dV, at most 1 and 1/2; `crank_nicolson` as `cnexp` with z / 2. At 0/0 the limit is taken 1e-50 beside it with 160 digits.
"""
import re

import mpmath as mp
from common import store, versions
from mpmath import mpf

mp.mp.dps = 160

MIDS = ["0", "-40"]
OFFSETS = [0.0] + [s * 10.0 ** -k for k in (16, 14, 12, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0) for s in (1, -1)]

X = "((V - M) / 10 mV)"
SPELLINGS = {
    # x / (e^x - 1), its reverse and its reciprocal
    "expm1": f"{X} / (exp({X}) - 1)",
    "expm1_turned": f"-{X} / (1 - exp({X}))",
    "hodgkin_huxley": "0.1 /mV * (V - M) / (1 - exp(-(V - M) / 10 mV))",
    "hodgkin_huxley_turned": "0.1 /mV * (M - V) / (exp((M - V) / 10 mV) - 1)",
    "traub_miles": "-0.32 /mV * (V - M) / (exp(-(V - M) / 4 mV) - 1)",
    "decimal_offset": "(0.1 /mV * V - 0.1 /mV * M) / (1 - exp(-0.1 /mV * V + 0.1 /mV * M))",
    "over_reciprocal": f"{X} / (1 - 1 / exp({X}))",
    "reciprocal_of_reciprocal": f"1 / ((1 - exp(-{X})) / {X})",
    "inverse": f"(exp({X}) - 1) / {X}",
    "inverse_turned": f"(1 - exp(-{X})) / {X}",
    "inverse_reciprocal": f"(1 - 1 / exp({X})) / {X}",
    "times_reciprocal": f"{X} * (1 / (exp({X}) - 1))",
    "negated_divisor": f"{X} / -(1 - exp({X}))",
    "sum_with_minus_one": f"{X} / (-1 + exp({X}))",
    "product_of_exponentials": "0.1 /mV * (V - M) / (1 - exp(M / 10 mV) * exp(-V / 10 mV))",
    "quotient_of_exponentials": "0.1 /mV * (V - M) / (exp(V / 10 mV) / exp(M / 10 mV) - 1)",
    "square_of_exponential": f"2 * {X} / (exp({X})^2 - 1)",
    "power_of_ten": f"ln(10) * {X} / (10^{X} - 1)",
    "halved": f"{X} * exp(-{X} / 2) / (exp({X} / 2) - exp(-{X} / 2))",
    "scaled_difference": f"5 * {X} / (5 * exp({X}) - 5)",
    "squared": f"({X} / (exp({X}) - 1))^2",
    "square_over_square": f"{X}^2 / (exp({X}) - 1)^2",
    "square_over_one": f"{X}^2 / (exp({X}) - 1) + 1",
    "ratio_of_differences": f"(exp(2 * {X}) - 1) / (exp({X}) - 1)",
    "zero_first": f"{X} / (0 - 1 + exp({X}))",
    "one_in_two_parts": f"{X} / (exp({X}) - 0.5 - 0.5)",
    "sigmoid": f"{X} * (1 - 1 / (1 + exp(-{X}))) / (2 / (1 + exp(-{X})) - 1)",
    "powers_of_two": f"{X} / (2^{X} - 2^(-{X}))",
    "two_linoids": f"{X} / (exp({X}) - 1) + 3 * {X} / (1 - exp(-2 * {X}))",
    "linoid_over_linoid": f"({X} / (exp({X}) - 1)) / ({X} / (1 - exp(-{X} / 2)))",
    # with parameters
    "parameters": "(V - vh) / k / (exp((V - vh) / k) - 1)",
    "parameters_multiplied_out": "a * (V - vh) / (1 - exp(a * vh - a * V))",
    "parameters_half": "(V - vh) / (1 - exp((vh - V) / k)) / k",
    "parameter_inside": "2 * (V - vh) / k / (exp(c * (V - vh) / k) - 1)",
    "shifted": "a * (V - (vh + s)) / (1 - exp(-a * (V - vh - s)))",
    # hyperbolic
    "x_over_tanh": f"{X} / tanh({X})",
    "tanh_over_x": f"tanh({X}) / {X}",
    "x_over_sinh": f"{X} / sinh({X})",
    "sinh_over_x": f"sinh({X}) / {X}",
    "coth": f"{X} * cosh({X}) / sinh({X})",
    "coth_by_exponential": f"{X} * (1 + 2 / (exp(2 * {X}) - 1))",
    "cosh_less_one": f"2 * (cosh({X}) - 1) / {X}^2",
    "half_angle": f"0.5 * {X} * (1 / tanh({X} / 2) - 1)",
    # Goldman, Hodgkin, Katz
    "ghk": f"{X} * (0.05 - 2 * exp(-{X})) / (1 - exp(-{X}))",
    "ghk_turned": f"{X} * (0.05 * exp({X}) - 2) / (exp({X}) - 1)",
    "ghk_parameters": "(V - vh) / k * (cin - cout * exp(-(V - vh) / k)) / (1 - exp(-(V - vh) / k))",
    "ghk_factored": "(cin * ((V - vh) / k) - cout * ((V - vh) / k) * exp(-(V - vh) / k)) / (1 - exp(-(V - vh) / k))",
    "ghk_two_quotients": f"0.05 * {X} / (1 - exp(-{X})) - 2 * {X} / (exp({X}) - 1)",
    "ghk_expanded": f"0.05 * {X} / (1 - exp(-{X})) - 2 * {X} * exp(-{X}) / (1 - exp(-{X}))",
    "ghk_divalent": f"2 * {X} * (cin - cout * exp(-2 * {X})) / (1 - exp(-2 * {X}))",
    "ghk_hyperbolic": f"{X} * (cin * exp({X} / 2) - cout * exp(-{X} / 2)) / (2 * sinh({X} / 2))",
    "ghk_negative_valence": f"-{X} * (0.05 - 2 * exp({X})) / (1 - exp({X}))",
    # guarded
    "guarded": f"if abs({X}) < 1e-6 then 1 - {X} / 2 else {X} / (exp({X}) - 1)",
    "guarded_at_one_place": f"if V == M then 1 else {X} / (exp({X}) - 1)",
    "guarded_by_voltage": f"if abs(V - M) < 0.00001 mV then 1 + {X} / 2 else {X} / (1 - exp(-{X}))",
    "guarded_between": f"if {X} > -1e-6 and {X} < 1e-6 then 1 - {X} / 2 else {X} / (exp({X}) - 1)",
    "guarded_outside": f"if {X} < -1e-6 or 1e-6 < {X} then {X} / (exp({X}) - 1) else 1 - {X} / 2",
    "guarded_not": f"if not (abs({X}) >= 1e-6) then 1 - {X} / 2 else {X} / (exp({X}) - 1)",
    "guarded_by_square": f"if {X} * {X} < 1e-12 then 1 - {X} / 2 else {X} / (exp({X}) - 1)",
    "guarded_by_power": f"if 1e-12 > {X}^2 then 1 - {X} / 2 else {X} / (exp({X}) - 1)",
    "guarded_by_difference": f"if abs(exp({X}) - 1) < 1e-6 then 1 - {X} / 2 else {X} / (exp({X}) - 1)",
    "guarded_by_difference_turned": f"if abs(1 - exp(-{X})) > 1e-6 then {X} / (1 - exp(-{X})) else 1 + {X} / 2",
    "guarded_twice": f"if {X} > 1e-6 then {X} / (exp({X}) - 1) else if {X} < -1e-6 then {X} / (exp({X}) - 1) else 1 - {X} / 2",
    "guarded_by_two": f"if abs({X}) < 1e-6 and abs(V - M) < 0.001 mV then 1 - {X} / 2 else {X} / (exp({X}) - 1)",
    "guarded_by_either": f"if abs({X}) < 1e-6 or {X} == 0 then 1 - {X} / 2 else {X} / (exp({X}) - 1)",
    "guarded_by_parameter": f"if abs({X}) < eps then 1 - {X} / 2 else {X} / (exp({X}) - 1)",
    # other functions
    "sine": f"sin({X}) / {X}",
    "x_over_sine": f"{X} / sin({X})",
    "tangent": f"tan({X}) / {X}",
    "cosine": f"2 * (1 - cos({X})) / ({X} * {X})",
    "logarithm": f"ln(1 + {X} / 2) / {X}",
    "x_over_logarithm": f"{X} / ln(1 + {X} / 2)",
    "second_order": f"2 * (exp({X}) - 1 - {X}) / {X}^2",
    "root": f"(sqrt(1 + {X} / 2) - 1) / {X}",
    "poles_that_cancel": f"1 / (1 - exp(-{X})) - 1 / {X}",
    "polynomials": f"({X}^2 + {X}) / {X}",
    "sine_of_parameters": "sin((V - vh) / k) / ((V - vh) / k)",
    "sine_over_voltage": "k * sin((V - vh) / k) / (V - vh)",
    "logarithm_of_a_third": f"ln(1 + {X} / 3) / {X}",
    "langevin": f"1 / tanh({X}) - 1 / {X}",
    "poles_with_parameters": "k / (V - vh) - 1 / (exp((V - vh) / k) - 1)",
    "linoid_less_one": f"({X} / (exp({X}) - 1) - 1) / {X}",
    "power_of_a_linoid": f"({X} / (1 - exp(-{X})))^0.7",
    "divided_by_itself": f"({X} + {X}^3) / ({X} + {X}^2)",
}
PARAMETERS = {"k": "10", "a": "0.1", "c": "2", "s": "0", "cin": "0.05", "cout": "2", "eps": "1e-6"}
METHODS = ["euler", "heun", "rk4", "exp_euler", "cnexp", "crank_nicolson"]


def python(expression):
    """The expression as one of Python, with numbers as decimals of full precision."""
    text = re.sub(r"\s*/mV", "", re.sub(r" mV", "", expression)).replace("^", "**")
    text = re.sub(r"(?<![\w.])(\d+\.?\d*(?:e-?\d+)?)", r"mpf('\1')", text)
    choice = re.match(r"if (.*?) then (.*?) else (.*)", text)
    if not choice:
        return text
    if "eps" in choice[1]:
        # Such a guard stays: what is written inside of it is what is meant.
        return f"({choice[2]}) if {choice[1]} else ({choice[3]})"
    # Any other is a way to write the function without it.
    return max(choice[2], choice[3], key=lambda side: side.count("exp"))


def function(expression, mid):
    code = compile(python(expression), expression, "eval")
    names = {n: getattr(mp, n) for n in ("exp", "sinh", "cosh", "tanh", "sin", "cos", "tan", "sqrt")}
    names |= {"ln": mp.log, "abs": abs, "mpf": mpf, "M": mpf(mid), "vh": mpf(mid)}
    names |= {name: mpf(value) for name, value in PARAMETERS.items()}

    def value(v):
        return eval(code, dict(names, V=v + mpf(10) ** -50))

    return value


def steps(f, v):
    dt = mpf("0.5")
    rate = lambda x: 2 - mpf("0.05") * f(x) * (x - 50)
    n = rate(v)
    h = mpf(10) ** -30
    slope = (rate(v + h) - rate(v - h)) / (2 * h)
    z = dt * slope
    exponential, implicit = min(z, mpf(1)), min(z, mpf("0.5"))
    k2 = rate(v + dt * n)
    h2 = rate(v + dt / 2 * n)
    h3 = rate(v + dt / 2 * h2)
    h4 = rate(v + dt * h3)
    return {
        "euler": v + dt * n,
        "heun": v + dt / 2 * (n + k2),
        "rk4": v + dt / 6 * (n + 2 * h2 + 2 * h3 + h4),
        "exp_euler": v + n * dt * mp.expm1(exponential) / exponential,
        "cnexp": v + n * dt / (1 - implicit),
        "crank_nicolson": v + n * dt / (1 - min(z / 2, mpf("0.5"))),
    }


def main():
    spellings = []
    for name, expression in SPELLINGS.items():
        entry = {"name": name, "expression": expression, "values": [], "steps": {m: [] for m in METHODS}}
        for mid in MIDS:
            f = function(expression, mid)
            values, by_method = [], {m: [] for m in METHODS}
            for offset in OFFSETS:
                v = mpf(float(mid) + offset)
                values.append(float(f(v)))
                for method, new in steps(f, v).items():
                    # How far V moves, not where to, so that small steps keep their digits.
                    by_method[method].append(float(new - v))
            entry["values"].append(values)
            for method in METHODS:
                entry["steps"][method].append(by_method[method])
        spellings.append(entry)
    store(
        "singularities",
        {
            "mids_mV": [float(m) for m in MIDS],
            "offsets_mV": OFFSETS,
            "parameters": {n: float(v) for n, v in PARAMETERS.items()},
            "spellings": {entry.pop("name"): entry for entry in spellings},
            "versions": versions("mpmath"),
        },
    )


if __name__ == "__main__":
    main()
