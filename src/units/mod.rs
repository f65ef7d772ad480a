//! Dimensions and units; depends on nothing.
//!
//! In come unit names and decimal literals; out go dimensions, and numbers in **canonical units**: ms, mV, cm, uA, K and
//! umol, and every product of them (so mS/cm2, uA/cm2, uF/cm2, kohm*cm, mM and /ms are 1 too).
//! Never true here: a number whose unit was guessed.
//!
//! All units are powers of ten of SI units, so a literal such as `0.13 mS/cm2` is converted by shifting its decimal
//! exponent and rounded to binary once: it becomes exactly the `f64` nearest to 0.13.

use std::fmt;

/// Exponents of mass, length, time, current, temperature and amount of substance, counted in halves. Only that of time may be half a number: white
/// noise is one over the root of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Dim([i16; 6]);

/// Which of them is that of time.
const TIME: usize = 2;

const SYMBOLS: [&str; 6] = ["M", "L", "T", "I", "Θ", "N"];

/// Decimal exponents of the canonical units of M, L, T, I, Θ, N in SI units; the one of mass makes 1 mV canonical.
const CANONICAL: [i32; 6] = [-14, -2, -3, -6, 0, -6];

/// Bytes for people.
pub fn bytes(bytes: f64) -> String {
    match bytes {
        b if b < 1e3 => format!("{b:.0} B"),
        b if b < 1e6 => format!("{:.1} kB", b / 1e3),
        b if b < 1e9 => format!("{:.1} MB", b / 1e6),
        b if b < 1e10 => format!("{:.2} GB", b / 1e9),
        b if b < 1e15 => format!("{:.0} GB", b / 1e9),
        b => format!("{:.1e} GB", b / 1e9),
    }
}

impl Dim {
    /// From whole exponents.
    const fn whole([m, l, t, i, theta, n]: [i16; 6]) -> Dim {
        Dim([2 * m, 2 * l, 2 * t, 2 * i, 2 * theta, 2 * n])
    }

    /// A pure number.
    pub const ONE: Dim = Dim::whole([0, 0, 0, 0, 0, 0]);
    /// Time.
    pub const TIME: Dim = Dim::whole([0, 0, 1, 0, 0, 0]);
    /// One over time.
    pub const RATE: Dim = Dim::whole([0, 0, -1, 0, 0, 0]);
    /// One over the root of a time: white noise, whose variance is one over the time that it is a mean of.
    pub const WHITE: Dim = Dim([0, 0, -1, 0, 0, 0]);
    /// Length.
    pub const LENGTH: Dim = Dim::whole([0, 1, 0, 0, 0, 0]);
    /// Area.
    pub const AREA: Dim = Dim::whole([0, 2, 0, 0, 0, 0]);
    /// Volume.
    pub const VOLUME: Dim = Dim::whole([0, 3, 0, 0, 0, 0]);
    /// Voltage.
    pub const VOLTAGE: Dim = Dim::whole([1, 2, -3, -1, 0, 0]);
    /// Current.
    pub const CURRENT: Dim = Dim::whole([0, 0, 0, 1, 0, 0]);
    /// Current per area.
    pub const CURRENT_DENSITY: Dim = Dim::whole([0, -2, 0, 1, 0, 0]);
    /// Conductance.
    pub const CONDUCTANCE: Dim = Dim::whole([-1, -2, 3, 2, 0, 0]);
    /// Conductance per area.
    pub const CONDUCTANCE_DENSITY: Dim = Dim::whole([-1, -4, 3, 2, 0, 0]);
    /// Capacitance.
    pub const CAPACITANCE: Dim = Dim::whole([-1, -2, 4, 2, 0, 0]);
    /// Capacitance per area.
    pub const SPECIFIC_CAPACITANCE: Dim = Dim::whole([-1, -4, 4, 2, 0, 0]);
    /// Resistance.
    pub const RESISTANCE: Dim = Dim::whole([1, 2, -3, -2, 0, 0]);
    /// Resistance times length.
    pub const RESISTIVITY: Dim = Dim::whole([1, 3, -3, -2, 0, 0]);
    /// Diffusion coefficient.
    pub const DIFFUSION: Dim = Dim::whole([0, 2, -1, 0, 0, 0]);
    /// Conductance per length.
    pub const CONDUCTIVITY: Dim = Dim::whole([-1, -3, 3, 2, 0, 0]);
    /// Charge.
    pub const CHARGE: Dim = Dim::whole([0, 0, 1, 1, 0, 0]);
    /// Temperature.
    pub const TEMPERATURE: Dim = Dim::whole([0, 0, 0, 0, 1, 0]);
    /// Amount of substance.
    pub const AMOUNT: Dim = Dim::whole([0, 0, 0, 0, 0, 1]);
    /// Amount per volume.
    pub const CONCENTRATION: Dim = Dim::whole([0, -3, 0, 0, 0, 1]);
    /// Mass.
    pub const MASS: Dim = Dim::whole([1, 0, 0, 0, 0, 0]);
    /// Force.
    pub const FORCE: Dim = Dim::whole([1, 1, -2, 0, 0, 0]);
    /// Energy.
    pub const ENERGY: Dim = Dim::whole([1, 2, -2, 0, 0, 0]);

