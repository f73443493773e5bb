//! `lapwing chat`: a conversation.

mod lines;

use std::io::{IsTerminal, stdin};
use std::path::PathBuf;

use lapwing::{Engine, ErrorKind, Message, Prompt};
use serde::Serialize;

use self::lines::{Line, Lines};
use crate::cli::answer::{Answer, AnswerError, Timings, follow};
use crate::cli::failure::Failure;
use crate::cli::output::{print_json, print_plain};
use crate::cli::resolve::{ModelChoice, model_file, open};
use crate::cli::session::Session;
use crate::cli::{EngineArgs, ModelArg, SamplingArgs};

const EXAMPLES: &str = "\
Examples:
  lapwing chat
  lapwing chat -m gemma-3-1b-it --system \"Answer in one sentence.\"
  printf 'Hello!\\nAnd who are you?\\n' | lapwing chat --json

Ctrl-C stops an answer, Ctrl-D leaves. /help lists the commands; a line that ends in a backslash
continues on the next one. If stdin is not a terminal, each of its lines is a message.

With --json, one object per answer:
  {\"role\":\"assistant\",\"content\":\"…\",\"finish_reason\":\"stop\"|\"length\"|\"interrupted\",\"seed\":N,
   \"timings\":{…}|null}";

const HELP: &str = "\
/help    show this list
/reset   clear the conversation, keep the instructions
/exit    leave (also Ctrl-D)
Ctrl-C stops an answer; a line that ends in \\ continues on the next one.";

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
    model: ModelArg,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

#[derive(Serialize)]
struct Report<'a> {
    role: &'static str,
    content: &'a str,
    finish_reason: &'static str,
    seed: u64,
    timings: Option<Timings>,
}

/// Chats until the user leaves.
pub(crate) async fn run(mut args: Args, session: &Session) -> Result<(), Failure> {
    args.sampling.settle(&ModelChoice::of(&args.model.model)?);
    args.sampling.check()?;
    args.engine.check()?;
    let path = model_file(&args.model.model, session).await?;
    let mut builder = args.engine.builder(path)?;
    if let Some(context) = args.sampling.ctx {
        builder = builder.context(context);
    }
    let engine = open(builder, session).await?;
    args.sampling.check_ids(engine.tokenizer().vocab_size())?;
    if engine.chat_template().is_none() {
        return Err(Failure::failed(format!(
            "{} has no chat template: it can continue text, but not chat",
            engine.model_path().display()
        ))
        .hint("use `lapwing run --raw`, or an instruction-tuned model"));
    }
    let mut lines = if stdin().is_terminal() && !session.json {
        session.note("/help lists the commands; Ctrl-C stops an answer, Ctrl-D leaves");
        Lines::editor(history(&args), session)?
    } else {
        Lines::stdin()
    };
    let mut conversation = Conversation::new(engine, args);
    loop {
        let (line, back) = lines.next().await?;
        lines = back;
        match line {
            Line::End => return Ok(()),
            Line::Dropped => session.note("(Ctrl-D or /exit leaves)"),
            Line::Text(text) => match text.trim() {
                "" => {}
                "/exit" | "/quit" => return Ok(()),
                "/help" => session.note(HELP),
                "/reset" => {
                    conversation.reset();
                    session.note("(conversation cleared)");
                }
                command if command.starts_with('/') && !command.contains(char::is_whitespace) => {
                    session.note(&format!("unknown command {command}; /help lists the commands"));
                }
                _ => conversation.turn(text, session).await?,
            },
        }
    }
}

fn history(args: &Args) -> Option<PathBuf> {
    if args.no_history {
        return None;
    }
    let state = || {
        let set = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
        let home = || Some(std::env::home_dir()?.join(".local").join("state"));
        set.filter(|path| path.is_absolute()).or_else(home)
    };
    args.history.clone().or_else(|| Some(state()?.join("lapwing").join("history")))
}

/// Whether the error concerns only this message, so that the chat can go on.
fn concerns_only_message(error: &lapwing::Error) -> bool {
    matches!(error.kind(), ErrorKind::Request | ErrorKind::Busy)
}

/// The messages so far, and the engine.
struct Conversation {
    engine: Engine,
    args: Args,
    messages: Vec<Message>,
}

impl Conversation {
    fn new(engine: Engine, args: Args) -> Conversation {
        let mut conversation = Conversation { engine, args, messages: Vec::new() };
        conversation.reset();
        conversation
    }

    fn reset(&mut self) {
        self.messages = self.args.system.iter().map(Message::system).collect();
    }

    /// Sends one message and prints the answer. A message that cannot be answered is reported and
    /// dropped; only an engine that has ended ends the chat.
    async fn turn(&mut self, text: String, session: &Session) -> Result<(), Failure> {
        self.messages.push(Message::user(text));
        let result = self.answer(session).await;
        session.set_mid_line(false);
        match result {
            Ok(answer) if answer.text.is_empty() && answer.is_interrupted() => {
                self.messages.pop();
            }
            Ok(answer) => self.messages.push(Message::assistant(answer.text)),
            Err(AnswerError::Engine(error))
                if stdin().is_terminal() && concerns_only_message(&error) =>
            {
                self.messages.pop();
                session.note(&format!("error: {error}; /reset starts over"));
            }
            Err(unanswered) => return Err(unanswered.into()),
        }
        Ok(())
    }

    async fn answer(&self, session: &Session) -> Result<Answer, AnswerError> {
        let claim = session.interrupts.claim();
        let prompt = Prompt::Chat(self.messages.clone());
        let stream = self.engine.generate(self.args.sampling.request(prompt)).await?;
        let seed = stream.seed();
        let answer = follow(stream, session, Some(&claim)).await?;
        self.print_end(&answer, seed, session)?;
        Ok(answer)
    }

    fn print_end(&self, answer: &Answer, seed: u64, session: &Session) -> Result<(), Failure> {
        let timings = answer.summary.as_ref().map(|summary| Timings::new(&summary.times));
        let reason = answer.summary.as_ref().map_or("interrupted", |end| end.reason.name());
        let stats = timings.as_ref().filter(|_| self.args.stats).map(Timings::line);
        if session.json {
            print_json(&Report {
                role: "assistant",
                content: &answer.text,
                finish_reason: reason,
                seed,
                timings,
            })?;
        } else {
            print_plain("\n")?;
            match reason {
                "interrupted" => session.note("(stopped)"),
                "length" => session.note("(length limit; raise it with -n N or -n max)"),
                _ => {}
            }
        }
        stats.iter().for_each(|line| session.note(line));
        Ok(())
    }
}
