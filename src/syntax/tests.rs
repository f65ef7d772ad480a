use super::*;
use crate::diag::{Diagnostics, render_human};
use crate::source::{FileId, SourceMap};

const SAMPLES: [&str; 3] =
    [include_str!("samples/squid.neuro"), include_str!("samples/olive.neuro"), include_str!("samples/lif.neuro")];

fn tree(text: &str) -> Option<ast::File> {
    let mut diagnostics = Diagnostics::default();
    let tree = parse(FileId(0), text, &mut diagnostics);
    (!diagnostics.has_errors()).then_some(tree)
}

/// A tree as text without the places.
fn without_spans(tree: &ast::File) -> String {
    let text = format!("{tree:?}");
    let mut pieces = text.split("Span {");
    let mut out = pieces.next().unwrap_or("").to_owned();
    for piece in pieces {
        out.push_str(piece.split_once('}').map_or("", |(_, rest)| rest));
    }
    out
}

fn formatted(text: &str) -> Option<String> {
    format(FileId(0), text, &mut Diagnostics::default())
}

fn comments(text: &str) -> Vec<String> {
    let comments = grammar::tokens(text).into_iter().filter(|t| t.kind == grammar::TokenKind::Comment);
    comments.map(|t| t.text.replace("\r\n", "\n").trim_end().to_owned()).collect()
}

/// The promises of the formatter, for a text that parses.
fn check_format(text: &str) {
    let Some(before) = tree(text) else { return };
    let once = formatted(text).unwrap_or_else(|| panic!("{text:?} parses but has no format"));
    let after = tree(&once).unwrap_or_else(|| panic!("{text:?} becomes {once:?}, which does not parse"));
    assert_eq!(without_spans(&before), without_spans(&after), "{text:?} becomes {once:?}");
    assert_eq!(formatted(&once).as_deref(), Some(once.as_str()), "not stable from {text:?}");
    assert_eq!(comments(text), comments(&once), "{text:?} becomes {once:?}");
}

fn messages(text: &str) -> String {
    let mut sources = SourceMap::default();
    let file = sources.add("model.neuro", ".", text);
    let mut diagnostics = Diagnostics::default();
    parse(file, text, &mut diagnostics);
    render_human(&sources, &diagnostics.sorted(), false)
}

#[test]
fn samples_parse() {
    for sample in SAMPLES {
        assert_eq!(messages(sample), "");
    }
}

