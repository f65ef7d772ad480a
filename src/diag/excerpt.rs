//! The lines that a message shows.
//!
//! In come texts and the places of a message; out go the texts as the renderer reads them: whole, or only the lines of the places, cut around
//! these, where one of the lines is long.
//! Never true here: a line has another number, or a character another column than in the file.

use super::Label;
use super::render::{harmless, is_harmless};
use crate::source::{FileId, SourceMap};
use codespan_reporting::files::{Error, Files};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Lines with more bytes are cut.
const LONG: usize = 240;

/// So many bytes stand before a place in a line that is cut.
const BEFORE: usize = 60;

/// What stands where something is cut off.
const CUT: &str = "...";

/// A place that is shown: which label it is, where in the text of the file, and of which file.
pub type Place = (usize, Range<usize>, usize);

/// The files of a message.
pub struct Excerpts<'s> {
    sources: &'s SourceMap,
    /// Texts that a terminal would obey, made harmless.
    shown: BTreeMap<usize, String>,
    /// Those with long lines.
    cut: BTreeMap<usize, Excerpt>,
}

/// Lines of a file, one after the other.
#[derive(Default)]
struct Excerpt {
    text: String,
    lines: Vec<Line>,
}

/// A line of an excerpt.
struct Line {
    /// Its number in the file, from 0.
    number: usize,
    /// Where it is in the text of the excerpt, with its end.
    range: Range<usize>,
    /// How many characters more than in the excerpt stand before a place of it in the file.
    shift: isize,
}

impl<'s> Excerpts<'s> {
    /// What is shown of some places, and where they are in it.
    pub fn new(sources: &'s SourceMap, labels: &[Label]) -> (Excerpts<'s>, Vec<Place>) {
        let long: BTreeSet<u32> = labels.iter().filter(|l| is_long(sources, l)).map(|l| l.span.file.0).collect();
        let whole = labels.iter().enumerate().filter(|(_, l)| !long.contains(&l.span.file.0));
        let mut places: Vec<Place> = whole.map(|(at, l)| (at, l.span.range(), l.span.file.0 as usize)).collect();
        let mut cut = BTreeMap::new();
        for file in long {
            let of_file = labels.iter().enumerate().filter(|(_, l)| l.span.file.0 == file);
            let spans: Vec<(usize, Range<usize>)> = of_file.map(|(at, l)| (at, l.span.range())).collect();
            let mut excerpt = Excerpt::default();
            let shown = excerpt.fill(sources, FileId(file), &spans);
            excerpt.text = harmless(&excerpt.text);
            places.extend(shown.into_iter().map(|(at, range)| (at, range, file as usize)));
            cut.insert(file as usize, excerpt);
        }
        places.sort_by_key(|place| place.0);
        let of_message: BTreeSet<u32> = labels.iter().map(|l| l.span.file.0).collect();
        let text = |file: u32| {
            let text = &sources.file(FileId(file)).text;
            text.contains(|c| !is_harmless(c)).then(|| (file as usize, harmless(text)))
        };
        let shown = of_message.into_iter().filter_map(text).collect();
        (Excerpts { sources, shown, cut }, places)
    }
}

/// Is the line where a place begins, or the one where it ends, long?
fn is_long(sources: &SourceMap, label: &Label) -> bool {
    let file = sources.file(label.span.file);
    let long = |byte: u32| file.line_range(file.line_of(byte as usize)).len() > LONG;
    long(label.span.start) || long(label.span.end)
}

