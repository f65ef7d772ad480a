//! Counts by hand.

use super::*;
use crate::codegen::plan::{PlanOptions, plan};
use crate::step::{parse, verify};

fn of_text(text: &str, precision: Precision) -> Vec<Cost> {
    let program = verify(parse(text).expect("the program parses")).expect("the program is valid");
    let plan = plan(&program, &PlanOptions { precision, vectors: None, sizes: None }).expect("there is a plan");
    costs(&plan).into_iter().map(|(_, cost)| cost).collect()
}

/// Without edges: states stay in registers for a window.
const LEAK: &str = r#"program "leak"
space @p
uniform @dt
const @p.g over @p
state @p.v over @p
state @p.seen over @p
fn init {
  over @p {
    %0 = const 1.0
    store @p.g, %0
    store @p.v, %0
    store @p.seen, %0
  }
}
fn step steps 40 {
  once {
    %0 = field @dt
  }
  once over @p {
    %1 = field @p.g
    %2 = mul %1, %0
  }
  over @p {
    %3 = field @p.v
    %4 = neg %3
    %5 = exp2 %4
    %6 = fma %5, %2, %3
    %7 = const 3.0
    %8 = div %6, %7
    %9 = gt %8, %3
    %10 = select %9, %8, %3
    store @p.v, %10
    store @p.seen, %8
  }
}
"#;

#[test]
fn fused_steps_move_their_numbers_once_in_a_window() {
    let [cost] = &of_text(LEAK, Precision::F32)[..] else { panic!("one population") };
    // 2^x in f32: split (2), 4 steps of Horner, one more fused, scale (1).
    let exp2 = 2.0 + 4.0 + 1.0 + 1.0;
    let exp2_flops = 2.0 + 8.0 + 2.0 + 1.0;
    assert!(cost.fused);
    assert_eq!((cost.block.plain, cost.block.flops), (1.0, 1.0));
    // neg, gt, select; fma; div; exp2
    let body = cost.body;
    assert_eq!((body.plain, body.fused, body.divisions, body.exponentials), (3.0, 1.0, 1.0, 1.0));
    assert_eq!((body.exponential_operations, body.functions), (exp2, 0.0));
    assert_eq!(body.flops, 3.0 + 2.0 + 1.0 + exp2_flops);
    // g and v come in, v goes out, `seen` is written by every step and never read.
    assert_eq!((cost.loads, cost.stores, cost.writes, cost.exchanged, cost.kept), (2.0, 1.0, 1.0, 0.0, 3.0));
    let step = cost.step(40, &[]);
    assert_eq!(step.bytes, Bytes { loaded: 8.0 / 40.0, stored: 4.0 / 40.0 + 4.0, ..Bytes::default() });
    assert_eq!(step.work, step.done);
    assert!((step.work.flops - (body.flops + 1.0 / 40.0)).abs() < 1e-12);
    assert_eq!(cost.memory(&[]), 12.0);
    // In f64 the polynomial has six more terms, and a number is twice as long.
    let [double] = &of_text(LEAK, Precision::F64)[..] else { panic!("one population") };
    assert_eq!(double.body.exponential_operations, exp2 + 6.0);
    assert_eq!(double.step(1, &[]).bytes.loaded, 16.0);
}

#[test]
fn connected_kernels_stream_their_numbers_every_step() {
    let text = include_str!("../../../../tests/ir/junctions.ir");
    let [cost] = &of_text(text, Precision::F64)[..] else { panic!("one population") };
    assert!(!cost.fused);
    let [edge] = &cost.edges[..] else { panic!("one network") };
    // sub, mul, mul, exp, mul, add, mul, mul, and the sum; one value comes from there.
    assert_eq!((edge.work.plain, edge.work.exponentials, edge.gathers), (8.0, 1.0, 1.0));
    // sub, mul, add, mul, add, lt, ge, and, emit
    assert_eq!((cost.body.plain, cost.body.exponentials), (9.0, 0.0));
    assert_eq!((cost.loads, cost.stores, cost.writes, cost.exchanged), (2.0, 2.0, 0.0, 1.0));
    let exp = edge.work.flops - 8.0;
    for window in [1, 40] {
        let step = cost.step(window, &[Degree { edges: 10.0, places: 15.0 }]);
        assert_eq!(step.work.flops, 9.0 + 10.0 * (8.0 + exp));
        assert_eq!(step.done.exponentials, 15.0);
        let table = 15.0 * 4.0 + 8.0;
        let bytes = Bytes { loaded: 16.0, stored: 16.0, table, gathered: 15.0 * 8.0, exchanged: 8.0 };
        assert_eq!(step.bytes, bytes);
        assert_eq!(bytes.streamed(), 16.0 + 16.0 + 68.0 + 8.0);
    }
    assert_eq!(cost.memory(&[Degree { edges: 10.0, places: 15.0 }]), 16.0 + 16.0 + 68.0);
}

