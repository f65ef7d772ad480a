//! Diagnostics: what is wrong, where, and what would help.
//!
//! In come facts found by the phases; out go rendered messages (human or JSON).
//! Never true here: a diagnostic without a code, or a code without an explanation.

mod codes;
mod excerpt;
mod render;

pub use codes::{Code, Severity};
pub(crate) use render::harmless;
pub use render::{render_human, render_json};

use crate::source::Span;
use std::collections::HashSet;

/// A place that a diagnostic points at.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What is true there; may be empty.
    pub message: String,
    /// Is it the place of the mistake itself?
    pub primary: bool,
}

/// One mistake.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// What kind of mistake.
    pub code: Code,
    /// One sentence.
    pub message: String,
    /// Places; the first primary one is where the mistake is.
    pub labels: Vec<Label>,
    /// Facts, such as the two dimensions.
    pub notes: Vec<String>,
    /// An edit that helps.
    pub help: Vec<String>,
    /// The same for editors, where it is known to the letter.
    pub fixes: Box<[Fix]>,
}

/// An edit of a file that mends a mistake, or probably does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fix {
    /// Another text in the place of one.
    Replace {
        /// The place.
        span: Span,
        /// What stands there; if it is something else, the edit is none.
        old: String,
        /// What shall.
        new: String,
    },
    /// A line that brings in an item, such as `use std.channels.hh.{Na}`.
    Use(String),
}

impl Diagnostic {
    /// A diagnostic at `span`, with `label` written there.
    pub fn new(code: Code, span: Span, message: impl Into<String>, label: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            message: message.into(),
            labels: vec![Label { span, message: label.into(), primary: true }],
            notes: Vec::new(),
            help: Vec::new(),
            fixes: Box::default(),
        }
    }

    /// A diagnostic that has no place in a file (a command-line override, a data file).
    pub fn without_place(code: Code, message: impl Into<String>) -> Diagnostic {
        let (labels, notes, help, fixes) = Default::default();
        Diagnostic { code, message: message.into(), labels, notes, help, fixes }
    }

    /// Adds a secondary place.
    pub fn see(mut self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, message: message.into(), primary: false });
        self
    }

    /// Adds a fact.
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    /// Adds an edit that helps.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help.push(text.into());
        self
    }

    /// Adds an edit for editors: `new` in the place of `old`, which stands at `span`.
    pub fn fix(mut self, span: Span, old: impl Into<String>, new: impl Into<String>) -> Diagnostic {
        let fix = Fix::Replace { span, old: old.into(), new: new.into() };
        self.fixes = self.fixes.into_iter().chain([fix]).collect();
        self
    }

    /// Adds that `new` may be meant by `old`, which stands at the place of the mistake.
    pub fn did_you_mean(self, old: &str, new: &str) -> Diagnostic {
        let span = self.labels.first().map(|label| label.span);
        let d = self.help(format!("did you mean `{new}`?"));
        match span {
            Some(span) => d.fix(span, old, new),
            None => d,
        }
    }

    /// Adds lines for editors that bring in an item.
    pub fn fix_by_use(mut self, lines: impl IntoIterator<Item = String>) -> Diagnostic {
        self.fixes = self.fixes.into_iter().chain(lines.into_iter().map(Fix::Use)).collect();
        self
    }

    /// Is it an error (and not a warning)?
    pub fn is_error(&self) -> bool {
        self.code.severity() == Severity::Error
    }
}

/// So many are kept; the rest is counted.
const MOST: usize = 100;

/// All that was found so far; phases push, the driver renders.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    /// What was found where.
    places: HashSet<(Code, Span)>,
    /// Places of errors.
    errors: HashSet<Span>,
    has_errors: bool,
    /// How many are not in the list.
    more: usize,
}

impl Diagnostics {
    /// Adds one; the same code at the same place is kept once. Beyond a hundred they are counted only, but for the first error.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let place = diagnostic.labels.first().map(|l| l.span);
        if place.is_some_and(|place| !self.places.insert((diagnostic.code, place))) {
            return;
        }
        let first = diagnostic.is_error() && !self.has_errors;
        if diagnostic.is_error() {
            self.has_errors = true;
            self.errors.extend(place);
        }
        if self.list.len() < MOST || first {
            self.list.push(diagnostic);
        } else {
            self.more += 1;
        }
    }

    /// Is there an error among them?
    pub fn has_errors(&self) -> bool {
        self.has_errors
    }

    /// Is there an error whose place is exactly this one?
    pub fn has_error_at(&self, span: Span) -> bool {
        self.errors.contains(&span)
    }

    /// Is there an error whose place lies inside of this one?
    pub fn has_error_in(&self, span: Span) -> bool {
        self.errors.iter().any(|e| e.file == span.file && span.start <= e.start && e.end <= span.end)
    }

    /// In the order of their places; at the end, how many more there are.
    pub fn sorted(&self) -> Vec<Diagnostic> {
        let mut list = self.list.clone();
        list.sort_by_key(|d| d.labels.first().map(|l| (l.span.file, l.span.start)));
        if self.more > 0 {
            let message = format!("{} more mistakes are not shown", self.more);
            let code = if self.has_errors { Code::More } else { Code::MoreWarnings };
            list.push(Diagnostic::without_place(code, message));
        }
        list
    }

    /// How many there are; with [`Diagnostics::since`] this tells what one phase found.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Will one more be shown?
    pub fn has_room(&self) -> bool {
        self.list.len() < MOST
    }

    /// Those that came after the first `count`.
    pub fn since(&mut self, count: usize) -> &mut [Diagnostic] {
        let count = count.min(self.list.len());
        &mut self.list[count..]
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// The candidate nearest in spelling to `name`, if one is near enough to be a typing mistake.
///
/// A candidate that differs in case or underscores only comes first; otherwise at most a third of the letters may be
/// wrong, and never all of them.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |word: &str| word.replace('_', "").to_lowercase();
    let wanted = plain(name);
    let length = name.chars().count();
    if length > 64 {
        return None;
    }
    let limit = length.div_ceil(3).max(1);
    candidates
        .into_iter()
        .filter(|c| *c != name)
        .map(|c| if plain(c) == wanted { (0, c) } else { (edit_distance(name, c, limit), c) })
        .filter(|&(d, c)| d == 0 || (d <= limit && d < c.chars().count().min(length)))
        .min_by_key(|&(d, _)| d)
        .map(|(_, c)| c)
}

/// Edits (insert, delete, replace, swap of neighbours) between two words; anything above `limit` if it is above it.
fn edit_distance(a: &str, b: &str, limit: usize) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    if a.len().abs_diff(b.len()) > limit {
        return limit + 1;
    }
    let mut rows: [Vec<usize>; 3] = [Vec::new(), Vec::new(), (0..=b.len()).collect()];
    for i in 1..=a.len() {
        rows.rotate_left(1);
        let [before, last, row] = &mut rows;
        row.resize(b.len() + 1, 0);
        row[0] = i;
        for j in 1..=b.len() {
            let cost = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + cost);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row[j] = best;
        }
    }
    rows[2][b.len()]
}