/// Typical slips by name. Each message is reviewed in its snapshot.
const SLIPS: &[(&str, &str)] = &[
    (
        "missing brace of a gate",
        "channel Na {\n    gate m {\n        alpha = 1 /ms\n    gate h { inf = 1 }\n}\n\nchannel K {\n    param g = 1\n}\n",
    ),
    (
        "missing brace of a channel",
        "channel Na {\n    gate m { inf = 1; tau = 1 ms }\n\nchannel K {\n    param g = 1\n}\n",
    ),
    ("missing brace at the end", "run {\n    dt = 0.1 ms\n"),
    (
        "closing brace too many",
        "channel Na {\n    gate m { inf = 1 } }\n    gate h { inf = 1 }\n}\nrun { dt = 1 ms }\n",
    ),
    ("missing =", "channel Na { param gbar 120 mS/cm2 }"),
    ("missing = in a key", "run {\n    dt 0.1 ms\n    duration 5 ms\n}"),
    (":= for =", "channel Na { param gbar := 120 mS/cm2 }"),
    ("== for =", "run { dt == 0.1 ms }"),
    ("** for ^", "function f(x) = x**2"),
    ("a comma for ;", "run { dt = 0.1 ms, duration = 5 ms }"),
    (
        "symbols for words",
        "cell A { spike when v > 1 mV && u < 2 mV }\ncell B { spike when v > 1 mV || u < 2 mV }\ncell C { spike when !x }",
    ),
    ("an NMODL block", "PARAMETER {\n    gbar = 0.1\n}\n"),
    ("dv/dt", "cell A {\n    state v: mV = 0 mV\n    dv/dt = -v / 10 ms\n}"),
    ("# for a comment", "# my model\nrun {\n    dt = 0.1 ms # step\n    duration = 1 ms\n}"),
    ("single quotes", "network n { init io.v = load('v.npy') }"),
    ("unit in parentheses", "channel Leak { param erev = -65 (mV) }"),
    ("unit in brackets", "channel Leak { param erev = -65 [mV] }"),
    ("unclosed string", "network n { init io.v = load(\"v.npy) }"),
    ("unclosed comment", "channel A { param g = 1 }\n/* now the cell\ncell B { }\n"),
    ("unclosed parenthesis", "channel Na {\n    let a = exp(-(v + 1 mV) / 10 mV\n    let b = 2\n}"),
    ("closing parenthesis too many", "channel Na { let a = (1 + 2)) * 3 }"),
    ("missing operand", "channel Na {\n    let a = 1 +\n    let b = 2 *\n}"),
    ("missing value", "channel Na { let a = }"),
    (
        "two typos in one block",
        "channel Na {\n    parm gbar = 1\n    gate m { alpha == 1 /ms; beta = 2 /ms }\n    gate h { inf = 1 ** 2 }\n    let x = 5\n}",
    ),
    ("misspelt item", "chanel Na { param g = 1 }\ncell A { }"),
    ("a member where no keys are", "cell A {\n    cm = 1 uF/cm2\n}"),
    (
        "misspelt compartment",
        "cell A {\n    compartmnt soma {\n        cm = 1 uF/cm2\n        v_init = -65 mV\n    }\n    spike wen v > 0 mV\n}",
    ),
    ("an item in a block", "cell A {\n    channel Na { param g = 1 }\n    param x = 1\n}"),
    ("a member of another block", "cell A {\n    insert Na\n    gate m { inf = 1 }\n}"),
    ("reserved word as a name", "channel Na { param input = 3 }\nchannel cell { }"),
    ("else missing", "function f(x) = if x > 1 then 2"),
    ("if inside", "function f(x) = 1 + if x > 1 then 2 else 3"),
    ("elif", "function f(x) = if x > 1 then a elif x > 0 then b else c"),
    ("chained comparison", "function f(x) = if 0 < x < 1 then 2 else 3"),
    ("not inside", "function f(x) = a == not b"),
    ("arrow of couple", "cell A { couple soma -> dend: 1 mS/cm2 }"),
    ("unit with spaces", "channel Na { param g: mS / cm2 = 3 }"),
    ("point without digits", "channel Na { param g = 1. }"),
    ("grouped digits", "channel Na { param g = 1_000 }"),
    ("plus sign", "channel Na { param g = +1 }"),
    ("unicode", "channel Na { param g = −1 }\nchannel K { param α = 1 }\nchannel L { param a = 2 × 3 }"),
    ("key outside", "dt = 0.1 ms\nduration = 100 ms\ncell A { }"),
    ("python", "def f(x):\n    return x\n"),
    ("four sizes", "network n { population a: A[1, 2, 3, 4] }"),
    ("huge powers", "channel Na { gate m^99999999999 { inf = 1 m^1000 } }"),
    ("junk", "@@ $ 1 ) }"),
    ("junk behind", "cell A { } ) cell B { }"),
    ("bad record", "run {\n    record v each 1 ms\n    record spikes squid\n}"),
    ("bad use", "use std.channels.\ncell A { }"),
];

