//! The conversation of a chat: its model, its messages, and its settings.

use std::io::{IsTerminal, stderr, stdin};

use super::command::{Command, help};
use super::end::print_end;
use super::saved::Saved;
use crate::cli::answer::{Answer, AnswerError, Timings, follow};
use crate::cli::better_models;
use crate::cli::failure::Failure;
use crate::cli::grammar_args::note_ignored;
use crate::cli::opening::{Given, open};
use crate::cli::output::AnswerOutput;
use crate::cli::resolve::ModelChoice;
use crate::cli::session::Session;
use crate::cli::{EngineArgs, PrefixArgs, SamplingArgs};
use anstyle::Style;
use lapwing_engine::{Engine, EngineBuilder, ErrorKind, Message, Prompt, Shutdown};

/// Options that every model of a chat is opened with.
#[derive(Debug)]
pub(super) struct Options {
    /// As the user gave them, without recommendations of a model's makers.
    pub(super) sampling: SamplingArgs,
    pub(super) engine: EngineArgs,
    pub(super) prefix: PrefixArgs,
    /// Whether to print figures after every answer.
    pub(super) stats: bool,
}

/// A model that can chat.
struct Opened {
    choice: ModelChoice,
    engine: Engine,
}

/// Figures of an answer.
#[derive(Debug, Default)]
struct Figures {
    /// Speed; empty after an interrupted answer.
    speed: String,
    /// Tokens of the conversation with the answer.
    tokens: usize,
}

/// The messages so far, and the model.
pub(super) struct Conversation {
    options: Options,
    model: Opened,
    saved: Saved,
    latest: Option<Figures>,
}

/// Whether a person types: errors are then shown, and the chat goes on.
pub(super) fn is_interactive(session: &Session) -> bool {
    stdin().is_terminal() && !session.json
}

/// Whether the error concerns only this message, so that the chat can go on.
fn concerns_only_message(error: &lapwing_engine::Error) -> bool {
    matches!(error.kind(), ErrorKind::Request | ErrorKind::Busy)
}

impl Options {
    async fn open(&self, name: &str, session: &Session) -> Result<Opened, Failure> {
        let choice = ModelChoice::of(name)?;
        let builder = self.prefix.applied(self.engine.builder_of(name, session).await?);
        let builder = builder.given(self.sampling.ctx, EngineBuilder::context);
        let engine = open(builder, session).await?;
        self.sampling.check_ids(engine.tokenizer().vocab_size())?;
        engine.check_generates()?;
        if engine.chat_template().is_none() {
            return Err(Failure::failed(format!(
                "{} has no chat template: it can continue text, but not chat",
                engine.model_path().display()
            ))
            .hint("use `lapwing run --raw`, or an instruction-tuned model"));
        }
        Ok(Opened { choice, engine })
    }
}

impl Opened {
    /// Name and context.
    fn title(&self) -> String {
        let name = self.engine.model_path().file_stem().unwrap_or_default().to_string_lossy();
        format!("{name}, context of {} tokens", self.engine.context())
    }
}

impl Conversation {
    /// Opens the model.
    pub(super) async fn open(
        options: Options,
        name: &str,
        system: Option<String>,
        session: &Session,
    ) -> Result<Conversation, Failure> {
        let model = options.open(name, session).await?;
        let saved = Saved { system, messages: Vec::new() };
        Ok(Conversation { options, model, saved, latest: None })
    }

    /// Ends the engine, which keeps its prefixes if it is asked to.
    pub(super) async fn close(&self) -> Result<(), Failure> {
        Ok(self.model.engine.shutdown(Shutdown::Drain).await?)
    }

    /// Name and context of the model.
    pub(super) fn title(&self) -> String {
        self.model.title()
    }

    /// Obeys a command other than `/exit`.
    pub(super) async fn obey(
        &mut self,
        command: Command,
        session: &Session,
    ) -> Result<(), Failure> {
        match command {
            Command::Help | Command::Exit => session.note(&help()),
            Command::System(text) => self.instruct(text, session),
            Command::Set(None) => {
                let settings = self.sampling().settings();
                let lines = settings.map(|(name, value)| format!("  {name:19}{value}"));
                session.note(&lines.join("\n"));
            }
            Command::Set(Some((name, value))) => {
                self.options
                    .sampling
                    .set(&name, &value)
                    .map_err(|error| Failure::failed(error.to_string()))?;
                session.note(&format!("({name} is {value})"));
            }
            Command::Stats(None) => self.show_latest(session),
            Command::Stats(Some(on)) => {
                self.options.stats = on;
                session.note(if on { "(stats on)" } else { "(stats off)" });
            }
            Command::Save(path) => self.saved.write(&path, session)?,
            Command::Load(path) => {
                self.saved = Saved::read(&path)?;
                self.latest = None;
                let count = self.saved.messages.len();
                session.note(&format!("(loaded {count} messages from {})", path.display()));
            }
            Command::Model(None) => session.note(&self.title()),
            Command::Model(Some(name)) => self.change_model(&name, session).await?,
            Command::Clear => {
                self.saved.messages.clear();
                self.latest = None;
                session.note("(conversation cleared)");
            }
        }
        Ok(())
    }

