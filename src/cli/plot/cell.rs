//! The shape of a cell: `neuroc plot --morphology`.
//!
//! In come a model and, if there are some, results of it; out goes a picture of one cell, its compartments in the colours of its regions, of a parameter or of
//! what was recorded.
//! Never true here: a compartment of the results is taken for another one of the model.

use super::{Args, Kind, drawn};
use crate::cli::{Exit, check, complain, report};
use crate::driver::{self, CompileOptions};
use crate::hir::{self, Cell, Home, Morphology, SymbolKind};
use crate::morphology::drawing;
use crate::morphology::swc::Soma;
use crate::ode;
use crate::plot::{CellColours, CellFigure, CellPiece, draw_cell, parts};
use crate::results::{ParameterValues, Reading, RunResult, Series};
use crate::simulate;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A cell of a model, and the population that it is of, if a network has one.
struct Chosen<'m> {
    cell: &'m Cell,
    morphology: &'m Morphology,
    population: Option<&'m str>,
}

/// A number for each element of the tree, NaN where there is none.
struct Numbers {
    name: String,
    unit: String,
    values: Vec<f64>,
    /// What they are, for the heading.
    said: String,
}

/// How the command ends, and why.
type Wrong = (Exit, String);

/// Draws a cell of a model.
pub fn run(args: &Args, model: &Path) -> Exit {
    let others = [
        ("--kind", args.kind != Kind::All),
        ("--series", !args.series.is_empty()),
        ("--against", args.against.is_some()),
        ("--along", args.along.is_some()),
        ("--from", args.from.is_some()),
        ("--to", args.to.is_some()),
        ("--bin", args.bin.is_some()),
    ];
    let of_results = [("--at", !args.at.is_empty()), ("--cells", args.cells.is_some())];
    if let Some((option, _)) = others.iter().find(|(_, given)| *given) {
        complain(format!("`{option}` is for results, not for shapes"));
        return Exit::Usage;
    }
    if let (None, Some((option, _))) = (&args.file, of_results.iter().find(|(_, given)| *given)) {
        complain(format!("`{option}` needs a RESULT of the model, such as r.npz"));
        return Exit::Usage;
    }
    if args.cells.as_ref().is_some_and(|cells| cells.0.len() > 1) {
        complain("a shape has the colours of one cell: write one number after `--cells`");
        return Exit::Usage;
    }
    let checked = check(model);
    report(&checked.sources, &checked.diagnostics);
    let Some(lowered) = &checked.model else { return Exit::of(&checked.diagnostics) };
    let numbers = |chosen: &Chosen<'_>| match (&args.file, &args.colour) {
        (None, None) => Ok(None),
        (None, Some(name)) => match driver::flatten(lowered, &CompileOptions::default()) {
            Ok((flat, _)) => of_parameter(&flat, chosen, name).map(Some),
            Err(errors) => {
                report(&checked.sources, &errors);
                Err((Exit::of(&errors), String::new()))
            }
        },
        (Some(file), name) => recorded(args, file, chosen, name.as_deref()).map(Some),
    };
    let figure = choose(lowered, args.cell.as_deref()).and_then(|chosen| {
        let numbers = numbers(&chosen)?;
        Ok((figure(args, &chosen, numbers), &chosen.cell.name))
    });
    match figure {
        Ok((figure, cell)) => {
            let path = args.output.clone().unwrap_or_else(|| {
                let stem = model.file_stem().map(|stem| stem.to_string_lossy()).filter(|stem| stem != "-");
                PathBuf::from(format!("{}.{cell}.svg", stem.as_deref().unwrap_or("model")))
            });
            drawn(&path, || draw_cell(&figure, &path))
        }
        Err((exit, message)) => {
            if !message.is_empty() {
                complain(message);
            }
            exit
        }
    }
}

/// The population or cell of that name, or the first that has sections.
fn choose<'m>(model: &'m hir::Model, name: Option<&str>) -> Result<Chosen<'m>, Wrong> {
    let populations = model.network.iter().flat_map(|network| &network.populations);
    let of_populations = populations.map(|p| (Some(p.name.as_str()), &model.cells[p.cell]));
    let all = of_populations.chain(model.cells.iter().map(|cell| (None, cell)));
    let mut shaped = all.filter_map(|(population, cell)| {
        let morphology = cell.morphology.as_ref()?;
        Some(Chosen { cell, morphology, population })
    });
    let found = match name {
        None => shaped.next(),
        Some(name) => shaped.find(|c| c.population == Some(name) || c.cell.name == name),
    };
    found.ok_or_else(|| {
        let mut known: Vec<&str> = Vec::new();
        for cell in model.cells.iter().filter(|cell| cell.morphology.is_some()) {
            if !known.contains(&cell.name.as_str()) {
                known.push(&cell.name);
            }
        }
        match (name, &known[..]) {
            (_, []) | (None, _) => (Exit::Model, "no cell of this model has sections".into()),
            (Some(name), known) => {
                (Exit::Usage, format!("no cell with sections is called `{name}`: there are {}", known.join(", ")))
            }
        }
    })
}

