//! `lapwing run`: answers one prompt.

mod asked;
mod conversation;
mod prompt;
mod recorded;

use std::io::{IsTerminal, stderr};
use std::path::PathBuf;

use lapwing_engine::{Engine, EngineBuilder, Message, Prompt};
use serde::Serialize;

use crate::cli::answer::{Answer, Timings};
use crate::cli::better_models;
use crate::cli::draft::DraftReport;
use crate::cli::energy::{EnergyReport, Measuring};
use crate::cli::failure::Failure;
use crate::cli::grammar_args::note_ignored;
use crate::cli::opening::{Given, open};
use crate::cli::output::{print_json, print_plain};
use crate::cli::requant::RequantReport;
use crate::cli::resolve::ModelChoice;
use crate::cli::session::Session;
use crate::cli::trace::{self, TraceArg};
use crate::cli::watch;
use crate::cli::{DEFAULT_MODEL, EngineArgs, OptionalModel, PrefixArgs, SamplingArgs};
use crate::commands::chat;
use asked::Asked;

const EXAMPLES: &str = "\
Examples:
  lapwing run \"Why is the sky blue?\"
  lapwing run gemma-3-1b-it \"Why is the sky blue?\"
  lapwing run gemma-3-1b-it                       talk to it, as with `lapwing chat`
  lapwing run -m FILE.gguf --raw --temp 0 -n 64 \"Once upon a time\"
  git diff | lapwing run \"Summarise this change.\"
  lapwing run -f prompt.txt --seed 7 --stop \"###\" --stats
  lapwing run --watch --trace out.lwt \"Tell me a story.\"
  lapwing run --json-schema schema.json \"Describe a cat as JSON.\"
  lapwing run --regex \"(yes|no)\" \"Is the sky blue?\"

Without -m, the first argument is the model if it names one: a .gguf file, a name from `lapwing
models`, hf:… or hf.co/…. Everything else is the prompt. Without a prompt, stdin is the prompt, or,
if it is a terminal, a conversation begins. With a prompt, text from a pipe or file on stdin follows
it after an empty line; < /dev/null keeps it out, and `-` at the end waits for it as long as it
takes. One line feed at the end of a file or stdin is dropped. Put `--` before a prompt that begins
with a dash.

The answer goes to stdout as it is generated, notes and --stats go to stderr. Options of llama.cpp
and Ollama are understood as far as they have a counterpart (docs/names.md).

With --json, one object is printed at the end:
  {\"prompt_ids\":[…],\"ids\":[…],\"text\":\"…\",\"logprobs\":[…],\"finish_reason\":\"stop\"|\"length\",
   \"seed\":N,\"timings\":{…},\"model\":\"PATH\",\"requant\":{…}|null,
   \"draft\":{…}|null,\"energy\":{\"joules\":X|null,\"domains\":[…],\"unavailable\":[…]}}
  ids and logprobs (natural) are those of the answer, without the model's end token.";

/// Options of `run`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// The model, if -m is not given, and the prompt
    ///
    /// The first word is the model if it names one; `-` at the end reads stdin.
    #[arg(value_name = "PROMPT")]
    words: Vec<String>,

    /// Read the prompt from FILE; `-` is stdin
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Begin a conversation, as `lapwing chat` does
    #[arg(long, conflicts_with_all = ["raw", "watch", "trace", "file"], hide_short_help = true)]
    conversation: bool,

    /// System message, placed before the prompt by the model's chat template
    #[arg(long, value_name = "TEXT", conflicts_with = "raw")]
    system: Option<String>,

    /// Continue the prompt as plain text, without the model's chat template
    #[arg(long)]
    raw: bool,

    /// Print token counts, speed and, where it can be measured, energy to stderr at the end
    #[arg(long)]
    stats: bool,

    /// Print the energy to stderr at the end, or why it is unknown
    #[arg(long)]
    energy: bool,

    /// Show the engine's activity on the terminal
    ///
    /// Until a key is pressed after the end; the answer is printed then.
    #[arg(long)]
    watch: bool,

    #[command(flatten)]
    trace: TraceArg,

    #[command(flatten)]
    model: OptionalModel,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    prefix: PrefixArgs,
}

#[derive(Serialize)]
struct Report<'a> {
    prompt_ids: &'a [u32],
    ids: &'a [u32],
    text: &'a str,
    logprobs: &'a [f32],
    finish_reason: &'static str,
    seed: u64,
    timings: Timings,
    model: String,
    requant: Option<RequantReport>,
    draft: Option<DraftReport>,
    energy: EnergyReport,
}

