//! The text of a study, with the lines of its keys.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::Wrong;
use crate::simulate::Axis;

/// A study as it is written.
#[derive(Debug, Default)]
pub(super) struct StudyText {
    pub(super) title: String,
    pub(super) about: String,
    /// Seeds of all runs.
    pub(super) seeds: Option<Setting>,
    pub(super) figures: Option<Setting>,
    pub(super) against: Option<Setting>,
    /// Settings of all scenarios.
    pub(super) settings: Vec<Setting>,
    pub(super) scenarios: Vec<ScenarioText>,
}

/// A scenario as it is written.
#[derive(Debug, Default)]
pub(super) struct ScenarioText {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) about: String,
    pub(super) command: Option<Setting>,
    pub(super) figures: Option<Setting>,
    pub(super) against: Option<Setting>,
    pub(super) settings: Vec<Setting>,
}

/// A key with its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) line: usize,
    pub(super) key: String,
    /// As texts: one, or those of a list or a range.
    pub(super) values: Vec<String>,
    /// Whether it is a list or a range.
    pub(super) varies: bool,
}

impl Setting {
    /// Its only value.
    pub(super) fn one(&self) -> Result<&str, Wrong> {
        match (&self.values[..], self.varies) {
            ([one], false) => Ok(one),
            _ => {
                Err(Wrong::new(self.line, format!("'{}' must be one value, not a list", self.key)))
            }
        }
    }
}

/// Keys of a study, and of a scenario beside its settings.
const STUDY: [&str; 7] = ["title", "about", "seeds", "figures", "against", "settings", "scenario"];
const SCENARIO: [&str; 5] = ["name", "about", "command", "figures", "against"];

impl StudyText {
    /// Reads a study.
    pub(super) fn read(text: &str) -> Result<StudyText, Wrong> {
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            Wrong::new(line, error.message().to_owned())
        })?;
        let mut study = StudyText::default();
        for Entry { key, line, value } in entries(text, table.get_ref()) {
            match (key, value.get_ref()) {
                ("settings", DeValue::Table(settings)) => {
                    study.settings = flattened(text, "", settings)?;
                }
                ("scenario", DeValue::Array(scenarios)) => {
                    for scenario in scenarios.iter() {
                        study.scenarios.push(ScenarioText::read(text, scenario)?);
                    }
                }
                ("settings" | "scenario", _) => {
                    let expected = if key == "scenario" { "[[scenario]]" } else { "[settings]" };
                    return Err(Wrong::new(line, format!("write '{key}' as tables: {expected}")));
                }
                ("title", _) => study.title = setting(text, "title", value)?.one()?.to_owned(),
                ("about", _) => study.about = setting(text, "about", value)?.one()?.to_owned(),
                ("seeds", _) => study.seeds = Some(setting(text, "seeds", value)?),
                ("figures", _) => study.figures = Some(setting(text, "figures", value)?),
                ("against", _) => study.against = Some(setting(text, "against", value)?),
                _ => return Err(Wrong::unknown(line, "key of a study", key, &STUDY)),
            }
        }
        match study.scenarios.is_empty() {
            true => Err(Wrong::new(1, "a study needs a scenario: add [[scenario]] with a name")),
            false => Ok(study),
        }
    }
}

impl ScenarioText {
    fn read(text: &str, value: &Spanned<DeValue<'_>>) -> Result<ScenarioText, Wrong> {
        let line = line_of(text, value.span().start);
        let DeValue::Table(table) = value.get_ref() else {
            return Err(Wrong::new(line, "write each scenario as a table: [[scenario]]"));
        };
        let mut scenario = ScenarioText { line, ..ScenarioText::default() };
        for found in flattened(text, "", table)? {
            match &*found.key {
                "name" => found.one()?.clone_into(&mut scenario.name),
                "about" => found.one()?.clone_into(&mut scenario.about),
                "command" => scenario.command = Some(found),
                "figures" => scenario.figures = Some(found),
                "against" => scenario.against = Some(found),
                _ => scenario.settings.push(found),
            }
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        match scenario.name.chars().all(fits) && !scenario.name.is_empty() {
            true => Ok(scenario),
            false => {
                let reason =
                    "a scenario needs a name of letters, digits, - and _, which names its files";
                Err(Wrong::new(line, format!("{reason}: name = \"short-prompts\"")))
            }
        }
    }

    /// Keys of a scenario that are no settings.
    pub(super) const KEYS: [&str; 5] = SCENARIO;
}

struct Entry<'a> {
    key: &'a str,
    line: usize,
    value: &'a Spanned<DeValue<'a>>,
}

/// The entries of a table in the order of the text.
fn entries<'a>(text: &str, table: &'a DeTable<'a>) -> Vec<Entry<'a>> {
    let mut all: Vec<_> = table.iter().map(|(key, value)| (key.span().start, key, value)).collect();
    all.sort_by_key(|(at, ..)| *at);
    let entry = |(at, key, value): (usize, &'a Spanned<_>, &'a Spanned<_>)| {
        let key: &'a std::borrow::Cow<'a, str> = key.get_ref();
        Entry { key, line: line_of(text, at), value }
    };
    all.into_iter().map(entry).collect()
}

