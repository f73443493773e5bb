//! `lapwing chat`: a conversation.

mod command;
mod conversation;
mod end;
mod lines;
mod saved;

use std::path::PathBuf;

use anstyle::Style;

use self::command::{Asked, Command, parse};
use self::conversation::{Conversation, Options, is_interactive};
use self::lines::{Line, Lines};
use crate::cli::failure::Failure;
use crate::cli::resolve::ModelChoice;
use crate::cli::session::Session;
use crate::cli::state;
use crate::cli::{DEFAULT_MODEL, EngineArgs, PositionalModel, PrefixArgs, SamplingArgs};

const EXAMPLES: &str = "\
Examples:
  lapwing chat
  lapwing chat gemma-3-1b-it --system \"Answer in one sentence.\"
  printf 'Hello!\\nAnd who are you?\\n' | lapwing chat --json

Ctrl-C stops an answer, Ctrl-D leaves. /help lists the commands. A text between \"\"\" and \"\"\" is one
message; a typed line that ends in a backslash continues on the next one. If stdin is not a
terminal, each of its lines is a message or a command, and a command that fails ends the chat.

With --json, one object per answer:
  {\"role\":\"assistant\",\"content\":\"…\",\"finish_reason\":\"stop\"|\"length\"|\"interrupted\",\"seed\":N,
   \"timings\":{…}|null}";

/// Options of `chat`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// System message, before the conversation
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,

    /// Print token counts and speed to stderr after every answer
    #[arg(long)]
    stats: bool,

    /// Store typed lines in FILE [default: $XDG_STATE_HOME/lapwing/history, or else
    /// ~/.local/state/lapwing/history]
    #[arg(long, value_name = "FILE", env = "LAPWING_HISTORY")]
    history: Option<PathBuf>,

    /// Do not store typed lines
    #[arg(long, conflicts_with = "history")]
    no_history: bool,

    #[command(flatten)]
    model: PositionalModel,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    prefix: PrefixArgs,

    /// The first message.
    #[arg(skip)]
    first: Option<String>,
}

/// A chat that another command begins.
pub(crate) struct Start {
    pub(crate) model: String,
    pub(crate) first: Option<String>,
    pub(crate) system: Option<String>,
    pub(crate) stats: bool,
    pub(crate) sampling: SamplingArgs,
    pub(crate) engine: EngineArgs,
    pub(crate) prefix: PrefixArgs,
}

impl Args {
    /// The options of a chat that begins so; typed lines are stored at the usual place.
    pub(crate) fn of(start: Start) -> Args {
        let Start { model, first, system, stats, sampling, engine, prefix } = start;
        let history = std::env::var_os("LAPWING_HISTORY").map(PathBuf::from);
        let model = PositionalModel::named(model);
        Args { system, stats, history, no_history: false, model, sampling, engine, prefix, first }
    }
}

/// Chats until the user leaves.
pub(crate) async fn run(mut args: Args, session: &Session) -> Result<(), Failure> {
    let model = args.model.name().unwrap_or(DEFAULT_MODEL).to_owned();
    ModelChoice::of(&model)?;
    args.sampling.check()?;
    args.engine.check(session)?;
    let history = history(&args);
    let first = args.first.take();
    let options = Options {
        sampling: args.sampling,
        engine: args.engine,
        prefix: args.prefix,
        stats: args.stats,
    };
    let mut conversation = Conversation::open(options, &model, args.system, session).await?;
    let mut lines = if is_interactive(session) {
        session.styled_note(Style::new().bold(), &conversation.title());
        session.note("/help lists the commands; Ctrl-C stops an answer, Ctrl-D leaves");
        Lines::editor(history, session)?
    } else {
        Lines::stdin()
    };
    if let Some(text) = first {
        conversation.turn(text, session).await?;
    }
    loop {
        let (line, back) = lines.next().await?;
        lines = back;
        let asked = match line {
            Line::End => break,
            Line::Dropped => {
                session.note("(Ctrl-D or /exit leaves)");
                continue;
            }
            Line::Message(text) => Asked::Answer(text),
            Line::Text(text) => match parse(&text) {
                Ok(asked) => asked,
                Err(error) => {
                    session.note(&error.to_string());
                    continue;
                }
            },
        };
        match asked {
            Asked::Nothing => {}
            Asked::Answer(text) => conversation.turn(text, session).await?,
            Asked::Command(Command::Exit) => break,
            Asked::Command(command) => match conversation.obey(command, session).await {
                Err(failure @ Failure::Failed { .. } | failure @ Failure::Usage { .. })
                    if is_interactive(session) =>
                {
                    session.note_failure(&failure);
                }
                done => done?,
            },
        }
    }
    conversation.close().await
}

fn history(args: &Args) -> Option<PathBuf> {
    if args.no_history {
        return None;
    }
    args.history.clone().or_else(|| Some(state::folder()?.join("history")))
}