#[test]
fn several_networks_and_populations_are_counted_each() {
    let two = &of_text(include_str!("../../../../tests/ir/two_edges.ir"), Precision::F64)[0];
    let gathers: Vec<(usize, f64)> = two.edges.iter().map(|edge| (edge.entry, edge.gathers)).collect();
    assert_eq!(gathers, [(0, 3.0), (1, 1.0)]);
    assert_eq!((two.edges[1].work.functions, two.body.uniform_draws), (1.0, 1.0));
    assert_eq!(two.block.exponentials, 1.0);
    assert_eq!(two.exchanged, 3.0);
    // Each network has a table of its own; with no places it costs the numbers of edges alone.
    let degrees = [Degree { edges: 0.0, places: 0.0 }, Degree { edges: 2.0, places: 2.0 }];
    assert_eq!(two.step(5, &degrees).bytes.table, 8.0 + 2.0 * 4.0 + 8.0);

    let both = of_text(include_str!("../../../../tests/ir/two_populations.ir"), Precision::F64);
    let names: Vec<&str> = both.iter().map(|cost| cost.space.as_str()).collect();
    assert_eq!(names, ["exc", "inh"]);
    // sub, add, mul, add, gt, select, mul, lt and two events; the quotient is a number, computed once for all.
    assert_eq!((both[0].body.plain, both[0].body.divisions), (10.0, 0.0));
    assert_eq!((both[1].body.plain, both[1].loads, both[1].stores), (5.0, 1.0, 1.0));
}

#[test]
fn functions_count_as_what_they_consist_of() {
    for precision in [Precision::F64, Precision::F32] {
        let of = |op| inside(op, precision);
        // A bound, a magnitude, a comparison, a selection and a quotient around `expm1`.
        let (linoid, expm1) = (of(UnaryOp::Linoid), of(UnaryOp::Expm1));
        let inside = Inside { plain: expm1.plain + 4, divisions: expm1.divisions + 1, ..expm1 };
        assert_eq!(linoid, inside);
        // A logarithm has one quotient, a tangent the work of a sine and one quotient.
        assert_eq!((of(UnaryOp::Ln).divisions, of(UnaryOp::Sin).divisions, of(UnaryOp::Tan).divisions), (1, 0, 1));
        assert_eq!(of(UnaryOp::Sin).fused, of(UnaryOp::Tan).fused);
    }
    // e^x: two bounds, product, rounding, 2 fused; 9 fused (f32: 4); two products, two sums; scale.
    assert_eq!(inside(UnaryOp::Exp, Precision::F64), Inside { plain: 2 + 2 + 2 + 2 + 1, fused: 11, divisions: 0 });
    assert_eq!(inside(UnaryOp::Exp, Precision::F32), Inside { plain: 2 + 2 + 2 + 2 + 1, fused: 6, divisions: 0 });
}

/// A cable: a current in some of its compartments, and their equations.
const CABLE: &str = r#"program "cable"
space @p
space @p.compartments of @p tree
space @p.all.L in @p.compartments
uniform @g
uniform @twice
state @p.v over @p.compartments
const @p.axial over @p.compartments
temp @p.membrane over @p.compartments
temp @p.own over @p.compartments
temp @p.rhs over @p.compartments
temp @p.next over @p.compartments
fn init {
  over @p.compartments {
    %0 = const 1.0
    store @p.v, %0
    store @p.axial, %0
  }
}
fn step steps 40 {
  once {
    %0 = field @g
    %1 = field @twice
  }
  over @p.all.L {
    %2 = gather @p.v along in
    %3 = mul %2, %0
    accumulate @p.membrane along in, %3
  }
  over @p.compartments {
    %4 = field @p.membrane
    %5 = neg %4
    %6 = mul %5, %1
    store @p.own, %1
    store @p.rhs, %6
  }
  solve tree @p.next: own @p.own, link @p.axial, rhs @p.rhs, from @p.v
  over @p.compartments {
    %10 = field @p.next
    store @p.v, %10
  }
}
"#;

#[test]
fn elements_of_branched_cells_are_counted_with_what_they_add_and_solve() {
    let [compartments, current] = &of_text(CABLE, Precision::F64)[..] else { panic!("two spaces") };
    // mul, and the sum; v comes along a map, the sum is read and written.
    assert_eq!((current.body.plain, current.body.flops), (2.0, 2.0));
    assert_eq!((current.loads, current.stores, current.writes, current.kept), (2.0, 0.0, 1.0, 0.0));
    // neg, mul, and a row.
    let body = compartments.body;
    assert_eq!((body.plain, body.divisions, body.flops), (2.0 + 15.0, 1.0, 2.0 + 16.0));
    // membrane; a row; next.
    assert_eq!(compartments.loads, 1.0 + 12.0 + 1.0);
    // own, rhs; a row; v.
    assert_eq!(compartments.writes, 2.0 + 4.0 + 1.0);
    // v, axial, membrane, own, rhs, next.
    assert_eq!(compartments.kept, 6.0);
}
