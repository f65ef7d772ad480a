//! Edges of dense rows as bits: a row has one bit for each sum, set where an edge leads.
//!
//! In come edges that all carry the same and take as long, no two of a sender to one sum; out goes, for the rows that events reach in one step, how many lead to
//! each sum, and the sum with the number added as often.
//! Never true here: that a sum is other than if every edge had added to it by itself: a number is added one at a time, not multiplied.
//!
//! Counting takes a few operations for hundreds of sums at once, where an edge by itself takes a read and a write: of networks in which each cell hears one cell
//! out of ten, most of the time of a step.
#![allow(unsafe_code)]

use super::super::aligned::Aligned;
use super::super::lanes::{Scalar, ask_for};
use super::super::pages::ask_for_large;

/// Words that are counted together: a line of the cache.
const WIDTH: usize = 8;

/// What is true of so many sums.
type Line = [u64; WIDTH];

/// How many sums a line tells of.
const SUMS: usize = WIDTH * 64;

/// Digits of the counts.
const DIGITS: usize = 6;

/// So many rows are counted at once.
const ROWS: usize = (1 << DIGITS) - 1;

/// Sums that stand side by side and are read and written together.
const GROUP: usize = 8;

/// Some of the sums that rows lead to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums {
    /// Where the first of them is.
    pub first: usize,
    /// So many stand side by side.
    pub lanes: usize,
    /// From the begin of those side by side to that of the next ones.
    pub stride: usize,
    /// How many there are.
    pub count: usize,
}

impl Sums {
    /// Can bits tell of them?
    pub fn fit(&self) -> bool {
        self.lanes.is_multiple_of(GROUP) && self.count.is_multiple_of(self.lanes)
    }

    /// How many bits of a row are theirs.
    pub fn bits(&self) -> usize {
        self.count.next_multiple_of(SUMS)
    }

    /// Where each group of them begins.
    fn groups(&self) -> Vec<usize> {
        let begin = |sum: usize| self.first + sum / self.lanes * self.stride + sum % self.lanes;
        (0..self.count).step_by(GROUP).map(begin).collect()
    }
}

/// What a processor counts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vectors {
    #[cfg(target_arch = "x86_64")]
    Of512,
    #[cfg(target_arch = "x86_64")]
    Of256,
    Narrow,
}

impl Vectors {
    fn of_processor() -> Vectors {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("avx512dq") {
                return Vectors::Of512;
            }
            if is_x86_feature_detected!("avx2") {
                return Vectors::Of256;
            }
        }
        Vectors::Narrow
    }
}

/// Does counting take less time than going from edge to edge? Not with narrow vectors.
pub fn counting_pays() -> bool {
    Vectors::of_processor() != Vectors::Narrow
}

/// The edges of all senders.
pub struct Bits {
    /// Of each kind of sums where its groups begin.
    groups: Vec<Vec<usize>>,
    /// Of each kind where its lines begin in a row, and how many lines there are.
    lines: Vec<usize>,
    rows: Aligned<u64>,
    /// So many rows at once are worth it.
    least: usize,
}

/// Counting costs as much as going from edge to edge where so many events arrive at each sum in a step.
const EVEN: f64 = 1.2;

impl Bits {
    /// Rows for so many senders, which will have so many edges in all.
    pub fn new(sums: &[Sums], senders: usize, edges: usize) -> Bits {
        let lines = sums.iter().scan(0, |lines, sums| {
            *lines += sums.bits() / SUMS;
            Some(*lines)
        });
        let lines: Vec<usize> = std::iter::once(0).chain(lines).collect();
        let mut rows = Aligned::new(senders * lines[sums.len()] * WIDTH);
        ask_for_large(rows.get_mut());
        let count: usize = sums.iter().map(|sums| sums.count).sum();
        let least = (EVEN * senders as f64 * count as f64 / edges as f64).ceil() as usize;
        Bits { groups: sums.iter().map(Sums::groups).collect(), lines, rows, least }
    }

