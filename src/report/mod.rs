//! The web page of a run: one file with the model, how it was run, plots that zoom, spikes and parameters.
//!
//! In come results, texts of models and what is known of the run; out goes HTML that needs nothing else: no network, no other file.
//! Never true here: a text of a model or a result is markup, or a page grows with the run beyond the bounds in `thin.rs`.
//!
//! # How it is made
//!
//! - [`Thinned`] is a result as far as a page shows it, from memory or from a file, which it reads with bounded memory.
//! - `data.rs` makes of it what `page.js` draws: panels grouped as in figures, numbers as base64.
//! - `html.rs` writes the tables, `code.rs` the texts of the model. Without JavaScript the page shows the figure of [`crate::plot`].
//! - The page says by a content security policy that nothing is loaded and no script runs but its own: those that bear the page's nonce,
//!   a hash of all that the page holds, which no text in it can know.
//!
//! The same data give the same page, but for the time that a run took.

mod code;
mod data;
mod html;
mod thin;

#[cfg(test)]
mod tests;

pub use thin::Thinned;

use crate::plot::{self, ImageFormat, PlotKind, PlotOptions};
use crate::results::replace_file;
use crate::source::SourceMap;
use crate::stdlib;
use html::escaped;
use std::path::Path;

/// What a page tells besides the results; all of it may be missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct About {
    /// Above the page; if `None`, the string `model` of the results.
    pub title: Option<String>,
    /// The texts of the model, its own file first.
    pub sources: Vec<Source>,
    /// What the run took.
    pub took: Option<Took>,
}

/// A text of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// The name of the file, without its folder.
    pub name: String,
    /// All of it.
    pub text: String,
}

/// What a run took.
#[derive(Debug, Clone, PartialEq)]
pub struct Took {
    /// Until it was ready for the first step, in s.
    pub compile_s: f64,
    /// From then on, in s.
    pub run_s: f64,
    /// How many threads ran it; 0 where that is not known.
    pub threads: usize,
}

/// The texts of a model that are not of the standard library. Folders are left out: they tell of a machine, not of a model.
pub fn sources(map: &SourceMap) -> Vec<Source> {
    let library = |name: &str| {
        let module = name.strip_prefix('<').and_then(|name| name.strip_suffix('>'));
        module.is_some_and(|module| stdlib::source(module).is_some())
    };
    let own = map.files().map(|(_, file)| file).filter(|file| !library(&file.name));
    let name =
        |name: &str| Path::new(name).file_name().map_or(name.to_owned(), |name| name.to_string_lossy().into_owned());
    own.map(|file| Source { name: name(&file.name), text: file.text.clone() }).collect()
}

/// Is this the name of a page?
pub fn is_page(path: &Path) -> bool {
    let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    matches!(extension.as_deref(), Some("html" | "htm"))
}

/// Writes a page, all of it or nothing.
///
/// # Errors
/// A sentence, if the file cannot be written; what was there is untouched.
pub fn write(path: &Path, thinned: &Thinned, about: &About) -> Result<(), String> {
    let cannot = |reason| format!("cannot write `{}`: {reason}", path.display());
    replace_file(path, page(thinned, about).as_bytes()).map_err(cannot)
}

/// The page.
pub fn page(thinned: &Thinned, about: &About) -> String {
    let result = thinned.result();
    let model = result.meta.get("model").and_then(serde_json::Value::as_str);
    let title = about.title.as_deref().or(model).unwrap_or("neuroc").to_owned();
    let window = thinned.window();
    let data = data::payload(thinned, window);
    let parts = html::parts(thinned, about, &title, window);
    let figure = figure(thinned, &title);
    let (style, script) = (include_str!("page.css"), include_str!("page.js"));
    let mut hasher = blake3::Hasher::new();
    for part in [&title, &data, &parts.before, &parts.after, &figure, style, script] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let nonce = &hasher.finalize().to_hex()[..32];
    let title = escaped(&title);
    let (before, after) = (parts.before, parts.after);
    format!(
        r##"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="neuroc">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{style}</style>
</head>
<body>
{before}<section id="plots">
<h2 id="plots-head">Plots</h2>
<div id="bar">
<label>from <input type="text" id="from" inputmode="decimal"></label>
<label>to <input type="text" id="to" inputmode="decimal"></label> <span id="unit">ms</span>
<button type="button" id="back" title="back in time" aria-label="back in time">◀</button>
<button type="button" id="on" title="on in time" aria-label="on in time">▶</button>
<button type="button" id="out" title="more time" aria-label="more time">−</button>
<button type="button" id="in" title="less time" aria-label="less time">+</button>
<button type="button" id="whole">all</button>
<label><input type="checkbox" id="fit"> fit heights</label>
<output id="at"></output>
<span class="note">drag: zoom · double click: all · shift-drag: move · ctrl-wheel: zoom</span>
</div>
<div id="panels"></div>
</section>
<noscript>
<style>#plots, #filter {{ display: none; }}</style>
<h2>Plots</h2>
<p class="note">Without JavaScript the plots do not zoom.</p>
{figure}
</noscript>
{after}<script type="application/json" id="data" nonce="{nonce}">{data}</script>
<script nonce="{nonce}">
{script}</script>
</body>
</html>
"##
    )
}

/// The figure takes so many bytes at most.
const LONGEST_SVG: usize = 750_000;

/// The figure of those who have no JavaScript: all that `neuroc plot` draws, or what of it is not too long.
fn figure(thinned: &Thinned, title: &str) -> String {
    for (kind, left_out) in
        [(PlotKind::All, ""), (PlotKind::Traces, "Rasters are"), (PlotKind::Rates, "All but rates is")]
    {
        let options = PlotOptions { kind, title: Some(title.to_owned()), ..PlotOptions::default() };
        let Ok(svg) = plot::render(thinned.result(), ImageFormat::Svg, &options) else { continue };
        let svg = String::from_utf8_lossy(&svg);
        // What stands before the picture is for files.
        let Some(begin) = svg.find("<svg").filter(|begin| svg.len() - begin <= LONGEST_SVG) else { continue };
        let note = match left_out {
            "" => String::new(),
            what => format!("<p class=\"note\">{what} left out of this figure; `neuroc plot` draws everything.</p>\n"),
        };
        return note + &svg[begin..];
    }
    "<p>There is no figure here: nothing was recorded, or it would be too large for this page.</p>".to_owned()
}
