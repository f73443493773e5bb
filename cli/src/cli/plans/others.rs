//! Plans of the same model and devices that were prepared with other options.

use std::path::Path;

use lapwing_engine::prepare::PlansSubject;
use serde::Deserialize;

/// A file of plans, as far as it is read.
#[derive(Deserialize)]
struct Stored {
    subject: Subject,
}

#[derive(Deserialize)]
struct Subject {
    model: String,
    settings: String,
}

/// What differs in the options of other plans beside `file`, if there are any of the same model and of devices
/// with the same names.
pub(super) fn difference(here: &PlansSubject, file: &Path) -> Option<String> {
    let devices = devices(&here.settings);
    // Plans of one device say little, and take no time to make.
    if devices.len() < 2 {
        return None;
    }
    let of_file = |entry: std::fs::DirEntry| {
        let text = std::fs::read(entry.path()).ok()?;
        Some(serde_json::from_slice::<Stored>(&text).ok()?.subject)
    };
    let entries = std::fs::read_dir(file.parent()?).ok()?.flatten();
    let is_other =
        |other: &Subject| other.model == here.model && self::devices(&other.settings) == devices;
    let others = entries.filter_map(of_file).filter(is_other);
    others.map(|other| between(&other.settings, &here.settings)).min_by_key(String::len)
}

/// Names of the devices in the text of the settings: `("MACHINE", ROWS, [("NAME", "HOW"), …]) (…)`.
fn devices(settings: &str) -> Vec<&str> {
    let list = settings.split_once("[(").map_or("", |(_, rest)| rest);
    let list = list.split_once("]) (").map_or(list, |(list, _)| list);
    let name = |device: &&str| -> usize { device.find('"').unwrap_or(device.len()) };
    list.trim_start_matches('"').split("), (\"").map(|device| &device[..name(&device)]).collect()
}

/// The parts of two settings that differ.
fn between(prepared: &str, here: &str) -> String {
    let parts = |text: &str| -> Vec<String> {
        let plain = text.replace(['"', '(', ')', '[', ']', '{', '}'], "");
        plain.split(", ").map(|part| part.trim().to_owned()).collect()
    };
    let (prepared, here) = (parts(prepared), parts(here));
    let only = |of: &[String], other: &[String]| {
        let own: Vec<&str> =
            of.iter().filter(|part| !other.contains(part)).map(String::as_str).collect();
        if own.is_empty() { "the default".to_owned() } else { own.join(", ") }
    };
    format!(
        "they were made with '{}', and this command has '{}'",
        only(&prepared, &here),
        only(&here, &prepared)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: &str = "(\"x86, 2 cores\", 512, [(\"cpu\", \"native on 2 threads\"), (\"npu\", \"array\")]) \
                            (\"chunk-graph\", StrategyOptions { ratio: None }, [], 4)";

    #[test]
    fn other_plans_of_the_same_devices_are_found_and_the_difference_is_named() {
        assert_eq!(devices(SETTINGS), ["cpu", "npu"]);
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, model: &str, settings: &str| {
            let stored = serde_json::json!({ "subject": { "model": model, "settings": settings } });
            std::fs::write(folder.path().join(name), stored.to_string()).expect("written");
        };
        let here = |settings: &str| PlansSubject {
            program: String::new(),
            model: "m".to_owned(),
            settings: settings.to_owned(),
            profile: None,
        };
        let file = folder.path().join("m-1.json");
        let threads = SETTINGS.replace("2 threads", "1 threads");
        write("other.json", "other", SETTINGS);
        write("broken.json", "m", "");
        write("one.json", "m", &SETTINGS.replace("\"npu\"", "\"gpu\""));
        assert_eq!(difference(&here(&threads), &file), None);
        write("two.json", "m", SETTINGS);
        let found = difference(&here(&threads), &file).expect("a difference");
        assert_eq!(
            found,
            "they were made with 'cpu, native on 2 threads', and this command has 'cpu, native on 1 threads'"
                .replace("cpu, ", "")
        );
        let strategy = SETTINGS.replace("chunk-graph", "row-cut");
        let found = difference(&here(&strategy), &file).expect("a difference");
        assert!(found.contains("'4 chunk-graph'") || found.contains("chunk-graph"), "{found}");
        assert!(found.contains("row-cut"), "{found}");
    }
}