    /// Adds an edge to a sum, given by the number of its kind and its own. False if there is one.
    pub fn join(&mut self, sender: usize, (kind, number): (usize, usize)) -> bool {
        let at = (self.row(sender) + self.lines[kind]) * WIDTH + number / 64;
        let (word, bit) = (&mut self.rows.get_mut()[at], 1 << (number % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Does it pay to count so many rows?
    pub fn pay(&self, rows: usize) -> bool {
        rows >= self.least
    }

    /// Where the row of a sender begins.
    fn row(&self, sender: usize) -> usize {
        sender * self.lines[self.groups.len()]
    }

    /// Adds a value to the sums that the rows of senders lead to, row after row. Of `fresh` sums all are known to be 0.
    pub fn add<T: Scalar>(&self, senders: &[u32], value: T, fresh: bool, all: &mut [T]) {
        for (number, senders) in senders.chunks(ROWS).enumerate() {
            let fresh = fresh && number == 0;
            match Vectors::of_processor() {
                // SAFETY: the processor has what the function is compiled for.
                #[cfg(target_arch = "x86_64")]
                Vectors::Of512 => unsafe { self.add_512(senders, value, fresh, all) },
                // SAFETY: see above.
                #[cfg(target_arch = "x86_64")]
                Vectors::Of256 => unsafe { self.add_256(senders, value, fresh, all) },
                Vectors::Narrow => self.add_some(senders, value, fresh, all),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq")]
    fn add_512<T: Scalar>(&self, senders: &[u32], value: T, fresh: bool, all: &mut [T]) {
        self.add_some(senders, value, fresh, all);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn add_256<T: Scalar>(&self, senders: &[u32], value: T, fresh: bool, all: &mut [T]) {
        self.add_some(senders, value, fresh, all);
    }

    /// What vectors do, as wide as the function around it is compiled for.
    #[inline(always)]
    fn add_some<T: Scalar>(&self, senders: &[u32], value: T, fresh: bool, all: &mut [T]) {
        let mut rows = [0; ROWS];
        rows.iter_mut().zip(senders).for_each(|(row, &sender)| *row = self.row(sender as usize));
        let rows = &rows[..senders.len()];
        let (lines, _) = self.rows.get().as_chunks::<WIDTH>();
        let mut often = [[0; WIDTH]; ROWS];
        // What becomes of 0, which is a constant for every number of times.
        let mut times = [T::default(); ROWS];
        times.iter_mut().fold(T::default(), |sum, time| {
            *time = sum + value;
            *time
        });
        for (groups, &begin) in self.groups.iter().zip(&self.lines) {
            for (line, groups) in groups.chunks(SUMS / GROUP).enumerate() {
                let most = compare(&count(lines, rows, begin + line), &mut often);
                for (word, groups) in groups.chunks(64 / GROUP).enumerate().filter(|_| most > 0) {
                    let bits = often[..most].iter().map(|line| line[word]);
                    match <&[usize; 64 / GROUP]>::try_from(groups) {
                        Ok(groups) if fresh => repeat(bits.zip(&times), |_, time| time, groups, all),
                        Ok(groups) => repeat(bits.map(|bits| (bits, &value)), |sum, value| sum + value, groups, all),
                        Err(_) => bits.for_each(|bits| add_each(bits, value, groups, all)),
                    }
                }
            }
        }
    }
}

/// How many rows, given by where they begin, have an edge at each bit of one of their lines: the digits, of ones first.
#[inline(always)]
fn count(lines: &[Line], rows: &[usize], at: usize) -> [Line; DIGITS] {
    let mut digits = [[0; WIDTH]; DIGITS];
    let line = |row: usize| {
        ask_for(lines, row + at + 1, 1);
        &lines[row + at]
    };
    let (fours, rest) = rows.as_chunks::<4>();
    for &[a, b, c, d] in fours {
        let [ones, twos, high @ ..] = &mut digits;
        let first = carry(ones, line(a), line(b));
        let second = carry(ones, line(c), line(d));
        let four = carry(twos, &first, &second);
        increase(high, four);
    }
    for &row in rest {
        increase(&mut digits, *line(row));
    }
    digits
}

/// Adds two to a digit, which keeps the sum modulo two; gives what is carried.
#[inline(always)]
fn carry(digit: &mut Line, a: &Line, b: &Line) -> Line {
    let mut carried = [0; WIDTH];
    for word in 0..WIDTH {
        let (x, y, z) = (digit[word], a[word], b[word]);
        digit[word] = x ^ y ^ z;
        carried[word] = x & y | x & z | y & z;
    }
    carried
}

/// Adds one where it is set.
#[inline(always)]
fn increase(digits: &mut [Line], mut one: Line) {
    for digit in digits {
        for word in 0..WIDTH {
            (digit[word], one[word]) = (digit[word] ^ one[word], digit[word] & one[word]);
        }
    }
}

/// Where counts are above a number.
#[inline(always)]
fn above(digits: &[Line; DIGITS], number: usize) -> Line {
    let mut above = [0; WIDTH];
    for (place, digit) in digits.iter().enumerate() {
        let set = if number >> place & 1 == 0 { u64::MAX } else { 0 };
        for word in 0..WIDTH {
            // A digit that is set where the number's is not: above, whatever the lower ones say.
            above[word] = digit[word] & (above[word] | set) | above[word] & set;
        }
    }
    above
}

/// Tells for every number where counts are above it, until there are none; gives how many.
#[inline(always)]
fn compare(counts: &[Line; DIGITS], often: &mut [Line; ROWS]) -> usize {
    for (number, line) in often.iter_mut().enumerate() {
        *line = above(counts, number);
        if line.iter().fold(0, |all, word| all | word) == 0 {
            return number;
        }
    }
    ROWS
}

/// Changes sums, given by where their groups begin, once for each time that their bit is set. Later ones are among those before them.
#[inline(always)]
fn repeat<'v, T: Scalar>(
    bits: impl Iterator<Item = (u64, &'v T)>,
    change: impl Fn(T, T) -> T,
    groups: &[usize; 64 / GROUP],
    all: &mut [T],
) {
    let mut some = [T::default(); 64];
    for (some, &begin) in some.as_chunks_mut::<GROUP>().0.iter_mut().zip(groups) {
        some.copy_from_slice(&all[begin..begin + GROUP]);
    }
    for (bits, &value) in bits {
        if bits == 0 {
            break;
        }
        for (half, some) in some.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let bits = (bits >> (32 * half)) as u32;
            for (bit, sum) in some.iter_mut().enumerate() {
                let more = change(*sum, value);
                *sum = if bits & 1 << bit == 0 { *sum } else { more };
            }
        }
    }
    for (some, &begin) in some.as_chunks::<GROUP>().0.iter().zip(groups) {
        all[begin..begin + GROUP].copy_from_slice(some);
    }
}

/// Adds a value once where a bit is set.
fn add_each<T: Scalar>(mut bits: u64, value: T, groups: &[usize], all: &mut [T]) {
    while bits != 0 {
        let bit = bits.trailing_zeros() as usize;
        let sum = &mut all[groups[bit / GROUP] + bit % GROUP];
        *sum = *sum + value;
        bits &= bits - 1;
    }
}
