//! Compressed lists and given edges.

use super::*;

#[test]
fn a_target_has_its_partners_in_the_order_of_both_halves() {
    let csr = directed_csr(&[(2, 0), (1, 2), (0, 1)], 4).expect("lists");
    assert_eq!(csr.offsets, [0, 2, 4, 6, 6]);
    // First where the target comes first in a pair, then where it comes second.
    assert_eq!(csr.sources, [1, 2, 2, 0, 0, 1]);
    assert_eq!((csr.targets(), csr.sources_of(3).len()), (4, 0));
    assert!(csr.is_symmetric());
}

#[test]
fn entries_stay_as_they_are() {
    let entries = [(1, 0), (0, 1), (1, 2), (1, 0)];
    let mut csr = directed_from_entries(&entries, 3).expect("lists");
    assert_eq!(csr.entries().collect::<Vec<_>>(), [(0, 1), (1, 0), (1, 2), (1, 0)]);
    assert_eq!(csr.unmatched(), Some((1, 0)));
    csr.sort_sources();
    assert_eq!(csr.sources_of(1), [0, 0, 2]);
    assert_eq!(directed_from_entries(&[(1, 0), (0, 1), (2, 1)], 3).expect("lists").unmatched(), Some((2, 1)));
    assert_eq!(Csr::from_entries(&[(0, 4)], 2, 5).expect("lists").unmatched(), Some((0, 4)));
    assert!(Csr::from_entries(&[(1, 1)], 2, 2).expect("autapse").is_symmetric());
    assert!(directed_from_entries(&[], 0).expect("nothing").is_symmetric());
}

#[test]
fn given_junctions_are_there_once() {
    let list = vec![(3, 1), (0, 2), (1, 3), (2, 1)];
    let rule = Rule::Edges(list.clone());
    assert_eq!(undirected(&rule, &Shape::line(4), 0, 0), Ok(vec![(3, 1), (0, 2), (2, 1)]));
    assert_eq!(directed(&rule, Ends::Within(&Shape::line(4)), 0, 0), Ok(list));
}
