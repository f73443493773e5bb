use schemars::JsonSchema;
use serde_json::{Value, json};

use super::schema::{grammar_schema_of, schema_of};
use super::*;
use crate::error::ErrorKind;

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Reading {
    /// What was measured.
    name: String,
    small: u8,
    signed: Option<i16>,
    large: u64,
    share: f32,
    #[schemars(range(min = 3, max = 5))]
    ranged: u32,
    next: Vec<Step>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
enum Step {
    Left,
    By { metres: i8 },
}

#[test]
fn integers_have_the_bounds_of_their_type() {
    let schema = schema_of::<Reading>();
    let bounds = |name: &str| {
        let member = &schema["properties"][name];
        (member["minimum"].clone(), member["maximum"].clone())
    };
    let rows = [
        ("small", json!(0), json!(255)),
        ("signed", json!(-32768), json!(32767)),
        ("large", json!(0), Value::Null),
        ("share", Value::Null, Value::Null),
        ("ranged", json!(3), json!(5)),
    ];
    for (name, least, most) in rows {
        assert_eq!(bounds(name), (least, most), "{name} of {schema}");
        assert!(schema["properties"][name]["format"].is_null(), "{name} of {schema}");
    }
    let inner = schema.to_string();
    assert!(inner.contains("-128") && !inner.contains("\"int8\""), "within definitions: {inner}");
}

#[test]
fn properties_have_the_order_of_the_fields() {
    let schema = schema_of::<Reading>();
    let names: Vec<&String> = schema["properties"].as_object().expect("an object").keys().collect();
    assert_eq!(names, ["name", "small", "signed", "large", "share", "ranged", "next"]);
}

#[test]
fn the_parameters_of_a_tool_are_those_of_a_type() {
    let tool = crate::tools::Tool::new("read").parameters_of::<Reading>();
    let written = crate::tools::Tool::new("read").parameters(schema_of::<Reading>());
    assert_eq!(tool, written);
}

#[test]
fn a_request_with_a_grammar_or_tools_of_its_own_is_refused() {
    let request = || Request::ask("How far?");
    let with_grammar = request().grammar(Grammar::regex("a"));
    assert!(matches!(asking::<Reading>(with_grammar), Err(TypedError::HasGrammar)));
    let tools = || crate::tools::Tools::new([crate::tools::Tool::new("read")]);
    let with_tools = request().tools(tools());
    assert!(matches!(asking::<Reading>(with_tools), Err(TypedError::HasTools)));
    let without = request().tools(tools().choice(crate::tools::ToolChoice::None));
    let asked = asking::<Reading>(without).expect("no call is possible");
    assert_eq!((asked.grammar, asked.divided), (Some(Grammar::of::<Reading>()), true));
}

#[test]
fn an_error_of_a_typed_answer_is_one_of_the_engine_of_a_fitting_kind() {
    let reason = EndReason::Length;
    let no_value = serde_json::from_str::<u8>("x").expect_err("no number");
    let refused = crate::error::RunError::QueueFull { limit: 1 };
    let rows = [
        (TypedError::HasGrammar, ErrorKind::Request),
        (TypedError::HasTools, ErrorKind::Request),
        (TypedError::Cut { text: "{".to_owned(), reason, tokens: 1 }, ErrorKind::Answer),
        (
            TypedError::NoValue { type_name: "u8", text: "x".to_owned(), source: no_value },
            ErrorKind::Answer,
        ),
        (Error::from(refused).into(), ErrorKind::Busy),
    ];
    for (error, kind) in rows {
        let (text, is_own) = (error.to_string(), !matches!(error, TypedError::Engine(_)));
        let error = Error::from(error);
        assert_eq!((error.kind(), error.to_string()), (kind, text));
        assert_eq!(error.typed_error().is_some(), is_own, "{error}");
        assert_eq!(error.run_error().is_some(), !is_own, "{error}");
    }
}

#[test]
fn the_grammar_of_a_type_divides_integers_by_their_sign() {
    let schema = grammar_schema_of::<Reading>();
    let signs = |name: &str| schema["properties"][name]["anyOf"].clone();
    let both =
        [json!({"type": "integer", "maximum": -1}), json!({"type": "integer", "minimum": 0})];
    let with_null = [&both[..], &[json!({"type": "null"})]].concat();
    assert_eq!(signs("signed"), Value::from(with_null));
    for name in ["small", "ranged", "large", "share", "name"] {
        assert!(signs(name).is_null(), "{name} of {schema}");
    }
}
