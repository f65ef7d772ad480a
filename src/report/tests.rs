//! Tests of: pages. What stands on them is what was recorded, harmless whatever it says, and bounded.

use super::{About, Source, Thinned, Took, code, page, sources};
use crate::results::{Compartment, Parameter, ParameterValues, Population, RunResult, Samples, Series, SpikeTrain};
use crate::source::SourceMap;
use ndarray::Array2;
use serde_json::{Value, json};
use std::sync::Arc;

fn series(name: &str, rows: usize, columns: usize, value: impl Fn(usize, usize) -> f64) -> Series {
    let t = Arc::new((0..rows).map(|row| row as f64 * 0.1).collect());
    let values = Samples::F64(Array2::from_shape_fn((rows, columns), |(row, column)| value(row, column)));
    Series { population: "c".into(), ..Series::of_cells(name, "mV", (0..columns as u64).collect(), t, values) }
}

fn train(cells: usize, spikes: usize) -> SpikeTrain {
    SpikeTrain {
        population: "c".into(),
        cells,
        t: (0..spikes).map(|k| (k / 10) as f64 * 0.1).collect(),
        i: (0..spikes).map(|k| (k * 7 % cells) as u64).collect(),
    }
}

fn result(series: Vec<Series>, spikes: Vec<SpikeTrain>) -> RunResult {
    let meta = json!({
        "model": "m", "compiler": "neuroc", "source_hash": "abc", "seed": 3, "steps": 1000, "complete": true,
        "options": { "dt_ms": 0.1, "engine": "interp", "precision": "f64", "method": "euler", "set": ["g=2 mS/cm2"] },
    });
    RunResult {
        series,
        spikes,
        populations: vec![Population { name: "c".into(), cells: 3, shape: vec![3] }],
        parameters: vec![
            Parameter {
                name: "c.e".into(),
                unit: "mS/cm2".into(),
                values: ParameterValues::PerCell { population: "c".into(), values: vec![0.5, 2.5, 1.0] },
            },
            Parameter { name: "c.g".into(), unit: "mS/cm2".into(), values: ParameterValues::One(2.0) },
        ],
        meta: meta.as_object().unwrap().clone(),
    }
}

fn shown(result: &RunResult) -> String {
    page(&Thinned::of(result).unwrap(), &About::default())
}

/// What the page's script reads.
fn data(page: &str) -> Value {
    let begin = page.find("id=\"data\"").unwrap();
    let text = &page[begin..];
    let (begin, end) = (text.find('>').unwrap() + 1, text.find("</script>").unwrap());
    serde_json::from_str(&text[begin..end]).unwrap()
}

fn bytes(text: &Value) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let letters: Vec<u8> = text.as_str().unwrap().bytes().filter(|&c| c != b'=').collect();
    let mut out = Vec::new();
    for four in letters.chunks(4) {
        let bits = four.iter().fold(0u32, |bits, &c| bits << 6 | u32::from(value(c))) << (6 * (4 - four.len()));
        out.extend(&bits.to_be_bytes()[1..four.len()]);
    }
    out
}

fn singles(text: &Value) -> Vec<f32> {
    bytes(text).as_chunks::<4>().0.iter().map(|x| f32::from_le_bytes(*x)).collect()
}