impl Excerpt {
    /// Adds the lines where places begin; gives the places in them. A place ends with its line.
    fn fill(&mut self, sources: &SourceMap, id: FileId, spans: &[(usize, Range<usize>)]) -> Vec<(usize, Range<usize>)> {
        let file = sources.file(id);
        let mut by_line: BTreeMap<usize, Vec<&(usize, Range<usize>)>> = BTreeMap::new();
        for span in spans {
            by_line.entry(file.line_of(span.1.start)).or_default().push(span);
        }
        let mut places = Vec::new();
        // Places that are far from each other in one line have a piece of it each.
        let mut pieces = Vec::new();
        for (number, mut spans) in by_line {
            let whole = file.line_range(number);
            spans.sort_by_key(|span| span.1.start);
            while let Some(first) = spans.first() {
                let shown = window(&file.text, &whole, first.1.start);
                let inside = |span: &&(usize, Range<usize>)| span.1.start <= shown.end;
                let rest = spans.split_off(spans.partition_point(inside).max(1));
                pieces.push((number, shown, std::mem::replace(&mut spans, rest)));
            }
        }
        for (number, shown, spans) in pieces {
            let whole = file.line_range(number);
            let begin = self.text.len();
            let mut shift = file.text[whole.start..shown.start].chars().count() as isize;
            if shown.start > whole.start {
                self.text.push_str(CUT);
                shift -= CUT.len() as isize;
            }
            let moved = |byte: usize, to: usize| to + byte.clamp(shown.start, shown.end) - shown.start;
            let to = self.text.len();
            self.text.push_str(file.text[shown.clone()].trim_end_matches('\n'));
            if shown.end < whole.end {
                self.text.push_str(CUT);
            }
            self.text.push('\n');
            let last = self.text.len() - 1;
            for (at, span) in spans {
                places.push((*at, moved(span.start, to).min(last)..moved(span.end, to).min(last)));
            }
            self.lines.push(Line { number, range: begin..self.text.len(), shift });
        }
        places
    }

    fn line(&self, index: usize) -> Result<&Line, Error> {
        self.lines.get(index).ok_or(Error::LineTooLarge { given: index, max: self.lines.len() })
    }
}

/// What is shown of a line for a place in it.
fn window(text: &str, line: &Range<usize>, place: usize) -> Range<usize> {
    let boundary = |mut byte: usize| {
        while !text.is_char_boundary(byte) {
            byte -= 1;
        }
        byte
    };
    if line.len() <= LONG {
        return line.clone();
    }
    let start = boundary(place.saturating_sub(BEFORE).max(line.start));
    start..boundary((start + LONG).min(line.end))
}

impl<'a> Files<'a> for Excerpts<'_> {
    type FileId = usize;
    type Name = String;
    type Source = &'a str;

    fn name(&'a self, id: usize) -> Result<String, Error> {
        Ok(harmless(&self.sources.file(FileId(id as u32)).name))
    }

    fn source(&'a self, id: usize) -> Result<&'a str, Error> {
        let whole = || self.shown.get(&id).unwrap_or(&self.sources.file(FileId(id as u32)).text);
        Ok(self.cut.get(&id).map_or_else(whole, |cut| &cut.text))
    }

    fn line_index(&'a self, id: usize, byte: usize) -> Result<usize, Error> {
        Ok(match self.cut.get(&id) {
            Some(cut) => {
                cut.lines.partition_point(|line| line.range.end <= byte).min(cut.lines.len().saturating_sub(1))
            }
            None => self.sources.file(FileId(id as u32)).line_of(byte),
        })
    }

    fn line_number(&'a self, id: usize, index: usize) -> Result<usize, Error> {
        Ok(1 + self.cut.get(&id).map_or(Ok(index), |cut| cut.line(index).map(|line| line.number))?)
    }

    fn column_number(&'a self, id: usize, index: usize, byte: usize) -> Result<usize, Error> {
        let line = self.line_range(id, index)?;
        let before = self.source(id)?.get(line.start..byte).map_or(0, |text| text.chars().count());
        let shift = self.cut.get(&id).map_or(Ok(0), |cut| cut.line(index).map(|line| line.shift))?;
        Ok((before as isize + shift).max(0) as usize + 1)
    }

    fn line_range(&'a self, id: usize, index: usize) -> Result<Range<usize>, Error> {
        match self.cut.get(&id) {
            Some(cut) => cut.line(index).map(|line| line.range.clone()),
            None => Ok(self.sources.file(FileId(id as u32)).line_range(index)),
        }
    }
}
