//! Interprets the fields of spans and events.

use std::fmt;

use tracing_core::Event;
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Record};

use crate::event::{Activity, ChunkPhase, DraftRole, LaneKind, Milestone, Tags};

/// Characters of an event's message that are kept as the name of its mark.
const MESSAGE_MAX: usize = 80;

/// The field that takes the place of a span's name.
const NAME: &str = "timeline.name";

/// Fields that are texts.
const TEXTS: [&str; 8] =
    ["device", "lane", "activity", "role", "phase", "milestone", "message", NAME];

/// The lane that a span or event names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LaneField {
    pub(super) name: String,
    pub(super) kind: LaneKind,
}

/// Fields that have a meaning; all others are ignored.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fields {
    pub(super) tags: Tags,
    pub(super) activity: Activity,
    pub(super) lane: Option<LaneField>,
    pub(super) marked: bool,
    /// Takes the place of the span's name.
    pub(super) name: Option<String>,
    /// Events only: the milestone that a request has reached, and its value.
    pub(super) milestone: Option<Milestone>,
    pub(super) value: u64,
    /// Events only: new values of counters, by the part of the field name after `counter.`.
    pub(super) counters: Vec<(&'static str, i64)>,
    /// Events only: the message.
    pub(super) message: String,
    is_event: bool,
}

impl Default for Fields {
    fn default() -> Fields {
        Fields {
            tags: Tags::default(),
            activity: Activity::Other,
            lane: None,
            marked: false,
            name: None,
            milestone: None,
            value: 0,
            counters: Vec::new(),
            message: String::new(),
            is_event: false,
        }
    }
}

impl Fields {
    pub(super) fn of(attributes: &Attributes<'_>) -> Fields {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        fields
    }

    pub(super) fn of_event(event: &Event<'_>) -> Fields {
        let mut fields = Fields { is_event: true, ..Fields::default() };
        event.record(&mut fields);
        fields
    }

    /// Adds fields that became known later.
    pub(super) fn with(mut self, values: &Record<'_>) -> Fields {
        values.record(&mut self);
        self
    }

    /// Whether no field with a meaning is set.
    pub(super) fn is_empty(&self) -> bool {
        *self == Fields::default()
    }

    fn number(&mut self, field: &Field, value: i128) {
        if let Some(counter) = field.name().strip_prefix("counter.") {
            if self.is_event {
                let value = value.clamp(i64::MIN.into(), i64::MAX.into());
                self.counters.push((counter, value as i64));
            }
            return;
        }
        let Ok(value) = u64::try_from(value) else { return };
        let small = u32::try_from(value).unwrap_or(u32::MAX);
        // The largest value is reserved for an absent tag.
        let tiny = u16::try_from(value).ok().filter(|n| *n < u16::MAX);
        let number = Some(value).filter(|n| *n < u64::MAX);
        let tags = &mut self.tags;
        match field.name() {
            "chunk" => tags.chunk = number,
            "request" => tags.request = number,
            "stage" => tags.stage = tiny,
            "layer" => tags.layer = tiny,
            "rows" => tags.rows = small,
            "epoch" => tags.epoch = small,
            "bytes" => tags.bytes = value,
            "flops" => tags.flops = value,
            "value" if self.is_event => self.value = value,
            _ => {}
        }
    }

    fn text(&mut self, field: &Field, text: &str) {
        let lane = |kind| Some(LaneField { name: text.to_owned(), kind });
        match field.name() {
            "device" => self.lane = lane(LaneKind::Device),
            "lane" if self.lane.as_ref().is_none_or(|lane| lane.kind != LaneKind::Device) => {
                self.lane = lane(LaneKind::Actor);
            }
            "activity" => {
                let known = Activity::ALL.iter().find(|activity| activity.name() == text);
                self.activity = known.copied().unwrap_or(self.activity);
            }
            "role" => self.tags.role = DraftRole::ALL.iter().find(|it| it.name() == text).copied(),
            "phase" => {
                self.tags.phase = ChunkPhase::ALL.iter().find(|it| it.name() == text).copied();
            }
            NAME if !self.is_event => self.name = Some(text.to_owned()),
            "milestone" if self.is_event => {
                self.milestone = Milestone::ALL.iter().find(|it| it.name() == text).copied();
            }
            "message" if self.is_event => self.message = text.chars().take(MESSAGE_MAX).collect(),
            _ => {}
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if !TEXTS.contains(&field.name()) {
            return;
        }
        let text = format!("{value:?}");
        let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        self.text(field, bare.unwrap_or(&text));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        if field.name() == "marked" {
            self.marked = value;
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.number(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.number(field, value.into());
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.number(field, value);
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.number(field, i128::try_from(value).unwrap_or(i128::MAX));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if !value.is_nan() && field.name().starts_with("counter.") {
            self.number(field, value.round() as i128);
        }
    }
}
