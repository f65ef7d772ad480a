//! How figures look: colours, sizes, and how names and units are spelled.
//!
//! Names and units from results come in; colours, sizes in pixels and display text go out. Nothing here knows data.

use plotters::style::RGBColor;

/// The palette of Okabe and Ito (2008), which people with any kind of colour vision can tell apart, in an order that
/// puts the ones that stand out on white first; grey replaces its yellow, which does not.
pub const LINES: [RGBColor; MOST_LINES] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(140, 140, 140),
];
/// How many lines a panel shows at most.
pub const MOST_LINES: usize = 8;
/// Of an SVG; the pixels of a PNG start as white.
pub const BACKGROUND: RGBColor = RGBColor(255, 255, 255);
pub const TEXT: RGBColor = RGBColor(34, 34, 34);
pub const FAINT_TEXT: RGBColor = RGBColor(85, 85, 85);
pub const FRAME: RGBColor = RGBColor(85, 85, 85);
pub const GRID: RGBColor = RGBColor(232, 232, 232);
pub const SPIKES: RGBColor = RGBColor(34, 34, 34);
pub const RATE: RGBColor = RGBColor(0, 114, 178);
pub const RATE_FILL: RGBColor = RGBColor(198, 222, 238);

/// Viridis (Smith and van der Walt, 2015) by nine of its colours: the larger a number, the lighter, for any kind of colour vision. As on pages
/// (`src/report/page.js`).
pub const RAMP: [RGBColor; 9] = [
    RGBColor(68, 1, 84),
    RGBColor(71, 44, 122),
    RGBColor(59, 81, 139),
    RGBColor(44, 113, 142),
    RGBColor(33, 144, 141),
    RGBColor(39, 173, 129),
    RGBColor(92, 200, 99),
    RGBColor(170, 220, 50),
    RGBColor(253, 231, 37),
];
/// What has no number.
pub const NOTHING: RGBColor = RGBColor(200, 200, 200);

/// The colour of a place between the least number (0) and the largest (1).
pub fn ramp(place: f64) -> RGBColor {
    if !place.is_finite() {
        return NOTHING;
    }
    let along = place.clamp(0.0, 1.0) * (RAMP.len() - 1) as f64;
    let at = (along as usize).min(RAMP.len() - 2);
    let (a, b, part) = (RAMP[at], RAMP[at + 1], along - at as f64);
    let mix = |a: u8, b: u8| (f64::from(a) + part * (f64::from(b) - f64::from(a))).round() as u8;
    RGBColor(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

pub const TITLE_SIZE: f64 = 24.0;
pub const HEADING_SIZE: f64 = 17.0;
pub const LABEL_SIZE: f64 = 18.0;
pub const TICK_SIZE: f64 = 16.0;
pub const LEGEND_SIZE: f64 = 16.0;

pub const LINE_WIDTH: f64 = 1.75;
pub const FRAME_WIDTH: f64 = 1.0;
pub const TICK_LENGTH: f64 = 5.0;

/// The letters of a unit as people write them: `cm2` and `cm^2` as cm², `*` as a dot. Negative powers stay as they are.
pub fn unit(unit: &str) -> String {
    let mut out = String::new();
    let mut rest = unit.chars().peekable();
    let mut after_letter = false;
    while let Some(c) = rest.next() {
        let power = match c {
            '^' => rest.next_if(char::is_ascii_digit),
            _ if after_letter && c.is_ascii_digit() => Some(c),
            _ => None,
        };
        match (power, c) {
            (Some(digit), _) => out.push(superscript(digit)),
            (None, '*') => out.push('·'),
            (None, c) => out.push(c),
        }
        after_letter = c.is_alphabetic();
    }
    out
}

fn superscript(digit: char) -> char {
    match digit {
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        other => char::from_u32(0x2070 + other as u32 - '0' as u32).unwrap_or(other),
    }
}

/// An axis label: the quantity and, unless it is dimensionless, its unit.
pub fn quantity(name: &str, unit_text: &str) -> String {
    let name = shown(name);
    if unit_text == "1" { name.to_owned() } else { format!("{name} ({})", unit(unit_text)) }
}

/// A potential has a capital.
fn shown(name: &str) -> &str {
    if name == "v" { "V" } else { name }
}

/// The label of an axis or a bar that leaves out a power of ten, such as `×1e−6 `.
pub fn label(name: &str, unit_text: &str, factor: &str) -> String {
    match (factor, unit_text) {
        ("", unit) => quantity(name, unit),
        (factor, "1") => format!("{name} ({})", factor.trim_end()),
        (factor, text) => format!("{} ({factor}{})", shown(name), unit(text)),
    }
}

/// A number to four digits.
pub fn few(x: f64) -> String {
    format!("{x:.3e}").parse().unwrap_or(x).to_string()
}
