//! What has to stay true of figures, and the figures that were looked at while they were designed.

use std::sync::Arc;

use ndarray::Array2;
use serde_json::json;

use crate::results::{Parameter, ParameterValues, Samples, Series, SpikeTrain};

use super::axis::Axis;
use super::decimate::decimate;
use super::panels::matches;
use super::rates::Rate;
use super::*;

fn series(name: &str, unit: &str, t: &Arc<Vec<f64>>, width: usize, value: impl Fn(f64, usize) -> f64) -> Series {
    let values = Array2::from_shape_fn((t.len(), width), |(k, i)| value(t[k], i));
    Series::of_cells(name, unit, (0..width as u64).collect(), t.clone(), Samples::F64(values))
}

fn times(count: usize, dt: f64) -> Arc<Vec<f64>> {
    Arc::new((0..count).map(|k| k as f64 * dt).collect())
}

fn titled(model: &str) -> RunResult {
    RunResult { meta: json!({ "model": model }).as_object().cloned().expect("an object"), ..RunResult::default() }
}

/// Hodgkin and Huxley's squid axon (1952), a step of current from 5 ms to 45 ms; forward Euler.
fn squid() -> RunResult {
    let t = times(6001, 0.01);
    let (mut v, mut m, mut h, mut n) = (-65.0f64, 0.0529, 0.5961, 0.3177);
    let mut rows = Vec::new();
    let mut spikes = Vec::new();
    for &now in t.iter() {
        rows.push([v, m, h, n]);
        let alpha_m = 0.1 * (v + 40.0) / (1.0 - (-(v + 40.0) / 10.0).exp());
        let beta_m = 4.0 * (-(v + 65.0) / 18.0).exp();
        let alpha_h = 0.07 * (-(v + 65.0) / 20.0).exp();
        let beta_h = 1.0 / (1.0 + (-(v + 35.0) / 10.0).exp());
        let alpha_n = 0.01 * (v + 55.0) / (1.0 - (-(v + 55.0) / 10.0).exp());
        let beta_n = 0.125 * (-(v + 65.0) / 80.0).exp();
        let stimulus = if (5.0..45.0).contains(&now) { 10.0 } else { 0.0 };
        let ionic = 120.0 * m * m * m * h * (v - 50.0) + 36.0 * n.powi(4) * (v + 77.0) + 0.3 * (v + 54.4);
        let before = v;
        v += 0.01 * (stimulus - ionic);
        m += 0.01 * (alpha_m * (1.0 - m) - beta_m * m);
        h += 0.01 * (alpha_h * (1.0 - h) - beta_h * h);
        n += 0.01 * (alpha_n * (1.0 - n) - beta_n * n);
        if before < 0.0 && v >= 0.0 {
            spikes.push(now);
        }
    }
    let state = |k: usize| {
        let rows = &rows;
        move |now: f64, _| rows[(now / 0.01).round() as usize][k]
    };
    let mut result = titled("Hodgkin–Huxley squid axon");
    result.series = vec![
        series("squid.soma.v", "mV", &t, 1, state(0)),
        series("squid.soma.m", "1", &t, 1, state(1)),
        series("squid.soma.h", "1", &t, 1, state(2)),
        series("squid.soma.n", "1", &t, 1, state(3)),
    ];
    let i = vec![0; spikes.len()];
    result.spikes = vec![SpikeTrain { population: "squid".into(), cells: 1, t: spikes, i }];
    result
}