    /// The dimension of a product.
    pub fn times(self, other: Dim) -> Dim {
        self.zip(other, i16::saturating_add)
    }

    /// The dimension of a quotient.
    pub fn over(self, other: Dim) -> Dim {
        self.zip(other, i16::saturating_sub)
    }

    /// The dimension of an integer power.
    pub fn power(self, n: i32) -> Dim {
        Dim(self.0.map(|e| (i32::from(e).saturating_mul(n)).clamp(-254, 254) as i16))
    }

    /// The dimension of a square root, if all powers are even but that of time, which may be odd.
    pub fn root(self) -> Option<Dim> {
        let whole = |(at, e): (usize, i16)| e % if at == TIME { 2 } else { 4 } == 0;
        self.0.into_iter().enumerate().all(whole).then(|| Dim(self.0.map(|e| e / 2)))
    }

    /// Is it a pure number?
    pub fn is_one(self) -> bool {
        self == Dim::ONE
    }

    fn zip(self, other: Dim, f: impl Fn(i16, i16) -> i16) -> Dim {
        Dim(std::array::from_fn(|i| f(self.0[i], other.0[i])))
    }

    /// Decimal exponent of the canonical unit in SI units. What is written or named has whole exponents.
    fn canonical_exponent(self) -> i32 {
        self.0.iter().zip(CANONICAL).map(|(&e, c)| i32::from(e) * c).sum::<i32>() / 2
    }

    /// The physical quantity of this dimension, such as `voltage`, if it has a usual name.
    pub fn quantity(self) -> Option<&'static str> {
        QUANTITIES.iter().find(|q| q.0 == self).map(|q| q.1)
    }

    /// How messages call it: the quantity's name, or the product of factors.
    pub fn describe(self) -> String {
        self.quantity().map_or_else(|| format!("a quantity in {}", self.display_unit().name), str::to_string)
    }

    /// The unit in which values of this dimension are shown.
    pub fn display_unit(self) -> DisplayUnit {
        if let Some(q) = QUANTITIES.iter().find(|q| q.0 == self) {
            let unit = Unit::parse(q.2).unwrap_or(Unit::ONE);
            return DisplayUnit { name: q.2.to_string(), exponent: unit.exponent - self.canonical_exponent() };
        }
        // A product of canonical units.
        let names = ["mass", "cm", "ms", "uA", "K", "umol"];
        // Mass is expressed through mV: M = V I T^3 / L^2.
        let m = self.0[0];
        let rest = self.over(Dim::VOLTAGE.power(i32::from(m) / 2));
        let mut factors: Vec<(&str, i16)> = vec![("mV", m)];
        factors.extend(names.iter().zip(rest.0).skip(1).map(|(n, e)| (*n, e)));
        DisplayUnit { name: join_unit(&factors), exponent: 0 }
    }

    /// `[M L^2 T^-3 I^-1]`-style columns, aligned so that two of them can stand one above the other.
    pub fn columns(self, other: Dim) -> String {
        (0..6)
            .filter(|&i| self.0[i] != 0 || other.0[i] != 0)
            .map(|i| {
                let own = factor(SYMBOLS[i], self.0[i]);
                let width = own.chars().count().max(factor(SYMBOLS[i], other.0[i]).chars().count());
                format!("{own:<width$}")
            })
            .collect::<Vec<_>>()
            .join(" ")
            .trim_end()
            .to_string()
    }
}

fn factor(symbol: &str, halves: i16) -> String {
    match halves {
        0 => String::new(),
        2 => symbol.to_string(),
        e if e % 2 == 0 => format!("{symbol}^{}", e / 2),
        e => format!("{symbol}^{}", f64::from(e) / 2.0),
    }
}

fn join_unit(factors: &[(&str, i16)]) -> String {
    let part = |n: &str, e: i16| match e {
        2 => n.to_string(),
        e if e % 2 == 0 => format!("{n}{}", e / 2),
        e => format!("{n}^{}", f64::from(e) / 2.0),
    };
    let over: Vec<_> = factors.iter().filter(|f| f.1 > 0).map(|f| part(f.0, f.1)).collect();
    let under: Vec<_> = factors.iter().filter(|f| f.1 < 0).map(|f| part(f.0, -f.1)).collect();
    match (over.is_empty(), under.is_empty()) {
        (true, true) => "1".into(),
        (true, false) => format!("/{}", under.join("/")),
        (false, true) => over.join("*"),
        (false, false) => format!("{}/{}", over.join("*"), under.join("/")),
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.columns(Dim::ONE);
        f.write_str(if text.is_empty() { "1" } else { &text })
    }
}

