//! Ratios of engines to each other, and to reading without computing.

use super::report::{EngineRuns, Figures, Ratio};

/// The first engine compared with each other one, in all tests that both have.
pub(super) fn ratios(engines: &[EngineRuns]) -> Vec<Ratio> {
    let Some((ours, peers)) = engines.split_first() else { return Vec::new() };
    let of_peer = |theirs: &EngineRuns| {
        let tests = ours.results.iter().zip(&theirs.results).filter_map(|(a, b)| {
            Ratio::new(&theirs.name, &a.test, &a.tokens_per_second, &b.tokens_per_second)
        });
        let of = |what: &str, a: &Option<Figures>, b: &Option<Figures>| {
            Ratio::new(&theirs.name, what, a.as_ref()?, b.as_ref()?)
        };
        let start = of("one_token_ms", &ours.one_token_ms, &theirs.one_token_ms);
        let peak = of("peak_bytes", &ours.peak_bytes, &theirs.peak_bytes);
        tests.chain(start).chain(peak).collect::<Vec<Ratio>>()
    };
    peers.iter().flat_map(of_peer).collect()
}

/// Every engine compared with reading without computing, as measured next to this engine, pair by
/// pair.
pub(super) fn by_reading(engines: &[EngineRuns]) -> Vec<Ratio> {
    let Some(ours) = engines.first() else { return Vec::new() };
    let of = |engine: &EngineRuns| {
        let tests = ours.results.iter().zip(&engine.results);
        let ratios = tests.filter_map(|(ours, of)| {
            Ratio::new(&engine.name, &of.test, &of.tokens_per_second, ours.reading.as_ref()?)
        });
        ratios.collect::<Vec<Ratio>>()
    };
    engines.iter().flat_map(of).collect()
}

impl Ratio {
    fn new(engine: &str, what: &str, ours: &Figures, theirs: &Figures) -> Option<Ratio> {
        let pairs = ours.all.iter().zip(&theirs.all).map(|(a, b)| a / b);
        Some(Ratio {
            engine: engine.to_owned(),
            what: what.to_owned(),
            of_pairs: Figures::of(pairs.collect())?,
            of_medians: ours.median / theirs.median,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Measured;
    use super::*;

    fn engine(name: &str, speeds: &[f64], peak: Option<&[f64]>) -> EngineRuns {
        let figures = |values: &[f64]| Figures::of(values.to_vec());
        EngineRuns {
            name: name.to_owned(),
            version: String::new(),
            results: vec![Measured {
                test: "pp8".to_owned(),
                tokens: 8,
                depth: 0,
                tokens_per_second: figures(speeds).expect("speeds"),
                reading: None,
                draft: None,
            }],
            peak_bytes: peak.and_then(figures),
            one_token_ms: None,
        }
    }

    #[test]
    fn shares_refer_to_the_reading_of_the_same_pair() {
        let mut ours = engine("lapwing", &[10.0, 40.0, 30.0], None);
        ours.results[0].reading = Figures::of(vec![20.0, 50.0, 40.0]);
        let theirs = engine("x", &[5.0, 10.0, 20.0], None);
        let found = by_reading(&[ours.clone(), theirs.clone()]);
        let all: Vec<_> = found.iter().map(|r| (&*r.engine, &r.of_pairs.all[..])).collect();
        assert_eq!(all, [("lapwing", &[0.5, 0.8, 0.75][..]), ("x", &[0.25, 0.2, 0.5][..])]);
        ours.results[0].reading = None;
        assert!(by_reading(&[ours, theirs]).is_empty());
    }

    #[test]
    fn ratios_are_ours_over_theirs_pair_by_pair() {
        let ours = engine("lapwing", &[10.0, 40.0, 30.0], Some(&[5.0, 5.0, 5.0]));
        let theirs = engine("x", &[10.0, 10.0, 20.0], None);
        let found = ratios(&[ours.clone(), theirs]);
        assert_eq!(found.len(), 1, "no memory is known of x: {found:?}");
        let Ratio { engine: name, what, of_pairs, of_medians } = &found[0];
        assert_eq!((&**name, &**what), ("x", "pp8"));
        assert_eq!((of_pairs.all.as_slice(), of_pairs.median), (&[1.0, 4.0, 1.5][..], 1.5));
        assert_eq!(*of_medians, 3.0);
        let known = engine("y", &[10.0, 10.0, 20.0], Some(&[10.0, 10.0, 20.0]));
        let whats: Vec<String> = ratios(&[ours, known]).into_iter().map(|r| r.what).collect();
        assert_eq!(whats, ["pp8", "peak_bytes"]);
    }
}
