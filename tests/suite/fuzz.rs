//! Tests of: fuzz. Mutated models and mutated programs are refused with a message or mean something; nothing panics, and nothing is called a bug.
//!
//! `NEUROC_FUZZ_INPUTS=1000000 cargo test --release --test suite fuzz::` tries so many instead of the few of an ordinary run.

use neuroc::codegen::plan::{PlanOptions, plan};
use neuroc::codegen::rust::kernel_files;
use neuroc::diag::{Code, Diagnostic, render_human, render_json};
use neuroc::driver::{check_text, check_whole};
use neuroc::hir::Sources;
use neuroc::passes::{Backend, OptLevel, Options, pipeline, run};
use neuroc::step::{parse, print, verify};
use std::path::Path;

/// How many inputs are tried where nobody says.
fn inputs(few: usize) -> usize {
    std::env::var("NEUROC_FUZZ_INPUTS").map_or(few, |n| n.parse().expect("NEUROC_FUZZ_INPUTS is a number"))
}

/// The texts of all files of a kind in a directory and those below it.
fn texts(directory: &str, extension: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(directory)];
    while let Some(directory) = waiting.pop() {
        let mut paths: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.extend(std::fs::read_to_string(path).ok());
            }
        }
    }
    found
}

// ---------------------------------------------------------------------------------------------- mutations

/// A small generator of numbers (xorshift), so that every run tries the same inputs.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

