//! Arrays in the format IDX, in which MNIST and its kin come, packed by gzip or not.
//!
//! In come bytes; out goes an array, or in a sentence why there is none.
//! Never true here: a number is scaled.

use flate2::read::MultiGzDecoder;
use ndarray::{ArrayD, IxDyn};
use std::io::Read;

/// Packed numbers are at most so many times as long as they are packed.
const MOST: u64 = 1100;

/// The numbers of an array, those of bytes from 0 to 255.
pub fn array(bytes: &[u8]) -> Result<ArrayD<f64>, String> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return unpacked(bytes);
    }
    let mut all = Vec::new();
    let packed = MultiGzDecoder::new(bytes).take((bytes.len() as u64).saturating_mul(MOST)).read_to_end(&mut all);
    packed.map_err(|error| format!("it cannot be unpacked ({error})"))?;
    unpacked(&all)
}

/// Two zeros, the type of the numbers, how many sides the array has, and the length of each; then the numbers, all of them with the largest byte first.
fn unpacked(bytes: &[u8]) -> Result<ArrayD<f64>, String> {
    let (&[0, 0, kind, sides], rest) = bytes.split_first_chunk::<4>().ok_or_else(unknown)? else {
        return Err(unknown());
    };
    let cut_short = || "it is cut short: its header promises more numbers than it has bytes".to_owned();
    let (lengths, rest) = rest.split_at_checked(4 * usize::from(sides)).ok_or_else(cut_short)?;
    let shape: Vec<usize> = lengths.as_chunks().0.iter().map(|length| u32::from_be_bytes(*length) as usize).collect();
    let count = shape.iter().try_fold(1_usize, |count, side| count.checked_mul(*side)).ok_or_else(cut_short)?;
    let (size, numbers): (usize, Vec<f64>) = match kind {
        0x08 => (1, rest.iter().map(|x| f64::from(*x)).collect()),
        0x09 => (1, rest.iter().map(|x| f64::from(x.cast_signed())).collect()),
        0x0b => (2, rest.as_chunks().0.iter().map(|x| f64::from(i16::from_be_bytes(*x))).collect()),
        0x0c => (4, rest.as_chunks().0.iter().map(|x| f64::from(i32::from_be_bytes(*x))).collect()),
        0x0d => (4, rest.as_chunks().0.iter().map(|x| f64::from(f32::from_be_bytes(*x))).collect()),
        0x0e => (8, rest.as_chunks().0.iter().map(|x| f64::from_be_bytes(*x)).collect()),
        _ => return Err(unknown()),
    };
    match rest.len().cmp(&count.saturating_mul(size)) {
        std::cmp::Ordering::Less => Err(cut_short()),
        std::cmp::Ordering::Greater => Err(format!("{} bytes too many are at its end", rest.len() - count * size)),
        std::cmp::Ordering::Equal => ArrayD::from_shape_vec(IxDyn(&shape), numbers).map_err(|error| error.to_string()),
    }
}

fn unknown() -> String {
    "it is neither an .npz archive nor an .npy file, by its name, nor an array in the format IDX, by its first bytes"
        .into()
}

#[cfg(test)]
mod tests {
    use super::array;
    use ndarray::{arr1, arr2};
    use std::io::Write;

    #[test]
    fn numbers_of_all_types_are_read() {
        let bytes = [&[0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3][..], &[0, 1, 2, 3, 128, 255]].concat();
        let wanted = arr2(&[[0.0, 1.0, 2.0], [3.0, 128.0, 255.0]]).into_dyn();
        assert_eq!(array(&bytes), Ok(wanted.clone()));
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(&bytes).unwrap();
        assert_eq!(array(&packed.finish().unwrap()), Ok(wanted));
        let two = |kind: u8, numbers: &[u8]| array(&[&[0, 0, kind, 1, 0, 0, 0, 2], numbers].concat());
        let wanted = |numbers: [f64; 2]| Ok(arr1(&numbers).into_dyn());
        assert_eq!(two(9, &[0xff, 2]), wanted([-1.0, 2.0]));
        assert_eq!(two(11, &[0xff, 0xfe, 1, 0]), wanted([-2.0, 256.0]));
        assert_eq!(two(12, &[0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff]), wanted([65536.0, -1.0]));
        assert_eq!(two(13, &[&1.5_f32.to_be_bytes()[..], &(-0.25_f32).to_be_bytes()].concat()), wanted([1.5, -0.25]));
        assert_eq!(two(14, &[&0.1_f64.to_be_bytes()[..], &1e300_f64.to_be_bytes()].concat()), wanted([0.1, 1e300]));
    }

    #[test]
    fn what_is_no_array_says_why() {
        let why = |bytes: &[u8]| array(bytes).unwrap_err();
        for bytes in [&b""[..], b"PK\x03\x04", &[0, 0, 10, 1, 0, 0, 0, 0], &[0, 0, 8]] {
            assert!(why(bytes).starts_with("it is neither"), "{bytes:?}");
        }
        assert!(why(&[0, 0, 8, 1, 0, 0, 0, 2, 1]).contains("cut short"));
        assert!(why(&[0, 0, 8, 2, 0, 0, 0, 2]).contains("cut short"));
        assert!(
            why(&[0, 0, 14, 4, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255])
                .contains("cut short")
        );
        assert!(why(&[0, 0, 8, 1, 0, 0, 0, 2, 1, 2, 3, 4]).contains("2 bytes too many"));
        assert!(why(&[0x1f, 0x8b, 8, 0, 1]).contains("cannot be unpacked"));
    }
}