/// Spikes with a rhythm: a whole number that a small hash makes look random decides for each cell and millisecond.
fn rhythmic(population: &str, cells: usize, duration: u64, rate: f64) -> SpikeTrain {
    let mut train = SpikeTrain { population: population.into(), cells, t: vec![], i: vec![] };
    for ms in 0..duration {
        for cell in 0..cells as u64 {
            let mut x = (ms << 32 | cell).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            x = (x ^ x >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let draw = (x >> 40) as f64 / (1u64 << 24) as f64;
            let wave = 1.0 + (ms as f64 / 25.0 * std::f64::consts::TAU).sin().powi(3);
            if draw < rate * 1e-3 * wave {
                train.t.push(ms as f64 + draw);
                train.i.push(cell);
            }
        }
    }
    train
}

fn network() -> RunResult {
    let mut result = titled("Sparsely connected network");
    result.spikes = vec![rhythmic("exc", 160, 500, 12.0), rhythmic("inh", 40, 500, 25.0)];
    result
}

fn compartments() -> RunResult {
    let t = times(20_001, 0.025);
    let mut result = titled("Ball and stick");
    let wave = |delay: f64, size: f64| {
        move |now: f64, _| {
            let since = (now - delay).rem_euclid(62.5);
            -65.0 + size * (since / 2.0) * (1.0 - since / 2.0).exp() - 6.0 * (-(since - 8.0).powi(2) / 20.0).exp()
        }
    };
    result.series = vec![
        series("cell.soma.v", "mV", &t, 1, wave(10.0, 90.0)),
        series("cell.dend.v", "mV", &t, 1, wave(11.0, 55.0)),
        series("cell.axon.v", "mV", &t, 1, wave(12.0, 100.0)),
        series("cell.dend.ca", "mM", &t, 1, |now, _| 5e-5 + 2e-7 * now),
        series("cell.soma.Na.i", "mA/cm2", &t, 1, |now, _| -0.8 * ((now / 20.0).sin().powi(8))),
    ];
    result
}

/// More cells than a panel shows, with a gap, a hole in the recording, and spikes.
fn crowd() -> RunResult {
    let t = times(2000, 0.5);
    let mut result = titled("Crowd");
    let bumpy = |now: f64, i: usize| {
        if i == 1 && (300.0..500.0).contains(&now) { f64::NAN } else { (now / 50.0 + i as f64).sin() * 10.0 - 60.0 }
    };
    result.series = vec![series("net.v", "mV", &t, 729, bumpy)];
    result.spikes = vec![rhythmic("net", 729, 1000, 8.0)];
    result
}

fn svg(result: &RunResult, options: &PlotOptions) -> String {
    String::from_utf8(render(result, ImageFormat::Svg, options).expect("it is drawn")).expect("text")
}

/// The text elements of an SVG.
fn texts(svg: &str) -> Vec<String> {
    let elements = svg.split("<text ").skip(1).filter_map(|e| e.split_once(">\n")?.1.split_once("\n</text>"));
    elements.map(|(text, _)| text.to_owned()).collect()
}

fn options(series: &[&str]) -> PlotOptions {
    PlotOptions { series: series.iter().map(|s| s.to_string()).collect(), ..PlotOptions::default() }
}

/// Run by hand to look at the figures: draws them into the directory in NEUROC_TEST_FIGURES.
#[test]
#[ignore = "draws figures to look at"]
fn draw_all_figures() {
    let dir = std::env::var_os("NEUROC_TEST_FIGURES").expect("NEUROC_TEST_FIGURES names a directory");
    for (name, result) in
        [("squid", squid()), ("network", network()), ("compartments", compartments()), ("crowd", crowd())]
    {
        for extension in ["png", "svg"] {
            let path = Path::new(&dir).join(format!("{name}.{extension}"));
            draw(&result, &path, &PlotOptions::default()).expect("it is drawn");
        }
    }
    let small = PlotOptions { width: 500, height: Some(420), window: Some((8.0, 30.0)), ..PlotOptions::default() };
    draw(&squid(), &Path::new(&dir).join("small.png"), &small).expect("it is drawn");
}

#[test]
fn an_svg_has_labels_with_units_and_a_legend() {
    let texts = texts(&svg(&squid(), &PlotOptions::default()));
    let expected = [
        "Hodgkin–Huxley squid axon",
        "squid.soma.v",
        "V (mV)",
        "spikes (3)",
        "squid.soma",
        "gates",
        "m",
        "h",
        "n",
        "time (ms)",
        "−50",
        "60",
    ];
    for text in expected {
        assert!(texts.iter().any(|t| t == text), "{text:?} is not among {texts:?}");
    }
    assert!(!texts.iter().any(|t| t.contains("cell")), "a single cell needs no raster: {texts:?}");
}

#[test]
fn an_svg_has_the_size_asked_for_and_is_well_formed() {
    let options = PlotOptions { width: 640, height: Some(480), ..PlotOptions::default() };
    let mut named = squid();
    named.series[0].name = "a<b>&\"c\".v".into();
    let svg = svg(&named, &options);
    assert!(svg.starts_with("<svg width=\"640\" height=\"480\" "), "{}", &svg[..80]);
    assert!(svg.contains("viewBox=\"0 0 5120 3840\""));
    assert!(svg.contains("a&lt;b&gt;&amp;&quot;c&quot;.v"));
    assert!(svg.trim_end().ends_with("</svg>"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}

#[test]
fn voltages_of_one_population_share_a_panel() {
    let texts = texts(&svg(&compartments(), &PlotOptions::default()));
    for text in ["soma", "dend", "axon", "V (mV)", "ca (×1e−6 mM)", "i (mA/cm²)", "cell.soma.Na.i"] {
        assert!(texts.iter().any(|t| t == text), "{text:?} is not among {texts:?}");
    }
    assert_eq!(texts.iter().filter(|t| *t == "V (mV)").count(), 1);
}

#[test]
fn a_crowd_shows_eight_cells_and_says_so() {
    let texts = texts(&svg(&crowd(), &PlotOptions::default()));
    for text in ["cell 0", "cell 728", "8 of 729 cells", "rate (spikes/s)", "net · rate per cell in bins of 5 ms"] {
        assert!(texts.iter().any(|t| t == text), "{text:?} is not among {texts:?}");
    }
    assert!(!texts.iter().any(|t| t == "cell 1"));
}

/// Which colour each line of a panel's legend has.
fn colors(svg: &str, label: &str) -> Vec<String> {
    let lines = svg.split("<polyline ").skip(1).filter(|line| {
        let after = line.split_once("/>").map_or("", |(_, rest)| rest);
        after
            .trim_start()
            .strip_prefix("<text ")
            .is_some_and(|text| text.split_once(">\n").is_some_and(|(_, text)| text.starts_with(&format!("{label}\n"))))
    });
    lines.filter_map(|line| Some(line.split_once("stroke=\"")?.1.split_once('"')?.0.to_owned())).collect()
}

#[test]
fn cells_are_spread_chosen_and_have_one_colour() {
    let mut result = crowd();
    let t = result.series[0].t.clone();
    result.series.push(series("net.w", "mV/ms", &t, 729, |now, i| now + i as f64));
    result.series[1].cells = (0..729).map(|cell| 728 - cell).collect();
    // From the first to the last; here the other way round.
    let spread = svg(&result, &PlotOptions::default());
    let shown = texts(&spread);
    for cell in ["cell 0", "cell 104", "cell 728"] {
        assert_eq!(shown.iter().filter(|t| *t == cell).count(), 2, "{cell} in {shown:?}");
        let colors = colors(&spread, cell);
        assert!(colors.len() == 2 && colors[0] == colors[1], "{cell} has the colours {colors:?}");
    }
    let chosen = PlotOptions { cells: vec![700, 3], ..PlotOptions::default() };
    let shown = texts(&svg(&result, &chosen));
    assert_eq!(
        shown.iter().filter(|t| t.starts_with("cell ")).collect::<Vec<_>>(),
        ["cell 700", "cell 3"].repeat(2).iter().collect::<Vec<_>>()
    );
    assert!(shown.iter().any(|t| t == "2 of 729 cells"), "{shown:?}");
    let of_two = result.spikes[0].i.iter().filter(|i| [700, 3].contains(*i)).count();
    assert!(shown.iter().any(|t| *t == format!("net · {of_two} spikes of 729 cells, of 2 chosen cells")), "{shown:?}");
    let none = PlotOptions { cells: vec![1000], kind: PlotKind::Traces, ..PlotOptions::default() };
    let error = render(&result, ImageFormat::Svg, &none).expect_err("there is no such cell").to_string();
    assert_eq!(error, "there is nothing to draw: none of these cells is there, or recorded");
}

#[test]
fn a_dense_raster_is_thinned_and_says_so() {
    let mut result = titled("Many");
    result.spikes = vec![rhythmic("net", 20_000, 500, 12.0)];
    let picture = svg(&result, &PlotOptions::default());
    let count = result.spikes[0].t.len();
    let each = count.div_ceil(20_000);
    assert!(each > 3, "{count} spikes");
    let said = format!("net · {count} spikes of 20000 cells, every {each}th cell drawn");
    assert!(texts(&picture).contains(&said), "{:?}", texts(&picture));
    assert!(picture.len() < 4_000_000, "{} bytes", picture.len());
}

#[test]
fn intervals_have_their_mean_and_spread() {
    let mut result = titled("Intervals");
    // Cell 0 every 10 ms, cell 1 after 20 and 40 ms.
    result.spikes = vec![SpikeTrain {
        population: "p".into(),
        cells: 3,
        t: vec![0.0, 1.0, 10.0, 20.0, 21.0, 30.0, 61.0],
        i: vec![0, 1, 0, 0, 1, 0, 1],
    }];
    let of = |options: PlotOptions| texts(&svg(&result, &PlotOptions { kind: PlotKind::Intervals, ..options }));
    let said = of(PlotOptions::default());
    // 10, 10, 10 of cell 0 and 20, 40 of cell 1, which alone varies: 10 / 30, in the mean of both 1 / 6.
    assert!(said.contains(&"p · 5 intervals, mean 18 ms, CV 0.1667".to_owned()), "{said:?}");
    assert!(said.contains(&"interval between spikes (ms)".to_owned()), "{said:?}");
    let said = of(PlotOptions { cells: vec![0], ..PlotOptions::default() });
    assert!(said.contains(&"p · 3 intervals, mean 10 ms, CV 0".to_owned()), "{said:?}");
    let said = of(PlotOptions { window: Some((0.0, 15.0)), ..PlotOptions::default() });
    assert!(said.contains(&"p · one interval of 10 ms".to_owned()), "{said:?}");
}

#[test]
fn correlations_are_those_of_numbers_in_bins() {
    let mut result = titled("Correlations");
    result.meta.insert("options".into(), json!({ "dt_ms": 0.1 }));
    result.meta.insert("steps".into(), json!(200));
    // In ten bins cells 0 and 1 spike in the same three, cell 2 in two others, cell 3 never.
    result.spikes = vec![SpikeTrain {
        population: "p".into(),
        cells: 4,
        t: vec![1.0, 1.5, 3.0, 5.0, 6.0, 7.0, 9.0, 9.0],
        i: vec![0, 1, 2, 0, 1, 2, 0, 1],
    }];
    let of = |options: PlotOptions| texts(&svg(&result, &PlotOptions { kind: PlotKind::Correlations, ..options }));
    let said = of(PlotOptions::default());
    // 1, and twice -0.06 / sqrt(0.21 * 0.16).
    let heading = "p · 3 pairs of 3 cells with spikes, bins of 2 ms: mean 0.1151, standard deviation 0.6257";
    assert!(said.contains(&heading.to_owned()), "{said:?}");
    assert!(said.contains(&"correlation of numbers of spikes".to_owned()), "{said:?}");
    let said = of(PlotOptions { cells: vec![0, 1, 3], bin: Some(4.0), ..PlotOptions::default() });
    let heading = "p · 1 pairs of 2 cells with spikes, bins of 4 ms: mean 1, standard deviation 0";
    assert!(said.contains(&heading.to_owned()), "{said:?}");
    let alone = PlotOptions { kind: PlotKind::Correlations, cells: vec![0], ..PlotOptions::default() };
    let error = render(&result, ImageFormat::Svg, &alone).expect_err("there are no pairs").to_string();
    assert!(error.contains("in no population do two cells spike"), "{error}");
}

#[test]
fn the_power_of_all_frequencies_is_the_variance() {
    use super::spectrum::Spectrum;
    let wave = |t: f64, _| 3.0 + 2.0 * (2.0 * std::f64::consts::PI * 31.25e-3 * t).sin();
    let broken = series("c.v", "mV", &Arc::new(vec![0.0, 1.0, 2.0, 50.0, 51.0, 52.0]), 1, wave);
    let series = series("c.v", "mV", &times(4001, 0.25), 1, wave);
    let spectrum = Spectrum::of_series(&series, (0.0, 1000.0), 2.0, &[]).unwrap();
    assert_eq!(spectrum.highest(), 250.0);
    let width = spectrum.points()[1].0 - spectrum.points()[0].0;
    let total: f64 = spectrum.points().iter().map(|p| p.1 * width).sum();
    // Means of bins are less than the wave by 0.6 %.
    assert!((total - 2.0 * 0.994f64.powi(2)).abs() < 1e-2, "{total}");
    assert_eq!(spectrum.heading("c.v"), "c.v · power in bins of 2 ms and pieces of 128 ms: most at 31.25 Hz");
    // Spikes by chance, one cell, 20 per second: both sides of each frequency have the rate.
    let mut state = 1u64;
    let mut chance = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let t: Vec<f64> = (0..100_000).map(f64::from).filter(|_| chance() < 0.02).collect();
    let train = SpikeTrain { population: "p".into(), cells: 1, i: vec![0; t.len()], t };
    let spectrum = Spectrum::of_spikes(&train, (0.0, 1e5), 2.0, &[]).unwrap();
    let mean = spectrum.points().iter().map(|p| p.1).sum::<f64>() / spectrum.points().len() as f64;
    assert!((mean / 40.0 - 1.0).abs() < 0.1, "{mean}");
    let mut result = titled("Short");
    result.spikes = vec![train];
    let short = PlotOptions { kind: PlotKind::Spectrum, window: Some((0.0, 20.0)), ..PlotOptions::default() };
    let error = render(&result, ImageFormat::Svg, &short).expect_err("it is too short").to_string();
    assert!(error.contains("too short for a spectrum"), "{error}");
    let mut pieces = titled("Pieces");
    pieces.series = vec![broken];
    let whole = PlotOptions { kind: PlotKind::Spectrum, ..PlotOptions::default() };
    let error = render(&pieces, ImageFormat::Svg, &whole).expect_err("there are gaps").to_string();
    assert!(error.contains("recorded in pieces"), "{error}");
}

#[test]
fn factors_of_axes_are_no_units() {
    assert_eq!(super::style::label("v", "mV", "×1e12 "), "V (×1e12 mV)");
    assert_eq!(super::style::label("i", "uA/cm2", "×1e−6 "), "i (×1e−6 uA/cm²)");
    assert_eq!(super::style::label("m", "1", "×1e3 "), "m (×1e3)");
}

#[test]
fn rates_of_cells_are_drawn_against_what_they_have() {
    let mut result = titled("f-I curve");
    result.meta.insert("options".into(), json!({ "dt_ms": 0.1 }));
    result.meta.insert("steps".into(), json!(5000));
    result.spikes =
        vec![SpikeTrain { population: "p".into(), cells: 3, t: vec![100.0, 200.0, 300.0], i: vec![2, 0, 2] }];
    result.parameters = vec![Parameter {
        name: "p.amp".into(),
        unit: "nA".into(),
        values: ParameterValues::PerCell { population: "p".into(), values: vec![0.2, 0.1, 0.3] },
    }];
    let options = PlotOptions { kind: PlotKind::Cells, ..PlotOptions::default() };
    let said = texts(&svg(&result, &options));
    let heading = "p · rates of 3 cells: mean 2 spikes/s, from 0 to 4";
    assert!(said.contains(&heading.to_owned()) && said.contains(&"cell".to_owned()), "{said:?}");
    // A run that goes on from the middle has half of the time.
    let mut later = result.clone();
    later.meta.insert("first_step".into(), json!(2500));
    later.spikes[0].t = vec![260.0, 280.0, 300.0];
    let heading = "p · rates of 3 cells: mean 4 spikes/s, from 0 to 8";
    assert!(texts(&svg(&later, &options)).contains(&heading.to_owned()));
    let against = PlotOptions { against: Some("amp".into()), ..options.clone() };
    let said = texts(&svg(&result, &against));
    assert!(said.contains(&"p.amp (nA)".to_owned()), "{said:?}");
    let unknown = PlotOptions { against: Some("gbar".into()), ..options };
    let error = render(&result, ImageFormat::Svg, &unknown).expect_err("there is none").to_string();
    assert!(error.contains("called `gbar`: there are p.amp"), "{error}");
}

/// The page has the size of the figure, and as many outlines as an SVG has texts at least.
#[test]
fn a_pdf_is_a_page_of_the_same_figure() {
    let bytes = render(&squid(), ImageFormat::Pdf, &PlotOptions::default()).expect("it is drawn");
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.starts_with("%PDF-1.") && text.trim_end().ends_with("%%EOF"));
    assert!(text.contains("/MediaBox [0 0 1200 "), "{}", &text[..200]);
    let letters: usize = texts(&svg(&squid(), &PlotOptions::default())).iter().map(|t| t.len()).sum();
    assert!(text.matches(" c\n").count() > letters, "text is drawn");
}

#[test]
fn rasters_and_rates_are_drawn_where_they_mean_something() {
    let all = texts(&svg(&network(), &PlotOptions::default()));
    assert_eq!(all.iter().filter(|t| *t == "cell").count(), 2);
    assert_eq!(all.iter().filter(|t| *t == "rate (spikes/s)").count(), 2);
    let mut few = network();
    few.spikes = vec![rhythmic("few", 19, 500, 12.0)];
    let few_texts = texts(&svg(&few, &PlotOptions::default()));
    assert!(!few_texts.iter().any(|t| t.contains("rate")), "{few_texts:?}");
    let asked = PlotOptions { kind: PlotKind::Rates, bin: Some(20.0), ..PlotOptions::default() };
    let asked_texts = texts(&svg(&few, &asked));
    assert!(asked_texts.iter().any(|t| t == "few · rate per cell in bins of 20 ms"), "{asked_texts:?}");
    assert!(!asked_texts.iter().any(|t| t == "cell"));
    let raster = PlotOptions { kind: PlotKind::Raster, ..PlotOptions::default() };
    assert!(texts(&svg(&squid(), &raster)).iter().any(|t| t == "squid · 3 spikes of 1 cell"));
    let traces = PlotOptions { kind: PlotKind::Traces, ..PlotOptions::default() };
    assert!(!texts(&svg(&crowd(), &traces)).iter().any(|t| t.contains("net ·")));
}

#[test]
fn a_rate_is_spikes_per_second_and_cell() {
    let train = SpikeTrain { population: "p".into(), cells: 2, t: vec![0.0, 1.0, 9.99, 10.0, 25.0], i: vec![0; 5] };
    let rate = |high, bin| Rate::new(&train, (0.0, high), Some(bin), &[]).expect("a bin that fits").rates().to_vec();
    assert_eq!(rate(20.0, 10.0), [200.0, 0.0]);
    // 5 ms are left of the third bin: not less than half of it, but not more either.
    assert_eq!(rate(25.0, 10.0), [200.0, 1000.0 / 2.0 / 15.0]);
    assert_eq!(rate(28.0, 10.0), [200.0, 0.0, 1000.0 / 2.0 / 8.0]);
    for bin in [0.0, -1.0, f64::NAN, 30.0, 1e-9] {
        Rate::new(&train, (0.0, 20.0), Some(bin), &[]).err().expect("a bin that does not fit");
    }
    let chosen = Rate::new(&train, (0.0, 1000.0), None, &[]).expect("a bin is chosen");
    assert_eq!(chosen.heading("p"), "p · rate per cell in bins of 5 ms");
    assert_eq!(chosen.rates().len(), 200);
    let short = Rate::new(&train, (0.0, 0.5), None, &[]).expect("a bin is chosen");
    assert_eq!(short.rates(), [1000.0]);
    // A spike where a window begins is one of the time before.
    let window = Rate::new(&train, (10.0, 30.0), Some(10.0), &[]).expect("a bin that fits");
    assert_eq!(window.rates(), [0.0, 50.0]);
    // Those of chosen cells alone.
    let of = |cells: &[u64]| Rate::new(&train, (0.0, 20.0), Some(10.0), cells).expect("a rate").rates().to_vec();
    assert_eq!((of(&[0]), of(&[1]), of(&[0, 1, 7])), (vec![400.0, 0.0], vec![0.0, 0.0], vec![200.0, 0.0]));
}

#[test]
fn thinning_keeps_extremes_and_ends() {
    let t: Vec<f64> = (0..100_000).map(f64::from).collect();
    let window = (0.0, 99_999.0);
    // One sample in a hundred thousand sticks out, each way.
    let value = |k: usize| match k {
        31_415 => 40.0,
        60_001 => -90.0,
        _ => -65.0 + 1e-3 * (k as f64).sin(),
    };
    let runs = decimate(&t, value, 0..t.len(), window, 500);
    let [run] = runs.as_slice() else { panic!("one run, not {}", runs.len()) };
    assert!(run.len() <= 4 * 500);
    assert!(run.contains(&(31_415.0, 40.0)) && run.contains(&(60_001.0, -90.0)));
    assert_eq!((run.first(), run.last()), (Some(&(0.0, value(0))), Some(&(99_999.0, value(99_999)))));
    assert!(run.is_sorted_by(|a, b| a.0 < b.0), "in the order of time, no point twice");
    for column in 0..500 {
        let inside = |k: &f64| ((k / 99_999.0 * 500.0) as usize).min(499) == column;
        let all = t.iter().filter(|k| inside(k)).map(|k| value(*k as usize)).fold(f64::MIN, f64::max);
        let kept = run.iter().filter(|p| inside(&p.0)).map(|p| p.1).fold(f64::MIN, f64::max);
        assert_eq!(all, kept, "the highest of column {column}");
    }
}

#[test]
fn thinning_keeps_short_traces_whole_and_gaps_open() {
    let t: Vec<f64> = (0..10).map(f64::from).collect();
    let value = |k: usize| match k {
        3 => f64::NAN,
        5 => f64::INFINITY,
        _ => k as f64,
    };
    let runs = decimate(&t, value, 0..10, (0.0, 9.0), 100);
    let lengths: Vec<usize> = runs.iter().map(Vec::len).collect();
    assert_eq!(lengths, [3, 1, 4]);
    assert!(decimate(&t, |_| f64::NAN, 0..10, (0.0, 9.0), 100).is_empty());
    // A gap within one column of a long trace is a gap as well.
    let t: Vec<f64> = (0..10_000).map(f64::from).collect();
    let hole = |k: usize| if k == 5003 { f64::NAN } else { 0.0 };
    assert_eq!(decimate(&t, hole, 0..10_000, (0.0, 9_999.0), 10).len(), 2);
}

#[test]
fn a_png_decodes_to_the_size_asked_for() {
    for (width, height) in [(300, 400), (1200, 700)] {
        let options = PlotOptions { width, height: Some(height), ..PlotOptions::default() };
        let bytes = render(&squid(), ImageFormat::Png, &options).expect("it is drawn");
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().expect("a PNG");
        assert_eq!(reader.info().size(), (width, height));
        let mut pixels = vec![0; reader.output_buffer_size()];
        reader.next_frame(&mut pixels).expect("whole");
        let row = width as usize * 3;
        let is_white = |pixels: &[u8]| pixels.iter().all(|c| *c == 255);
        assert!(is_white(&pixels[..row]) && is_white(&pixels[pixels.len() - row..]), "a margin above and below");
        for line in pixels.chunks(row) {
            assert!(is_white(&line[..6]) && is_white(&line[row - 6..]), "a margin left and right");
        }
        let blue = pixels.chunks(3).filter(|p| *p == [0, 114, 178]).count();
        assert!(blue > 100, "the first line is blue: {blue} pixels");
    }
}

#[test]
fn drawing_does_not_depend_on_anything_else() {
    for format in [ImageFormat::Svg, ImageFormat::Png, ImageFormat::Pdf] {
        let draw_once = || render(&network(), format, &PlotOptions::default()).expect("it is drawn");
        assert_eq!(draw_once(), draw_once());
    }
}

#[test]
fn the_extension_decides() {
    let error = draw(&squid(), Path::new("squid.gif"), &PlotOptions::default()).expect_err("unknown").to_string();
    assert_eq!(error, "cannot draw `squid.gif`: the name must end in .svg, .png or .pdf");
    assert_eq!(ImageFormat::of(Path::new("a.PNG")).expect("known"), ImageFormat::Png);
}

#[test]
fn a_figure_is_written_whole_or_not_at_all() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("nowhere").join("squid.svg");
    let error = draw(&squid(), &path, &PlotOptions::default()).expect_err("nowhere to write").to_string();
    assert!(error.contains("nowhere` does not exist"), "{error}");
    let path = dir.path().join("squid.png");
    draw(&squid(), &path, &PlotOptions::default()).expect("it is drawn");
    let names = std::fs::read_dir(dir.path()).expect("it is there").count();
    assert_eq!(names, 1);
}

#[test]
fn what_cannot_be_drawn_is_said() {
    let error = |result: &RunResult, options: &PlotOptions| {
        render(result, ImageFormat::Svg, options).expect_err("it cannot be drawn").to_string()
    };
    let nothing = RunResult::default();
    let ask = PlotOptions::default;
    assert!(error(&nothing, &ask()).ends_with("the results hold no series and no spikes"));
    let raster = PlotOptions { kind: PlotKind::Raster, ..ask() };
    assert!(error(&nothing, &raster).ends_with("the results hold no spikes"));
    let none = error(&squid(), &options(&["dend.*"]));
    assert!(none.contains("no name matches dend.*; there are squid.soma.v, squid.soma.m, "), "{none}");
    for (first, last) in [(3.0, 3.0), (5.0, 1.0), (f64::NAN, 1.0)] {
        assert!(error(&squid(), &PlotOptions { window: Some((first, last)), ..ask() }).contains("is empty"));
    }
    let outside = error(&squid(), &PlotOptions { window: Some((100.0, 200.0)), ..ask() });
    assert!(outside.contains("is outside the run, from 0 ms to 60 ms"), "{outside}");
    assert!(error(&squid(), &PlotOptions { width: 10, ..ask() }).contains("not within 300 to 10000"));
    assert!(error(&squid(), &PlotOptions { height: Some(50), ..ask() }).contains("need a height of at least"));
    let mut many = titled("many");
    let t = times(10, 1.0);
    many.series = (0..100).map(|k| series(&format!("p{k}.v"), "mV", &t, 1, |now, _| now)).collect();
    assert!(error(&many, &ask()).contains("100 panels would be"));
    let mut wrong = squid();
    wrong.spikes[0].i[0] = 7;
    assert!(error(&wrong, &ask()).contains("cell 7 of `squid` fired"));
}

#[test]
fn odd_data_can_be_drawn() {
    let t = times(3, 1.0);
    let mut result = titled("odd");
    result.series = vec![
        series("a.nan", "mV", &t, 1, |_, _| f64::NAN),
        series("a.constant", "mV", &t, 1, |_, _| -65.0),
        series("a.zero", "nA", &t, 1, |_, _| 0.0),
        series("a.huge", "nA", &t, 1, |now, _| if now > 1.0 { f64::MAX } else { f64::MIN }),
        series("a.tiny", "nA", &t, 1, |now, _| now * 5e-324),
        series("a.count", "1", &t, 1, |now, _| now),
        series("a.none", "mV", &t, 0, |_, _| 0.0),
        series("lonely", "mV", &Arc::new(vec![1.0]), 1, |_, _| 1.0),
    ];
    result.spikes = vec![
        SpikeTrain { population: "silent".into(), cells: 30, t: vec![], i: vec![] },
        SpikeTrain { population: "empty".into(), cells: 0, t: vec![], i: vec![] },
    ];
    let all = texts(&svg(&result, &PlotOptions::default()));
    for text in ["no values", "no spikes", "constant (mV)", "count", "lonely"] {
        assert!(all.iter().any(|t| t == text), "{text:?} is not among {all:?}");
    }
    render(&result, ImageFormat::Png, &PlotOptions::default()).expect("it is drawn");
    result.spikes.clear();
    result.series = vec![series("a.v", "mV", &Arc::new(vec![5.0]), 1, |_, _| 1.0)];
    render(&result, ImageFormat::Png, &PlotOptions::default()).expect("one sample is drawn");
}

#[test]
fn more_than_eight_gates_take_a_second_panel() {
    let t = times(10, 1.0);
    let mut result = titled("eleven");
    result.series = (0..11).map(|k| series(&format!("c.g{k}"), "1", &t, 1, |now, _| now / 10.0)).collect();
    let all = texts(&svg(&result, &PlotOptions::default()));
    assert_eq!(all.iter().filter(|t| *t == "gates").count(), 2);
    assert!(all.iter().any(|t| t == "g10"));
}

#[test]
fn patterns_match_whole_names_and_their_ends() {
    for (pattern, yes) in [
        ("squid.soma.v", true),
        ("soma.v", true),
        ("v", true),
        ("squid.*", true),
        ("*.soma.*", true),
        ("s*a.v", true),
        ("*", true),
        ("ma.v", false),
        ("squid", false),
        ("squid.*.soma.v", false),
        ("", false),
    ] {
        assert_eq!(matches(pattern, "squid.soma.v"), yes, "{pattern}");
    }
}

#[test]
fn a_filter_and_a_window_leave_out_the_rest() {
    let all = texts(&svg(&squid(), &options(&["m", "h"])));
    assert!(all.iter().any(|t| t == "gates") && !all.iter().any(|t| t == "V (mV)"), "{all:?}");
    let window = PlotOptions { window: Some((20.0, 30.0)), ..PlotOptions::default() };
    let part = texts(&svg(&squid(), &window));
    assert!(part.iter().any(|t| t == "spikes (1)") && !part.iter().any(|t| t == "60"), "{part:?}");
}

#[test]
fn long_runs_are_measured_in_seconds() {
    let t = times(2001, 10.0);
    let mut result = titled("long");
    result.series = vec![series("c.v", "mV", &t, 1, |now, _| now)];
    let all = texts(&svg(&result, &PlotOptions::default()));
    assert!(all.iter().any(|t| t == "time (s)") && all.iter().any(|t| t == "20"), "{all:?}");
}

#[test]
fn ticks_are_round_and_labels_sensible() {
    let labels = |axis: Axis| axis.ticks.into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    assert_eq!(labels(Axis::exact(-80.0, 50.0, 5)), ["−50", "0", "50"]);
    assert_eq!(labels(Axis::exact(0.0, 1.0, 5)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
    assert_eq!(labels(Axis::exact(0.0, 0.3, 3)), ["0.0", "0.1", "0.2", "0.3"]);
    assert_eq!(labels(Axis::exact(0.0, 12_000.0, 3)), ["0", "5000", "10000"]);
    assert_eq!(labels(Axis::exact(0.0, 3e-5, 3)), ["0", "10", "20", "30"]);
    assert_eq!(Axis::exact(0.0, 3e-5, 3).factor(), "×1e−6 ");
    assert_eq!(Axis::exact(-2e7, 2e7, 3).factor(), "×1e6 ");
    assert_eq!(labels(Axis::rows(3, 7)), ["0", "1", "2"]);
    assert_eq!(labels(Axis::rows(1, 7)), ["0"]);
    for (low, high) in [(0.0, 0.0), (-65.0, -65.0), (5e-324, 5e-324), (f64::MIN, f64::MAX), (1.0, 1.0 + 1e-15)] {
        let axis = Axis::around(low, high, 5);
        assert!(axis.low < axis.high && !axis.ticks.is_empty() && axis.ticks.len() < 9, "{axis:?}");
        assert!(axis.ticks.is_sorted_by(|a, b| a.0 < b.0 && a.1 != b.1), "{axis:?}");
    }
}

#[test]
fn units_are_spelled_as_people_write_them() {
    let cases = [("mA/cm2", "mA/cm²"), ("mS/cm^2", "mS/cm²"), ("nA*ms", "nA·ms"), ("1/ms", "1/ms"), ("m^-1", "m^-1")];
    for (plain, spelled) in cases {
        assert_eq!(super::style::unit(plain), spelled);
    }
}

/// A cable of three sections: the root begins far from its middle, and two go on from its end.
fn forked() -> RunResult {
    let t = times(101, 0.1);
    let compartment = |name: &str, distance: f64, before: Option<u64>| crate::results::Compartment {
        name: name.into(),
        distance,
        before,
        at: None,
    };
    let compartments = [
        compartment("root(0.1667)", 20.0, None),
        compartment("root(0.5)", 0.0, Some(0)),
        compartment("root(0.8333)", 20.0, Some(1)),
        compartment("up(0.5)", 50.0, Some(2)),
        compartment("down(0.5)", 80.0, Some(2)),
    ];
    let mut result = titled("Forked");
    let wave = |now: f64, i: usize| -65.0 + 50.0 * (-(now - 2.0 - i as f64).powi(2)).exp();
    let series = series("c.all.v", "mV", &t, 5, wave);
    result.series = vec![Series { cells: vec![0; 5], compartments: Some(compartments.into()), ..series }];
    result
}

#[test]
fn what_lies_before_the_middle_of_the_root_has_a_negative_distance() {
    let result = forked();
    let cell = super::space::Cell::of(&result.series[0], &[]).expect("a cell");
    assert_eq!(cell.reach(), (-20.0, 80.0));
    let space = |options: PlotOptions| texts(&svg(&result, &PlotOptions { kind: PlotKind::Space, ..options }));
    let said = space(PlotOptions::default());
    assert!(said.contains(&"c.all.v · V (mV) along the way from root(0.1667) to down(0.5)".to_owned()), "{said:?}");
    let said = space(PlotOptions { along: Some("up(0.5)".into()), ..PlotOptions::default() });
    assert!(said.contains(&"c.all.v · V (mV) along the way from root(0.1667) to up(0.5)".to_owned()), "{said:?}");
    // Two lines at a fork, and as many in a colour as compartments follow another.
    let options = PlotOptions { kind: PlotKind::Space, at: vec![2.0, 3.0], ..PlotOptions::default() };
    let picture = svg(&result, &options);
    let blue = format!("stroke=\"#{:02X}{:02X}{:02X}\"", 0, 114, 178);
    assert_eq!(picture.matches(&blue).count(), 4 + 1, "four lines and one of the legend");
    let many = PlotOptions { at: (0..9).map(f64::from).collect(), ..options };
    assert!(render(&result, ImageFormat::Svg, &many).expect_err("too many").to_string().contains("9 times are more"));
}

#[test]
fn a_cell_has_its_shape_and_a_scale() {
    let piece = |ends, of| CellPiece { ends, diam: [10.0, 5.0], of };
    let pieces = vec![piece([[0.0, 0.0], [100.0, 0.0]], 0), piece([[100.0, 0.0], [100.0, 80.0]], 1)];
    let colours = CellColours::Parts(vec!["soma".into(), "dend".into()]);
    let (title, heading) = ("Cell".into(), "of two pieces".into());
    let figure = CellFigure { title, heading, pieces, joins: Vec::new(), colours, width: None, height: None };
    let svg = |figure: &CellFigure| {
        String::from_utf8(render_cell(figure, ImageFormat::Svg).expect("it is drawn")).expect("text")
    };
    let picture = svg(&figure);
    let said = texts(&picture);
    for text in ["Cell", "of two pieces", "soma", "dend", "10 um"] {
        assert!(said.iter().any(|t| t == text), "{text:?} is not among {said:?}");
    }
    assert_eq!(picture.matches("<polygon ").count(), 2);
    assert_eq!(picture.matches("<circle ").count(), 1, "the bend is closed");
    let values = CellColours::Numbers { name: "v".into(), unit: "mV".into(), values: vec![-65.0, f64::NAN] };
    let said = texts(&svg(&CellFigure { colours: values, ..figure.clone() }));
    assert!(said.iter().any(|t| t == "V (mV)"), "{said:?}");
    let narrow = CellFigure { width: Some(200), ..figure };
    assert!(render_cell(&narrow, ImageFormat::Svg).expect_err("too narrow").to_string().contains("300 to 10000"));
}

#[test]
fn a_figure_of_spikes_ends_with_the_run_and_counts_the_whole_record() {
    let mut result = titled("Spikes");
    result.meta.insert("options".into(), json!({ "dt_ms": 0.1 }));
    result.meta.insert("steps".into(), json!(5000));
    result.spikes = vec![SpikeTrain { population: "p".into(), cells: 3, t: vec![100.0], i: vec![2] }];
    let said = texts(&svg(&result, &PlotOptions::default()));
    assert!(said.iter().any(|t| t == "500"), "{said:?}");
    // What was thinned in reading says how much there was.
    let mut thinned = crowd();
    thinned.spikes.clear();
    thinned.series[0].whole = 1000;
    let said = texts(&svg(&thinned, &PlotOptions::default()));
    assert!(said.iter().any(|t| t == "8 of 1000 cells"), "{said:?}");
}
