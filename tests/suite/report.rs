//! Tests of: report. The page of a run as its users meet it: written by the command, opened in a browser.
//!
//! The browser is Chromium without a window (`make report` installs it); without it what needs it is not tested.

use crate::cli::{folder, neuroc};
use crate::lacks;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Three cells that spike once, between 4 and 6 ms.
const MODEL: &str = "\
//! Cells that rise. </script><script>document.body.dataset.bad = 1</script>

channel Leak {
    param g = 1 mS/cm2 // <img src=x onerror=\"document.body.dataset.bad = 2\">
    let half = 0.5 * g
    current i = 2 * half * (v + 65 mV)
}

cell C {
    param g = 1 mS/cm2
    compartment soma {
        area = 1000 um2
        cm = 1 uF/cm2
        v_init = -55 mV
        insert Leak(g = g)
    }
    spike when soma.v crosses 0 mV
}

network main {
    param n = 3
    population c: C[n]
    input step: pulse(delay = 4 ms, duration = 2 ms, amplitude = 200 uA/cm2) -> c.soma
}

run {
    duration = 20 ms
    dt = 0.1 ms
    record c.soma.v
    record spikes of c
}
";

const RUN: [&str; 5] = ["run", "m.neuro", "--engine", "interp", "--quiet"];

fn here() -> TempDir {
    folder(&[("m.neuro", MODEL)])
}

fn fine(here: &TempDir, more: &[&str]) {
    let done = neuroc(here, &[&RUN, more].concat());
    assert_eq!((done.code, done.out.as_str()), (0, ""), "{more:?}: {}", done.err);
}

fn page(here: &TempDir, name: &str) -> String {
    fs::read_to_string(here.path().join(name)).unwrap()
}