/// Words, numbers, blanks and single symbols.
fn tokens(text: &str) -> Vec<String> {
    let kind = |c: char| match c {
        c if c.is_alphabetic() || c == '_' => 0,
        c if c.is_ascii_digit() || c == '.' => 1,
        '\n' => 4,
        c if c.is_whitespace() => 2,
        _ => 3,
    };
    let mut out: Vec<String> = Vec::new();
    let mut last = None;
    for c in text.chars() {
        let this = kind(c);
        match out.last_mut() {
            Some(token) if last == Some(this) && this < 3 => token.push(c),
            _ => out.push(c.to_string()),
        }
        last = Some(this);
    }
    out
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn mutate(text: &str, dice: &mut Dice) -> String {
    const UNITS: &[&str] = &["mV", "ms", "mS", "nA", "uF", "cm2", "mM", "degC", "s", "um", "1"];
    const WORDS: &[&str] = &["v", "t", "celsius", "soma", "gbar", "erev", "i", "exp", "uniform", "true", "Na", "i_syn"];
    const SYMBOLS: &[&str] =
        &["+", "-", "*", "/", "^", "<", ">", "(", ")", "{", "}", "=", "~", ":", ",", ".", "'", ";"];
    let mut list = tokens(text);
    for _ in 0..1 + dice.below(4) {
        if list.is_empty() {
            break;
        }
        let at = dice.below(list.len());
        let words: Vec<usize> = (0..list.len()).filter(|&i| is_word(&list[i])).collect();
        let word = if words.is_empty() { at } else { words[dice.below(words.len())] };
        match dice.below(9) {
            0 if !words.is_empty() => {
                let other = words[dice.below(words.len())];
                list.swap(word, other);
            }
            1 => list[word] = UNITS[dice.below(UNITS.len())].to_string(),
            2 => list[word] = WORDS[dice.below(WORDS.len())].to_string(),
            3 => {
                list.remove(at);
            }
            4 => {
                let copy = list[at].clone();
                list.insert(at, copy);
            }
            5 => list.insert(at, SYMBOLS[dice.below(SYMBOLS.len())].to_string()),
            6 => {
                let joined = list.concat();
                let mut lines: Vec<&str> = joined.lines().collect();
                let line = dice.below(lines.len());
                match dice.below(3) {
                    0 => {
                        lines.remove(line);
                    }
                    1 => lines.insert(line, lines[line]),
                    _ => {
                        let other = dice.below(lines.len());
                        lines.swap(line, other);
                    }
                }
                list = tokens(&lines.join("\n"));
            }
            7 => {
                let numbers: Vec<usize> =
                    (0..list.len()).filter(|&i| list[i].starts_with(|c: char| c.is_ascii_digit())).collect();
                if !numbers.is_empty() {
                    const NUMBERS: &[&str] = &["0", "1e308", "1e-308", "3", "0.5", "-1", "99999999999999999999"];
                    let number = numbers[dice.below(numbers.len())];
                    list[number] = NUMBERS[dice.below(NUMBERS.len())].to_string();
                }
            }
            // Drops a unit: the commonest mistake of all.
            _ => list[word] = String::new(),
        }
    }
    list.concat()
}

/// The most that is said about any input below 1 MB.
const MOST_SAID: usize = 1_000_000;

#[test]
fn mutated_models_give_a_model_or_an_error() {
    let count = inputs(2000);
    // Sound models and wrong ones in turn.
    let seeds = [texts("examples", "neuro"), texts("tests/errors", "neuro")];
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let (mut models, mut rejected) = (0, 0);
    let mut wrong: Vec<String> = Vec::new();
    for k in 0..count {
        let seeds = &seeds[k % 2];
        let text = mutate(&seeds[(k / 2) % seeds.len()], &mut dice);
        let outcome = std::panic::catch_unwind(|| {
            let checked = check_text("mutant.neuro", Path::new("tests/errors"), text.as_str(), &Sources);
            let sound = (checked.model.is_some(), checked.diagnostics.iter().any(Diagnostic::is_error));
            let c = check_whole(checked);
            let (human, json) =
                (render_human(&c.sources, &c.diagnostics, false), render_json(&c.sources, &c.diagnostics));
            let bug = c.diagnostics.iter().any(|d| d.code == Code::Internal);
            (sound, c.model.is_some(), bug, human, json)
        });
        let said = match outcome {
            Err(_) => Some("panics the compiler".to_string()),
            Ok((_, _, true, ref human, _)) => Some(format!("is called a bug of the compiler:\n{human}")),
            Ok(((model, errors), _, _, ref human, _)) if model == errors => {
                Some(format!("gives {model} model and {errors} errors\n{human}"))
            }
            Ok(((_, true), .., ref human, _)) if human.is_empty() => Some("is wrong without a word".into()),
            Ok((.., ref human, ref json)) if human.len().max(json.len()) >= MOST_SAID => {
                Some(format!("is told about in {} bytes", human.len()))
            }
            Ok(_) => None,
        };
        wrong.extend(said.map(|said| format!("mutant {k} {said}\n{text}")));
        let whole = outcome.is_ok_and(|(_, whole, ..)| whole);
        if whole {
            models += 1;
        } else {
            rejected += 1;
        }
    }
    println!("{count} texts: {models} models, {rejected} rejected");
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n\n"));
    assert!(count < 1000 || (models > count / 50 && rejected > count / 4), "{models} models, {rejected} rejected");
}

/// What parses prints to the same program; what verifies goes through all passes, and has a plan and kernels or is refused with a reason.
#[test]
fn mutated_programs_are_compiled_or_refused() {
    let count = inputs(2000);
    let seeds: Vec<String> = ["tests/ir", "tests/passes", "src/interp"].iter().flat_map(|d| texts(d, "ir")).collect();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut parsed, mut sound, mut planned) = (0, 0, 0);
    for k in 0..count {
        let text = mutate(&seeds[k % seeds.len()], &mut dice);
        let outcome = std::panic::catch_unwind(|| {
            let Ok(program) = parse(&text) else { return (false, false, false) };
            let again = print(&program);
            assert_eq!(parse(&again).map_err(|e| e.to_string()).as_ref(), Ok(&program), "{again}");
            let Ok(verified) = verify(program) else { return (true, false, false) };
            let backend = if k.is_multiple_of(2) { Backend::Native } else { Backend::Xla };
            let level = if k.is_multiple_of(6) { OptLevel::O0 } else { OptLevel::O2 };
            let after = run(verified, pipeline(level, backend), &Options::default(), &mut |_, _, _| {})
                .unwrap_or_else(|e| panic!("{e}"));
            let plan = plan(&after, &PlanOptions::default());
            (true, true, plan.is_ok_and(|plan| !kernel_files(&plan).is_empty()))
        });
        let Ok((parses, verifies, plans)) = outcome else { panic!("the compiler panicked on program {k}:\n{text}") };
        parsed += usize::from(parses);
        sound += usize::from(verifies);
        planned += usize::from(plans);
    }
    println!("{count} texts: {parsed} parse, {sound} verify, {planned} have kernels");
    assert!(count < 1000 || planned > count / 50, "{parsed} parse, {sound} verify, {planned} have kernels");
}
