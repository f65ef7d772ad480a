//! Edges as text: what a crate carries of its network.
//!
//! In come [`Edges`]; out goes a line for every target with its sources in order, and back; or a number of every edge, each on a line.
//! Never true here: that what comes back differs from what was written.

use super::edges::Edges;
use std::fmt::{Debug, Write};
use std::str::FromStr;

/// One line for every target: its sources. The edges have passed [`Edges::check`].
pub fn write(edges: &Edges) -> String {
    let mut text = String::new();
    for ends in edges.offsets.windows(2) {
        let sources = &edges.sources[ends[0] as usize..ends[1] as usize];
        for (at, source) in sources.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}{source}", if at > 0 { " " } else { "" });
        }
        text.push('\n');
    }
    text
}

/// The edges of a text; nothing if it is none.
pub fn parse(text: &str) -> Option<Edges> {
    let mut edges = Edges { offsets: vec![0], sources: Vec::new() };
    for line in text.lines() {
        for source in line.split_ascii_whitespace() {
            edges.sources.push(source.parse().ok()?);
        }
        edges.offsets.push(u32::try_from(edges.sources.len()).ok()?);
    }
    Some(edges)
}

/// One line for every number.
pub fn write_numbers<N: Debug>(numbers: &[N]) -> String {
    let mut text = String::new();
    for number in numbers {
        // The shortest text that is this number; writing to a string cannot fail.
        let _ = writeln!(text, "{number:?}");
    }
    text
}

/// The numbers of a text; nothing if it is none.
pub fn parse_numbers<N: FromStr>(text: &str) -> Option<Vec<N>> {
    text.lines().map(|line| line.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_they_were() {
        let numbers = [0.1 + 0.2, -0.0, 1e300, 5e-324, 0.1_f64.exp(), f64::MAX, 3.0];
        let back: Vec<f64> = parse_numbers(&write_numbers(&numbers)).unwrap();
        assert!(back.iter().zip(&numbers).all(|(a, b)| a.to_bits() == b.to_bits()) && back.len() == numbers.len());
        assert_eq!(parse_numbers(&write_numbers(&[7_u32, u32::MAX])), Some(vec![7, u32::MAX]));
        assert_eq!(parse_numbers::<u32>("1\n\n"), None);
        assert_eq!(parse_numbers::<u32>("1\n-1\n"), None);
    }

    #[test]
    fn edges_come_back_as_they_were() {
        let edges = Edges { offsets: vec![0, 2, 2, 5, 6, 6], sources: vec![4, 1, 0, 0, 4_294_967_295, 3] };
        assert_eq!(write(&edges), "4 1\n\n0 0 4294967295\n3\n\n");
        assert_eq!(parse(&write(&edges)), Some(edges));
        let none = Edges { offsets: vec![0], sources: vec![] };
        assert_eq!(parse(&write(&none)), Some(none));
        for wrong in ["1 -2\n", "1.0\n", "4294967296\n", "a"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
