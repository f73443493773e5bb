//! Paths of numbers in a report's JSON.

use serde_json::Value;

use crate::analysis::WorkKind;
use crate::analysis::concurrent::JOINED;
use crate::timeline::FUSED;

/// Name of a list element: its `name` or `cause`.
fn name(element: &Value) -> Option<&str> {
    ["name", "cause"].iter().find_map(|key| element.get(key)?.as_str())
}

/// Value at a path. Names may contain dots, so each step takes the longest match.
pub(super) fn find<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    if path.is_empty() {
        return Some(value);
    }
    let mut ends: Vec<usize> = path.match_indices('.').map(|(at, _)| at).collect();
    ends.push(path.len());
    ends.iter().rev().find_map(|end| {
        let inner = step(value, &path[..*end])?;
        find(inner, path.get(end + 1..).unwrap_or(""))
    })
}

fn step<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Object(map) => map.get(key).or_else(|| {
            let same = map.iter().find(|(own, _)| are_same_kinds(own, key));
            same.map(|(_, value)| value)
        }),
        Value::Array(list) => {
            let named = list.iter().find(|element| name(element) == Some(key));
            let is_part =
                |name: &str| name.contains(FUSED) && name.split(FUSED).any(|op| op == key);
            named
                .or_else(|| list.iter().find(|element| name(element).is_some_and(is_part)))
                .or_else(|| list.get(key.parse::<usize>().ok()?))
        }
        _ => None,
    }
}

/// Most paths that an error lists.
const NEAR_MAX: usize = 5;

/// Paths of numbers that are most similar to this one.
pub(super) fn near(report: &Value, metric: &str) -> Vec<String> {
    let mut all = Vec::new();
    paths(report, "", &mut all);
    let inside = format!("{metric}.");
    let last = |path: &str| path.rsplit('.').next().unwrap_or("").to_owned();
    let mut ranked: Vec<(usize, String)> = all
        .into_iter()
        .map(|path| {
            let whole = distance(metric, &path);
            // A path whose last word matches counts as similar too.
            let word = distance(&last(metric), &last(&path)) + 1;
            (if path.starts_with(&inside) { 0 } else { whole.min(word) }, path)
        })
        .filter(|(distance, _)| *distance <= 2 + metric.len() / 4)
        .collect();
    ranked.sort();
    ranked.dedup();
    ranked.into_iter().take(NEAR_MAX).map(|(_, path)| path).collect()
}

fn paths(value: &Value, at: &str, found: &mut Vec<String>) {
    let below = |key: &str| if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(k, inner)| paths(inner, &below(k), found)),
        Value::Array(list) => {
            for element in list {
                // Lists of pairs, such as histograms, have no names.
                if let Some(name) = name(element) {
                    paths(element, &below(name), found);
                }
            }
        }
        Value::Number(_) | Value::Null => found.push(at.to_owned()),
        Value::Bool(_) | Value::String(_) => {}
    }
}

/// Edit distance (Levenshtein) of two texts.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// Whether two texts name the same set of kinds of work, in any order.
fn are_same_kinds(a: &str, b: &str) -> bool {
    let words = |text: &str| {
        let mut words: Vec<String> =
            text.split(JOINED).map(|word| word.trim().to_owned()).collect();
        words.sort_unstable();
        words
    };
    b.contains(JOINED) && words(a) == words(b)
}

/// Names of all kinds of work, for errors.
pub(super) fn kinds() -> String {
    WorkKind::ALL.map(WorkKind::name).join(", ")
}

/// The first word of a set of kinds of work that names none, if the path is one of such a set.
pub(super) fn no_kind(metric: &str) -> Option<&str> {
    let (before, set) = metric.split_once("concurrent.")?;
    let is_metric = before.is_empty() || before.ends_with('.');
    let is_kind = |word: &&str| WorkKind::ALL.iter().any(|kind| kind.name() == *word);
    set.split(JOINED).map(str::trim).find(|word| !is_kind(word)).filter(|_| is_metric)
}
