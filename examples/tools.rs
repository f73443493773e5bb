//! Lesson: a model calls a function of the program, and then answers with a value of a Rust type.
//!
//! ```text
//!  question ──► model ──► call ──► get_weather
//!                 ▲                     │
//!                 └────── result ◄──────┘          ──► answer ──► Report { city, sky, celsius }
//! ```
//!
//! The arguments of the function and the report are types of the program. Their JSON schemas become grammars, so the model
//! can write nothing else. A model as small as this one is told to call first; a larger one decides itself.

use lapwing::serde_json::json;
use lapwing::{Engine, Message, Request, Tool, ToolChoice, Tools};
use schemars::JsonSchema;
use serde::Deserialize;

/// The arguments of the function.
#[derive(Debug, Deserialize, JsonSchema)]
struct Place {
    /// Name of the city.
    #[schemars(length(max = 20))]
    city: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
enum Sky {
    Sun,
    Clouds,
    Rain,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Report {
    #[schemars(length(max = 20))]
    city: String,
    sky: Sky,
    celsius: i8,
}

/// The function. A real one would ask a service.
fn get_weather(place: &Place) -> String {
    json!({ "city": place.city, "sky": "Rain", "celsius": 12 }).to_string()
}

/// Most calls, one after the other, of a model that does not come to an end.
const ROUNDS: usize = 3;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::builder().model_named("smollm2").require_chat().build().await?;
    let weather =
        Tool::new("get_weather").description("The weather of a city.").parameters_of::<Place>();
    let mut messages = vec![Message::user("How is the weather in Bern?")];

    let mut results = 0;
    for round in 0..=ROUNDS {
        let choice = match round {
            0 => ToolChoice::Required,
            ROUNDS => ToolChoice::None,
            _ => ToolChoice::Auto,
        };
        let tools = Tools::new([weather.clone()]).choice(choice);
        let request = Request::chat(messages.clone()).tools(tools).greedy().max_tokens(150);
        let answer = engine.generate(request).await?.into_answer().await?;
        messages.push(answer.message());
        if answer.calls.is_empty() {
            println!("answer  {}", answer.text);
            break;
        }
        for call in &answer.calls {
            // What is wrong with a call is told to the model, which may then correct it.
            let result = match call.arguments_as::<Place>() {
                Ok(place) => get_weather(&place),
                Err(error) => error.to_string(),
            };
            println!("call    {}({})\nresult  {result}", call.name, call.arguments);
            messages.push(Message::result(call, result));
            results += 1;
        }
    }
    assert!(results > 0, "the first answer is a call");

    messages.push(Message::user("Write the weather as JSON, with city, sky and celsius."));
    let request = Request::chat(messages).greedy().max_tokens(100);
    let report = engine.generate_as::<Report>(request).await?;
    let Report { city, sky, celsius } = report.value;
    println!("report  {city}: {sky:?}, {celsius} °C");
    Ok(())
}
