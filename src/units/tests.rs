use super::*;

fn canonical(number: &str, unit: &str) -> f64 {
    Unit::parse(unit).unwrap().canonical(number).unwrap()
}

#[test]
fn literals_become_the_nearest_double_in_canonical_units() {
    for (number, unit, value) in [
        ("0.13", "mS/cm2", 0.13),
        ("0.12", "S/cm^2", 120.0),
        ("120", "mS_per_cm2", 120.0),
        ("1", "uF/cm2", 1.0),
        ("10", "uA/cm2", 10.0),
        ("54.4", "mV", 54.4),
        ("0.1", "/ms", 0.1),
        ("0.1", "1/ms", 0.1),
        ("300", "Hz", 0.3),
        ("35.4", "ohm*cm", 0.0354),
        ("1000", "um2", 1e-5),
        ("281", "pF", 281e-6),
        ("30", "nS", 30e-6),
        ("0.8", "nA", 0.8e-3),
        ("100", "Mohm", 1e5),
        ("2", "mM", 2.0),
        ("1", "mol/m3", 1.0),
        ("1.5e3", "us", 1.5),
        ("96485", "C/mol", 96_485_000.0),
    ] {
        let got = canonical(number, unit);
        assert!((got - value).abs() <= 1e-15 * value.abs(), "{number} {unit}: {got} is not {value}");
    }
    assert_eq!(canonical("0.13", "mS/cm2"), 0.13);
    assert_eq!(canonical("6.3", "degC"), 279.45);
}

#[test]
fn coherent_products_are_one() {
    let volt_times_siemens = Dim::VOLTAGE.times(Dim::CONDUCTANCE_DENSITY);
    assert_eq!(volt_times_siemens, Dim::CURRENT_DENSITY);
    assert_eq!(Dim::SPECIFIC_CAPACITANCE.times(Dim::VOLTAGE).over(Dim::TIME), Dim::CURRENT_DENSITY);
    assert_eq!(Dim::RESISTANCE.times(Dim::CURRENT), Dim::VOLTAGE);
    for unit in ["mV", "ms", "mS/cm2", "uA/cm2", "uF/cm2", "kohm", "mS", "uF", "mM", "cm", "K"] {
        assert_eq!(canonical("1", unit), 1.0, "{unit}");
    }
}

#[test]
fn names_that_look_alike_stay_apart() {
    assert_eq!(Unit::named("ms").unwrap().dim, Dim::TIME);
    assert_eq!(Unit::named("mS").unwrap().dim, Dim::CONDUCTANCE);
    assert_eq!(Unit::named("M").unwrap().dim, Dim::CONCENTRATION);
    assert_eq!(Unit::named("mM").unwrap().dim, Dim::CONCENTRATION);
    assert_eq!(Unit::named("mol").unwrap().dim, Dim::AMOUNT);
    assert_eq!(Unit::named("mmol").unwrap().exponent, -3);
    for wrong in ["mv", "sec", "hour", "kdegC", "uu", "", "mm2x"] {
        assert_eq!(Unit::named(wrong), None, "{wrong}");
    }
    assert_eq!(Unit::parse("degC/ms"), None);
}

#[test]
fn every_quantity_is_shown_in_a_unit_of_its_own_dimension() {
    for &(dim, name, unit) in QUANTITIES {
        assert_eq!(Unit::parse(unit).map(|u| u.dim), Some(dim), "{name} in {unit}");
    }
    let odd = Dim::CURRENT.times(Dim::CURRENT).over(Dim::TIME);
    assert_eq!(odd.display_unit(), DisplayUnit { name: "uA2/ms".into(), exponent: 0 });
    assert_eq!(Dim::CURRENT.display_unit().show(0.8e-3), 0.8);
}

#[test]
fn columns_align_factor_by_factor() {
    assert_eq!(Dim::VOLTAGE.columns(Dim::CURRENT), "M L^2 T^-3 I^-1");
    assert_eq!(Dim::CURRENT.columns(Dim::VOLTAGE), "           I");
}
