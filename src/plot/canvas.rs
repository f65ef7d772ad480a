//! Drawing in pixels.
//!
//! Lines, boxes and text come in with fractional pixel coordinates; out go calls of a plotters backend, whose whole
//! numbers are fractions of a pixel. Nothing here knows what a panel or a series is.

use plotters::backend::SVGBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontDesc, FontFamily, FontStyle, FontTransform, RGBColor, ShapeStyle, TextStyle, register_font};
use plotters_backend::{BackendCoord, DrawingBackend};
use std::sync::Once;

use super::style;

/// A backend that has this many units to a pixel, and what its coordinates mean.
pub struct Canvas<DB> {
    backend: DB,
    scale: f64,
}

/// How text sits at its point.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    /// The point is left of the text, halfway up its small letters.
    Left,
    /// The point is right of the text, halfway up its small letters.
    Right,
    /// The point is above the middle of the text.
    Below,
    /// The text reads upwards, and the point is at its middle, just right of where it stands.
    Upwards,
}

type Drawn = Result<(), String>;

impl<DB: DrawingBackend> Canvas<DB> {
    pub fn new(backend: DB, scale: u32) -> Canvas<DB> {
        register_fonts();
        Canvas { backend, scale: f64::from(scale) }
    }

    fn at(&self, (x, y): (f64, f64)) -> BackendCoord {
        ((x * self.scale).round() as i32, (y * self.scale).round() as i32)
    }

    /// A line through the points; a single point is a dot.
    pub fn line(&mut self, points: &[(f64, f64)], color: RGBColor, width: f64) -> Drawn {
        let mut places: Vec<BackendCoord> = points.iter().map(|&p| self.at(p)).collect();
        places.dedup();
        let stroke = (width * self.scale).round().max(1.0);
        let drawn = match places.as_slice() {
            [] => Ok(()),
            &[dot] => {
                let dot_style = ShapeStyle { color: color.into(), filled: true, stroke_width: 0 };
                self.backend.draw_circle(dot, (0.75 * stroke) as u32, &dot_style, true)
            }
            _ => {
                let line_style = ShapeStyle { color: color.into(), filled: false, stroke_width: stroke as u32 };
                self.backend.draw_path(places, &line_style)
            }
        };
        drawn.map_err(|e| e.to_string())
    }

    /// A filled box between two opposite corners, upper left first.
    pub fn fill(&mut self, corner: (f64, f64), opposite: (f64, f64), color: RGBColor) -> Drawn {
        let (corner, opposite) = (self.at(corner), self.at(opposite));
        self.backend.draw_rect(corner, opposite, &color, true).map_err(|e| e.to_string())
    }

    /// A filled shape whose border goes through these corners.
    pub fn polygon(&mut self, corners: &[(f64, f64)], color: RGBColor) -> Drawn {
        let mut places: Vec<BackendCoord> = corners.iter().map(|&p| self.at(p)).collect();
        places.dedup();
        if places.len() < 3 {
            return Ok(());
        }
        self.backend.fill_polygon(places, &color).map_err(|e| e.to_string())
    }

    /// A filled disc.
    pub fn disc(&mut self, centre: (f64, f64), radius: f64, color: RGBColor) -> Drawn {
        let (centre, radius) = (self.at(centre), (radius * self.scale).round().max(1.0));
        self.backend.draw_circle(centre, radius as u32, &color, true).map_err(|e| e.to_string())
    }

    pub fn text(&mut self, text: &str, at: (f64, f64), anchor: Anchor, size: f64, color: RGBColor) -> Drawn {
        let (h, v, transform) = match anchor {
            Anchor::Left => (HPos::Left, VPos::Center, FontTransform::None),
            Anchor::Right => (HPos::Right, VPos::Center, FontTransform::None),
            Anchor::Below => (HPos::Center, VPos::Top, FontTransform::None),
            Anchor::Upwards => (HPos::Center, VPos::Bottom, FontTransform::Rotate270),
        };
        let font = FontDesc::new(FontFamily::SansSerif, size * self.scale, FontStyle::Normal);
        let text_style = TextStyle::from(font.transform(transform)).color(&color).pos(Pos::new(h, v));
        let at = self.at(at);
        self.backend.draw_text(text, &text_style, at).map_err(|e| e.to_string())
    }

    /// Finishes the drawing.
    pub fn finish(mut self) -> Drawn {
        self.backend.present().map_err(|e| e.to_string())
    }
}

/// The width of a text in pixels, with some room for a viewer whose letters are wider.
pub fn text_width(text: &str, size: f64) -> f64 {
    register_fonts();
    let fine = 20.0;
    let font = FontDesc::new(FontFamily::SansSerif, size * fine, FontStyle::Normal);
    // Without a font there is no text either; the width of a wide letter for each is as good as any.
    let width = font.layout_box(text).map_or(size * text.chars().count() as f64, |b| f64::from(b.1.0) / fine);
    1.06 * width
}

/// The text, its end replaced by `…` where it is wider than `width` pixels.
pub fn shortened(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut kept: Vec<char> = text.chars().collect();
    loop {
        kept.pop();
        let shorter: String = kept.iter().chain(&['…']).collect();
        if kept.is_empty() || text_width(&shorter, size) <= width {
            return shorter;
        }
    }
}

fn register_fonts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // The bundled font is whole, as every test that draws a letter shows; if it were not, drawing text would say so.
        let _ = register_font("sans-serif", FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT);
    });
}

/// Units to a pixel in an SVG, so that curves are smooth when it is magnified.
const SVG_SCALE: u32 = 8;

/// Draws an SVG of `size` pixels.
pub fn svg(size: (u32, u32), draw: impl FnOnce(&mut Canvas<SVGBackend<'_>>) -> Drawn) -> Result<Vec<u8>, String> {
    let units = (size.0 * SVG_SCALE, size.1 * SVG_SCALE);
    let mut text = String::new();
    let mut canvas = Canvas::new(SVGBackend::with_string(&mut text, units), SVG_SCALE);
    canvas.fill((0.0, 0.0), (f64::from(size.0), f64::from(size.1)), style::BACKGROUND)?;
    draw(&mut canvas)?;
    canvas.finish()?;
    let drawn = format!("<svg width=\"{}\" height=\"{}\" ", units.0, units.1);
    let wanted =
        format!("<svg width=\"{}\" height=\"{}\" stroke-linejoin=\"round\" stroke-linecap=\"round\" ", size.0, size.1);
    match text.strip_prefix(&drawn) {
        // XML has no control characters, escaped or not.
        Some(rest) => Ok(format!("{wanted}{rest}")
            .replace(|c: char| c.is_control() && !"\n\r\t".contains(c), "\u{fffd}")
            .into_bytes()),
        None => Err("the SVG does not begin as expected".to_owned()),
    }
}