    /// Shows, sets or removes the instructions; the messages stay.
    fn instruct(&mut self, text: Option<String>, session: &Session) {
        match text.as_deref() {
            None => session.note(self.saved.system.as_deref().unwrap_or("(no instructions)")),
            Some("none") => {
                self.saved.system = None;
                session.note("(instructions removed)");
            }
            Some(_) => {
                self.saved.system = text;
                session.note("(instructions set)");
            }
        }
    }

    fn show_latest(&self, session: &Session) {
        match &self.latest {
            None => session.note("(no answer yet)"),
            Some(figures) => {
                let shown = Some(&figures.speed).filter(|speed| !speed.is_empty());
                shown.into_iter().for_each(|speed| session.note(speed));
                session.note(&self.context_line(figures.tokens));
            }
        }
    }

    /// Opens another model for the same conversation. The present one stays until then, and after a
    /// failure or Ctrl-C.
    async fn change_model(&mut self, name: &str, session: &Session) -> Result<(), Failure> {
        let claim = session.interrupts.claim_ctrl_c();
        let opened = tokio::select! {
            biased;
            _ = claim.interrupted() => {
                session.note("(stopped)");
                return Ok(());
            }
            opened = self.options.open(name, session) => opened?,
        };
        let before = std::mem::replace(&mut self.model, opened);
        before.engine.shutdown(Shutdown::Drain).await?;
        self.latest = None;
        session.note(&self.title());
        Ok(())
    }

    /// The sampling options with the recommendations of the model's makers.
    fn sampling(&self) -> SamplingArgs {
        let mut sampling = self.options.sampling.clone();
        sampling.settle(&self.model.choice);
        sampling
    }

    /// Sends one message and prints the answer. A message that cannot be answered is reported and
    /// dropped; only an engine that has ended ends the chat.
    pub(super) async fn turn(&mut self, text: String, session: &Session) -> Result<(), Failure> {
        self.saved.messages.push(Message::user(text));
        let result = self.answer(session).await;
        session.set_mid_line(false);
        match result {
            Ok(answer) if answer.text.is_empty() && answer.is_interrupted() => {
                self.saved.messages.pop();
            }
            Ok(answer) => self.saved.messages.push(Message::assistant(answer.text)),
            Err(AnswerError::Engine(error))
                if stdin().is_terminal() && concerns_only_message(&error) =>
            {
                self.saved.messages.pop();
                session.note_failure(
                    &Failure::failed(error.to_string())
                        .hint("/clear starts over, /set changes settings"),
                );
            }
            Err(unanswered) => return Err(unanswered.into()),
        }
        Ok(())
    }

    async fn answer(&mut self, session: &Session) -> Result<Answer, AnswerError> {
        let claim = session.interrupts.claim_ctrl_c();
        let system = self.saved.system.iter().map(Message::system);
        let prompt = Prompt::Chat(system.chain(self.saved.messages.iter().cloned()).collect());
        let stream = self.model.engine.generate(self.sampling().request(prompt)).await?;
        if self.latest.is_none() {
            note_ignored(&stream, session);
        }
        let (seed, prompt_tokens) = (stream.seed(), stream.prompt_ids().len());
        let output = AnswerOutput::new(self.options.sampling.has_grammar());
        let answer = follow(stream, output, session, Some(&claim)).await?;
        let timings = answer.summary.as_ref().map(|summary| Timings::new(&summary.times));
        let figures = Figures {
            speed: timings.as_ref().map(Timings::line).unwrap_or_default(),
            tokens: prompt_tokens + answer.ids.len(),
        };
        print_end(&answer, seed, timings, session)?;
        if self.options.stats && !figures.speed.is_empty() {
            session.note(&figures.speed);
        }
        let is_filling = figures.tokens * 2 >= self.model.engine.context();
        if is_filling && is_interactive(session) && stderr().is_terminal() {
            session.styled_note(Style::new().dimmed(), &self.context_line(figures.tokens));
        }
        self.latest = Some(figures);
        better_models::note(&self.model.choice, session);
        Ok(answer)
    }

    fn context_line(&self, tokens: usize) -> String {
        let context = self.model.engine.context().max(1);
        let percent = (tokens * 100).div_ceil(context);
        format!("({tokens} of {context} tokens of the context used, {percent} %)")
    }
}
