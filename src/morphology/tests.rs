use super::*;

fn cylinder(name: &str, from: Option<(usize, f64)>, length: f64, diam: f64, compartments: usize) -> Section {
    let frusta = vec![Frustum { length, diam: [diam, diam] }];
    Section { name: name.into(), from, frusta, points: Vec::new(), compartments }
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-13 * b.abs(), "{a} is not {b}");
}

#[test]
fn a_cable_in_pieces_has_the_area_and_the_resistance_of_the_whole() {
    let tree = Tree::new(&[cylinder("a", None, 2.0, 0.5, 7)]).unwrap();
    assert_eq!(&*tree.parents, [0, 0, 1, 2, 3, 4, 5]);
    close(tree.area.iter().sum(), PI * 0.5 * 2.0);
    for i in 1..7 {
        close(tree.near[i] + tree.far[i], 2.0 / 7.0 / (PI * 0.0625));
    }
    close(tree.distance[6], 1.0 - 1.0 / 7.0);
    close(tree.distance[0], 1.0 - 1.0 / 7.0);
    assert_eq!(tree.sections[0].at(0.5), 3);
    assert_eq!(tree.sections[0].at(1.0), 6);
    assert_eq!(tree.sections[0].at(0.0), 0);
}

#[test]
fn the_middle_of_an_even_count_is_the_compartment_behind_it() {
    let tree = Tree::new(&[cylinder("a", None, 1.0, 1.0, 4)]).unwrap();
    assert_eq!(tree.sections[0].at(0.5), 2);
}

#[test]
fn a_taper_is_a_frustum() {
    let cone = Section {
        name: "a".into(),
        from: None,
        frusta: vec![Frustum { length: 3.0, diam: [2.0, 1.0] }],
        points: Vec::new(),
        compartments: 5,
    };
    let tree = Tree::new(&[cone]).unwrap();
    close(tree.area.iter().sum(), PI * 1.5 * (9.0f64 + 0.25).sqrt());
    // From the first middle to the last: frusta in a row resist as one.
    let resistance: f64 = (1..5).map(|i| tree.near[i] + tree.far[i]).sum();
    close(resistance, 2.4 / (PI * 0.95 * 0.55));
}

#[test]
fn one_section_joins_another_directly_and_two_through_a_node() {
    let soma = cylinder("soma", None, 1.0, 1.0, 1);
    let half = 0.5 / (PI * 0.25);
    let one = Tree::new(&[soma.clone(), cylinder("a", Some((0, 1.0)), 1.0, 1.0, 2)]).unwrap();
    assert_eq!(&*one.parents, [0, 0, 1]);
    close(one.far[1], half);
    close(one.near[1], half / 2.0);
    close(one.distance[1], 0.75);

    let two = [soma, cylinder("a", Some((0, 1.0)), 1.0, 1.0, 2), cylinder("b", Some((1, 0.0)), 1.0, 1.0, 1)];
    let two = Tree::new(&two).unwrap();
    // `b` begins where `a` does, at the node.
    assert_eq!(&*two.parents, [0, 0, 1, 2, 1]);
    assert_eq!((two.area[1], two.near[1], two.far[2], two.far[4]), (0.0, 0.0, 0.0, 0.0));
    close(two.far[1], half);
    assert!(!two.is_compartment(1) && two.is_compartment(4));
    assert_eq!(two.name(3), "a(0.75)");
}

#[test]
fn what_begins_at_the_start_and_in_the_middle() {
    let sections = [
        cylinder("b", Some((1, 0.0)), 1.0, 1.0, 1),
        cylinder("soma", None, 2.0, 1.0, 1),
        cylinder("c", Some((1, 0.5)), 1.0, 1.0, 1),
    ];
    let tree = Tree::new(&sections).unwrap();
    assert_eq!(tree.sections.iter().map(|s| s.first).collect::<Vec<_>>(), [1, 0, 2]);
    assert_eq!(&*tree.parents, [0, 0, 0]);
    close(tree.far[1], 1.0 / (PI * 0.25));
    assert_eq!(tree.far[2], 0.0);
    close(tree.distance[1], 1.5);
    close(tree.distance[2], 0.5);
}