/// The settings of a table; one within another has a key with a dot.
fn flattened(text: &str, before: &str, table: &DeTable<'_>) -> Result<Vec<Setting>, Wrong> {
    let mut settings = Vec::new();
    for Entry { key, value, .. } in entries(text, table) {
        let key = format!("{before}{key}");
        match value.get_ref() {
            DeValue::Table(inner) => {
                settings.extend(flattened(text, &format!("{key}."), inner)?);
            }
            _ => settings.push(setting(text, &key, value)?),
        }
    }
    Ok(settings)
}

fn setting(text: &str, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Setting, Wrong> {
    let line = line_of(text, value.span().start);
    let wrong = || {
        let expected = "a text, a number, true or false, or a list of these";
        Wrong::new(line, format!("'{key}' must be {expected}"))
    };
    let (values, varies) = match value.get_ref() {
        DeValue::Array(values) => {
            let values = values.iter().map(|value| plain(value.get_ref()));
            (values.collect::<Option<Vec<_>>>().ok_or_else(wrong)?, true)
        }
        value => {
            let value = plain(value).ok_or_else(wrong)?;
            match is_range(&value) {
                false => (vec![value], false),
                true => {
                    let axis = Axis::parse(&format!("{key}={value}"));
                    let axis = axis.map_err(|error| Wrong::new(line, error.to_string()))?;
                    (axis.values, true)
                }
            }
        }
    };
    match values.is_empty() {
        true => Err(Wrong::new(line, format!("the list of '{key}' is empty"))),
        false => Ok(Setting { line, key: key.to_owned(), values, varies }),
    }
}

/// A value as the text of an option of the command line.
fn plain(value: &DeValue<'_>) -> Option<String> {
    Some(match value {
        DeValue::String(text) => text.clone().into_owned(),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok()?.to_string()
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().ok()?.to_string(),
        DeValue::Boolean(is_on) => if *is_on { "on" } else { "off" }.to_owned(),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => return None,
    })
}

/// Whether a text is `FROM:TO` or `FROM:TO:STEP`.
fn is_range(text: &str) -> bool {
    let is_number = |part: &str| part.trim().trim_end_matches('x').parse::<f64>().is_ok();
    text.contains(':') && text.split(':').all(is_number)
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "title = \"T\"\nseeds = 3\n[settings]\nsoc = \"sd8gen3\"\ngpu.rate = [\"1x\", \"2x\"]\n\n\
                        [[scenario]]\nname = \"a\"\nprompt = \"64:128:64\"\nfast-sync = false\nstrategy = [\"pipe\"]\n";

    #[test]
    fn settings_have_values_lines_and_the_order_of_the_text() {
        let study = StudyText::read(TEXT).expect("a study");
        let found =
            |setting: &Setting| (setting.line, setting.key.clone(), setting.values.join(" "));
        let settings: Vec<_> =
            study.settings.iter().chain(&study.scenarios[0].settings).map(found).collect();
        let expected = [
            (4, "soc", "sd8gen3"),
            (5, "gpu.rate", "1x 2x"),
            (9, "prompt", "64 128"),
            (10, "fast-sync", "off"),
            (11, "strategy", "pipe"),
        ];
        assert_eq!(
            settings,
            expected.map(|(line, key, values)| (line, key.to_owned(), values.to_owned()))
        );
        let varies: Vec<bool> = study.scenarios[0].settings.iter().map(|it| it.varies).collect();
        assert_eq!(varies, [true, false, true]);
    }

    #[test]
    fn wrong_texts_are_found_with_their_line() {
        let scenario = "[[scenario]]\nname = \"a\"\n";
        let rows = [
            (format!("titel = \"T\"\n{scenario}"), 1, "did you mean 'title'"),
            ("title = \"T\"\n".to_owned(), 1, "[[scenario]]"),
            (format!("title = \n{scenario}"), 1, ""),
            (format!("{scenario}prompt = []\n"), 3, "empty"),
            (format!("{scenario}prompt = [[1]]\n"), 3, "list of these"),
            (format!("{scenario}prompt = \"9:1:1\"\n"), 3, "ascend"),
            (format!("{scenario}[[scenario]]\nprompt = 3\n"), 3, "name"),
            ("\n[[scenario]]\nname = \"a b\"\n".to_owned(), 2, "letters"),
            ("\nscenario = 3\n".to_owned(), 2, "[[scenario]]"),
        ];
        for (text, line, says) in rows {
            let wrong = StudyText::read(&text).expect_err(&text);
            assert!(wrong.line == line && wrong.reason.contains(says), "{text}: {wrong:?}");
        }
    }
}
