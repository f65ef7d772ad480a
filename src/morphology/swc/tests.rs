//! Shapes against NEURON, against closed forms, and whatever the order of the lines; wrong files.

use super::*;
use serde_json::Value;
use std::f64::consts::PI;

fn cell(text: &str) -> Reconstruction {
    read(text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

fn branch<'a>(cell: &'a Reconstruction, name: &str) -> &'a Branch {
    let named = cell.branches.iter().find(|b| b.name == name);
    named.unwrap_or_else(|| panic!("no `{name}` in {:?}", cell.branches))
}

/// In um.
fn length(b: &Branch) -> f64 {
    b.frusta.iter().map(|f| f.length).sum::<f64>() * 1e4
}

/// In um2.
fn area(b: &Branch) -> f64 {
    let mantle = |f: &Frustum| 0.5 * PI * (f.diam[0] + f.diam[1]) * f.length.hypot(0.5 * (f.diam[0] - f.diam[1]));
    b.frusta.iter().map(mantle).sum::<f64>() * 1e8
}

/// In Mohm, at 150 ohm cm.
fn resistance(b: &Branch) -> f64 {
    b.frusta.iter().map(|f| 4.0 * 150.0 * f.length / (PI * f.diam[0] * f.diam[1])).sum::<f64>() * 1e-6
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * b.abs()
}

fn errors(text: &str) -> Vec<(Fault, Option<usize>, Option<usize>)> {
    match read(text) {
        Ok(cell) => panic!("nothing is wrong: {cell:?}"),
        Err(errors) => errors.into_iter().map(|e| (e.fault, e.line, e.other)).collect(),
    }
}

// ---------------------------------------------------------------------------------------------- NEURON