#[test]
fn a_run_writes_a_page_alone_or_beside_other_results() {
    let here = here();
    fine(&here, &["--report", "alone.html"]);
    let names = || {
        let mut names: Vec<String> = fs::read_dir(here.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(), ["alone.html", "m.neuro"]);
    fine(&here, &["--report", "b.html", "-o", "b.npz", "--plot", "b.svg"]);
    fine(&here, &["--report", "c.html", "-o", "c.csv"]);
    assert_eq!(
        names(),
        ["alone.html", "b.html", "b.npz", "b.svg", "c.csv", "c.html", "c.meta.json", "c.spikes.csv", "m.neuro"]
    );
    // All but the times that runs took.
    let data =
        |name: &str| page(&here, name).split("id=\"data\"").nth(1).unwrap().split('>').nth(1).unwrap().to_owned();
    assert!(data("alone.html") == data("b.html") && data("b.html") == data("c.html"));
    let text = page(&here, "alone.html");
    for part in
        ["3 cells · 20 ms in steps of 0.1 ms", "interp engine in f64", "m.neuro (", "c.soma.v", "source", "BLAKE3"]
    {
        assert!(text.contains(part), "{part}");
    }
    assert!(!text.contains(&here.path().display().to_string()), "the page tells of the machine");
    let drawn = neuroc(&here, &["plot", "b.npz", "-o", "again.html", "--title", "Again"]);
    assert_eq!(drawn.code, 0, "{}", drawn.err);
    assert!(page(&here, "again.html").contains("<h1>Again</h1>") && data("again.html") == data("b.html"));
    assert!(page(&here, "again.html").contains("do not hold the text of the model"));
}

#[test]
fn settings_are_marked() {
    let here = here();
    fine(&here, &["--report", "m.html", "--set", "c.g=2mS/cm2", "--seed", "7"]);
    let text = page(&here, "m.html");
    let set: Vec<&str> =
        text.split("<tr class=\"set\">").skip(1).map(|row| row.split("</tr>").next().unwrap()).collect();
    assert_eq!(set.len(), 1, "{set:?}");
    assert!(set[0].contains(">c.g<") && set[0].contains(">2<"), "{set:?}");
    assert!(text.contains("<code>c.g=2mS/cm2</code>"));
}

#[test]
fn a_page_is_written_whole_or_not_at_all() {
    let here = here();
    let fails = |arguments: &[&str], code: i32, part: &str| {
        let done = neuroc(&here, arguments);
        assert!(done.code == code && done.out.is_empty(), "{arguments:?}: {}", done.err);
        assert!(done.err.contains(part) && !done.err.contains("panicked"), "{arguments:?}: {}", done.err);
    };
    fails(&[&RUN[..], &["--report", "m.txt"]].concat(), 2, "must end in .html");
    fails(&[&RUN[..], &["--report", "nowhere/m.html"]].concat(), 2, "the directory `nowhere` does not exist");
    fails(&["plot", "gone.npz", "-o", "m.html"], 2, "there is no such file");
    fails(&["plot", "gone.npz", "-o", "m.html", "--series", "v"], 2, "`--series` is for pictures");
    assert_eq!(fs::read_dir(here.path()).unwrap().count(), 1);
    #[cfg(target_os = "linux")]
    {
        std::os::unix::fs::symlink("/dev/full", here.path().join("full.html")).unwrap();
        fails(&[&RUN[..], &["--report", "full.html"]].concat(), 1, "the disk is full");
    }
}

/// Opens a page and answers what its script says in the attributes of `body`. `then` runs after it.
fn opened(here: &TempDir, name: &str, hash: &str, then: &str) -> Option<BTreeMap<String, String>> {
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    let runs = |browser: &&str| {
        let asked = Command::new(browser).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    let Some(browser) = browsers.iter().find(|browser| runs(browser)) else {
        lacks("Chromium is missing: pages are not opened (`make report` installs it)");
        return None;
    };
    let text = page(here, name);
    let nonce = text.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    let script = format!("<script nonce=\"{nonce}\">\n{then}\n</script>\n</body>");
    let path = here.path().join(format!("opened_{name}"));
    fs::write(&path, text.replace("</body>", &script)).unwrap();
    let out = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1000,3000"])
        .arg(format!("--user-data-dir={}", here.path().join("browser").display()))
        .args(["--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("file://{}{hash}", path.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&out.stdout).into_owned();
    let body = dom.split("<body").nth(1).unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&out.stderr)));
    let body = body.split('>').next().unwrap();
    let pairs = body.split("data-").skip(1).filter_map(|pair| pair.trim().trim_end_matches('"').split_once("=\""));
    let found: BTreeMap<String, String> = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    assert_eq!(found.get("errors").map(String::as_str), Some("0"), "{name}{hash}: {found:?}");
    assert!(!found.contains_key("bad"), "{found:?}");
    Some(found)
}

fn numbers(text: &str) -> Vec<f64> {
    text.split(',').map(|x| x.parse().unwrap()).collect()
}

#[test]
fn a_browser_draws_the_page_and_zooms() {
    let here = here();
    fine(&here, &["--report", "m.html", "-o", "m.npz"]);
    let Some(all) = opened(&here, "m.html", "", "") else { return };
    let result = neuroc::results::RunResult::read_npz(&here.path().join("m.npz")).unwrap();
    let (spikes, samples) = (&result.spikes[0], &result.series[0]);
    assert!(spikes.t.len() == 3 && spikes.t[0] > 4.0 && spikes.t[0] < 6.0, "{spikes:?}");
    let text = |x: usize| x.to_string();
    assert_eq!(
        (&all["window"], &all["panels"], &all["spikes"]),
        (&"0,20".to_owned(), &"2".to_owned(), &"3".to_owned())
    );
    assert_eq!(all["points"], text(3 * samples.t.len()));
    // A part of the time, by the address.
    let part = opened(&here, "m.html", "#t=4,6", "").unwrap();
    let inside = samples.t.iter().filter(|t| (4.0..=6.0).contains(*t)).count();
    assert_eq!(
        (&part["window"], &part["points"], &part["spikes"]),
        (&"4,6".to_owned(), &text(3 * inside), &"3".to_owned())
    );
    let after = opened(&here, "m.html", "#t=10,20", "").unwrap();
    assert_eq!((after["spikes"].as_str(), after["window"].as_str()), ("0", "10,20"));
    // Senseless ones are all of it.
    for hash in ["#t=6,4", "#t=a,b", "#model", "#t=1e999,2"] {
        assert_eq!(opened(&here, "m.html", hash, "").unwrap()["window"], "0,20", "{hash}");
    }
}

#[test]
fn a_browser_follows_the_pointer_and_the_keys() {
    let here = here();
    fine(&here, &["--report", "m.html"]);
    let then = "
        const set = document.body.dataset, canvas = document.querySelector('canvas'), box = canvas.getBoundingClientRect();
        const place = (share) => box.left + 66 + share * (box.width - 66 - 12);
        const send = (type, share, more) => canvas.dispatchEvent(new PointerEvent(type,
            { clientX: place(share), clientY: box.top + 40, pointerId: 1, button: 0, bubbles: true, ...more }));
        const key = (name) => canvas.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true }));
        send('pointermove', 0.25);
        set.time = document.getElementById('at').textContent;
        set.values = [...document.querySelectorAll('.legend output')].map((o) => o.textContent).join(';');
        send('pointerdown', 0.25); send('pointermove', 0.5); send('pointerup', 0.5);
        set.dragged = set.window; set.hash = location.hash;
        send('pointerdown', 0.5, { shiftKey: true }); send('pointermove', 0.1, { shiftKey: true }); send('pointerup', 0.1, { shiftKey: true });
        set.moved = set.window;
        key('+'); set.nearer = set.window;
        key('ArrowRight'); set.right = set.window;
        canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: 100, ctrlKey: true, clientX: place(0), clientY: box.top + 40, cancelable: true }));
        set.wheel = set.window;
        canvas.dispatchEvent(new MouseEvent('dblclick', { bubbles: true }));
        set.back = set.window;
        document.querySelector('.legend button').click();
        document.getElementById('fit').click();
        document.getElementById('in').click(); set.button = set.window;
    ";
    let Some(found) = opened(&here, "m.html", "", then) else { return };
    let near = |name: &str, want: [f64; 2]| {
        let window = numbers(&found[name]);
        assert!(
            window.iter().zip(want).all(|(x, want)| (x - want).abs() < 1e-3),
            "{name}: {window:?}, expected {want:?}"
        );
    };
    assert_eq!(found["time"], "t = 5.00 ms");
    assert!(
        found["values"].split(';').count() == 3 && found["values"].split(';').all(|v| v.ends_with(" mV")),
        "{found:?}"
    );
    near("dragged", [5.0, 10.0]);
    assert!(found["hash"].starts_with("#t=5"), "{found:?}");
    near("moved", [7.0, 12.0]);
    near("nearer", [8.25, 10.75]);
    near("right", [8.5, 11.0]);
    near("wheel", [8.5, 8.5 + 2.5 * 0.5f64.exp()]);
    assert_eq!(found["back"], "0,20");
    near("button", [5.0, 15.0]);
}

#[test]
fn a_browser_opens_pages_of_any_run() {
    // Nothing recorded; a map of many cells; a population that never spikes.
    let wide = MODEL.replace("param n = 3", "param n = 40");
    let quiet = wide.replace("200 uA/cm2", "0.2 uA/cm2");
    let none = MODEL.replace("    record c.soma.v\n    record spikes of c\n", "");
    let here = folder(&[("wide.neuro", &wide), ("quiet.neuro", &quiet), ("none.neuro", &none)]);
    for (name, panels) in [("wide", "3"), ("quiet", "2"), ("none", "0")] {
        let (file, html) = (format!("{name}.neuro"), format!("{name}.html"));
        let done = neuroc(&here, &["run", &file, "--engine", "interp", "--quiet", "--report", &html]);
        assert_eq!(done.code, 0, "{}", done.err);
        let Some(found) = opened(&here, &html, "", "document.querySelector('.head button')?.click();") else { return };
        assert_eq!(found["panels"], panels, "{name}: {found:?}");
    }
}

#[test]
fn the_script_is_short_enough_to_be_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/report");
    let bytes = |name: &str| fs::metadata(root.join(name)).unwrap().len();
    assert!(bytes("page.js") < 40_000 && bytes("page.css") < 10_000);
}
