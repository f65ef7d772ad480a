use super::super::{Frustum, swc};
use super::*;

fn section(name: &str, from: Option<(usize, f64)>, length: f64, compartments: usize) -> Section {
    let frusta = vec![Frustum { length: length / UM, diam: [2.0 / UM, 1.0 / UM] }];
    Section { name: name.into(), from, frusta, points: Vec::new(), compartments }
}

fn near(a: [f64; 2], b: [f64; 2]) {
    assert!((a[0] - b[0]).hypot(a[1] - b[1]) < 1e-9, "{a:?} is not {b:?}");
}

fn of<'a>(drawing: &'a Drawing, tree: &Tree, name: &str) -> Vec<&'a Piece> {
    let at = tree.sections.iter().position(|s| s.name == name).expect("a section");
    drawing.pieces.iter().filter(|p| tree.section[p.element] as usize == at).collect()
}

#[test]
fn a_section_is_cut_where_its_compartments_are() {
    let sections = [section("a", None, 10.0, 5)];
    let tree = Tree::new(&sections).unwrap();
    let drawing = draw(&sections, &tree, false);
    assert_eq!(drawing.pieces.iter().map(|p| p.element).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    near(drawing.pieces[1].ends[0], [-3.0, 0.0]);
    near(drawing.pieces[1].ends[1], [-1.0, 0.0]);
    near(drawing.pieces[1].diam, [1.8, 1.6]);
    assert!(drawing.joins.is_empty());
}

#[test]
fn a_dendrogram_goes_to_the_right_from_the_end_and_to_the_left_from_the_start() {
    let sections = [
        section("soma", None, 20.0, 1),
        section("trunk", Some((0, 1.0)), 100.0, 3),
        section("up", Some((1, 1.0)), 50.0, 2),
        section("down", Some((1, 1.0)), 80.0, 2),
        section("basal", Some((0, 0.0)), 60.0, 2),
        section("oblique", Some((1, 0.5)), 30.0, 1),
    ];
    let tree = Tree::new(&sections).unwrap();
    let drawing = draw(&sections, &tree, false);
    let first = |name| of(&drawing, &tree, name)[0].ends[0];
    let last = |name| of(&drawing, &tree, name).last().expect("a piece").ends[1];
    assert_eq!([first("trunk")[0], last("trunk")[0]].map(f64::round), [10.0, 110.0]);
    assert_eq!([first("basal")[0], last("basal")[0]].map(f64::round), [-10.0, -70.0]);
    assert_eq!(first("oblique")[0].round(), 60.0);
    // The trunk lies in the middle of what begins at its end, the soma in its row, and so does what goes to the left.
    assert!((first("trunk")[1] - 0.5 * (first("up")[1] + first("down")[1])).abs() < 1e-9);
    assert_eq!([first("soma")[1], first("basal")[1]], [first("trunk")[1]; 2]);
    // No two sections of different rows meet, and each is joined to its own.
    let rows = ["up", "down", "trunk", "oblique"].map(|name| first(name)[1]);
    assert!((0..4).all(|i| (0..i).all(|k| (rows[i] - rows[k]).abs() > 2.0)), "{rows:?}");
    assert_eq!(drawing.joins.len(), 3);
}

#[test]
fn what_was_measured_is_where_it_was() {
    let text = "1 1 5 5 0 10 -1\n2 3 15 5 7 1 1\n3 3 45 5 47 1 2\n4 3 45 35 47 0.5 3\n";
    let cell = swc::read(text).unwrap();
    let mut sections: Vec<Section> = cell
        .branches
        .into_iter()
        .map(|b| Section { name: b.name, from: b.from, frusta: b.frusta, points: b.points, compartments: 1 })
        .collect();
    sections[1].compartments = 2;
    sections.push(section("axon", Some((0, 0.5)), 40.0, 1));
    let tree = Tree::new(&sections).unwrap();
    let drawing = draw(&sections, &tree, true);
    let soma = of(&drawing, &tree, "soma");
    near(soma[0].ends[0], [5.0, -5.0]);
    near(soma.last().expect("a slice").ends[1], [5.0, 15.0]);
    // A sphere is as wide as long.
    assert!((soma.iter().flat_map(|p| p.diam).fold(0.0, f64::max) - 20.0).abs() < 1e-9);
    // The way is 50 um and 30 um: the border lies 40 um along it, of which the shadow shows three fifths.
    let dend = of(&drawing, &tree, "dend[0]");
    near(dend[0].ends[0], [15.0, 5.0]);
    near(dend[0].ends[1], [39.0, 5.0]);
    near(dend.last().expect("a piece").ends[1], [45.0, 35.0]);
    assert_eq!(drawing.joins.len(), 1);
    near(drawing.joins[0][0], [5.0, 5.0]);
    // What was not measured goes to where there is room: away from the dendrite, from the surface of the soma on.
    let axon = of(&drawing, &tree, "axon")[0];
    let length = (axon.ends[1][0] - axon.ends[0][0]).hypot(axon.ends[1][1] - axon.ends[0][1]);
    assert!((length - 40.0).abs() < 1e-9 && axon.ends[1][0] < axon.ends[0][0], "{axon:?}");
    assert!(((axon.ends[0][0] - 5.0).hypot(axon.ends[0][1] - 5.0) - 10.0).abs() < 0.1, "{axon:?}");
}
