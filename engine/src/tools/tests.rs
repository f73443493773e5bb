use serde_json::{Value, json};

use super::*;
use crate::chat::{ChatTemplate, Message};
use crate::parts::{Answer, Part};
use crate::request::{Prompt, Request};
use crate::structured::Grammar;

fn template(source: &str) -> ChatTemplate {
    ChatTemplate::new(source, "", "")
}

fn weather() -> Tool {
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    Tool::new("weather").description("The weather of a city.").parameters(schema)
}

fn messages(request: &Request) -> &[Message] {
    let Prompt::Chat(messages) = &request.prompt else { panic!("{request:?}") };
    messages
}

#[test]
fn a_template_with_a_place_for_functions_gets_their_descriptions() {
    let known = template("{{ tools }}");
    let told = Tools::new([weather()]).tell(Request::ask("Bern?"), Some(&known));
    let described = json!([{ "type": "function", "function": {
        "name": "weather", "description": "The weather of a city.",
        "parameters": { "type": "object", "properties": { "city": { "type": "string" } } },
    } }]);
    assert_eq!(told.template_variables["tools"], described);
    assert_eq!(messages(&told), [Message::user("Bern?")]);
    let read = Tool::from_json(described[0]["function"].clone()).expect("a function");
    assert_eq!(read, weather(), "as OpenAI's responses have it");
}