fn reference() -> Value {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/swc_neuron.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// Compares with what NEURON makes of a file, but for sections of the soma: a soma in a row is one section here.
fn is_that_of_neuron(shape: &str, text: &str, sections: &[Value]) {
    let cell = cell(text);
    let (mut soma, mut neurites) = ([0.0; 3], 0);
    for section in sections {
        let number = |key: &str| section[key].as_f64().unwrap();
        let halves = [0, 1].map(|i| section["half_Mohm"][i].as_f64().unwrap());
        let expected = [number("length_um"), number("area_um2"), halves[0] + halves[1]];
        let name = section["name"].as_str().unwrap();
        if name.starts_with("soma") {
            expected.iter().zip(&mut soma).for_each(|(x, sum)| *sum += x);
            continue;
        }
        neurites += 1;
        let b = branch(&cell, &name.replace("dend_", "type"));
        let got = [length(b), area(b), resistance(b)];
        assert!(
            expected.iter().zip(got).all(|(&x, got)| close(got, x)),
            "{shape}, {name}: {got:?} is not {expected:?}"
        );
    }
    let somas: Vec<&Branch> = cell.branches.iter().filter(|b| b.name.starts_with("soma")).collect();
    let sum = |of: fn(&Branch) -> f64| somas.iter().map(|b| of(b)).sum::<f64>();
    let got = [sum(length), sum(area), sum(resistance)];
    assert!(soma.iter().zip(got).all(|(&x, got)| close(got, x)), "{shape}, soma: {got:?} is not {soma:?}");
    assert_eq!(cell.branches.len() - somas.len(), neurites, "{shape}");
}

#[test]
fn shapes_are_those_of_neuron() {
    let reference = reference();
    let shapes = reference["shapes"].as_object().unwrap();
    assert!(shapes.len() > 9);
    for (name, shape) in shapes {
        let sections = shape["sections"].as_array().unwrap();
        is_that_of_neuron(name, shape["swc"].as_str().unwrap(), sections);
        // NEURON would not read this.
        is_that_of_neuron(name, shape["scrambled"].as_str().unwrap(), sections);
    }
}

// ---------------------------------------------------------------------------------------------- the soma

#[test]
fn somas_are_what_their_points_say() {
    let sphere = |r: f64| 4.0 * PI * r * r;
    let one = cell("1 1 5 5 5 8 -1\n");
    assert_eq!(one.soma, Soma::Sphere);
    assert!(close(area(branch(&one, "soma")), sphere(8.0)) && close(length(branch(&one, "soma")), 16.0));
    let three = cell("1 1 0 0 0 8 -1\n2 1 0 -8 0 8 1\n3 1 0 8 0 8 1\n");
    assert_eq!(three.soma, Soma::ThreePoints);
    assert!(close(area(branch(&three, "soma")), sphere(8.0)));
    // Rounded as in the files of NeuroMorpho.org.
    assert_eq!(cell("1 1 0 0 0 8.004 -1\n2 1 0 -8 0 8.004 1\n3 1 0 8.01 0 8.004 1\n").soma, Soma::ThreePoints);
    // Thinner at one end: frusta.
    let other = cell("1 1 0 0 0 8 -1\n2 1 0 -8 0 8 1\n3 1 0 8 0 4 1\n");
    assert_eq!((other.soma, other.branches.len()), (Soma::Frusta(3), 1));
    assert!(close(length(branch(&other, "soma")), 16.0));
    let two = cell("1 1 0 0 0 5 -1\n2 1 12 0 0 5 1\n");
    assert_eq!(two.soma, Soma::Frusta(2));
    assert!(close(area(branch(&two, "soma")), PI * 10.0 * 12.0));
}

#[test]
fn an_outline_is_a_sphere_of_its_mean_radius() {
    // An octagon of radius 10 around (1, 2, 3), drawn with a thin line; a neurite at its fifth point.
    let mut text = String::new();
    for i in 0..8 {
        let angle = f64::from(i) * PI / 4.0;
        let (x, y) = (1.0 + 10.0 * angle.cos(), 2.0 + 10.0 * angle.sin());
        text += &format!("{} 1 {x} {y} 3 0.2 {}\n", i + 1, if i == 0 { -1 } else { i });
    }
    text += "9 3 -12 2 3 1 5\n10 3 -40 2 3 1 9\n";
    let cell = cell(&text);
    assert_eq!(cell.soma, Soma::Outline(8));
    let soma = branch(&cell, "soma");
    assert!(close(area(soma), 4.0 * PI * 100.0) && close(length(soma), 20.0));
    let dend = branch(&cell, "dend[0]");
    assert!(dend.from == Some((0, 0.5)) && close(length(dend), 28.0));
    // An ellipse is the same wherever its tracing begins, closed by its first point or not.
    let ellipse = |first: i32, closed: bool| {
        let mut text = "\u{feff}".to_string();
        for i in 0..16 + i32::from(closed) {
            let angle = f64::from((first + i) % 16) * PI / 8.0;
            let (x, y) = (10.0 * angle.cos(), 6.0 * angle.sin());
            text += &format!("{} 1 {x} {y} 0 0.3 {}\n", i + 1, if i == 0 { -1 } else { i });
        }
        let cell = self::cell(&text);
        assert_eq!(cell.soma, Soma::Outline(16));
        area(branch(&cell, "soma"))
    };
    let open = ellipse(0, false);
    assert!([(0, true), (4, true), (3, false)].iter().all(|&(first, closed)| close(ellipse(first, closed), open)));
    // Points in a row are none, however thin.
    assert_eq!(
        self::cell("1 1 0 0 0 0.1 -1\n2 1 9 0 0 0.1 1\n3 1 18 3 0 0.1 2\n4 1 27 0 0 0.1 3\n").soma,
        Soma::Frusta(4)
    );
}

#[test]
fn neurites_begin_where_the_soma_says() {
    // In the middle of a row: at its point, with nothing of the way there; at an end: with the way.
    let text = "1 1 0 0 0 5 -1\n2 1 10 0 0 5 1\n3 1 40 0 0 5 2\n4 3 10 20 0 1 2\n5 3 10 50 0 1 4\n6 3 50 0 0 1 3\n7 3 90 0 0 1 6\n";
    let cell = cell(text);
    let (side, end) = (branch(&cell, "dend[0]"), branch(&cell, "dend[1]"));
    assert!(side.from == Some((0, 0.25)) && close(length(side), 30.0));
    assert!(end.from == Some((0, 1.0)) && close(length(end), 50.0));
    // A neurite that branches at its first point has all its branches there.
    let hub = self::cell("1 1 0 0 0 5 -1\n2 3 8 0 0 2 1\n3 3 30 0 0 1 2\n4 3 8 30 0 1 2\n");
    for name in ["dend[0]", "dend[1]"] {
        let b = branch(&hub, name);
        assert!(b.from == Some((0, 0.5)) && b.frusta[0].diam == [4e-4, 2e-4], "{b:?}");
    }
}

#[test]
fn a_tree_is_turned_to_its_soma() {
    // The root is the end of the axon.
    let turned = "1 2 0 100 0 0.5 -1\n2 2 0 10 0 1 1\n3 1 0 0 0 8 2\n4 3 0 -10 0 1 3\n5 3 0 -90 0 0.5 4\n";
    let plain = "3 1 0 0 0 8 -1\n2 2 0 10 0 1 3\n1 2 0 100 0 0.5 2\n4 3 0 -10 0 1 3\n5 3 0 -90 0 0.5 4\n";
    let (turned, plain) = (cell(turned), cell(plain));
    let shapes =
        |c: &Reconstruction| c.branches.iter().map(|b| (b.name.clone(), b.from, b.frusta.clone())).collect::<Vec<_>>();
    assert_eq!(shapes(&turned), shapes(&plain));
    assert_eq!(branch(&turned, "axon[0]").frusta[0].diam, [2e-4, 1e-4]);
}

#[test]
fn what_stands_around_the_numbers_does_not_matter() {
    let plain = cell("1 1 0 0 0 8 -1\n2 3 10 0 0 1 1\n3 3 50 0 0 1 2\n");
    let other = cell("# a cell\r\n\r\n 1\t1 0.0 0e0 -0 8 -1 # soma\r\n\t2 3 +10 0 0 1 1\r\n3 3 5e1 0 0 1.0 2");
    assert_eq!(plain.branches[1].frusta, other.branches[1].frusta);
    assert_eq!(other.branches[1].line, 4);
}

// ---------------------------------------------------------------------------------------------- wrong files

#[test]
fn wrong_lines_are_all_told() {
    use Fault::*;
    let text = "# x\n1 1 0 0 0 8 -1\n2 3 10 0 0 1\n3 3 10 0 0 0 1\n4 3 10 0 0 -1 1\n5 3 10 0 0 nan 1\n6 3 ten 0 0 1 1\n7 3.5 1 0 0 1 1\n8 3 inf 0 0 1 1\n9 3 1 0 0 1 1 1\n";
    let number = |column, text: &str| Number(column, text.to_string());
    let expected = [
        (Columns(6), 3),
        (Radius, 4),
        (Radius, 5),
        (Radius, 6),
        (number("x", "ten"), 7),
        (number("type", "3.5"), 8),
        (number("x", "inf"), 9),
        (Columns(8), 10),
    ];
    assert_eq!(errors(text), expected.map(|(fault, line)| (fault, Some(line), None)));
}

#[test]
fn wrong_trees_are_told() {
    use Fault::*;
    assert_eq!(errors(""), [(Empty, None, None)]);
    assert_eq!(errors("# nothing\n\n"), [(Empty, None, None)]);
    let twice = "1 1 0 0 0 8 -1\n2 3 9 0 0 1 1\n2 3 20 0 0 1 2\n";
    assert_eq!(errors(twice), [(Twice(2), Some(3), Some(2))]);
    assert_eq!(errors("1 1 0 0 0 8 -1\n2 3 9 0 0 1 7\n"), [(NoParent(7), Some(2), None)]);
    // The parent 0 is no sign of a root.
    assert_eq!(errors("1 1 0 0 0 8 0\n"), [(NoParent(0), Some(1), None)]);
    let looped = "1 1 0 0 0 8 -1\n2 3 9 0 0 1 4\n3 3 20 0 0 1 2\n4 3 30 0 0 1 3\n5 3 40 0 0 1 4\n";
    assert_eq!(errors(looped), [(Loop(2), Some(2), None)]);
    assert_eq!(errors("1 1 0 0 0 8 1\n"), [(Loop(1), Some(1), None)]);
    let roots = "1 1 0 0 0 8 -1\n2 3 9 0 0 1 1\n3 3 100 0 0 1 -1\n4 3 200 0 0 1 3\n";
    assert_eq!(errors(roots), [(TwoRoots, Some(3), Some(1))]);
    assert_eq!(errors("1 3 0 0 0 1 -1\n2 3 9 0 0 1 1\n"), [(NoSoma, None, None)]);
    let somas = "1 1 0 0 0 8 -1\n2 3 9 0 0 1 1\n3 1 20 0 0 1 2\n";
    assert_eq!(errors(somas), [(TwoSomas, Some(3), Some(1))]);
    // A branch without length; a soma without length.
    let short = "1 1 0 0 0 8 -1\n2 3 9 0 0 1 1\n3 3 20 0 0 1 2\n4 3 20 0 0 1 3\n5 3 30 0 0 1 3\n";
    assert_eq!(errors(short), [(NoLength, Some(4), Some(3))]);
    assert_eq!(errors("1 1 0 0 0 8 -1\n2 1 0 0 0 8 1\n"), [(NoLength, Some(2), Some(1))]);
}

#[test]
fn doubled_points_are_told() {
    let cell = cell("1 1 0 0 0 8 -1\n2 3 9 0 0 1 1\n3 3 20 0 0 1 2\n4 3 20 0 0 2 3\n5 3 30 0 0 1 4\n");
    assert_eq!(cell.doubled, [4]);
    let dend = branch(&cell, "dend[0]");
    assert_eq!(dend.frusta.len(), 3);
    // The ring has an area.
    assert!(close(area(dend), PI * 2.0 * 11.0 + PI * 3.0 + PI * 3.0 * 10f64.hypot(1.0)));
}

#[test]
fn long_chains_take_no_stack_and_no_square_of_time() {
    let mut text = String::from("1 1 0 0 0 8 -1\n");
    for i in 2..100_000 {
        text += &format!("{i} {} {i} 0 0 1 {}\n", 3 + (i / 7) % 2, i - 1);
    }
    assert_eq!(cell(&text).branches.len(), 1 + 14286);
}

// ---------------------------------------------------------------------------------------------- random files

/// Numbers that look random (Knuth's linear congruence).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// The lines of a random tree.
fn grown(random: &mut Random) -> Vec<String> {
    let points = 1 + random.below(40);
    let soma = 1 + random.below(5).min(points - 1);
    (0..points)
        .map(|i| {
            let parent = if i < soma || random.below(3) > 0 { i as i64 - 1 } else { random.below(i) as i64 };
            let kind = if i < soma { 1 } else { 2 + random.below(4) };
            let [x, y, z] = [0; 3].map(|_| random.below(2000) as f64 / 10.0);
            let radius = 1.0 + random.below(50) as f64 / 10.0;
            format!("{} {kind} {x} {y} {z} {radius} {}", i + 1, if parent < 0 { -1 } else { parent + 1 })
        })
        .collect()
}

#[test]
fn every_frustum_of_a_random_tree_is_in_one_section() {
    for seed in 0..500 {
        let random = &mut Random(seed);
        let mut lines = grown(random);
        let cell = cell(&lines.join("\n"));
        assert!(cell.branches.iter().filter(|b| b.from.is_none()).count() == 1 && cell.branches[0].from.is_none());
        for b in &cell.branches {
            assert!(b.frusta.windows(2).all(|w| w[0].diam[1] == w[1].diam[0]), "{b:?}");
            assert!(b.from.is_none_or(|(parent, x)| parent < cell.branches.len() && (0.0..=1.0).contains(&x)), "{b:?}");
        }
        // Every point but those of the soma ends one frustum, or begins a neurite in the soma.
        let neurites: Vec<&Branch> = cell.branches.iter().filter(|b| !b.name.starts_with("soma")).collect();
        let own: usize = neurites.iter().map(|b| b.frusta.len()).sum();
        let points = lines.iter().filter(|l| l.split(' ').nth(1) != Some("1")).count();
        assert!(own <= points && own + neurites.len() >= points - cell.doubled.len(), "{}", lines.join("\n"));
        // Whatever the order of the lines.
        for i in (1..lines.len()).rev() {
            lines.swap(i, random.below(i as u64 + 1) as usize);
        }
        let again = self::cell(&lines.join("\n"));
        let shapes = |c: &Reconstruction| {
            c.branches.iter().map(|b| (b.name.clone(), b.from, b.frusta.clone())).collect::<Vec<_>>()
        };
        assert_eq!(shapes(&again), shapes(&cell));
    }
}

#[test]
fn no_text_makes_it_panic() {
    for seed in 0..3000 {
        let random = &mut Random(seed);
        let mut text: Vec<u8> = grown(random).join("\n").into_bytes();
        for _ in 0..1 + random.below(6) {
            let at = random.below(text.len() as u64) as usize;
            let with = b"0123456789 -.e#\nn"[random.below(17) as usize];
            match random.below(3) {
                0 => text[at] = with,
                1 => text.insert(at, with),
                _ => drop(text.remove(at)),
            }
            if text.is_empty() {
                break;
            }
        }
        let text = String::from_utf8(text).unwrap();
        let lines = text.lines().count();
        if let Err(errors) = read(&text) {
            assert!(!errors.is_empty());
            for e in errors {
                assert!(
                    e.line.is_none_or(|l| l > 0 && l <= lines) && e.other.is_none_or(|l| l > 0 && l <= lines),
                    "{e:?}"
                );
            }
        }
    }
}
