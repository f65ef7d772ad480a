//! Bytes of a text and positions of the protocol.
//!
//! In come bytes, or lines with columns as a client counts them; out goes the other.
//! Never true here: a position of a client is trusted. One behind the end of its line is the end of the line.

use lsp_types::{Position, PositionEncodingKind, Range, TextDocumentContentChangeEvent};

/// How columns are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// In bytes.
    Bytes,
    /// In units of UTF-16, as all clients can.
    Utf16,
}

impl Columns {
    /// What is used with a client that can do these: bytes if it can.
    pub fn agreed(offered: Option<&[PositionEncodingKind]>) -> Columns {
        match offered {
            Some(kinds) if kinds.contains(&PositionEncodingKind::UTF8) => Columns::Bytes,
            Some(_) | None => Columns::Utf16,
        }
    }

    /// Its name in the protocol.
    pub fn kind(self) -> PositionEncodingKind {
        match self {
            Columns::Bytes => PositionEncodingKind::UTF8,
            Columns::Utf16 => PositionEncodingKind::UTF16,
        }
    }

    /// How many columns a text has.
    pub fn width(self, text: &str) -> u32 {
        match self {
            Columns::Bytes => text.len() as u32,
            Columns::Utf16 => text.chars().map(|c| c.len_utf16() as u32).sum(),
        }
    }
}

/// A text with its lines.
#[derive(Debug, Clone)]
pub struct Lines<'t> {
    text: &'t str,
    /// Where each begins.
    starts: Vec<usize>,
    columns: Columns,
}

impl<'t> Lines<'t> {
    /// The lines of a text.
    pub fn new(text: &'t str, columns: Columns) -> Lines<'t> {
        // As the protocol has it: `\n`, `\r\n`, or `\r` alone.
        let ends = text.bytes().enumerate().filter(|&(at, byte)| match byte {
            b'\n' => true,
            b'\r' => text.as_bytes().get(at + 1) != Some(&b'\n'),
            _ => false,
        });
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Lines { text, starts, columns }
    }

    /// The position of a byte.
    pub fn position(&self, byte: usize) -> Position {
        let mut byte = byte.min(self.text.len());
        while !self.text.is_char_boundary(byte) {
            byte -= 1;
        }
        let line = self.starts.partition_point(|start| *start <= byte) - 1;
        Position::new(line as u32, self.columns.width(&self.text[self.starts[line]..byte]))
    }

    /// The positions of the ends of a range of bytes.
    pub fn range(&self, bytes: std::ops::Range<usize>) -> Range {
        Range::new(self.position(bytes.start), self.position(bytes.end))
    }

    /// The byte of a position.
    pub fn byte(&self, position: Position) -> usize {
        let Some(&start) = self.starts.get(position.line as usize) else { return self.text.len() };
        let line = self.text[start..].split(['\r', '\n']).next().unwrap_or("");
        let mut column = 0;
        for (at, c) in line.char_indices() {
            if column >= position.character {
                return start + at;
            }
            column += self.columns.width(c.encode_utf8(&mut [0; 4]));
        }
        start + line.len()
    }

    /// The bytes of a range.
    pub fn bytes(&self, range: Range) -> std::ops::Range<usize> {
        let start = self.byte(range.start);
        start..self.byte(range.end).max(start)
    }
}

/// A text after a change that a client tells.
pub fn changed(text: String, change: TextDocumentContentChangeEvent, columns: Columns) -> String {
    let Some(range) = change.range else { return change.text };
    let bytes = Lines::new(&text, columns).bytes(range);
    let mut text = text;
    text.replace_range(bytes, &change.text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_as_agreed() {
        let text = "a µ𝜇b\r\nc";
        let utf16 = Lines::new(text, Columns::Utf16);
        let b = text.find('b').unwrap();
        assert_eq!(utf16.position(b), Position::new(0, 5));
        assert_eq!(utf16.byte(Position::new(0, 5)), b);
        assert_eq!(Lines::new(text, Columns::Bytes).position(b), Position::new(0, b as u32));
        assert_eq!(utf16.position(text.len()), Position::new(1, 1));
    }

    #[test]
    fn lines_may_end_in_one_carriage_return() {
        let lines = Lines::new("a\rbc\r\nd\r", Columns::Utf16);
        for (byte, position) in [(0, (0, 0)), (2, (1, 0)), (4, (1, 2)), (6, (2, 0)), (8, (3, 0))] {
            let position = Position::new(position.0, position.1);
            assert_eq!((lines.position(byte), lines.byte(position)), (position, byte));
        }
        assert_eq!(lines.byte(Position::new(0, 9)), 1);
    }

    #[test]
    fn every_byte_of_a_character_comes_back() {
        let text = "x = 1 µm // 𝜇\n\n}\n";
        for columns in [Columns::Bytes, Columns::Utf16] {
            let lines = Lines::new(text, columns);
            for (byte, _) in text.char_indices() {
                assert_eq!(lines.byte(lines.position(byte)), byte);
            }
        }
    }

    #[test]
    fn positions_outside_are_taken_to_the_nearest_end() {
        let lines = Lines::new("ab\r\ncd", Columns::Utf16);
        assert_eq!(lines.byte(Position::new(0, 99)), 2);
        assert_eq!(lines.byte(Position::new(9, 0)), 6);
        assert_eq!(lines.bytes(Range::new(Position::new(1, 1), Position::new(0, 1))), 5..5);
    }
}