impl Chosen<'_> {
    /// Sections in the same regions have one colour: for each element of the tree which one, and what those sections are called.
    fn regions(&self) -> (Vec<usize>, Vec<String>) {
        let tree = &self.morphology.tree;
        let mut alike: Vec<(Vec<bool>, Vec<&str>)> = Vec::new();
        let mut of_section = Vec::new();
        for (s, section) in tree.sections.iter().enumerate() {
            let inside: Vec<bool> = tree.groups.iter().map(|group| group[s]).collect();
            let at = alike.iter().position(|a| a.0 == inside).unwrap_or_else(|| {
                alike.push((inside, Vec::new()));
                alike.len() - 1
            });
            let word = section.name.split('[').next().unwrap_or(&section.name);
            if !alike[at].1.contains(&word) {
                alike[at].1.push(word);
            }
            of_section.push(at);
        }
        let of_element = tree.section.iter().map(|&s| of_section[s as usize]).collect();
        (of_element, alike.into_iter().map(|(_, words)| words.join(", ")).collect())
    }
}

/// The values of a parameter in the compartments; of cells that differ, those of the first.
fn of_parameter(flat: &ode::Model, chosen: &Chosen<'_>, name: &str) -> Result<Numbers, Wrong> {
    let Chosen { cell, morphology, .. } = chosen;
    let Some(population) = chosen.population else {
        return Err((Exit::Model, format!("`{name}` has no value: no network has a population of {}", cell.name)));
    };
    let extent = simulate::extent(flat).map_err(|errors| (Exit::of(&errors), errors[0].message.clone()))?;
    let parameters = simulate::parameters(flat, &extent);
    let mut values = vec![f64::NAN; morphology.tree.len()];
    let (mut unit, mut known): (Option<String>, Vec<&str>) = (None, Vec::new());
    let params = |(symbol, _): &(&hir::Symbol, &Home)| matches!(symbol.kind, SymbolKind::Param(_));
    for (symbol, home) in cell.symbols.iter().zip(&morphology.homes).filter(params) {
        let (quantity, elements) = match home {
            Home::Part(part) => {
                let part = &morphology.parts[*part];
                (&symbol.name[part.region.len() + 1..], part.elements.to_vec())
            }
            // What a region says of its compartments is part of what all compartments have.
            Home::Tree if !symbol.name.contains('.') => (&symbol.name[..], (0..values.len() as u32).collect()),
            Home::Tree | Home::Cell => continue,
        };
        if !known.contains(&quantity) {
            known.push(quantity);
        }
        let full = format!("{population}.{}", symbol.name);
        if quantity != name && full != name {
            continue;
        }
        let Some(parameter) = parameters.iter().find(|p| p.name == full) else { continue };
        unit = Some(parameter.unit.clone());
        let number = |at: usize| match &parameter.values {
            ParameterValues::One(value) => *value,
            ParameterValues::PerCell { values, population } => {
                let whole = flat.populations.iter().position(|p| p.name == *population);
                let of_compartments = whole.is_some_and(|whole| flat.elements(whole).is_some());
                values.get(if of_compartments { at } else { 0 }).copied().unwrap_or(f64::NAN)
            }
        };
        elements.iter().enumerate().for_each(|(at, &e)| values[e as usize] = number(at));
    }
    match unit {
        Some(unit) => Ok(Numbers { name: name.to_owned(), unit, values, said: format!("{population}: {name}") }),
        None => {
            let (cell, known) = (&cell.name, known.join(", "));
            Err((
                Exit::Usage,
                format!("no parameter of the compartments of {cell} is called `{name}`: there are {known}"),
            ))
        }
    }
}

