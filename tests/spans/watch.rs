//! A subscriber that keeps what it sees.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use lapwing::traces::{OsClock, Recorder, RecorderConfig, Scope};
use lapwing_traces::layer::TimelineLayer;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

/// A span that was seen.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) name: &'static str,
    pub(crate) level: Level,
    /// Numbers of its parent and of the spans that it follows.
    pub(crate) parent: Option<usize>,
    pub(crate) follows: Vec<usize>,
    pub(crate) fields: BTreeMap<&'static str, String>,
    /// Fields of the events in it.
    pub(crate) events: Vec<BTreeMap<&'static str, String>>,
    pub(crate) is_closed: bool,
}

impl Seen {
    /// The value of a field; empty if it has none.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    /// The number in a field.
    pub(crate) fn number(&self, name: &str) -> f64 {
        self.field(name).parse().unwrap_or_else(|_| panic!("{name} of {self:?} is no number"))
    }
}

/// Number of a span among those of its turn.
struct Number {
    turn: usize,
    number: usize,
}

/// What is seen in a turn.
struct Store {
    turn: usize,
    spans: Vec<Seen>,
}

static SEEN: Mutex<Store> = Mutex::new(Store { turn: 0, spans: Vec::new() });
static TURN: Mutex<()> = Mutex::new(());
static SET_UP: OnceLock<SetUp> = OnceLock::new();

struct SetUp {
    level: reload::Handle<LevelFilter, Registry>,
    recorder: Recorder,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The turn of a test: what happens meanwhile is seen up to a level.
pub(crate) struct Watch {
    set_up: &'static SetUp,
    _turn: MutexGuard<'static, ()>,
}

impl Watch {
    /// Waits for the turn, and sees nothing that came before.
    pub(crate) fn up_to(level: LevelFilter) -> Watch {
        let turn = lock(&TURN);
        let set_up = SET_UP.get_or_init(SetUp::start);
        let watch = Watch { set_up, _turn: turn };
        watch.set(level);
        let mut seen = lock(&SEEN);
        *seen = Store { turn: seen.turn + 1, spans: Vec::new() };
        watch
    }

    fn set(&self, level: LevelFilter) {
        self.set_up.level.modify(|present| *present = level).expect("the subscriber");
    }

    /// The recorder of the layer that makes timelines.
    pub(crate) fn recorder(&self) -> &Recorder {
        &self.set_up.recorder
    }

    /// All spans so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        lock(&SEEN).spans.clone()
    }

    /// The spans of a name, with their numbers.
    pub(crate) fn named(&self, name: &str) -> Vec<(usize, Seen)> {
        let seen = self.seen().into_iter().enumerate();
        seen.filter(|(_, span)| span.name == name).collect()
    }

    /// The only span of a name, with its number.
    pub(crate) fn only(&self, name: &str) -> (usize, Seen) {
        let named = self.named(name);
        assert_eq!(named.len(), 1, "{name} in {:#?}", self.seen());
        named.into_iter().next().expect("one")
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.set_up.recorder.set_scope(Scope::Off);
        self.set(LevelFilter::OFF);
    }
}

impl SetUp {
    fn start() -> SetUp {
        let (filter, level) = reload::Layer::new(LevelFilter::OFF);
        let recorder = Recorder::new(Arc::new(OsClock::start()), RecorderConfig::default());
        let timeline = TimelineLayer::new(recorder.clone());
        tracing_subscriber::registry().with(filter).with(Collector).with(timeline).init();
        SetUp { level, recorder }
    }
}

struct Collector;

/// Keeps fields as text.
struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

/// The number of a span; those of earlier turns have none.
fn number_of<S>(id: &Id, context: &Context<'_, S>) -> Option<usize>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let span = context.span(id)?;
    let extensions = span.extensions();
    let number = extensions.get::<Number>()?;
    (number.turn == lock(&SEEN).turn).then_some(number.number)
}

fn change(number: Option<usize>, change: impl FnOnce(&mut Seen)) {
    let mut seen = lock(&SEEN);
    if let Some(span) = number.and_then(|number| seen.spans.get_mut(number)) {
        change(span);
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Collector {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).expect("the new span");
        let of_parent = span.parent().map(|parent| parent.id());
        let parent = of_parent.and_then(|parent| number_of(&parent, &context));
        let (name, level) = (span.metadata().name(), *span.metadata().level());
        let mut fields = BTreeMap::new();
        attributes.record(&mut Fields(&mut fields));
        let (follows, events) = (Vec::new(), Vec::new());
        let mut seen = lock(&SEEN);
        let (turn, number) = (seen.turn, seen.spans.len());
        seen.spans.push(Seen { name, level, parent, follows, fields, events, is_closed: false });
        span.extensions_mut().insert(Number { turn, number });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        change(number_of(id, &context), |span| values.record(&mut Fields(&mut span.fields)));
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, context: Context<'_, S>) {
        let before = number_of(follows, &context);
        change(number_of(id, &context), |span| span.follows.extend(before));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let span = context.event_span(event).map(|span| span.id());
        let number = span.and_then(|span| number_of(&span, &context));
        let mut fields = BTreeMap::new();
        event.record(&mut Fields(&mut fields));
        change(number, |span| span.events.push(fields));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        change(number_of(&id, &context), |span| span.is_closed = true);
    }
}