#[test]
fn slips() {
    let mut all = String::new();
    for (name, text) in SLIPS {
        let found = messages(text);
        assert_ne!(found, "", "{name} goes unnoticed");
        all.push_str(&format!("==== {name}\n{text}\n----\n{found}\n"));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn format_keeps_the_samples() {
    SAMPLES.iter().for_each(|sample| check_format(sample));
    insta::assert_snapshot!("format_squid", formatted(SAMPLES[0]).unwrap());
    insta::assert_snapshot!("format_olive", formatted(SAMPLES[1]).unwrap());
}

#[test]
fn format_spaces() {
    let cases = [
        ("const a=1/ms+2 /ms-3  mV^2*x^-2", "const a = 1 / ms + 2 /ms - 3 mV^2 * x^-2\n"),
        ("const a = 2 mV ^ 2", "const a = 2 mV ^ 2\n"),
        ("const a = - ( - x ) ^ 2 - -y", "const a = -(-x)^2 - -y\n"),
        ("const a = 35.4ohm*cm*k", "const a = 35.4 ohm*cm * k\n"),
        ("const a = f ( x ,g( y ) , k=1 )", "const a = f(x, g(y), k = 1)\n"),
        ("const a = (1\n + 2)\n\n\n\nconst b =\n 3", "const a = (1\n    + 2)\n\nconst b =\n    3\n"),
        ("use a . b . { C,D }", "use a.b.{C, D}\n"),
        (
            "run{record a[ 0 .. 3 ] . { v , w.x } every 1ms;dt=1 ms}",
            "run { record a[0..3].{v, w.x} every 1 ms; dt = 1 ms }\n",
        ),
        ("cell A{\n\n\n v'=x ;;input i :nA }", "cell A {\n    v' = x;; input i: nA }\n"),
        ("cell A {   }", "cell A {}\n"),
        (
            "network n{probe p of c{from(0 um,1um, 0 um)to( 0um,9 um,0 um)in 3\nsigma=0.3S/m}}",
            "network n { probe p of c { from (0 um, 1 um, 0 um) to (0 um, 9 um, 0 um) in 3\n    sigma = 0.3 S/m } }\n",
        ),
        ("cell A { spike when v>1 mV{v=2 mV\nu+=1}\n}", "cell A { spike when v > 1 mV { v = 2 mV\n    u += 1 }\n}\n"),
        ("", ""),
        ("  // only a comment  ", "// only a comment\n"),
    ];
    for (text, expected) in cases {
        assert_eq!(formatted(text).as_deref(), Some(expected), "{text}");
        check_format(text);
    }
}

/// `const x = ...` as a tree in prefix notation.
fn expr(text: &str) -> String {
    fn unit(unit: &Option<ast::UnitExpr>) -> String {
        let factors = unit.iter().flat_map(|u| &u.factors);
        factors.map(|(name, power)| format!(" {}:{power}", name.text)).collect()
    }
    fn show(e: &ast::Expr) -> String {
        match &e.kind {
            ast::ExprKind::Number { text, unit: u } => format!("{text}{}", unit(u)),
            ast::ExprKind::Bool(b) => b.to_string(),
            ast::ExprKind::Str(s) => format!("{s:?}"),
            ast::ExprKind::Path(names) => names.iter().map(|n| n.text.as_str()).collect::<Vec<_>>().join("."),
            ast::ExprKind::Unary(op, x) => format!("({op:?} {})", show(x)),
            ast::ExprKind::Binary(op, x, y) => format!("({op:?} {} {})", show(x), show(y)),
            ast::ExprKind::If(c, a, b) => format!("(if {} {} {})", show(c), show(a), show(b)),
            ast::ExprKind::At(before, place, path) => {
                let before: String = before.iter().map(|n| format!("{}.", n.text)).collect();
                format!("(at {before}{} {} {})", place.section.text, show(&place.at), path[0].text)
            }
            ast::ExprKind::Call(f, args) => {
                let args = args.iter().map(|a| match &a.name {
                    Some(name) => format!(" {}={}", name.text, show(&a.value)),
                    None => format!(" {}", show(&a.value)),
                });
                format!("({}{})", f.text, args.collect::<String>())
            }
        }
    }
    let text = format!("const x = {text}");
    let found = messages(&text);
    let file = tree(&text).unwrap_or_else(|| panic!("{found}"));
    let [ast::Item::Const(item)] = file.items.as_slice() else { panic!("{file:?}") };
    show(&item.value)
}

#[test]
fn precedence() {
    let cases = [
        ("a + b * c ^ d ^ e", "(Add a (Mul b (Pow c (Pow d e))))"),
        ("a - b - c / d / e", "(Sub (Sub a b) (Div (Div c d) e))"),
        ("-x^2", "(Neg (Pow x 2))"),
        ("x^-2 * y", "(Mul (Pow x (Neg 2)) y)"),
        ("x^-y^2", "(Pow x (Neg (Pow y 2)))"),
        ("-a * -b", "(Mul (Neg a) (Neg b))"),
        ("a - - b", "(Sub a (Neg b))"),
        ("not a == b and c or d", "(Or (And (Not (Eq a b)) c) d)"),
        ("not not a", "(Not (Not a))"),
        ("a or b and not c", "(Or a (And b (Not c)))"),
        ("if a then b else if c then d else e + 1", "(if a b (if c d (Add e 1)))"),
        ("1 + (if a then b else c)", "(Add 1 (if a b c))"),
        ("(a < b) == c", "(Eq (Lt a b) c)"),
        ("a<-b", "(Lt a (Neg b))"),
        ("f(x, k = 2 + 1)", "(f x k=(Add 2 1))"),
        ("soma.Na.m * true", "(Mul soma.Na.m true)"),
        ("load(\"a b.npy\")", "(load \"a b.npy\")"),
        (".5 + 1e-3 + 1.5E2", "(Add (Add .5 1e-3) 1.5E2)"),
    ];
    for (text, expected) in cases {
        assert_eq!(expr(text), expected, "{text}");
    }
}

#[test]
fn units() {
    let cases = [
        ("-65 mV", "(Neg 65 mV:1)"),
        ("12 S/cm2", "12 S:1 cm:-2"),
        ("12 S/cm^2", "12 S:1 cm:-2"),
        ("12 S*cm^-2", "12 S:1 cm:-2"),
        ("12 mS_per_cm2", "12 mS:1 cm:-2"),
        ("0.1 per_ms", "0.1 ms:-1"),
        ("2 kohm_cm", "2 kohm:1 cm:1"),
        ("1 mol_per_m_per_A_per_s", "1 mol:1 m:-1 A:-1 s:-1"),
        ("0.1 /ms", "0.1 ms:-1"),
        ("0.1 /ms/mV", "0.1 ms:-1 mV:-1"),
        ("0.1 / ms", "(Div 0.1 ms)"),
        ("1/m", "(Div 1 m)"),
        ("1 /gain", "(Div 1 gain)"),
        ("f(1 /ms, 3 degC)", "(f 1 ms:-1 3 degC:1)"),
        ("35.4 ohm*cm", "35.4 ohm:1 cm:1"),
        ("35.4 ohm * cm", "(Mul 35.4 ohm:1 cm)"),
        ("2 mV*gain", "(Mul 2 mV:1 gain)"),
        ("2 mV/tau", "(Div 2 mV:1 tau)"),
        ("2 mV/s(x)", "(Div 2 mV:1 (s x))"),
        ("2 mV/s.x", "(Div 2 mV:1 s.x)"),
        ("3 furlong", "3 furlong:1"),
        ("2 mV^2", "2 mV:2"),
        ("2 mV ^ 2", "(Pow 2 mV:1 2)"),
        ("1mV + 2 µm + 3 μS + 4 kΩ", "(Add (Add (Add 1 mV:1 2 µm:1) 3 μS:1) 4 kΩ:1)"),
        ("2 * m", "(Mul 2 m)"),
        ("2*m", "(Mul 2 m)"),
        ("1 my_thing", "1 my_thing:1"),
        ("-3 cm2/uA/ms * CaH.i", "(Mul (Neg 3 cm:2 uA:-1 ms:-1) CaH.i)"),
    ];
    for (text, expected) in cases {
        assert_eq!(expr(text), expected, "{text}");
        check_format(&format!("const x = {text}"));
    }
}

#[test]
fn places_of_units_are_exact() {
    let text = "const x = 1 mS_per_cm2";
    let file = tree(text).unwrap();
    let ast::Item::Const(item) = &file.items[0] else { panic!() };
    let ast::ExprKind::Number { unit: Some(unit), .. } = &item.value.kind else { panic!() };
    let spelt: Vec<&str> = unit.factors.iter().map(|(name, _)| &text[name.span.range()]).collect();
    assert_eq!(spelt, ["mS", "cm"]);
    assert_eq!(&text[unit.span.range()], "mS_per_cm2");
}

#[test]
fn tree_of_all_forms() {
    for (name, sample) in ["squid", "olive", "lif"].iter().zip(SAMPLES) {
        let text = without_spans(&tree(sample).unwrap()).replace(", span: ", "");
        // Names as words and one member a line keep the snapshot readable.
        let mut pieces = text.split("Name { text: \"");
        let mut short = pieces.next().unwrap_or("").to_owned();
        for piece in pieces {
            short.push_str(&piece.replacen("\" }", "", 1));
        }
        let lines = short.replace("Expr { kind: ", "{").replace("), ", "),\n");
        insta::assert_snapshot!(format!("tree_{name}"), lines);
    }
}

#[test]
fn sound_items_survive_broken_ones() {
    let text = "channel A { param g = 1 }\nchannel B { gate m { inf == 1 } }\ncell C { }\n";
    let mut diagnostics = Diagnostics::default();
    let file = parse(FileId(0), text, &mut diagnostics);
    assert_eq!(diagnostics.sorted().len(), 1);
    assert!(
        matches!(&file.items[..], [ast::Item::Channel(a), ast::Item::Cell(c)] if a.name.text == "A" && c.name.text == "C")
    );
    assert_eq!(file.broken.iter().map(|n| n.text.as_str()).collect::<Vec<_>>(), ["B"]);
    let ast::Item::Cell(cell) = &file.items[1] else { panic!() };
    assert_eq!(&text[cell.name.span.range()], "C");
}

#[test]
fn every_mistake_is_found_alone() {
    // One mistake per sample line must give exactly one message, at that line or (for what a line lacks) the one before.
    for sample in SAMPLES {
        let lines: Vec<&str> = sample.lines().collect();
        for broken in 0..lines.len() {
            let line = lines[broken];
            if !line.contains(" = ") || line.trim_start().starts_with(['/', '*']) || line.contains("then") {
                continue;
            }
            let mut text = lines.clone();
            let slip = line.replacen(" = ", " = * ", 1);
            text[broken] = &slip;
            let text = text.join("\n");
            let mut diagnostics = Diagnostics::default();
            parse(FileId(0), &text, &mut diagnostics);
            let found: Vec<usize> = diagnostics
                .sorted()
                .iter()
                .map(|d| text[..d.labels[0].span.start as usize].matches('\n').count())
                .collect();
            assert_eq!(found, [broken], "{slip}");
        }
    }
}

#[test]
fn docs_belong_to_what_follows() {
    let file = tree(SAMPLES[0]).unwrap();
    assert_eq!(file.docs[1], "J Physiol 117:500.");
    let channel = file.items.iter().find_map(|i| if let ast::Item::Channel(c) = i { Some(c) } else { None }).unwrap();
    assert_eq!(channel.docs, ["Fast sodium."]);
    let ast::ChannelMember::Param(gbar) = &channel.members[0] else { panic!() };
    assert_eq!(gbar.docs, ["Peak conductance density.", "(of the patch)"]);
}

#[test]
fn depth_is_limited() {
    let deep = |open: &str, close: &str, n: usize| format!("const x = {}1{}", open.repeat(n), close.repeat(n));
    let chain = |piece: &str, n: usize| format!("const x = {}1", piece.repeat(n));
    let fine = [
        deep("(", ")", 60),
        deep("f(", ")", 60),
        deep("(if a then ", " else b)", 30),
        chain("if a then b else ", 60),
        chain("a + ", 499),
        chain("2 ^ ", 499),
        chain("-", 499),
        chain("not ", 499),
    ];
    for text in fine {
        assert_eq!(messages(&text), "", "{text}");
        check_format(&text);
    }
    let n = 20_000;
    let too_deep = [
        deep("(", ")", n),
        deep("f(", ")", n),
        deep("(if a then ", " else b)", n),
        chain("(", n),
        chain("if a then b else ", n),
        chain("if ", n),
        chain("a + ", n),
        chain("a ^ ", n),
        chain("a < ", n),
        chain("-", n),
        chain("not ", n),
        format!("channel A {{ gate m {{ {} }} }}", "fraction 1 {".repeat(n)),
        format!("run {{ record a{} }}", ".{b".repeat(n)),
        format!("const x = {}", "(a + ".repeat(60) + &"a + ".repeat(480) + "1" + &")".repeat(60)),
    ];
    for text in too_deep {
        let mut diagnostics = Diagnostics::default();
        parse(FileId(0), &text, &mut diagnostics);
        assert!(diagnostics.sorted().iter().any(|d| d.code == crate::diag::Code::TooDeep), "{}", &text[..40]);
    }
}

/// The blocks of the grammar's README between ``` fences: what stands behind the fence, and the text.
fn readme_blocks() -> Vec<(String, String)> {
    let mut blocks: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in include_str!("../../grammar/README.md").lines() {
        match line.strip_prefix("```") {
            Some(info) if !inside => blocks.push((info.to_owned(), String::new())),
            Some(_) => {}
            None if inside => {
                let text = &mut blocks.last_mut().unwrap().1;
                text.push_str(line);
                text.push('\n');
            }
            None => {}
        }
        inside ^= line.starts_with("```");
    }
    blocks
}

#[test]
fn readme_parses() {
    let blocks = readme_blocks();
    assert!(blocks.len() >= 8);
    for (info, text) in blocks {
        let files = match info.as_str() {
            "neuro" => vec![text],
            "neuro-fragment expressions" => text.lines().map(|line| format!("const x = {line}")).collect(),
            "neuro-fragment run" => vec![format!("run {{ {text} }}")],
            "neuro-fragment train" => vec![format!("train {{ {text} }}")],
            "neuro-fragment fit" => vec![format!("fit {{ {text} }}")],
            _ => {
                vec![format!("{} X {{ {text} }}", info.strip_prefix("neuro-fragment ").expect("a known kind of block"))]
            }
        };
        for file in files {
            assert_eq!(messages(&file), "", "{file}");
            check_format(&file);
        }
    }
}

#[test]
fn readme_lists_the_reserved_words() {
    let (_, readme) = include_str!("../../grammar/README.md").split_once("Reserved words").unwrap();
    let listed: Vec<&str> =
        readme.lines().filter_map(|l| l.strip_prefix("    ")).take(4).flat_map(str::split_whitespace).collect();
    let grammar = include_str!("../../grammar/neuro.pest");
    let (_, rule) = grammar.split_once("reserved = _{").unwrap();
    let (rule, _) = rule.split_once('}').unwrap();
    let defined: Vec<&str> = rule.split('"').skip(1).step_by(2).collect();
    assert_eq!(listed, defined);
}

#[test]
fn bytes_that_are_not_text() {
    assert_eq!(read_text("a.neuro", b"cell A { }".to_vec()).unwrap(), "cell A { }");
    let diagnostic = read_text("a.neuro", b"cell\n \xff".to_vec()).unwrap_err();
    assert_eq!(diagnostic.code, crate::diag::Code::NotText);
    assert_eq!(diagnostic.notes, ["byte 6 (0xff, in line 2) does not belong to any character"]);
}

#[test]
fn parsing_time_is_told() {
    let text = SAMPLES.join("\n");
    let lines = text.lines().count();
    let start = std::time::Instant::now();
    for _ in 0..20 {
        assert!(tree(&text).is_some());
    }
    let per_file = start.elapsed().as_secs_f64() * 1e3 / 20.0;
    println!("{per_file:.3} ms for {lines} lines");
}

/// SplitMix64: a mutation is the same on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn range(&mut self, n: usize, longest: usize) -> std::ops::Range<usize> {
        let start = self.below(n + 1);
        start..(start + self.below(longest)).min(n)
    }
}