#[test]
fn the_numbers_are_those_of_the_result() {
    let v = series("c.v", 1001, 3, |row, column| (row * 3 + column) as f64 * 0.37 - 65.0);
    let mut around = series("c.w", 4, 2, |row, column| if row == 2 { f64::NAN } else { column as f64 });
    around.t = Arc::new(vec![0.0, 0.1, 7.3, 7.4]);
    let result = result(vec![v.clone(), around], vec![train(3, 25)]);
    let data = data(&shown(&result));
    let first = &data["series"][0];
    let want: Vec<f32> = (0..3)
        .flat_map(|column| (0..1001).map(move |row| (row, column)))
        .map(|(r, c)| v.values.get(r, c) as f32)
        .collect();
    assert_eq!(singles(&first["values"]), want);
    for (k, t) in v.t.iter().enumerate() {
        let shown = first["first"].as_f64().unwrap() + k as f64 * first["step"].as_f64().unwrap();
        assert!((shown - t).abs() < 1e-9, "{k}: {shown} {t}");
    }
    let second = &data["series"][1];
    let times: Vec<f64> = bytes(&second["times"]).as_chunks::<8>().0.iter().map(|t| f64::from_le_bytes(*t)).collect();
    assert_eq!(times, [0.0, 0.1, 7.3, 7.4]);
    assert!(singles(&second["values"])[2].is_nan());
    let spikes = &data["trains"][0];
    let steps = bytes(&spikes["t"]).as_chunks::<4>().0.iter().map(|t| u32::from_le_bytes(*t)).collect::<Vec<u32>>();
    let t: Vec<f64> = steps.iter().map(|&k| f64::from(k) * spikes["step"].as_f64().unwrap()).collect();
    let cells: Vec<u64> =
        bytes(&spikes["i"]).as_chunks::<2>().0.iter().map(|i| u64::from(u16::from_le_bytes(*i))).collect();
    assert_eq!((spikes["step"].as_f64(), &t, &cells), (Some(0.1), &result.spikes[0].t, &result.spikes[0].i));
    let kinds: Vec<&str> = data["panels"].as_array().unwrap().iter().map(|p| p["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["traces", "traces", "raster"]);
    assert_eq!((data["from"].as_f64(), data["to"].as_f64()), (Some(0.0), Some(100.0)));
}

#[test]
fn times_of_spikes_that_are_no_steps_are_kept_to_a_fraction_of_the_run() {
    let train = SpikeTrain { population: "c".into(), cells: 100_000, t: vec![0.123456, 99.987654], i: vec![99_999, 0] };
    let data = data(&shown(&result(Vec::new(), vec![train])));
    let spikes = &data["trains"][0];
    let steps = bytes(&spikes["t"]).as_chunks::<4>().0.iter().map(|t| u32::from_le_bytes(*t)).collect::<Vec<u32>>();
    let t: Vec<f64> = steps.iter().map(|&k| f64::from(k) * spikes["step"].as_f64().unwrap()).collect();
    assert!((t[0] - 0.123456).abs() < 1e-7 && (t[1] - 99.987654).abs() < 1e-7, "{t:?}");
    assert_eq!(spikes["wide"], json!(true));
    assert_eq!(u32::from_le_bytes(*bytes(&spikes["i"]).first_chunk().unwrap()), 99_999);
}

#[test]
fn rates_count_all_spikes() {
    let data = data(&shown(&result(Vec::new(), vec![train(50, 9_000)])));
    let rate = data["panels"].as_array().unwrap().iter().find(|p| p["kind"] == "rate").unwrap();
    let counts: Vec<u32> = bytes(&rate["counts"]).as_chunks::<4>().0.iter().map(|n| u32::from_le_bytes(*n)).collect();
    assert_eq!((counts.len(), counts.iter().sum::<u32>(), rate["bin"].as_f64()), (100, 9_000, Some(1.0)));
}

#[test]
fn few_cells_share_a_plot_and_many_have_a_map() {
    let named = |name: &str, cells: usize| series(name, 11, cells, |row, column| (row + column) as f64);
    let result = result(vec![named("c.a.v", 3), named("c.b.v", 3), named("c.d.v", 3), named("c.e.v", 40)], Vec::new());
    let data = data(&shown(&result));
    let panels = data["panels"].as_array().unwrap();
    let labels: Vec<&str> =
        panels[0]["lines"].as_array().unwrap().iter().map(|line| line[2].as_str().unwrap()).collect();
    assert_eq!(labels, ["a [0]", "a [2]", "b [0]", "b [2]", "d [0]", "d [2]"]);
    assert_eq!((panels[0]["note"].as_str(), &panels[0]["map"]), (Some("2 of 3 cells"), &json!(false)));
    assert_eq!((panels[1]["lines"].as_array().unwrap().len(), &panels[1]["map"]), (40, &json!(true)));
}

/// A row of a map is a cell, a contact by its number, or a compartment by its name.
#[test]
fn rows_of_maps_are_called_by_what_they_are() {
    let places = |at: Option<[f64; 3]>| -> Option<Arc<[Compartment]>> {
        let of = |k: usize| Compartment { name: format!("dend({k})"), distance: k as f64, before: None, at };
        Some((0..20).map(of).collect())
    };
    let of_cells = series("c.v", 3, 20, |row, column| (row + column) as f64);
    // They all belong to one cell.
    let of_places = |at| Series { compartments: places(at), cells: vec![0; 20], ..of_cells.clone() };
    let rows = |series: Series| {
        let data = data(&shown(&result(vec![series], Vec::new())));
        [0, 19].map(|row| data["panels"][0]["lines"][row][3].as_str().unwrap().to_owned())
    };
    assert_eq!(rows(of_places(Some([0.0; 3]))), ["0", "19"]);
    assert_eq!(rows(of_places(None)), ["dend(0)", "dend(19)"]);
    assert_eq!(rows(of_cells.clone()), ["0", "19"]);
}

/// Weights that learned are part of what made a run.
#[test]
fn a_page_says_which_weights_were_used() {
    let mut result = result(Vec::new(), vec![train(3, 25)]);
    result.meta.insert("trained".into(), json!("best.npz"));
    assert!(shown(&result).contains(" · with what learned in best.npz"));
}

#[test]
fn a_large_run_makes_a_page_of_a_few_megabytes_that_says_what_it_lacks() {
    let peak = |row: usize, column: usize| match (row, column) {
        (7_777, 0) => 1234.5,
        (7_778, 0) => -1234.5,
        _ => (row as f64 * 0.01).sin() + column as f64,
    };
    let large = (0..4).map(|k| series(&format!("c.v{k}"), 20_000, 120, peak)).collect();
    let large =
        result(large, vec![train(1000, 1_000_000), SpikeTrain { population: "one".into(), ..train(1, 500_000) }]);
    let page = shown(&large);
    assert!(page.len() < 4_000_000, "{} bytes", page.len());
    assert!(page.len() > 2_000_000, "{} bytes", page.len());
    let data = data(&page);
    let values = singles(&data["series"][0]["values"]);
    let extremes = values.iter().fold((f32::MAX, f32::MIN), |(low, high), &x| (low.min(x), high.max(x)));
    assert_eq!(extremes, (-1234.5, 1234.5));
    let notes: Vec<&str> = data["panels"].as_array().unwrap().iter().map(|p| p["note"].as_str().unwrap()).collect();
    assert!(notes[0].contains("100 of 120 cells; ") && notes[0].contains(" of 20000 samples"), "{notes:?}");
    assert!(notes[4].contains("1000000 spikes of 1000 cells; those of every 13th cell are drawn"), "{notes:?}");
    assert!(notes[6].contains("500000 spikes of 1 cell; every 13th spike is drawn"), "{notes:?}");
}

#[test]
fn many_records_and_parameters_are_bounded_too() {
    let mut many = result((0..700).map(|k| series(&format!("c.x{k}"), 400, 2, |_, _| 2.0)).collect(), Vec::new());
    many.parameters = (0..3000)
        .map(|k| Parameter { name: format!("p{k}"), unit: "1".into(), values: ParameterValues::One(1.0) })
        .collect();
    let about = About {
        sources: vec![Source { name: "m.neuro".into(), text: "// a line of a long file\n".repeat(40_000) }],
        ..About::default()
    };
    let page = page(&Thinned::of(&many).unwrap(), &about);
    assert!(page.len() < 4_000_000, "{} bytes", page.len());
    assert_eq!(data(&page)["panels"].as_array().unwrap().len(), super::data::PANELS);
    assert!(
        page.contains("2000 more are not on this page") && page.contains("The rest of this file is not on the page")
    );
}

#[test]
fn a_file_makes_the_same_page_as_what_is_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let result = result(vec![series("c.v", 300_000, 3, |row, column| (row * column) as f64)], vec![train(3, 25)]);
    for name in ["r.npz", "folder/"] {
        let path = folder.path().join(name);
        result.write(&path).unwrap();
        assert!(page(&Thinned::read(&path).unwrap(), &About::default()) == shown(&result), "{name}");
    }
    let told = Thinned::read(&folder.path().join("none.npz")).unwrap_err().to_string();
    assert!(told.contains("there is no such file"), "{told}");
}

#[test]
fn the_page_tells_what_was_run() {
    let mut result = result(vec![series("c.v", 1001, 3, |_, column| column as f64)], vec![train(3, 25)]);
    let about = About {
        title: None,
        sources: vec![Source {
            name: "m.neuro".into(),
            text: "//! A model.\n//! Of two lines.\n\nchannel Na {}\n".into(),
        }],
        took: Some(Took { compile_s: 0.25, run_s: 1.5, threads: 2 }),
    };
    let of = |result: &RunResult| page(&Thinned::of(result).unwrap(), &about);
    let text = of(&result);
    for part in [
        "<title>m</title>",
        "A model. Of two lines.",
        "3 cells · 100 ms in steps of 0.1 ms · euler · interp engine in f64 · computed in 1.500 s · 25 spikes",
        "<td class=\"n\">0.5 to 2.5 (3 cells of c)</td><td>mS/cm²</td>",
        "<tr class=\"set\"><td class=\"name\">c.g</td><td class=\"n\">2</td>",
        "<code>abc</code>",
        "<code>g=2 mS/cm2</code>",
        "<span class=\"k\">channel</span> Na {}",
        "<noscript>",
        "<svg",
    ] {
        assert!(text.contains(part), "no `{part}`");
    }
    assert!(!text.contains("stopped before its end"));
    result.meta["complete"] = json!(false);
    assert!(of(&result).contains("The run was stopped before its end."));
    assert_eq!(of(&result), of(&result));
    // Without anything there is still a page.
    let empty = shown(&RunResult::default());
    assert!(empty.contains("<title>neuroc</title>") && empty.contains("nothing was recorded"), "{empty}");
}

#[test]
fn no_text_is_markup() {
    const BAD: &str =
        "</script></noscript></pre><script>document.body.dataset.bad = 1</script><img src=x onerror=alert(1)>\"'&";
    let mut result = result(vec![series("c.v", 11, 3, |_, _| 1.0)], vec![train(3, 25)]);
    // No array can have a name with a `/`.
    let first = &mut result.series[0];
    for text in [&mut first.name, &mut first.unit, &mut first.population] {
        *text = BAD.replace('/', "");
    }
    result.spikes[0].population = BAD.replace('/', "");
    result.parameters[1].name = BAD.into();
    result.parameters[1].unit = BAD.into();
    result.meta["model"] = json!(BAD);
    result.meta.insert(BAD.into(), json!(BAD));
    result.meta["options"][BAD] = json!([BAD]);
    let text = format!("//! {BAD}\n/* {BAD}\n{BAD} */ param x = \"{BAD}\" {BAD}\n");
    let about = About { sources: vec![Source { name: BAD.into(), text }], ..About::default() };
    let page = page(&Thinned::of(&result).unwrap(), &about);
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script>").count(), 2);
    assert_eq!(page.matches("</noscript>").count(), 1);
    assert!(!page.contains("<img"));
    // Scripts without the nonce do not run, and another text has another.
    let nonce = |page: &str| page.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap().to_owned();
    assert!(page.contains(&format!("<script nonce=\"{}\">", nonce(&page))));
    assert_ne!(nonce(&page), nonce(&shown(&result)));
}

#[test]
fn nothing_is_loaded() {
    let about = About {
        sources: vec![Source { name: "m.neuro".into(), text: "// see https://example.org\n".into() }],
        ..About::default()
    };
    let page =
        page(&Thinned::of(&result(vec![series("c.v", 11, 3, |_, _| 1.0)], vec![train(30, 25)])).unwrap(), &about);
    assert!(page.contains("default-src 'none'"));
    for part in [
        "src=",
        "url(",
        "@import",
        "fetch(",
        "XMLHttpRequest",
        "WebSocket",
        "import(",
        "href=\"http",
        "sendBeacon",
        "eval(",
    ] {
        assert!(!page.contains(part), "{part}");
    }
    let links: Vec<&str> = page.split("<link").skip(1).map(|link| link.split('>').next().unwrap()).collect();
    assert_eq!(links, [" rel=\"icon\" href=\"data:,\""]);
}

#[test]
fn a_text_keeps_every_character() {
    for text in
        ["", "channel Na {\n    // <b>\n\n    param g = 1 mS/cm2 }", "/* a\r\n   b */ x\n", "\"open", "\u{3b1} & β"]
    {
        let mut plain = code::lines(text).replace("</span><span class=\"l\">", "\n");
        for tag in ["l", "c", "s", "d", "k"] {
            plain = plain.replace(&format!("<span class=\"{tag}\">"), "");
        }
        let plain = plain
            .replace("</span>", "")
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&amp;", "&");
        assert_eq!(plain, text.replace('\r', "").trim_end(), "{text:?}");
    }
    let lines = code::lines("section dend {\n    kinetics {\n    train = 1\n    gate m {\n");
    assert_eq!(lines.matches("class=\"k\"").count(), 3, "{lines}");
}

#[test]
fn texts_of_the_library_and_folders_are_left_out() {
    let mut map = SourceMap::default();
    map.add("/home/someone/models/m.neuro", "/home/someone/models", "a");
    map.add("<std.channels.hh>", "", "b");
    map.add("<stdin>", "", "c");
    let names: Vec<String> = sources(&map).into_iter().map(|source| source.name).collect();
    assert_eq!(names, ["m.neuro", "<stdin>"]);
}
