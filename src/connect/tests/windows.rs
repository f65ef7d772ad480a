//! Convolutions and pooling.

use super::*;

fn named(name: &str, arguments: &[(&str, f64)]) -> Rule {
    Rule::named(name, arguments).expect("a rule")
}

/// What arrives at each target if every connection carries a number of the kernel, by the definition of a convolution.
fn by_definition(input: &[f64], source: [i64; 3], kernel: &[f64], target: [i64; 3], rule: &Rule) -> Vec<f64> {
    let Rule::Convolution { kernel: size, stride, padding, pool, .. } = *rule else { panic!("{rule:?}") };
    let [size, stride, padding, pool] = [size, stride, padding, pool].map(|x| x as i64);
    let mut out = Vec::new();
    for to in 0..target[2] {
        for y in 0..target[1] {
            for x in 0..target[0] {
                let mut sum = 0.0;
                for at in 0..pool * pool {
                    let place = [x * pool + at % pool, y * pool + at / pool].map(|o| o * stride - padding);
                    for from in 0..source[2] {
                        for k in 0..size * size {
                            let [sx, sy] = [place[0] + k % size, place[1] + k / size];
                            if (0..source[0]).contains(&sx) && (0..source[1]).contains(&sy) {
                                let weight = kernel[((to * source[2] + from) * size * size + k) as usize];
                                sum += weight * input[(sx + source[0] * (sy + source[1] * from)) as usize];
                            }
                        }
                    }
                }
                out.push(sum / (pool * pool) as f64);
            }
        }
    }
    out
}

#[test]
fn convolutions_are_what_they_are_by_definition() {
    let cases = [
        ([7, 5, 2], [5, 3, 3], [("kernel", 3.0), ("stride", 1.0), ("padding", 0.0), ("pool", 1.0)]),
        ([7, 6, 2], [4, 4, 3], [("kernel", 4.0), ("stride", 2.0), ("padding", 2.0), ("pool", 1.0)]),
        ([7, 6, 1], [3, 3, 2], [("kernel", 3.0), ("stride", 1.0), ("padding", 1.0), ("pool", 2.0)]),
        ([6, 6, 3], [1, 1, 4], [("kernel", 3.0), ("stride", 3.0), ("padding", 0.0), ("pool", 2.0)]),
        ([4, 4, 2], [4, 4, 5], [("kernel", 1.0), ("stride", 1.0), ("padding", 0.0), ("pool", 1.0)]),
    ];
    for (from, to, arguments) in cases {
        let rule = named("convolution", &arguments);
        let [source, target] = [from, to].map(|sizes| Shape { sizes: sizes.map(|size| size as usize).to_vec() });
        let ends = Ends::Between { source: &source, target: &target };
        let entries = directed(&rule, ends, 0, 0).expect("entries");
        let kernel = kernel(&rule, ends).expect("grids that fit").expect("a kernel");
        let count = kernel.sizes.iter().product::<usize>();
        assert_eq!(kernel.sizes[..2], [to[2] as usize, from[2] as usize]);
        assert_eq!(entries.len(), kernel.entry.len());
        assert!(entries.len() as f64 <= expected_directed(&rule, &source, &target));
        let numbers: Vec<f64> = (0..count).map(|i| (0.7 * i as f64).sin()).collect();
        let input: Vec<f64> = (0..source.cells()).map(|i| (1.3 * i as f64).cos()).collect();
        let share = 1.0 / arguments[3].1.powi(2);
        let mut arrived = vec![0.0; target.cells()];
        for (&(target, source), &entry) in entries.iter().zip(&kernel.entry) {
            arrived[target as usize] += share * numbers[entry as usize] * input[source as usize];
        }
        let expected = by_definition(&input, from, &numbers, to, &rule);
        for (found, expected) in arrived.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-12, "{rule:?}: {found} {expected}");
        }
    }
}

