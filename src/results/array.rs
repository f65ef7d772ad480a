//! Arrays of a result while they grow.
//!
//! In come names, types and shapes, then rows; out go bytes in little-endian order, and headers for what there is so far.
//! Never true here: a file.

use super::npy;

/// The type of the numbers of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    F32,
    F64,
    I64,
}

/// An array that is going to be written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub name: String,
    pub numbers: Numbers,
    /// The numbers of a row of a table; a vector has none.
    pub columns: Option<u64>,
    /// How many rows there are in the end, where that is known.
    pub rows: Option<u64>,
    /// More indices than two, which rows and columns together make; none of a table or vector.
    pub shape: Vec<u64>,
}

impl Numbers {
    /// NumPy's type string.
    pub fn dtype(self) -> &'static str {
        match self {
            Numbers::F32 => "<f4",
            Numbers::F64 => "<f8",
            Numbers::I64 => "<i8",
        }
    }

    /// The bytes of one number.
    pub fn size(self) -> u64 {
        match self {
            Numbers::F32 => 4,
            Numbers::F64 | Numbers::I64 => 8,
        }
    }

    /// Appends numbers as bytes.
    pub fn put(self, values: &[f64], to: &mut Vec<u8>) {
        match self {
            Numbers::F32 => to.extend(values.iter().flat_map(|&x| (x as f32).to_le_bytes())),
            Numbers::F64 => to.extend(values.iter().flat_map(|x| x.to_le_bytes())),
            Numbers::I64 => to.extend(values.iter().flat_map(|&x| (x as i64).to_le_bytes())),
        }
    }
}

impl Plan {
    /// The bytes of a row.
    pub fn row(&self) -> u64 {
        self.columns.unwrap_or(1).saturating_mul(self.numbers.size())
    }

    /// The header of an array whose numbers have so many bytes. A table without columns has the rows that are expected of it.
    pub fn header(&self, bytes: u64) -> Vec<u8> {
        let rows = bytes.checked_div(self.row()).unwrap_or(self.rows.unwrap_or(0));
        if !self.shape.is_empty() && Some(rows) == self.rows {
            return npy::header(self.numbers.dtype(), &self.shape);
        }
        match self.columns {
            Some(columns) => npy::header(self.numbers.dtype(), &[rows, columns]),
            None => npy::header(self.numbers.dtype(), &[rows]),
        }
    }
}

/// How many bytes each of so many arrays keeps in memory before they are written: of all of them 32 MB.
pub(super) fn kept(arrays: usize) -> usize {
    ((32 << 20) / arrays.max(1)).clamp(4 << 10, 1 << 20)
}
