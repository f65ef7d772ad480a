//! Headers of NumPy's `.npy` arrays.
//!
//! In come the first bytes of an array, or its type and shape; out go its [`Header`], or the bytes of one.
//! Never true here: a header is read in another way than NumPy reads it, or one that NumPy refuses is taken.

use py_literal::Value;
use std::io::{self, Read};

/// A header is never longer than this.
const LONGEST: u64 = 1 << 20;
/// Every header that is written has this many bytes, whatever the shape is, so that it can be written anew.
pub(super) const SIZE: u64 = 128;

/// What an array says of itself before its numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Header {
    /// NumPy's type string, such as `<f8`; empty for a structured type.
    pub dtype: String,
    /// Is the first index the fastest?
    pub fortran: bool,
    /// How many numbers along each index.
    pub shape: Vec<u64>,
    /// How many bytes the header takes.
    pub size: u64,
}

impl Header {
    /// Reads the header at the beginning of an array; the error is a sentence.
    pub fn read(from: &mut impl Read) -> Result<Header, String> {
        let short = |e: io::Error| match e.kind() {
            io::ErrorKind::UnexpectedEof => "it is cut short".to_owned(),
            _ => e.to_string(),
        };
        let mut start = [0; 8];
        from.read_exact(&mut start).map_err(short)?;
        if &start[..6] != b"\x93NUMPY" {
            return Err("it is not in NumPy's format".to_owned());
        }
        let width = match start[6] {
            1 => 2,
            2 | 3 => 4,
            version => return Err(format!("version {version} of its format is not known")),
        };
        let mut length = [0; 4];
        from.read_exact(&mut length[..width]).map_err(short)?;
        let length = u64::from(u32::from_le_bytes(length));
        if length > LONGEST {
            return Err("its header is too long".to_owned());
        }
        let mut text = Vec::new();
        from.take(length).read_to_end(&mut text).map_err(short)?;
        if (text.len() as u64) < length {
            return Err("it is cut short".to_owned());
        }
        // Version 1 is Latin-1, 3 is UTF-8; names of plain types are ASCII.
        let text = String::from_utf8(text).map_err(|_| "its header is not text".to_owned())?;
        let header =
            Header { dtype: String::new(), fortran: false, shape: Vec::new(), size: 8 + width as u64 + length };
        header.filled(&text)
    }

    /// With what the dictionary says.
    fn filled(mut self, text: &str) -> Result<Header, String> {
        let dictionary: Value = text.trim().parse().map_err(|_| "its header cannot be read".to_owned())?;
        let Value::Dict(entries) = dictionary else { return Err("its header is no dictionary".into()) };
        let of = |wanted: &str| {
            let mut found = entries.iter().filter(|(key, _)| matches!(key, Value::String(key) if key == wanted));
            match (found.next(), found.next()) {
                (Some((_, value)), None) => Ok(value),
                (Some(_), Some(_)) => Err(format!("its header has two entries `{wanted}`")),
                (None, _) => Err(format!("its header has no `{wanted}`")),
            }
        };
        self.dtype = match of("descr")? {
            Value::String(dtype) if dtype.is_ascii() && dtype.len() > 2 => dtype.clone(),
            _ => String::new(),
        };
        self.fortran = match of("fortran_order")? {
            Value::Boolean(fortran) => *fortran,
            _ => return Err("its header does not say in which order its numbers are".into()),
        };
        let side = |side: &Value| match side {
            Value::Integer(n) => u64::try_from(n.clone()).ok(),
            _ => None,
        };
        self.shape = match of("shape")? {
            Value::Tuple(sides) => sides.iter().map(side).collect::<Option<_>>(),
            _ => None,
        }
        .ok_or("its header states no shape")?;
        Ok(self)
    }

    /// The bytes of one number; `None` if the type string does not end in it.
    pub fn item(&self) -> Option<u64> {
        let (kind, size) = self.dtype.split_at_checked(2)?;
        let size: u64 = size.parse().ok()?;
        if kind.ends_with('U') { size.checked_mul(4) } else { Some(size) }
    }

    /// How many numbers there are; `None` if that is beyond counting.
    pub fn numbers(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |n, &side| n.checked_mul(side))
    }

    /// The bytes of header and numbers together.
    pub fn bytes(&self) -> Option<u64> {
        self.numbers()?.checked_mul(self.item()?)?.checked_add(self.size)
    }
}

/// A header of [`SIZE`] bytes. A `shape` of 63 characters fits, its commas and spaces among them.
pub(super) fn header(dtype: &str, shape: &[u64]) -> Vec<u8> {
    let sides: Vec<String> = shape.iter().map(|side| format!("{side},")).collect();
    let text = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({}), }}", sides.join(" "));
    let width = SIZE as usize - 11;
    [b"\x93NUMPY\x01\x00\x76\x00".as_slice(), format!("{text:<width$}\n").as_bytes()].concat()
}

/// A text as NumPy's zero-dimensional array, with its header.
pub(super) fn text(text: &str) -> Vec<u8> {
    let mut bytes = header(&format!("<U{}", text.chars().count()), &[]);
    bytes.extend(text.chars().flat_map(|c| u32::from(c).to_le_bytes()));
    bytes
}