/// The unit in which a quantity is shown: its name, and the decimal exponent that turns one of it into canonical units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisplayUnit {
    /// The name, such as `mV`; `1` for a pure number.
    pub name: String,
    /// `canonical = shown * 10^exponent`.
    pub exponent: i32,
}

impl DisplayUnit {
    /// A canonical value in this unit.
    pub fn show(&self, canonical: f64) -> f64 {
        scale(canonical, -self.exponent)
    }
}

/// `value * 10^exponent`, by one exact power of ten where there is one.
pub fn scale(value: f64, exponent: i32) -> f64 {
    if exponent >= 0 { value * 10f64.powi(exponent) } else { value / 10f64.powi(-exponent) }
}

/// What is canonical in a unit, to 15 digits, which hide the rounding of units: as a model has written it.
pub fn written(canonical: f64, exponent: i32) -> f64 {
    let value = scale(canonical, -exponent);
    format!("{value:.14e}").parse().unwrap_or(value)
}

/// Dimension, name of the quantity with its article where it has one, unit in which it is shown.
const QUANTITIES: &[(Dim, &str, &str)] = &[
    (Dim::ONE, "a pure number", "1"),
    (Dim::TIME, "a time", "ms"),
    (Dim::RATE, "a rate", "/ms"),
    (Dim::LENGTH, "a length", "um"),
    (Dim::AREA, "an area", "um2"),
    (Dim::VOLUME, "a volume", "um3"),
    (Dim::VOLTAGE, "a voltage", "mV"),
    (Dim::whole([1, 2, -4, -1, 0, 0]), "a voltage per time", "mV/ms"),
    (Dim::whole([-1, -2, 3, 1, 0, 0]), "one over a voltage", "/mV"),
    (Dim::CURRENT, "a current", "nA"),
    (Dim::CURRENT_DENSITY, "a current density", "uA/cm2"),
    (Dim::CONDUCTANCE, "a conductance", "nS"),
    (Dim::CONDUCTANCE_DENSITY, "a conductance density", "mS/cm2"),
    (Dim::CAPACITANCE, "a capacitance", "pF"),
    (Dim::SPECIFIC_CAPACITANCE, "a specific capacitance", "uF/cm2"),
    (Dim::RESISTANCE, "a resistance", "Mohm"),
    (Dim::RESISTIVITY, "a resistivity", "ohm*cm"),
    (Dim::DIFFUSION, "a diffusion coefficient", "um2/ms"),
    (Dim::CONDUCTIVITY, "a conductivity", "S/m"),
    (Dim::CHARGE, "a charge", "pC"),
    (Dim::TEMPERATURE, "a temperature", "K"),
    (Dim::AMOUNT, "an amount of substance", "umol"),
    (Dim::CONCENTRATION, "a concentration", "mM"),
    (Dim::whole([0, -3, -1, 0, 0, 1]), "a concentration per time", "mM/ms"),
    (Dim::whole([0, -2, 1, 1, 0, 0]), "a charge per area", "nC/cm2"),
    (Dim::MASS, "a mass", "g"),
    (Dim::FORCE, "a force", "N"),
    (Dim::ENERGY, "an energy", "J"),
];

/// A unit: a dimension and a power of ten of SI; `degC` also has an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Its dimension.
    pub dim: Dim,
    /// `SI = value * 10^exponent`.
    pub exponent: i32,
    /// Is zero of it 273.15 K?
    pub celsius: bool,
}

/// Base unit names without prefix: name, dimension, decimal exponent in SI, may it have a prefix?
pub const BASE_UNITS: &[(&str, Dim, i32, bool)] = &[
    ("V", Dim::VOLTAGE, 0, true),
    ("A", Dim::CURRENT, 0, true),
    ("S", Dim::CONDUCTANCE, 0, true),
    ("F", Dim::CAPACITANCE, 0, true),
    ("ohm", Dim::RESISTANCE, 0, true),
    ("Ohm", Dim::RESISTANCE, 0, true),
    ("Ω", Dim::RESISTANCE, 0, true),
    ("s", Dim::TIME, 0, true),
    ("Hz", Dim::RATE, 0, true),
    ("mol", Dim::AMOUNT, 0, true),
    ("m", Dim::LENGTH, 0, true),
    ("M", Dim::CONCENTRATION, 3, true),
    ("l", Dim::VOLUME, -3, true),
    ("L", Dim::VOLUME, -3, true),
    ("K", Dim::TEMPERATURE, 0, true),
    ("C", Dim::CHARGE, 0, true),
    ("N", Dim::FORCE, 0, true),
    ("J", Dim::ENERGY, 0, true),
    ("g", Dim::MASS, -3, true),
    ("degC", Dim::TEMPERATURE, 0, false),
];