#[test]
fn a_template_without_one_gets_functions_calls_and_results_as_text() {
    let plain = template("{{ messages[0].content }}");
    let call = ToolCall::new("weather", r#"{"city": "Bern"}"#);
    let conversation = vec![
        Message::system("Be brief."),
        Message::user("Bern?"),
        Message::assistant("").calls([&call]),
        Message::result(&call, "Rain."),
    ];
    let told = Tools::new([weather()]).tell(Request::chat(conversation), Some(&plain));
    let texts: Vec<(&str, &str)> =
        messages(&told).iter().map(|message| (&*message.role, &*message.content)).collect();
    assert!(texts[0].1.starts_with("Be brief.\n\nYou may call functions."), "{texts:?}");
    assert!(texts[0].1.contains("\n{\"type\":\"function\",\"function\":{\"name\":\"weather\","));
    let called =
        "<tool_call>\n{\"name\":\"weather\",\"arguments\":{\"city\":\"Bern\"}}\n</tool_call>";
    assert_eq!(texts[2], ("assistant", called));
    assert_eq!(texts[3], ("user", "<tool_response>\nRain.\n</tool_response>"));
    assert!(told.template_variables.is_empty());
}

/// A template that shows the first call of a message, or refuses a second one, gets a message for each.
#[test]
fn each_call_is_shown_also_where_a_message_has_several() {
    const SHOWN: &str = "{% for m in messages %}{% if m.tool_calls %}{% set f = m.tool_calls[0].function %}\
                         {{ m.content }}{{ f.name }}{{ f.arguments }};{% else %}{{ m.content }};{% endif %}{% endfor %}{{ tools }}";
    const REFUSED: &str = "{% if m.tool_calls and m.tool_calls|length > 1 %}{{ raise_exception('one') }}{% endif %}{% if m.tool_calls %}";
    let calls =
        ["Bern", "Uri"].map(|city| ToolCall::new("weather", json!({ "city": city }).to_string()));
    let conversation = vec![
        Message::user("Q"),
        Message::assistant("A").calls(&calls),
        Message::result(&calls[1], "Sun."),
        Message::result(&calls[0], "Rain."),
        Message::user("R"),
    ];
    for source in [SHOWN.to_owned(), SHOWN.replace("{% if m.tool_calls %}", REFUSED)] {
        let template = template(&source);
        let told =
            Tools::new([weather()]).tell(Request::chat(conversation.clone()), Some(&template));
        let prompt = template.render(messages(&told), true).expect("a prompt");
        let want = "Q;Aweather{\"city\": \"Bern\"};Rain.;weather{\"city\": \"Uri\"};Sun.;R;";
        assert!(prompt.replace('\'', "\"").starts_with(want), "{prompt}");
    }
}

#[test]
fn a_model_that_may_call_nothing_is_told_of_nothing() {
    let tools = Tools::new([weather().strict(true)]).choice(ToolChoice::None);
    for template in [template("{{ tools }}"), template("")] {
        assert_eq!(tools.tell(Request::ask("Bern?"), Some(&template)), Request::ask("Bern?"));
        assert_eq!(tools.grammar(None, Some(&template)), None);
        let message = Grammar::regex("a");
        assert_eq!(tools.grammar(Some(message.clone()), Some(&template)), Some(message));
    }
}

#[test]
fn calls_are_checked_where_the_choice_or_a_function_asks_for_it() {
    let kind = |tools: &Tools, message: Option<Grammar>| {
        tools.grammar(message, None).map(|grammar| grammar.to_string())
    };
    let several = Some("grammar of several parts".to_owned());
    let rows = [
        (Tools::new([weather()]), None, several.clone()),
        (Tools::new([weather()]).choice(ToolChoice::Required), several.clone(), several.clone()),
        (
            Tools::new([weather()]).choice(ToolChoice::Named("weather".to_owned())),
            several.clone(),
            several.clone(),
        ),
        (Tools::new([weather().strict(true)]), several.clone(), several.clone()),
        (Tools::new([weather()]).allowed(["weather"]), several.clone(), several),
    ];
    for (tools, alone, with_message) in rows {
        assert_eq!(kind(&tools, None), alone, "{tools:?}");
        assert_eq!(kind(&tools, Some(Grammar::regex("a"))), with_message, "{tools:?}");
    }
}

#[test]
fn a_choice_needs_the_functions_that_it_names() {
    let named = |name: &str| ToolChoice::Named(name.to_owned());
    let unknown =
        || Err(ToolError::UnknownTool { name: "time".to_owned(), known: "weather".to_owned() });
    let rows = [
        (Tools::new([]), Ok(())),
        (Tools::new([]).choice(ToolChoice::Required), Err(ToolError::NoTool)),
        (Tools::new([]).choice(named("time")), Err(ToolError::NoTool)),
        (Tools::new([weather()]).choice(named("weather")), Ok(())),
        (Tools::new([weather()]).choice(named("time")), unknown()),
        (Tools::new([weather()]).allowed(["weather", "time"]), unknown()),
    ];
    for (tools, want) in rows {
        assert_eq!(tools.check(), want, "{tools:?}");
    }
}

#[test]
fn an_answer_becomes_a_message_of_the_conversation() {
    let call = ToolCall::new("weather", r#"{ "city": "Bern" }"#);
    let parts = [
        Part::Thought("Hm.".to_owned()),
        Part::Text("Let me see.".to_owned()),
        Part::CallEnd(call.clone()),
    ];
    let message = Answer::of(parts).message();
    assert_eq!((&*message.role, &*message.content), ("assistant", "Let me see."));
    assert_eq!(message.fields["reasoning_content"], "Hm.");
    let called = json!([{ "id": call.id, "type": "function", "function": {
        "name": "weather", "arguments": { "city": "Bern" },
    } }]);
    assert_eq!(message.fields["tool_calls"], called);
    let result = Message::result(&call, "Rain.");
    assert_eq!(result.role, "tool");
    assert_eq!(result.fields["tool_call_id"], Value::from(call.id));
    let plain = Answer::of([Part::Text("Rain.".to_owned())]).message();
    assert_eq!(plain, Message::assistant("Rain."));
}

#[test]
fn arguments_are_objects_for_templates_if_their_text_is_one() {
    let rows = [
        ("", json!({})),
        (" null", json!({})),
        ("{\"a\": 1}", json!({ "a": 1 })),
        ("{\"a\": ", json!("{\"a\": ")),
        ("7", json!("7")),
    ];
    for (text, want) in rows {
        assert_eq!(arguments_of(text), want, "{text:?}");
    }
}

#[test]
fn a_description_that_is_no_function_is_refused() {
    for description in [json!({}), json!({ "name": 7 }), json!("weather"), json!({ "function": 1 })]
    {
        assert!(Tool::from_json(description.clone()).is_err(), "{description}");
    }
    // A list has the members of a function in their order.
    let listed = Tool::from_json(json!(["weather", null, true])).expect("a function");
    let described = listed.description("The weather.");
    let told = Tools::new([described]).tell(Request::ask("Bern?"), Some(&template("{{ tools }}")));
    assert_eq!(told.template_variables["tools"][0]["function"]["name"], "weather");
}
