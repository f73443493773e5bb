//! vLLM's structural tags: text of which parts have a grammar of their own.

use serde_json::Value;

use super::text::of_text;
use crate::error::ApiError;
use lapwing_engine::structured::{Grammar, Tag};

/// The grammar of structural tags: `structures` with `triggers`, or a `format`.
///
/// # Errors
/// When they have a form that is not known.
pub(super) fn read(field: &str, tags: &Value) -> Result<Grammar, ApiError> {
    let grammar = match (tags.get("format"), tags.get("structures")) {
        (Some(format), _) => of(format),
        (None, Some(structures)) => tagged(structures, &tags["triggers"], |structure| {
            Ok(Grammar::json_schema(structure["schema"].clone()))
        }),
        (None, None) => Err("it has neither a format nor structures".to_owned()),
    };
    grammar.map_err(|error| ApiError::field(field, format!("{field}: {error}")))
}

/// The grammar of a format.
fn of(format: &Value) -> Result<Grammar, String> {
    let text = |name: &str| {
        let text = format.get(name).and_then(Value::as_str);
        text.ok_or_else(|| format!("{format} has no text '{name}'"))
    };
    match format["type"].as_str().unwrap_or_default() {
        "json_schema" => Ok(Grammar::json_schema(format["json_schema"].clone())),
        "regex" => Ok(Grammar::regex(text("pattern")?)),
        "grammar" => Ok(of_text(text("grammar")?)),
        "const_string" => Ok(Grammar::choice([text("value")?])),
        "any_text" => Ok(Grammar::regex("(?s:.*)")),
        "sequence" => Ok(Grammar::sequence(all(&format["elements"])?)),
        "or" => Ok(Grammar::one_of(all(&format["elements"])?)),
        "tag" => {
            let (begin, end) = (text("begin")?, text("end")?);
            let inside = content(format)?;
            Ok(Grammar::sequence([Grammar::choice([begin]), inside, Grammar::choice([end])]))
        }
        "triggered_tags" => {
            for name in ["at_least_one", "stop_after_first"] {
                if format[name] == true {
                    return Err(format!("{name} is not supported"));
                }
            }
            tagged(&format["tags"], &format["triggers"], content)
        }
        other => Err(format!(
            "the type '{other}' is not supported; json_schema, regex, grammar, const_string, any_text, sequence, or, tag and \
             triggered_tags are"
        )),
    }
}

/// The content of a tag, whose end has to be found.
fn content(tag: &Value) -> Result<Grammar, String> {
    match tag["content"]["type"].as_str() {
        Some("any_text" | "triggered_tags") => {
            Err("a tag whose content is any text is not supported".to_owned())
        }
        _ => of(&tag["content"]),
    }
}

fn all(elements: &Value) -> Result<Vec<Grammar>, String> {
    let elements = elements.as_array().filter(|elements| !elements.is_empty());
    elements.ok_or("a list of elements is empty")?.iter().map(of).collect()
}

/// Any text with tags, whose content `inside` reads.
fn tagged(
    tags: &Value,
    triggers: &Value,
    inside: impl Fn(&Value) -> Result<Grammar, String>,
) -> Result<Grammar, String> {
    let texts = triggers.as_array().into_iter().flatten().filter_map(Value::as_str);
    let triggers: Vec<&str> = texts.filter(|trigger| !trigger.is_empty()).collect();
    let tag = |tag: &Value| {
        let (Some(begin), Some(end)) = (tag["begin"].as_str(), tag["end"].as_str()) else {
            return Err(format!("{tag} has no texts 'begin' and 'end'"));
        };
        let trigger = triggers.iter().find(|trigger| begin.starts_with(**trigger));
        let trigger = trigger.ok_or_else(|| format!("no trigger begins '{begin}'"))?;
        Ok(Tag {
            trigger: (*trigger).to_owned(),
            begin: begin.to_owned(),
            inside: inside(tag)?,
            end: end.to_owned(),
        })
    };
    let tags = tags.as_array().ok_or("the tags are no list")?;
    Ok(Grammar::tagged(tags.iter().map(tag).collect::<Result<Vec<_>, String>>()?))
}
