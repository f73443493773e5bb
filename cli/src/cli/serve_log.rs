//! The log of the server, on stderr.

use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
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
    let targets = Targets::new().with_target("lapwing", level.unwrap_or(LevelFilter::INFO));
    let lines = layer().with_writer(std::io::stderr).with_target(false);
    let lines = match form {
        LogForm::Text => lines.with_ansi(false).boxed(),
        LogForm::Json => lines.json().flatten_event(true).boxed(),
        LogForm::Off => return,
    };
    // A second start, which only a test makes, changes nothing.
    let _ = tracing_subscriber::registry().with(lines.with_filter(targets)).try_init();
}
