//! Reduction of large angles: Payne and Hanek, "Radian reduction for trigonometric functions", ACM SIGNUM Newsletter 18 (1983).
//!
//! What comes in is one finite angle, 1 or more in magnitude; what goes out is its quadrant and the angle that is left.
//! Of the digits of `2 / pi` only those are used that tell either: those before them make whole turns, those behind them less
//! than the last place of what is left.
//! Never true here: that something is rounded before whole turns and the quadrant are gone.

/// The binary digits of `2 / pi` behind the point, 64 to a word, after a word of zeros: where angles are small, the first
/// digits taken are before the point.
pub const TWO_OVER_PI: [u64; 20] = [
    0,
    0xA2F9_836E_4E44_1529,
    0xFC27_57D1_F534_DDC0,
    0xDB62_9599_3C43_9041,
    0xFE51_63AB_DEBB_C561,
    0xB724_6E3A_424D_D2E0,
    0x0649_2EEA_09D1_921C,
    0xFE1D_EB1C_B129_A73E,
    0xE882_35F5_2EBB_4484,
    0xE99C_7026_B45F_7E41,
    0x3991_D639_8353_39F4,
    0x9C84_5F8B_BDF9_283B,
    0x1FF8_97FF_DE05_980F,
    0xEF2F_118B_5A0A_6D1F,
    0x6D36_7ECF_27CB_09B7,
    0x4F46_3F66_9E5F_EA2D,
    0x7527_BAC7_EBE5_F17B,
    0x3D07_39F7_8A52_92EA,
    0x6BFB_5FB1_1F8D_5D08,
    0x5603_3046_FC7B_6BAB,
];

/// `pi / 2` in units of `2^-63`.
const HALF_PI: u64 = 0xC90F_DAA2_2168_C235;

/// `(q, r)` with `x = n pi / 2 + r`, `|r| <= pi / 4`, and `q` in `{-2, -1, 0, 1, 2}` equal to `n` modulo 4. The error of `r` is at
/// most 0.51 ulp.
pub fn reduce(x: f64) -> (f64, f64) {
    // |x| = m 2^e with an integer m below 2^53.
    let bits = x.to_bits();
    let m = bits & ((1 << 52) - 1) | 1 << 52;
    let e = (bits >> 52 & 0x7FF) as i32 - 1075;
    // Digit k of 2 / pi stands for m 2^(e - k) quarter turns: whole turns for k < e - 1. Of the others the first 192 are taken;
    // those behind them are less than m 2^-190, which is 2^-137 quarter turns.
    let first = (e + 62) as usize;
    let (word, shift) = (first / 64, first % 64);
    let digits = |word: usize| {
        let both = u128::from(TWO_OVER_PI[word]) << 64 | u128::from(TWO_OVER_PI[word + 1]);
        (both << shift >> 64) as u64
    };
    // Their product with m in units of 2^-190 quarter turns, without whole turns.
    let low = u128::from(m) * u128::from(digits(word + 2));
    let middle = u128::from(m) * u128::from(digits(word + 1)) + (low >> 64);
    let high = m.wrapping_mul(digits(word)).wrapping_add((middle >> 64) as u64);
    // Two bits of quarter turns, rounded; the bits behind them, taken as a signed number, count from the nearest quarter turn.
    let quarter = ((high >> 61) + 1) >> 1 & 3;
    let fraction = (high << 2 | middle as u64 >> 62, (middle as u64) << 2 | low as u64 >> 62);
    let fraction = (u128::from(fraction.0) << 64 | u128::from(fraction.1)) as i128;
    // No f64 is within 2^-62 quarter turns of a quarter turn (6381956970095103 * 2^797 is nearest), so 64 digits are left.
    let size = fraction.unsigned_abs();
    let zeros = size.leading_zeros();
    let angle = (size << zeros >> 64) * u128::from(HALF_PI);
    let r = (angle >> 64) as u64 as f64 * f64::from_bits(u64::from(1023 - 63 - zeros) << 52);
    let q = [0.0, 1.0, 2.0, -1.0][quarter as usize];
    (if x < 0.0 { -q } else { q }, if (x < 0.0) != (fraction < 0) { -r } else { r })
}
