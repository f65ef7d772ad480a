//! Edges as text: what a crate carries of its network.
//!
//! In come [`Edges`]; out goes a line for every target with its sources in order, and back.
//! Never true here: that what comes back differs from what was written.

use super::edges::Edges;
use std::fmt::Write;

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

#[cfg(test)]
mod tests {
    use super::*;

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
