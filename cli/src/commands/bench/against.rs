//! Compares a run with a saved one.

use serde::Serialize;

use super::report::Record;
use crate::cli::session::Session;

/// The comparison with a saved run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Against {
    /// Date of the saved run.
    pub(super) date: String,
    /// Differences of machine, model and settings.
    pub(super) differs: Vec<String>,
    pub(super) ratios: Vec<Change>,
}

/// One test of one engine, in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Change {
    pub(super) engine: String,
    pub(super) test: String,
    /// Median tokens per second of this run.
    pub(super) now: f64,
    /// Median tokens per second of the saved run.
    pub(super) then: f64,
    /// now / then.
    pub(super) ratio: f64,
}

/// Compares all tests that both runs have.
pub(super) fn compare(now: &Record, then: &Record, session: &Session) -> Against {
    let found = against(now, then);
    if !found.differs.is_empty() {
        let differs = found.differs.join("; ");
        session.note(&format!("the saved run differs in other respects: {differs}"));
    }
    if found.ratios.is_empty() {
        let mut tests: Vec<&str> = then
            .engines
            .iter()
            .flat_map(|engine| engine.results.iter().map(|result| &*result.test))
            .collect();
        tests.dedup();
        session.note(&format!("the saved run has none of these tests, only {}", tests.join(", ")));
    }
    found
}

fn against(now: &Record, then: &Record) -> Against {
    let mut differs = Vec::new();
    let mut differ = |what: &str, now: String, then: String| {
        if now != then {
            differs.push(format!("{what} is {now}, was {then}"));
        }
    };
    let machine = |record: &Record| {
        let lapwing_engine::profile::Machine { cpu, cores, isa, os } = &record.machine;
        format!("{cpu} with {cores} cores, {isa}, {os}")
    };
    differ("the machine", machine(now), machine(then));
    differ("the number of threads", now.threads.to_string(), then.threads.to_string());
    let kv = |record: &Record| record.kv.0.to_string();
    differ("the type of keys and values", kv(now), kv(then));
    let requant = |record: &Record| match &record.requant {
        Some(requant) => requant.text.clone(),
        None => "as stored".to_owned(),
    };
    differ("the format of the weights", requant(now), requant(then));
    let masks = |record: &Record| match &record.attention.masks {
        Some(masks) => masks.join(" "),
        None => "the model's own".to_owned(),
    };
    differ("the mask of attention", masks(now), masks(then));
    let shared = |record: &Record| record.attention.share_kv.clone();
    let shared = |record| shared(record).unwrap_or_else(|| "none".to_owned());
    differ("the sharing of keys and values", shared(now), shared(then));
    if !then.settings.is_empty() {
        differ("the setting", now.settings.clone(), then.settings.clone());
    }
    // The same model may have another path.
    let model = |record: &Record| {
        let name = std::path::Path::new(&record.model).file_name();
        let name = name.map_or_else(|| record.model.clone(), |n| n.to_string_lossy().into_owned());
        format!("{name} of {} bytes", record.model_bytes)
    };
    differ("the model", model(now), model(then));
    let mut ratios = Vec::new();
    for engine in &now.engines {
        let Some(kept) = then.engines.iter().find(|kept| kept.name == engine.name) else {
            continue;
        };
        for result in &engine.results {
            let Some(before) = kept.results.iter().find(|before| before.test == result.test) else {
                continue;
            };
            let (now, then) = (result.tokens_per_second.median, before.tokens_per_second.median);
            ratios.push(Change {
                engine: engine.name.clone(),
                test: result.test.clone(),
                now,
                then,
                ratio: now / then,
            });
        }
    }
    Against { date: then.date.clone(), differs, ratios }
}

#[cfg(test)]
mod tests {
    use lapwing_engine::profile::Machine;

    use super::super::report::{EngineRuns, Figures, Kv, Measured};
    use super::*;

    fn record(speeds: &[(&str, f64)], threads: usize) -> Record {
        let measured = |(test, speed): &(&str, f64)| Measured {
            reading: None,
            draft: None,
            test: (*test).to_owned(),
            tokens: 1,
            depth: 0,
            tokens_per_second: Figures::of(vec![*speed]).expect("a speed"),
        };
        let machine = Machine { cpu: "c".into(), cores: 2, isa: "avx2".into(), os: "o".into() };
        Record {
            version: Record::VERSION,
            date: "2026-01-02T03:04:05Z".to_owned(),
            machine,
            model: "/a/m.gguf".to_owned(),
            model_bytes: 7,
            threads,
            kv: Kv::default(),
            requant: None,
            attention: Default::default(),
            settings: "cpu=cpu on 2 threads, warm".to_owned(),
            engines: vec![EngineRuns {
                name: "lapwing".to_owned(),
                version: "1".to_owned(),
                results: speeds.iter().map(measured).collect(),
                peak_bytes: None,
                one_token_ms: None,
            }],
        }
    }

    #[test]
    fn equal_tests_are_compared() {
        let now = record(&[("pp8", 30.0), ("tg4", 5.0), ("tg8", 1.0)], 2);
        let mut then = record(&[("tg4", 4.0), ("pp8", 60.0)], 2);
        then.model = "/b/m.gguf".to_owned();
        let found = against(&now, &then);
        let ratios: Vec<(&str, f64)> = found.ratios.iter().map(|c| (&*c.test, c.ratio)).collect();
        assert_eq!(ratios, [("pp8", 0.5), ("tg4", 1.25)]);
        assert!(found.differs.is_empty(), "{:?}", found.differs);
    }

    #[test]
    fn differences_of_machine_and_settings_are_reported() {
        let now = record(&[("pp8", 30.0)], 2);
        let mut then = record(&[("pp8", 30.0)], 1);
        then.machine.isa = "generic".to_owned();
        then.kv = Kv(lapwing_engine::KvDtype::I8);
        let requant = serde_json::json!({
            "format": "Q8_0", "matrices": 2, "changed": 2, "from": ["F16"], "stored_bytes": 4,
            "bytes": 3, "kept": [], "text": "requantised: 2 of 2"
        });
        then.requant = serde_json::from_value(requant).expect("a report");
        then.settings = "npu=systolic on 1 threads, warm".to_owned();
        let differs = against(&now, &then).differs.join("; ");
        for part in [
            "generic",
            "threads is 2, was 1",
            "keys and values is f16, was int8",
            "weights is as stored, was requantised: 2 of 2",
            "npu",
        ] {
            assert!(differs.contains(part), "{part}: {differs}");
        }
    }
}