/// Connections to each of the places of which a target has the largest are those of the convolution to all places, and no others.
#[test]
fn places_are_those_of_the_convolution() {
    let arguments = [("kernel", 3.0), ("stride", 2.0), ("padding", 1.0)];
    let shape = |sizes: [usize; 3]| Shape { sizes: sizes.to_vec() };
    let (source, all, few) = (shape([14, 10, 2]), shape([7, 5, 3]), shape([3, 2, 3]));
    let found = |rule: &Rule, target: &Shape| {
        let ends = Ends::Between { source: &source, target };
        let kernel = kernel(rule, ends).expect("grids that fit").expect("a kernel");
        assert_eq!(kernel.sizes, [3, 2, 3, 3]);
        let entries = directed(rule, ends, 0, 0).expect("entries");
        assert!(entries.len() as f64 <= expected_directed(rule, &source, target));
        entries.into_iter().zip(kernel.entry).collect::<Vec<_>>()
    };
    let whole = found(&named("convolution", &arguments), &all);
    let pooled = named("convolution", &[&arguments[..], &[("max_pool", 2.0)]].concat());
    for number in 0..4 {
        // Of 7 x 5 places, the last column and the last row belong to no target.
        let place_of = |target: u32| {
            let [x, y, channel] = [target % 3, target / 3 % 2, target / 6];
            2 * x + number % 2 + 7 * (2 * y + number / 2) + 35 * channel
        };
        let of_places = found(&pooled.clone().at_place(u64::from(number)), &few);
        let of_places: Vec<_> =
            of_places.into_iter().map(|((to, from), entry)| ((place_of(to), from), entry)).collect();
        let places: Vec<u32> = (0..18).map(place_of).collect();
        let expected: Vec<_> = whole.iter().filter(|((to, _), _)| places.contains(to)).copied().collect();
        assert_eq!(of_places, expected);
    }
}

#[test]
fn lines_have_lines_for_windows() {
    let (source, target) = (Shape::line(9), Shape::line(3));
    let ends = Ends::Between { source: &source, target: &target };
    let rule = named("convolution", &[("kernel", 3.0), ("pool", 2.0)]);
    let kernel = kernel(&rule, ends).expect("grids that fit").expect("a kernel");
    assert_eq!(kernel.sizes, [1, 1, 1, 3]);
    let entries = directed(&rule, ends, 0, 0).expect("entries");
    let mut sums = vec![0.0; 27];
    for (&(target, source), &entry) in entries.iter().zip(&kernel.entry) {
        // The three numbers of the kernel are 1, 10 and 100.
        sums[target as usize * 9 + source as usize] += 0.25 * 10f64.powi(entry as i32);
    }
    let mut expected = vec![0.0; 27];
    for target in 0..3 {
        [0.5, 5.5, 55.0, 50.0].iter().enumerate().for_each(|(at, x)| expected[target * 9 + 2 * target + at] = *x);
    }
    assert_eq!(sums, expected);
}

#[test]
fn pooling_stays_within_its_channel() {
    let (source, target) = (Shape { sizes: vec![4, 4, 2] }, Shape { sizes: vec![2, 2, 2] });
    let ends = Ends::Between { source: &source, target: &target };
    let rule = named("pooling", &[("kernel", 2.0)]);
    assert_eq!(rule, Rule::Pooling { kernel: 2, stride: 2, padding: 0 });
    assert_eq!(kernel(&rule, ends), Ok(None));
    let mut entries = directed(&rule, ends, 0, 0).expect("entries");
    assert_eq!(entries[..4], [(0, 0), (0, 1), (0, 4), (0, 5)]);
    entries.sort_by_key(|&(_, source)| source);
    let target_of = |source: u32| (source % 4) / 2 + (source / 4 % 4) / 2 * 2 + source / 16 * 4;
    assert_eq!(entries, (0..32).map(|source| (target_of(source), source)).collect::<Vec<_>>());
}
