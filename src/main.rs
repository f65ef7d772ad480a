//! The `neuroc` command.
fn main() {
    for path in std::env::args().skip(1) {
        let checked = neuroc::driver::check_file(path.as_ref());
        eprint!("{}", neuroc::diag::render_human(&checked.sources, &checked.diagnostics, false));
        if let Some(model) = checked.model {
            let mut d = Default::default();
            let ode = neuroc::ode::build(&model, &mut d);
            eprint!("{}", neuroc::diag::render_human(&checked.sources, &d.sorted(), false));
            let Some(ode) = ode else { continue };
            neuroc::ode::verify(&ode).unwrap();
            println!("{}", neuroc::ode::print(&ode));
            let p = neuroc::discretize::discretize(&ode, &checked.sources);
            println!("{}", neuroc::step::print(&p));
            let v = neuroc::step::verify(p).unwrap_or_else(|e| panic!("{e}"));
            let v = neuroc::passes::run(
                v,
                neuroc::passes::pipeline(Default::default()),
                &Default::default(),
                &mut |_, _, _| {},
            )
            .unwrap();
            println!("{}", neuroc::step::print(v.program()));
        }
    }
}
