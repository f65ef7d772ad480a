//! PNG figures with smooth lines and letters.
//!
//! Drawing calls come in, on a grid several times as fine as the image; out go the bytes of a PNG in which each pixel is
//! the mean of its part of the grid. A stroke is filled segment by segment, so that one that crosses itself has no holes.

use plotters::backend::BitMapBackend;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind};

use super::canvas::Canvas;

/// A bitmap backend that draws strokes of any shape without holes and puts text where an SVG would.
pub struct FineBitmap<'a> {
    bitmap: BitMapBackend<'a>,
}

type Drawn<E> = Result<(), DrawingErrorKind<E>>;

impl<'a> DrawingBackend for FineBitmap<'a> {
    type ErrorType = <BitMapBackend<'a> as DrawingBackend>::ErrorType;

    fn get_size(&self) -> (u32, u32) {
        self.bitmap.get_size()
    }

    fn ensure_prepared(&mut self) -> Drawn<Self::ErrorType> {
        self.bitmap.ensure_prepared()
    }

    fn present(&mut self) -> Drawn<Self::ErrorType> {
        self.bitmap.present()
    }

    fn draw_pixel(&mut self, point: BackendCoord, color: BackendColor) -> Drawn<Self::ErrorType> {
        self.bitmap.draw_pixel(point, color)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        corner: BackendCoord,
        opposite: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn<Self::ErrorType> {
        self.bitmap.draw_rect(corner, opposite, style, fill)
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn<Self::ErrorType> {
        let mut path = path.into_iter();
        let Some(mut from) = path.next() else {
            return Ok(());
        };
        for to in path {
            self.stroke(from, to, style)?;
            from = to;
        }
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn<Self::ErrorType> {
        let box_of = style.layout_box(text).map_err(|e| DrawingErrorKind::FontError(Box::new(e)))?;
        let dx = match style.anchor().h_pos {
            HPos::Left => 0,
            HPos::Right => -box_of.1.0,
            HPos::Center => -box_of.1.0 / 2,
        };
        // plotters puts the baseline half a size below the top of the text; its SVG puts it here, with 1 em = size / 1.24.
        let em = style.size() / 1.24;
        let baseline = match style.anchor().v_pos {
            VPos::Top => 0.76 * em,
            VPos::Center => 0.26 * em,
            VPos::Bottom => -0.26 * em,
        };
        let dy = (baseline - style.size() / 2.0).round() as i32;
        let transform = style.transform();
        let (width, height) = self.get_size();
        let drawn = style.draw(text, (0, 0), |x, y, color| {
            let (x, y) = transform.transform(x + dx, y + dy);
            let (x, y) = (at.0 + x, at.1 + y);
            let inside = (0..width as i32).contains(&x) && (0..height as i32).contains(&y);
            if !inside {
                return Ok(());
            }
            // The bundled font is a light one: a second print, a grid point further, makes it easier to read.
            self.bitmap.draw_pixel((x, y), color)?;
            self.bitmap.draw_pixel(((x + 1).min(width as i32 - 1), y), color)
        });
        drawn.map_err(|e| DrawingErrorKind::FontError(Box::new(e)))?
    }
}

impl FineBitmap<'_> {
    /// Fills every grid point within half the stroke width of the straight line between two points.
    fn stroke<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Drawn<<Self as DrawingBackend>::ErrorType> {
        let radius = f64::from(style.stroke_width()) / 2.0;
        let (x0, y0) = (f64::from(from.0), f64::from(from.1));
        let (dx, dy) = (f64::from(to.0) - x0, f64::from(to.1) - y0);
        let length_squared = dx * dx + dy * dy;
        let color = style.color();
        let (width, height) = self.get_size();
        let reach = radius.ceil() as i32;
        let rows = from.1.min(to.1).saturating_sub(reach).max(0)..=(from.1.max(to.1) + reach).min(height as i32 - 1);
        for y in rows {
            let py = f64::from(y) - y0;
            // The part of the line that is near enough to this row, then its columns and their neighbourhood.
            let part = |row: f64| {
                if dy == 0.0 { None } else { Some((row / dy).clamp(0.0, 1.0)) }
            };
            let (a, b) = match (part(py - radius - 1.0), part(py + radius + 1.0)) {
                (Some(a), Some(b)) => (a.min(b), a.max(b)),
                _ => (0.0, 1.0),
            };
            let (xa, xb) = (x0 + a * dx, x0 + b * dx);
            let left = (xa.min(xb) - radius).floor().max(0.0) as i32;
            let right = (xa.max(xb) + radius).ceil().min(f64::from(width) - 1.0) as i32;
            for x in left..=right {
                let px = f64::from(x) - x0;
                let nearest = if length_squared == 0.0 { 0.0 } else { (px * dx + py * dy) / length_squared };
                let nearest = nearest.clamp(0.0, 1.0);
                let (ex, ey) = (px - nearest * dx, py - nearest * dy);
                if ex * ex + ey * ey <= radius * radius {
                    self.bitmap.draw_pixel((x, y), color)?;
                }
            }
        }
        Ok(())
    }
}

/// Draws a PNG of `size` pixels.
pub fn png(
    size: (u32, u32),
    draw: impl FnOnce(&mut Canvas<FineBitmap<'_>>) -> Result<(), String>,
) -> Result<Vec<u8>, String> {
    let pixels = u64::from(size.0) * u64::from(size.1);
    // A fine grid of up to 16 points per pixel, within about half a gigabyte.
    let scale = (2..=4).rev().find(|s| pixels * s * s * 3 < 500 << 20).unwrap_or(1) as u32;
    let fine = (size.0 * scale, size.1 * scale);
    let mut grid = vec![255; fine.0 as usize * fine.1 as usize * 3];
    let mut canvas = Canvas::new(FineBitmap { bitmap: BitMapBackend::with_buffer(&mut grid, fine) }, scale);
    draw(&mut canvas)?;
    canvas.finish()?;
    encode(size, &mean(&grid, size, scale as usize)).map_err(|e| e.to_string())
}

/// The image whose pixels are the means of `scale` by `scale` points of the grid.
fn mean(grid: &[u8], size: (u32, u32), scale: usize) -> Vec<u8> {
    let (width, height) = (size.0 as usize, size.1 as usize);
    let mut image = Vec::with_capacity(width * height * 3);
    let mut sums = vec![0u32; width * 3];
    let points = (scale * scale) as u32;
    for rows in grid.chunks_exact(width * scale * 3 * scale) {
        sums.fill(0);
        for row in rows.chunks_exact(width * scale * 3) {
            for (pixel, sum) in row.chunks_exact(scale * 3).zip(sums.chunks_exact_mut(3)) {
                for point in pixel.chunks_exact(3) {
                    for (channel, total) in point.iter().zip(sum.iter_mut()) {
                        *total += u32::from(*channel);
                    }
                }
            }
        }
        image.extend(sums.iter().map(|sum| ((sum + points / 2) / points) as u8));
    }
    image
}

fn encode(size: (u32, u32), rgb: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, size.0, size.1);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(rgb)?;
    Ok(bytes)
}
