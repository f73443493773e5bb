//! The log of the server, on stderr.

use tracing_subscriber::Layer;
use tracing_subscriber::filter::{FilterExt, LevelFilter, Targets, filter_fn};
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogForm {
    /// A line of text for each request.
    Text,
    /// A JSON object for each request.
    Json,
    /// Nothing.
    Off,
}

/// Starts the log. The variable `LAPWING_LOG` sets its level: `error`, `warn`, `info` or `debug`.
pub(crate) fn start(form: LogForm) {
    let level = std::env::var("LAPWING_LOG").ok().and_then(|level| level.parse().ok());
    let level = level.unwrap_or(LevelFilter::INFO);
    let targets = Targets::new().with_target("lapwing", level);
    // The lines say what they need: without spans, nothing is made for them.
    let events = filter_fn(|metadata| metadata.is_event()).with_max_level_hint(level);
    let lines = layer().with_writer(std::io::stderr).with_target(false);
    let lines = match form {
        LogForm::Text => lines.with_ansi(false).boxed(),
        LogForm::Json => lines.json().flatten_event(true).boxed(),
        LogForm::Off => return,
    };
    // A second start, which only a test makes, changes nothing.
    let _ = tracing_subscriber::registry().with(lines.with_filter(targets.and(events))).try_init();
}