fn mutate(dice: &mut Dice, corpus: &[&str]) -> Vec<u8> {
    let mut bytes = corpus[dice.below(corpus.len())].as_bytes().to_vec();
    for _ in 0..1 + dice.below(2) {
        let n = bytes.len();
        match dice.below(7) {
            0 if n > 0 => {
                let at = dice.below(n);
                bytes[at] ^= 1 << dice.below(8);
            }
            1 => drop(bytes.drain(dice.range(n, 12))),
            2 => {
                let piece = bytes[dice.range(n, 30)].to_vec();
                let at = dice.below(n + 1);
                bytes.splice(at..at, piece);
            }
            3 => {
                const PIECES: &[&str] = &[
                    "{",
                    "}",
                    "(",
                    ")",
                    "[",
                    "]",
                    "=",
                    "==",
                    "'",
                    "\"",
                    "//",
                    "/*",
                    "*/",
                    "///",
                    "\n",
                    ";",
                    ",",
                    ".",
                    "..",
                    "-",
                    "--",
                    "->",
                    "<-",
                    "^",
                    "^-2",
                    "/",
                    " /ms",
                    "*",
                    "1",
                    "1e5",
                    " mV",
                    "if ",
                    " then ",
                    " else ",
                    "not ",
                    " at ",
                    "gate m {",
                    "channel A {",
                    "run {",
                    "param ",
                    "\r\n",
                    "\u{feff}",
                    "é",
                    "Ω",
                    "_per_",
                    "~",
                    "+=",
                    ":",
                ];
                let at = dice.below(n + 1);
                bytes.splice(at..at, PIECES[dice.below(PIECES.len())].bytes());
            }
            4 => {
                let other = corpus[dice.below(corpus.len())].as_bytes();
                let piece = other[dice.range(other.len(), 80)].to_vec();
                bytes.splice(dice.range(n, 40), piece);
            }
            5 => {
                // Swap two tokens.
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let tokens = grammar::tokens(&text);
                let (a, b) = (dice.below(tokens.len()), dice.below(tokens.len()));
                let (a, b) = (a.min(b), a.max(b));
                if a < b {
                    let (a, b) = (tokens[a], tokens[b]);
                    bytes = [&text[..a.start], b.text, &text[a.end()..b.start], a.text, &text[b.end()..]]
                        .concat()
                        .into_bytes();
                }
            }
            _ if n > 0 => bytes[dice.below(n)] = dice.next() as u8,
            _ => {}
        }
    }
    bytes
}

