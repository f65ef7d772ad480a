//! The `neuroc` command.
fn main() {
    for path in std::env::args().skip(1) {
        let checked = neuroc::driver::check_file(path.as_ref());
        eprint!("{}", neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false));
        if let Some(model) = checked.model {
            println!("{}", neuroc::hir::print(&model));
        }
    }
}