/// What was recorded in the compartments, at a time.
fn recorded(args: &Args, file: &Path, chosen: &Chosen<'_>, name: Option<&str>) -> Result<Numbers, Wrong> {
    let [t] = args.at[..] else {
        return Err((Exit::Usage, "of a RESULT one moment is drawn: write `--at 12ms`".into()));
    };
    let Some(population) = chosen.population else {
        return Err((Exit::Model, format!("no network has a population of {}", chosen.cell.name)));
    };
    let reading = Reading { no_parameters: true, ..Reading::default() };
    let result = RunResult::read(file, &reading).map_err(|error| (Exit::Usage, error.to_string()))?;
    let of_cell = |s: &&Series| s.population == population && s.compartments.is_some();
    let all: Vec<&Series> = result.series.iter().filter(of_cell).collect();
    // Behind the population and the sections.
    let quantity = |s: &Series| parts(&s.name).get(2..).unwrap_or(&[]).join(".");
    let mut known: Vec<String> = Vec::new();
    for quantity in all.iter().map(|s| quantity(s)) {
        if !known.contains(&quantity) {
            known.push(quantity);
        }
    }
    let of = file.display();
    let wanted = match (name, &known[..]) {
        (_, []) => {
            let help = format!("`record {population}.all.v` records their voltage");
            return Err((Exit::Model, format!("{of} has nothing of the compartments of {population}: {help}")));
        }
        (Some(name), _) => name.to_owned(),
        (None, [only]) => only.clone(),
        (None, [first, ..]) => {
            let known = known.join(", ");
            return Err((
                Exit::Usage,
                format!("{of} has {known} of compartments: write `--colour {first}` or another"),
            ));
        }
    };
    let meant: Vec<&Series> = all.into_iter().filter(|s| quantity(s) == wanted || s.name == wanted).collect();
    let Some(first) = meant.first() else {
        let known = known.join(", ");
        return Err((Exit::Usage, format!("{of} has no `{wanted}` of compartments, but {known}")));
    };
    let number = args.cells.as_ref().and_then(|cells| cells.0.first().copied());
    let number = number.or_else(|| first.cells.first().copied()).unwrap_or(0);
    let tree = &chosen.morphology.tree;
    let compartments = (0..tree.len()).filter(|&e| tree.is_compartment(e));
    let elements: HashMap<String, usize> = compartments.map(|e| (tree.name(e), e)).collect();
    let mut values = vec![f64::NAN; tree.len()];
    let (mut any, mut at) = (false, t);
    for s in &meant {
        let [begin, end] = [s.t.first(), s.t.last()].map(|t| t.copied().unwrap_or(f64::NAN));
        let nearest = (0..s.t.len()).min_by(|&a, &b| (s.t[a] - t).abs().total_cmp(&(s.t[b] - t).abs()));
        let Some(row) = nearest.filter(|_| (begin - 1e-9..=end + 1e-9).contains(&t)) else {
            let message = format!("{} was not recorded at {t} ms, but from {begin} ms to {end} ms", s.name);
            return Err((Exit::Model, message));
        };
        at = s.t[row];
        for column in (0..s.cells.len()).filter(|&column| s.cells[column] == number) {
            let Some((_, compartment)) = s.compartment(column) else { continue };
            let Some(&element) = elements.get(&compartment.name) else {
                let name = &compartment.name;
                return Err((Exit::Model, format!("{of} is not of this model: it has a compartment {name}")));
            };
            values[element] = s.values.get(row, column);
            any = true;
        }
    }
    if !any {
        return Err((Exit::Model, format!("cell {number} of {population} was not recorded")));
    }
    let several = result.populations.iter().any(|p| p.name == population && p.cells > 1);
    let cell = if several { format!(", cell {number}") } else { String::new() };
    let at: f64 = format!("{at:.9}").parse().unwrap_or(at);
    let (name, unit) = (quantity(first), first.unit.clone());
    Ok(Numbers { said: format!("{population}{cell}: {name} at {at} ms"), name, unit, values })
}

fn figure(args: &Args, chosen: &Chosen<'_>, numbers: Option<Numbers>) -> CellFigure {
    let (cell, morphology) = (chosen.cell, chosen.morphology);
    let tree = &morphology.tree;
    let soma = morphology.file.as_ref().map(|file| file.soma);
    let round = matches!(soma, Some(Soma::Sphere | Soma::ThreePoints | Soma::Outline(_)));
    let shape = drawing::draw(&morphology.sections, tree, round);
    let (of_element, heading, colours) = match numbers {
        Some(Numbers { name, unit, values, said }) => {
            ((0..values.len()).collect(), said, CellColours::Numbers { name, unit, values })
        }
        None => {
            let plural = |n: usize, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
            let compartments = plural(tree.sections.iter().map(|s| s.count).sum(), "compartment");
            let (sections, length) = (plural(tree.sections.len(), "section"), 1e4 * tree.length.iter().sum::<f64>());
            let (of_element, names) = chosen.regions();
            (of_element, format!("{sections}, {compartments}, {length:.0} um"), CellColours::Parts(names))
        }
    };
    let piece = |p: &drawing::Piece| CellPiece { ends: p.ends, diam: p.diam, of: of_element[p.element] };
    // The root lies above what begins at it.
    let of_root = |p: &&drawing::Piece| tree.section[p.element] == tree.section[0];
    let others = shape.pieces.iter().filter(|p| !of_root(p)).map(piece);
    let pieces = others.chain(shape.pieces.iter().filter(of_root).map(piece)).collect();
    let title = args.title.clone().unwrap_or_else(|| cell.name.clone());
    let (joins, width, height) = (shape.joins, args.width, args.height);
    CellFigure { title, heading, pieces, joins, colours, width, height }
}
