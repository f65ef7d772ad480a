//! Small programs whose numbers are known by hand.

use super::*;
use crate::step::{parse, verify};

const PROGRAM: &str = r#"
program "p"
space @a
uniform @dt
uniform @g
series @i
data @a.d over @a
const @a.c over @a
state @a.v over @a
state @a.n over @a
temp @a.t over @a
output @a.o over @a
event @a.e over @a
fn init {
  over @a {
    %0 = field @a.d
    store @a.c, %0
    %1 = field @a.c
    %2 = index
    %3 = add %1, %2
    store @a.v, %3
    %4 = const 0.0
    store @a.n, %4
  }
}
fn step steps 3 {
  once {
    %0 = field @g
  }
  once over @a {
    %4 = field @a.c
    %5 = mul %4, %0
  }
  every {
    %1 = time
    %2 = sample @i, %1
    %3 = step_index
  }
  over @a {
    %6 = field @a.v
    %7 = add %6, %5
    store @a.t, %7
    %8 = draw uniform 3, %3
    store @a.n, %8
  }
  over @a {
    %9 = field @a.t
    %10 = add %9, %2
    store @a.v, %10
    %11 = field @a.v
    %12 = const 4.0
    %13 = gt %11, %12
    emit @a.e, %13
  }
}
fn observe {
  every {
    %0 = step_index
  }
  over @a {
    %1 = field @a.v
    %2 = mul %1, %0
    store @a.o, %2
  }
}
"#;

fn interp() -> Interp {
    let program = parse(PROGRAM).unwrap_or_else(|e| panic!("{e}"));
    let id = |name: &str| program.find_field(name).unwrap_or_else(|| panic!("{name}"));
    let setup = Setup {
        sizes: vec![2],
        uniforms: vec![(id("dt"), 0.5), (id("g"), 10.0)],
        series: vec![(id("i"), vec![(0.0, 0.0), (1.0, 0.25)])],
        data: vec![(id("a.d"), vec![0.125, 0.0625])],
        seed: 7,
        ..Setup::default()
    };
    let verified = verify(program.clone()).unwrap_or_else(|e| panic!("{e}"));
    Interp::new(verified, &setup).unwrap_or_else(|e| panic!("{e}"))
}

fn read(interp: &Interp, name: &str) -> Vec<f64> {
    let mut out = Vec::new();
    let id = interp.program().find_field(name).unwrap_or_else(|| panic!("{name}"));
    interp.read(id, 0..2, &mut out).unwrap_or_else(|e| panic!("{e}"));
    out
}

#[test]
fn numbers_are_those_computed_by_hand() -> Result<(), EngineError> {
    let mut interp = interp();
    interp.init()?;
    assert_eq!(read(&interp, "a.v"), [0.125, 1.0625]);
    let mut spikes = Vec::new();
    interp.step(0, 4, &mut spikes)?;
    // Each step adds 10 c and the input 0, 0.125, 0.25, 0.25.
    assert_eq!(read(&interp, "a.v"), [0.125 + 5.0 + 0.625, 1.0625 + 2.5 + 0.625]);
    let id = interp.program().find_field("a.e").unwrap_or(FieldId(u32::MAX));
    // Cell 0: 1.375, 2.75, 4.25, 5.75; cell 1: 1.6875, 2.4375, 3.3125, 4.1875.
    let expected = [(2, 0), (3, 0), (3, 1)].map(|(step, cell)| Spike { step, field: id, cell, early: 0 });
    assert_eq!(spikes, expected);
    interp.observe(4)?;
    assert_eq!(read(&interp, "a.o"), [4.0 * 5.75, 4.0 * 4.1875]);
    let draw = rng::Draw { seed: 7, stream: 3 };
    assert_eq!(read(&interp, "a.n"), [draw.uniform(0, 3), draw.uniform(1, 3)]);
    Ok(())
}

#[test]
fn how_steps_are_grouped_changes_nothing() -> Result<(), EngineError> {
    let [mut one, mut other] = [interp(), interp()];
    let [mut spikes_one, mut spikes_other] = [vec![], vec![]];
    one.init()?;
    other.init()?;
    one.step(0, 7, &mut spikes_one)?;
    for step in 0..7 {
        other.step(step, 1, &mut spikes_other)?;
    }
    assert_eq!(spikes_one, spikes_other);
    assert_eq!(read(&one, "a.v"), read(&other, "a.v"));
    assert_eq!(read(&one, "a.n"), read(&other, "a.n"));
    Ok(())
}

#[test]
fn a_run_that_begins_again_is_the_same() -> Result<(), EngineError> {
    let mut interp = interp();
    assert!(!interp.all_finite());
    assert!(interp.step(0, 1, &mut vec![]).is_err());
    interp.init()?;
    let before = read(&interp, "a.v");
    interp.step(0, 2, &mut vec![])?;
    assert_ne!(read(&interp, "a.v"), before);
    interp.init()?;
    assert_eq!(read(&interp, "a.v"), before);
    let v = FieldId(5);
    interp.write(v, &[1.0, f64::NAN])?;
    assert!(!interp.all_finite());
    assert!(interp.write(v, &[1.0]).is_err());
    assert!(interp.read(v, 1..3, &mut vec![]).is_err());
    assert!(interp.read(FieldId(0), 0..1, &mut vec![]).is_err());
    assert!(interp.read(FieldId(99), 0..1, &mut vec![]).is_err());
    Ok(())
}

#[test]
fn what_the_set_up_lacks_is_named() {
    let verified = || verify(parse(PROGRAM).unwrap_or_else(|e| panic!("{e}"))).unwrap_or_else(|e| panic!("{e}"));
    let full = |change: &dyn Fn(&mut Setup)| {
        let mut setup = Setup {
            sizes: vec![2],
            uniforms: vec![(FieldId(0), 0.5), (FieldId(1), 10.0)],
            series: vec![(FieldId(2), vec![(0.0, 0.0), (1.0, 0.25)])],
            data: vec![(FieldId(3), vec![0.0; 2])],
            seed: 7,
            ..Setup::default()
        };
        change(&mut setup);
        Interp::new(verified(), &setup).map(|_| ()).map_err(|e| e.0)
    };
    assert_eq!(full(&|_| {}), Ok(()));
    assert_eq!(full(&|s| s.sizes.clear()), Err("0 sizes for 1 spaces".into()));
    assert_eq!(full(&|s| s.uniforms.truncate(1)), Err("the field `g` has no value".into()));
    assert_eq!(full(&|s| s.series[0].1.clear()), Err("the field `i` has no samples".into()));
    assert_eq!(full(&|s| s.series[0].1[0].0 = 3.0), Err("the field `i` has samples whose times go back".into()));
    assert_eq!(full(&|s| s.data.clear()), Err("the field `a.d` has no values".into()));
    assert!(full(&|s| s.data[0].1.truncate(1)).is_err());
}
