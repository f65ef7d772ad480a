//! The types of numbers and arrays that programs compute with.
//!
//! In come names and sizes; out go the same, as MLIR spells them.
//! Never true here: a layout; on the host every array is dense and row-major.

use std::fmt;

/// The type of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// A truth value, one byte, `i1` in MLIR.
    Pred,
    /// A signed integer of 8 bits.
    I8,
    /// A signed integer of 16 bits.
    I16,
    /// A signed integer of 32 bits.
    I32,
    /// A signed integer of 64 bits.
    I64,
    /// An unsigned integer of 8 bits.
    U8,
    /// An unsigned integer of 16 bits.
    U16,
    /// An unsigned integer of 32 bits.
    U32,
    /// An unsigned integer of 64 bits.
    U64,
    /// Half precision.
    F16,
    /// The upper half of single precision.
    Bf16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl ElementType {
    /// All of them.
    pub const ALL: [ElementType; 13] = [
        ElementType::Pred,
        ElementType::I8,
        ElementType::I16,
        ElementType::I32,
        ElementType::I64,
        ElementType::U8,
        ElementType::U16,
        ElementType::U32,
        ElementType::U64,
        ElementType::F16,
        ElementType::Bf16,
        ElementType::F32,
        ElementType::F64,
    ];

    /// As StableHLO spells it.
    pub fn name(self) -> &'static str {
        match self {
            ElementType::Pred => "i1",
            ElementType::I8 => "i8",
            ElementType::I16 => "i16",
            ElementType::I32 => "i32",
            ElementType::I64 => "i64",
            ElementType::U8 => "ui8",
            ElementType::U16 => "ui16",
            ElementType::U32 => "ui32",
            ElementType::U64 => "ui64",
            ElementType::F16 => "f16",
            ElementType::Bf16 => "bf16",
            ElementType::F32 => "f32",
            ElementType::F64 => "f64",
        }
    }

    /// The size of one element on the host.
    pub fn bytes(self) -> usize {
        match self {
            ElementType::Pred | ElementType::I8 | ElementType::U8 => 1,
            ElementType::I16 | ElementType::U16 | ElementType::F16 | ElementType::Bf16 => 2,
            ElementType::I32 | ElementType::U32 | ElementType::F32 => 4,
            ElementType::I64 | ElementType::U64 | ElementType::F64 => 8,
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The type of an array: no dimensions for a single number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ArrayType {
    /// Of its elements.
    pub element: ElementType,
    /// Its dimensions, the slowest first.
    pub dims: Vec<usize>,
}

impl ArrayType {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Display for ArrayType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tensor<")?;
        for dim in &self.dims {
            write!(f, "{dim}x")?;
        }
        write!(f, "{}>", self.element)
    }
}

/// A number in bfloat16, as its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Bf16(pub u16);

impl From<f32> for Bf16 {
    /// Rounds to the nearest, ties to even; a NaN stays one.
    fn from(number: f32) -> Bf16 {
        let bits = number.to_bits();
        if number.is_nan() {
            // The payload may lie in the half that is cut off.
            return Bf16((bits >> 16) as u16 | 0x0040);
        }
        let odd = (bits >> 16) & 1;
        Bf16(((bits + 0x7fff + odd) >> 16) as u16)
    }
}

impl From<Bf16> for f32 {
    fn from(number: Bf16) -> f32 {
        f32::from_bits(u32::from(number.0) << 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bfloat16_rounds_to_nearest_even() {
        let round = |x: f32| f32::from(Bf16::from(x));
        assert_eq!(round(1.0), 1.0);
        assert_eq!(round(-65.0), -65.0);
        // 1 + 2^-8 lies between 1 and 1 + 2^-7; 1 + 3 * 2^-8 between 1 + 2^-7 and 1 + 2^-6.
        assert_eq!(round(1.0 + 2f32.powi(-8)), 1.0);
        assert_eq!(round(1.0 + 3.0 * 2f32.powi(-8)), 1.0 + 2f32.powi(-6));
        assert_eq!(round(1.0 + 2f32.powi(-8) + 2f32.powi(-20)), 1.0 + 2f32.powi(-7));
        assert_eq!(round(f32::MAX), f32::INFINITY);
        assert_eq!(round(f32::NEG_INFINITY), f32::NEG_INFINITY);
        assert!(round(f32::from_bits(0x7f80_0001)).is_nan());
    }

    #[test]
    fn types_are_spelt_as_in_mlir() {
        assert_eq!(ArrayType { element: ElementType::U32, dims: vec![2, 3] }.to_string(), "tensor<2x3xui32>");
        assert_eq!(ArrayType { element: ElementType::Pred, dims: vec![] }.to_string(), "tensor<i1>");
    }
}