/// Answers one prompt.
pub(crate) async fn run(mut args: Args, session: &Session) -> Result<(), Failure> {
    let asked = Asked::of(args.model.model.as_deref(), &args.words)?;
    let model = asked.model.clone().unwrap_or_else(|| DEFAULT_MODEL.to_owned());
    if args.is_conversation(&asked, session) {
        return chat::run(args.conversation(model, asked.prompt), session).await;
    }
    let choice = ModelChoice::of(&model)?;
    args.sampling.settle(&choice);
    args.sampling.check()?;
    args.engine.check(session)?;
    args.trace.check()?;
    if args.watch {
        watch::check()?;
    }
    let text = prompt::text(asked, args.file.clone(), session).await?;
    let builder = args.prefix.applied(args.engine.builder_of(&model, session).await?);
    let recorder = (args.watch || args.trace.trace.is_some()).then(trace::recorder);
    let builder = builder.given(args.sampling.ctx, EngineBuilder::context);
    let engine = open(builder.given(recorder, EngineBuilder::recorder), session).await?;
    args.sampling.check_ids(engine.tokenizer().vocab_size())?;
    let prompt = prompt(&args, text, &engine, session)?;
    let measuring = Measuring::start(&**engine.recorder().clock());
    let stream = engine.generate(args.sampling.request(prompt)).await?;
    note_ignored(&stream, session);
    let (prompt_ids, seed) = (stream.prompt_ids().to_vec(), stream.seed());
    let answer = recorded::answer(&args, stream, &engine, session).await?;
    let energy = measuring.stop();
    let Some(summary) = &answer.summary else {
        return Err(Failure::failed("the answer ended without a result"));
    };
    let finish_reason = summary.reason.name();
    let figures = Figures {
        timings: Timings::new(&summary.times),
        draft: summary.drafts.as_ref().map(|stats| DraftReport::new(engine.draft(), stats)),
        energy,
        tokens: summary.times.prompt_tokens + summary.times.generated_tokens,
    };
    if session.json {
        figures.note(&args, session);
        return print_json(&Report {
            prompt_ids: &prompt_ids,
            ids: &answer.ids,
            text: &answer.text,
            logprobs: &answer.logprobs,
            finish_reason,
            seed,
            timings: figures.timings,
            model: engine.model_path().display().to_string(),
            requant: engine.requantized().map(RequantReport::of),
            draft: figures.draft,
            energy: figures.energy,
        });
    }
    if args.watch {
        print_plain(&answer.text)?;
    }
    print_plain("\n")?;
    session.set_mid_line(false);
    note_length_limit(&args, &answer, session);
    figures.note(&args, session);
    if !args.watch {
        better_models::note(&choice, session);
    }
    Ok(())
}

/// What a run took.
struct Figures {
    timings: Timings,
    draft: Option<DraftReport>,
    energy: EnergyReport,
    /// Tokens of prompt and answer.
    tokens: usize,
}

impl Figures {
    /// Prints those that the options ask for.
    fn note(&self, args: &Args, session: &Session) {
        if args.stats {
            session.note(&self.timings.line());
            self.draft.iter().for_each(|draft| session.note(&draft.line()));
        }
        if args.energy || (args.stats && self.energy.is_known()) {
            session.note(&self.energy.line(self.tokens));
        }
    }
}

/// Notes on a terminal that an answer reached its length limit.
fn note_length_limit(args: &Args, answer: &Answer, session: &Session) {
    let cut = answer.summary.as_ref().is_some_and(|summary| summary.reason.name() == "length");
    if cut && !args.raw && stderr().is_terminal() {
        session.note(&format!(
            "note: stopped after {} tokens; raise the limit with -n N or -n max",
            answer.ids.len()
        ));
    }
}

fn prompt(
    args: &Args,
    text: String,
    engine: &Engine,
    session: &Session,
) -> Result<Prompt, Failure> {
    engine.check_generates()?;
    if args.raw {
        return Ok(Prompt::Text(text));
    }
    if engine.chat_template().is_some() {
        let system = args.system.iter().map(Message::system);
        return Ok(Prompt::Chat(system.chain([Message::user(text)]).collect()));
    }
    if args.system.is_some() {
        return Err(Failure::failed(format!(
            "{} has no chat template, so --system cannot be used; put the instructions into the prompt",
            engine.model_path().display()
        )));
    }
    session.note(
        "note: this model has no chat template; the prompt is continued as plain text (--raw avoids this note)",
    );
    Ok(Prompt::Text(text))
}
