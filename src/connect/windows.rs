//! Windows of a grid of `width x height x channels`: convolutions, whose connections share the numbers of a kernel, and pooling within each channel.
//!
//! The place `(x, y)` of an output sees the sources from `(x * stride - padding, y * stride - padding)` on, `kernel` of them in each direction; there are
//! none outside the grid. Along a dimension in which both grids have one cell a window is that cell, so that a line has lines for windows. A convolution
//! leads from all channels to all channels, pooling from each to itself. Where outputs are averaged, `pool x pool` places next to each other belong to one target,
//! which a source may reach several times. Where a target has the largest of them, connections lead to one of these places only.
//!
//! Ordered by target, then by the place that is averaged, then by channel, row and column of the window.

use super::{ConnectError, Ends, Entry, Kernel, Shape, room};

/// Which windows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Windows {
    pub rule: &'static str,
    pub kernel: u64,
    pub stride: u64,
    pub padding: u64,
    /// How many outputs in each direction are one target.
    pub pool: u64,
    /// Which of them connections lead to, row by row; all if absent.
    pub place: Option<u64>,
    /// Does each channel lead to itself only?
    pub within_channel: bool,
}

/// Windows along one dimension.
#[derive(Debug, Clone, Copy)]
pub(super) struct Along {
    size: i64,
    kernel: i64,
    stride: i64,
    padding: i64,
    pool: i64,
}

impl Along {
    /// The sources that an output sees, each with its place in the window.
    fn window(self, output: i64) -> impl Iterator<Item = (i64, i64)> + Clone {
        let begin = output * self.stride - self.padding;
        let first = (-begin).clamp(0, self.kernel);
        let end = (self.size - begin).clamp(first, self.kernel);
        (first..end).map(move |place| (begin + place, place))
    }
}

impl Windows {
    pub(super) fn entries(self, ends: Ends<'_>) -> Result<Vec<Entry>, ConnectError> {
        let mut entries = Vec::new();
        self.visit(ends, |target, source, _| entries.push((target, source)))?;
        Ok(entries)
    }

    pub(super) fn kernel(self, ends: Ends<'_>) -> Result<Kernel, ConnectError> {
        let [wide, high] = self.along(ends)?;
        let channels = |shape: &Shape| shape.padded()[2] as usize;
        let sizes = [channels(ends.target()), channels(ends.source()), high.kernel as usize, wide.kernel as usize];
        let [_, from, rows, columns] = sizes.map(|size| size as u32);
        let mut entry = Vec::new();
        self.visit(ends, |_, _, [to, channel, row, column]| {
            entry.push(((to * from + channel) * rows + row) * columns + column);
        })?;
        Ok(Kernel { sizes, entry })
    }

    /// The windows along x and along y, if the grids fit them.
    pub(super) fn along(self, ends: Ends<'_>) -> Result<[Along; 2], ConnectError> {
        let (source, target) = (ends.source().padded(), ends.target().padded());
        // Longer than any grid, and sums of a few of them are numbers.
        let [kernel, stride, padding, pool] =
            [self.kernel, self.stride, self.padding, self.pool].map(|x| x.min(1 << 40) as i64);
        let along = [0, 1].map(|d| match (source[d], target[d]) {
            // The cell is that of all outputs.
            (1, 1) => Along { size: 1, kernel: 1, stride: 0, padding: 0, pool },
            (size, _) => Along { size, kernel, stride, padding, pool },
        });
        let outputs = along.map(|a| match a.size + 2 * a.padding - a.kernel {
            _ if a.stride == 0 => 1,
            room if room < 0 => 0,
            room => (room / a.stride + 1) / a.pool,
        });
        let channels = self.within_channel.then_some(source[2]);
        if outputs != [target[0], target[1]] || channels.is_some_and(|channels| channels != target[2]) {
            let (source, target) = (ends.source().sizes.clone(), ends.target().sizes.clone());
            return Err(ConnectError::WindowsDoNotFit { rule: self.rule, source, target, outputs, channels });
        }
        Ok(along)
    }

    /// Calls `f` with target, source and the place in the kernel `[target channel, source channel, row, column]` of each connection.
    fn visit(self, ends: Ends<'_>, mut f: impl FnMut(u32, u32, [u32; 4])) -> Result<(), ConnectError> {
        let [wide, high] = self.along(ends)?;
        let ([sx, sy, sc], [tx, ty, tc]) = (ends.source().padded(), ends.target().padded());
        let each = if self.place.is_some() { 1.0 } else { wide.pool as f64 * high.pool as f64 };
        let windows = wide.kernel as f64 * high.kernel as f64 * each;
        room(windows * (tx * ty * tc) as f64 * if self.within_channel { 1.0 } else { sc as f64 })?;
        let places = (0..tc).flat_map(|to| (0..ty).flat_map(move |y| (0..tx).map(move |x| (to, y, x))));
        for (target, (to, y, x)) in (0..).zip(places) {
            let outputs =
                (0..high.pool).flat_map(|b| (0..wide.pool).map(move |a| (y * high.pool + b, x * wide.pool + a)));
            let led_to = |number: u64| self.place.is_none_or(|place| place == number);
            let outputs = (0..).zip(outputs).filter(|(number, _)| led_to(*number)).map(|(_, output)| output);
            for (output_y, output_x) in outputs {
                for channel in if self.within_channel { to..to + 1 } else { 0..sc } {
                    for (source_y, row) in high.window(output_y) {
                        for (source_x, column) in wide.window(output_x) {
                            let source = source_x + sx * (source_y + sy * channel);
                            f(target, source as u32, [to, channel, row, column].map(|at| at as u32));
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