/// Prefixes with their decimal exponents.
pub const PREFIXES: &[(&str, i32)] = &[
    ("f", -15),
    ("p", -12),
    ("n", -9),
    ("u", -6),
    ("µ", -6),
    ("μ", -6),
    ("m", -3),
    ("c", -2),
    ("d", -1),
    ("k", 3),
    ("M", 6),
    ("G", 9),
];

impl Unit {
    /// No unit.
    pub const ONE: Unit = Unit { dim: Dim::ONE, exponent: 0, celsius: false };

    /// The unit of a single name with prefix, such as `mV`; `None` if there is none.
    pub fn named(name: &str) -> Option<Unit> {
        let whole = BASE_UNITS.iter().find(|b| b.0 == name).map(|b| (b, 0));
        let prefixed = || {
            PREFIXES.iter().find_map(|&(prefix, e)| {
                let rest = name.strip_prefix(prefix)?;
                BASE_UNITS.iter().find(|b| b.3 && b.0 == rest).map(|b| (b, e))
            })
        };
        let (base, e) = whole.or_else(prefixed)?;
        Some(Unit { dim: base.1, exponent: base.2 + e, celsius: base.0 == "degC" })
    }

    /// A product of unit powers; `None` if `degC` stands in a product or the powers are absurd.
    pub fn product(factors: impl IntoIterator<Item = (Unit, i32)>) -> Option<Unit> {
        let factors: Vec<_> = factors.into_iter().collect();
        if let [(unit, 1)] = factors[..] {
            return Some(unit);
        }
        factors.iter().try_fold(Unit::ONE, |product, &(unit, power)| {
            let sane = power.abs() <= 9 && !unit.celsius;
            sane.then(|| Unit {
                dim: product.dim.times(unit.dim.power(power)),
                exponent: product.exponent + unit.exponent * power,
                celsius: false,
            })
        })
    }

    /// Reads a whole unit such as `mS/cm2`, `1/ms`, `/ms`, `ohm*cm`, `mS_per_cm2`; `None` if it is not one.
    pub fn parse(text: &str) -> Option<Unit> {
        if text == "1" {
            return Some(Unit::ONE);
        }
        let mut factors = Vec::new();
        let mut sign = 1;
        let mut word = String::new();
        for c in text.chars().chain(['*']) {
            if c == '*' || c == '/' {
                // `S_per_m2` is one word, as `per_ms` is.
                for (at, part) in word.split("per_").enumerate() {
                    let part = part.trim_end_matches('_');
                    if !part.is_empty() && part != "1" {
                        factors.push(parse_power(part, if at == 0 { sign } else { -sign })?);
                    }
                }
                word.clear();
                sign = if c == '/' { -1 } else { 1 };
            } else {
                word.push(c);
            }
        }
        Unit::product(factors)
    }

    /// The value of a decimal literal (digits, point, exponent; no sign) with this unit, in canonical units.
    /// `None` if the text is not a number or overflows.
    pub fn canonical(self, literal: &str) -> Option<f64> {
        if self.celsius {
            return literal.parse::<f64>().ok().map(|x| x + 273.15);
        }
        let (mantissa, exponent) = match literal.find(['e', 'E']) {
            Some(at) => (&literal[..at], literal[at + 1..].parse::<i32>().ok()?),
            None => (literal, 0),
        };
        let shift = exponent.checked_add(self.exponent - self.dim.canonical_exponent())?;
        let value: f64 = format!("{mantissa}e{shift}").parse().ok()?;
        value.is_finite().then_some(value)
    }

    /// As a unit to show values in, under the name `name`. Temperatures are shown in K.
    pub fn display(self, name: &str) -> DisplayUnit {
        if self.celsius {
            return Dim::TEMPERATURE.display_unit();
        }
        DisplayUnit { name: name.to_string(), exponent: self.exponent - self.dim.canonical_exponent() }
    }
}

fn parse_power(word: &str, sign: i32) -> Option<(Unit, i32)> {
    let split = word.find(|c: char| c.is_ascii_digit() || c == '^').unwrap_or(word.len());
    let power = word[split..].trim_start_matches('^');
    let power = if power.is_empty() { 1 } else { power.parse::<i32>().ok()? };
    Some((Unit::named(&word[..split])?, power * sign))
}

#[cfg(test)]
mod tests;
