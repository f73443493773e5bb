//! Constraints of requests that come in another way than over HTTP.

use serde_json::{Map, Value};

use super::formats;
use crate::fields::Fields;
use lapwing_engine::structured::Grammar;

/// The grammar of an object in the form of vLLM's `structured_outputs`: `json`, `json_object`, `regex`, `choice`, `grammar` or
/// `structural_tag`, perhaps with a `whitespace_pattern`, for programs that get requests in another way than over HTTP. Members that
/// are null are as absent; without any constraint there is no grammar.
///
/// # Errors
/// When a member is unknown or has the wrong form, or two of them contradict each other; the text names them.
pub fn structured_outputs(outputs: Map<String, Value>) -> Result<Option<Grammar>, String> {
    let asked = formats::of_outputs(Fields::of_object(outputs)).map_err(|error| error.message)?;
    let mut asked = asked.into_iter();
    match (asked.next(), asked.next()) {
        (Some((first, _)), Some((second, _))) => {
            Err(format!("{first} and {second} exclude each other"))
        }
        (first, _) => Ok(first.map(|(_, grammar)| grammar)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(outputs: Value) -> Result<Option<Grammar>, String> {
        let Value::Object(outputs) = outputs else { panic!("{outputs} is no object") };
        structured_outputs(outputs)
    }

    #[test]
    fn each_constraint_has_its_grammar_and_two_of_them_are_refused() {
        assert_eq!(of(json!({"json": null})), Ok(None));
        assert_eq!(of(json!({"regex": "a+"})), Ok(Some(Grammar::regex("a+"))));
        assert_eq!(of(json!({"choice": ["a", "b"]})), Ok(Some(Grammar::choice(["a", "b"]))));
        let schema = json!({"type": "integer"});
        let grammar = Grammar::json_schema(schema.clone());
        assert_eq!(of(json!({"json": schema.to_string()})), Ok(Some(grammar.clone())));
        assert_eq!(of(json!({"json": schema})), Ok(Some(grammar)));
        assert_eq!(
            of(json!({"grammar": "root ::= \"a\""})),
            Ok(Some(Grammar::gbnf("root ::= \"a\"")))
        );
        let both = of(json!({"regex": "a", "choice": ["a"]}));
        assert_eq!(both, Err("regex and choice exclude each other".to_owned()));
        let unknown = of(json!({"xml": "a"})).expect_err("unknown");
        assert!(unknown.contains("xml") && unknown.contains("structural_tag"), "{unknown}");
    }
}
