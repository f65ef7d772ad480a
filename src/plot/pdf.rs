//! Drawing on a page of a PDF file.
//!
//! Calls of the canvas come in, in fractions of a point from the upper left corner; out go the bytes of a file with one page. Text becomes
//! outlines of its letters, so that it needs no font of the reader.
//! Never true here: a picture of pixels.

use ab_glyph::{Font, FontRef, OutlineCurve, Point};
use pdf_writer::{Content, Finish, Pdf, Rect, Ref};
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind, FontTransform,
};
use std::convert::Infallible;

use super::canvas::Canvas;
use super::style;

/// Units to a point.
const SCALE: u32 = 8;

/// What is drawn on the page so far.
pub struct Page<'c> {
    content: &'c mut Content,
    size: (u32, u32),
    font: FontRef<'static>,
}

/// Draws a PDF of `size` points.
pub fn pdf(
    size: (u32, u32),
    draw: impl FnOnce(&mut Canvas<Page<'_>>) -> Result<(), String>,
) -> Result<Vec<u8>, String> {
    let mut content = Content::new();
    // Units become points, and down becomes up.
    let scale = 1.0 / SCALE as f32;
    content.transform([scale, 0.0, 0.0, -scale, 0.0, size.1 as f32]);
    content.set_line_cap(pdf_writer::types::LineCapStyle::RoundCap);
    content.set_line_join(pdf_writer::types::LineJoinStyle::RoundJoin);
    let font = FontRef::try_from_slice(epaint_default_fonts::UBUNTU_LIGHT).map_err(|e| e.to_string())?;
    let page = Page { content: &mut content, size: (size.0 * SCALE, size.1 * SCALE), font };
    let mut canvas = Canvas::new(page, SCALE);
    canvas.fill((0.0, 0.0), (f64::from(size.0), f64::from(size.1)), style::BACKGROUND)?;
    draw(&mut canvas)?;
    canvas.finish()?;
    let [catalog, pages, only, drawing] = [1, 2, 3, 4].map(Ref::new);
    let mut file = Pdf::new();
    file.catalog(catalog).pages(pages);
    file.pages(pages).kids([only]).count(1);
    let mut page = file.page(only);
    page.parent(pages).media_box(Rect::new(0.0, 0.0, size.0 as f32, size.1 as f32)).contents(drawing);
    page.resources();
    page.finish();
    file.stream(drawing, &content.finish());
    Ok(file.finish())
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

impl Page<'_> {
    fn fill_with(&mut self, color: BackendColor) {
        let [r, g, b] = channels(color);
        self.content.set_fill_rgb(r, g, b);
    }

    fn path(&mut self, points: impl IntoIterator<Item = BackendCoord>) {
        for (at, (x, y)) in points.into_iter().enumerate() {
            match at {
                0 => self.content.move_to(x as f32, y as f32),
                _ => self.content.line_to(x as f32, y as f32),
            };
        }
    }

    /// The letters of a text with the left end of its base line at (0, 0), in units of the page: curves, and its width.
    fn letters(&self, text: &str, size: f64) -> (Vec<OutlineCurve>, f32) {
        let scale = size as f32 / self.font.units_per_em().unwrap_or(1000.0);
        let mut curves = Vec::new();
        let mut x = 0.0;
        for letter in text.chars() {
            let glyph = self.font.glyph_id(letter);
            let to = |p: Point| Point { x: x + p.x * scale, y: -p.y * scale };
            for curve in self.font.outline(glyph).into_iter().flat_map(|outline| outline.curves) {
                curves.push(match curve {
                    OutlineCurve::Line(a, b) => OutlineCurve::Line(to(a), to(b)),
                    OutlineCurve::Quad(a, b, c) => OutlineCurve::Quad(to(a), to(b), to(c)),
                    OutlineCurve::Cubic(a, b, c, d) => OutlineCurve::Cubic(to(a), to(b), to(c), to(d)),
                });
            }
            x += self.font.h_advance_unscaled(glyph) * scale;
        }
        (curves, x)
    }

    /// Fills outlines, each curve of which begins where the one before ends, or another outline.
    fn outlines(&mut self, curves: &[OutlineCurve], place: impl Fn(Point) -> Point) {
        let mut last: Option<Point> = None;
        for curve in curves {
            let (&start, &end) = match curve {
                OutlineCurve::Line(a, b) => (a, b),
                OutlineCurve::Quad(a, _, c) => (a, c),
                OutlineCurve::Cubic(a, _, _, d) => (a, d),
            };
            if last.is_none_or(|last| last != start) {
                let p = place(start);
                self.content.move_to(p.x, p.y);
            }
            let (b, c) = match curve {
                OutlineCurve::Line(..) => (start, end),
                // The same curve with two control points.
                OutlineCurve::Quad(a, b, c) => (between(*a, *b), between(*c, *b)),
                OutlineCurve::Cubic(_, b, c, _) => (*b, *c),
            };
            let (b, c, d) = (place(b), place(c), place(end));
            self.content.cubic_to(b.x, b.y, c.x, c.y, d.x, d.y);
            last = Some(end);
        }
        self.content.fill_nonzero();
    }
}

/// Two thirds of the way from an end of a quadratic curve to its control point.
fn between(end: Point, control: Point) -> Point {
    let part = |a: f32, b: f32| a + (b - a) * 2.0 / 3.0;
    Point { x: part(end.x, control.x), y: part(end.y, control.y) }
}

fn channels(color: BackendColor) -> [f32; 3] {
    let (r, g, b) = color.rgb;
    [r, g, b].map(|x| f32::from(x) / 255.0)
}

impl DrawingBackend for Page<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Drawn {
        self.fill_with(color);
        self.content.rect(x as f32, y as f32, 1.0, 1.0).fill_nonzero();
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Drawn {
        let [r, g, b] = channels(style.color());
        self.content.set_stroke_rgb(r, g, b).set_line_width(style.stroke_width() as f32);
        self.path(path);
        self.content.stroke();
        Ok(())
    }

    fn draw_rect<S: BackendStyle>(&mut self, a: BackendCoord, b: BackendCoord, style: &S, _fill: bool) -> Drawn {
        self.fill_with(style.color());
        let (width, height) = ((b.0 - a.0) as f32, (b.1 - a.1) as f32);
        self.content.rect(a.0 as f32, a.1 as f32, width, height).fill_nonzero();
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, corners: I, style: &S) -> Drawn {
        self.fill_with(style.color());
        self.path(corners);
        self.content.close_path().fill_nonzero();
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(&mut self, center: BackendCoord, radius: u32, style: &S, _fill: bool) -> Drawn {
        // A line of no length with round ends.
        let [r, g, b] = channels(style.color());
        self.content.set_stroke_rgb(r, g, b).set_line_width(2.0 * radius as f32);
        self.path([center, center]);
        self.content.stroke();
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, text_style: &S, at: BackendCoord) -> Drawn {
        let size = text_style.size();
        let (curves, width) = self.letters(text, size);
        let anchor = text_style.anchor();
        let along = match anchor.h_pos {
            HPos::Left => 0.0,
            HPos::Center => -width / 2.0,
            HPos::Right => -width,
        };
        // The base line: capitals are 0.7 of the size high.
        let down = size as f32
            * match anchor.v_pos {
                VPos::Top => 0.85,
                VPos::Center => 0.32,
                VPos::Bottom => -0.25,
            };
        self.fill_with(text_style.color());
        let (x, y) = (at.0 as f32, at.1 as f32);
        let place = |p: Point| {
            let (right, below) = (p.x + along, p.y + down);
            match text_style.transform() {
                FontTransform::None => Point { x: x + right, y: y + below },
                FontTransform::Rotate90 => Point { x: x - below, y: y + right },
                FontTransform::Rotate180 => Point { x: x - right, y: y - below },
                FontTransform::Rotate270 => Point { x: x + below, y: y - right },
            }
        };
        self.outlines(&curves, place);
        Ok(())
    }
}