#[test]
fn what_is_no_tree_is_told() {
    let a = |from| cylinder("a", from, 1.0, 1.0, 1);
    assert_eq!(Tree::new(&[]), Err(TreeError::Nothing));
    assert_eq!(Tree::new(&[a(None), a(None)]), Err(TreeError::TwoRoots(0, 1)));
    assert_eq!(Tree::new(&[a(Some((0, 1.0)))]), Err(TreeError::Loop(0)));
    let Err(TreeError::Loop(s)) = Tree::new(&[a(None), a(Some((2, 1.0))), a(Some((1, 1.0)))]) else {
        panic!("that is a loop")
    };
    assert!(s == 1 || s == 2);
}

#[test]
fn numbers_of_measures_read_back() {
    for number in 0..40 {
        assert_eq!(Measure::of_number(number).number(), number);
    }
}

/// Volume and resistance of what is less deep beneath the membrane, summed over thin slices.
fn sliced(section: &Section, [from, to]: [f64; 2], depth: f64) -> (f64, f64) {
    let count = 200_000;
    let (mut volume, mut resistance) = (0.0, 0.0);
    for i in 0..count {
        let step = (to - from) / f64::from(count);
        let mut x = from + step * (f64::from(i) + 0.5);
        let frustum = section.frusta.iter().find(|f| {
            let inside = x < f.length;
            x -= if inside { 0.0 } else { f.length };
            inside
        });
        let f = frustum.expect("inside");
        let r = 0.5 * (f.diam[0] + (f.diam[1] - f.diam[0]) * x / f.length);
        let inner = (r - depth).max(0.0);
        let across = PI * (r * r - inner * inner);
        (volume, resistance) = (volume + step * across, resistance + step / across);
    }
    (volume, resistance)
}

#[test]
fn ions_are_in_frusta_and_in_shells_of_frusta() {
    // It is as thin as the deeper shell at 1.5, and again in the second frustum.
    let frusta = vec![
        Frustum { length: 2.0, diam: [2.0, 0.5] },
        Frustum { length: 0.0, diam: [0.5, 0.8] },
        Frustum { length: 1.0, diam: [0.8, 1.6] },
        Frustum { length: 1.0, diam: [1.6, 1.6] },
    ];
    let section = Section { name: "a".into(), from: None, frusta, points: Vec::new(), compartments: 1 };
    for [from, to] in [[0.0, 4.0], [0.3, 1.2], [1.0, 1.9], [1.7, 2.2], [2.5, 3.7]] {
        for (within, depth) in
            [(Within::All, f64::INFINITY), (Within::Shell(0.4375), 0.4375), (Within::Shell(0.05), 0.05)]
        {
            let (volume, resistance) = section.inside(from, to, within);
            let slices = sliced(&section, [from, to], depth);
            for (a, b) in [(volume, slices.0), (resistance, slices.1)] {
                assert!((a - b).abs() < 1e-8 * b, "{from} to {to}, {within:?}: {a} is not {b}");
            }
        }
        assert_eq!(section.inside(from, to, Within::Nothing), (0.0, 0.0));
        close(section.inside(from, to, Within::All).1, section.between(from, to).1);
    }
    // Cut into pieces, it stays as much.
    let section = Section { compartments: 7, ..section };
    for within in [Within::All, Within::Shell(0.3)] {
        let lumen = Tree::lumen(std::slice::from_ref(&section), &[within]).unwrap();
        close(lumen.volume.iter().sum(), section.inside(0.0, 4.0, within).0);
        let way: f64 = (1..7).map(|i| lumen.near[i] + lumen.far[i]).sum();
        close(way, section.inside(2.0 / 7.0, 4.0 - 2.0 / 7.0, within).1);
    }
}