/// No text makes the parser, its messages or the formatter panic or break their promises.
/// `NEUROC_FUZZ_INPUTS` sets the number of texts.
#[test]
fn fuzz_mutated_examples() {
    let inputs: usize =
        std::env::var("NEUROC_FUZZ_INPUTS").map_or(20_000, |n| n.parse().expect("NEUROC_FUZZ_INPUTS is a number"));
    let readme = readme_blocks();
    let mut corpus: Vec<&str> = SAMPLES.to_vec();
    // Sound texts of all sizes outweigh the broken ones, so that enough mutations still parse.
    corpus.extend(SAMPLES.iter().flat_map(|s| s.split("\n\n")));
    corpus.extend(readme.iter().filter(|b| b.0 == "neuro").flat_map(|b| b.1.split("\n\n").chain([b.1.as_str()])));
    corpus = corpus.repeat(4);
    corpus.extend(SLIPS.iter().map(|s| s.1));
    let mut dice = Dice(7);
    let (mut sound, mut not_text) = (0, 0);
    for number in 0..inputs {
        let bytes = mutate(&mut dice, &corpus);
        let text = read_text("fuzz", bytes.clone()).unwrap_or_else(|_| {
            not_text += 1;
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let outcome = std::panic::catch_unwind(|| {
            let mut diagnostics = Diagnostics::default();
            let tree = parse(FileId(0), &text, &mut diagnostics);
            for label in diagnostics.sorted().iter().flat_map(|d| &d.labels) {
                assert!(text.get(label.span.range()).is_some(), "a label between two characters");
            }
            check_format(&text);
            drop(tree);
            // Rendering is slow, and the same for all messages.
            if number % 50 == 0 {
                messages(&text);
            }
            !diagnostics.has_errors()
        });
        match outcome {
            Ok(fine) => sound += usize::from(fine),
            Err(_) => panic!("the text was {text:?}"),
        }
    }
    println!("{inputs} inputs: {sound} parsed, {not_text} were not UTF-8");
}

#[test]
fn members_behind_comments_begin_lines_of_their_own() {
    let text = "cell C {\n    section soma {\n        // round\n        length = 20 um\n    }\n    compartments {\n        // fine\n        \
                d_lambda = 0.05\n    }\n    region all {\n        // stiff\n        ra = 100 ohm*cm\n    }\n}\n";
    assert_eq!(formatted(text).unwrap(), text);
}

#[test]
fn any_text_has_tokens() {
    let told = |text: &str| {
        let tokens = grammar::tokens(text);
        let told = tokens.iter().map(|t| format!("{}{:?} {}", if t.first_on_line { "^" } else { "" }, t.kind, t.text));
        told.collect::<Vec<_>>()
    };
    // Numbers end where the grammar's do, strings at their quote or not at all, comments of one kind at the line's end.
    assert_eq!(
        told("1.5e-3 2. .5 3e+ 1..2 4x"),
        [
            "^Number 1.5e-3",
            "Number 2",
            "Symbol .",
            "Number .5",
            "Number 3",
            "Word e",
            "Symbol +",
            "Number 1",
            "Symbol ..",
            "Number 2",
            "Number 4",
            "Word x",
        ]
    );
    assert_eq!(
        told("\"a b\"\n\"open\n// rest \"\"\r\n/* a\n*/ x /* y"),
        [
            "^String \"a b\"",
            "^Symbol \"",
            "Word open",
            "^Comment // rest \"\"\r",
            "^Comment /* a\n*/",
            "Word x",
            "Symbol /*",
            "Word y",
        ]
    );
    assert_eq!(
        told("_a1<->µ-> 💥é:=\u{FEFF}<"),
        ["^Word _a1", "Symbol <->", "Word µ", "Symbol ->", "Symbol 💥", "Word é", "Symbol :=", "Symbol <",]
    );
}
