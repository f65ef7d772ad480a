use super::*;
use crate::diag::{Diagnostics, render_human};
use crate::source::SourceMap;

const SAMPLES: [&str; 3] =
    [include_str!("samples/squid.neuro"), include_str!("samples/olive.neuro"), include_str!("samples/lif.neuro")];

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
