//! Shows the figures of the report as tables.

use super::format::Align::{Left, Right};
use super::format::{bytes, duration, or_dash, percent, table};
use super::options::TextOptions;
use crate::report::{Percentiles, Report};

/// All tables that have rows.
pub(super) fn tables(report: &Report, options: &TextOptions) -> String {
    let tables = Tables { report, options };
    [
        tables.lanes(),
        tables.idle(),
        tables.critical_path(),
        tables.ops(),
        tables.requests(),
        super::drafts::table_of(report, options),
        super::together::text_of(report, options),
        super::reads::table_of(report, options),
        super::experts::table_of(report, options),
        tables.waits(),
        tables.messages(),
        tables.counters(),
        tables.freed(),
    ]
    .concat()
}

struct Tables<'a> {
    report: &'a Report,
    options: &'a TextOptions,
}

impl Tables<'_> {
    fn time(&self, nanos: u64) -> String {
        duration(nanos as f64, self.options.glyphs)
    }

    fn maybe(&self, nanos: Option<f64>) -> String {
        or_dash(nanos.map(|nanos| duration(nanos, self.options.glyphs)))
    }

    /// A title with the number of rows left out, if any.
    fn title(&self, title: &str, rows: usize) -> String {
        match rows.checked_sub(self.options.rows_max).filter(|more| *more > 0) {
            Some(more) => format!("{title} ({more} more in the JSON report)"),
            None => title.to_owned(),
        }
    }

    fn lanes(&self) -> String {
        let header = [
            ("lane", Left),
            ("kind", Left),
            ("busy", Right),
            ("busy time", Right),
            ("idle time", Right),
            ("slots", Right),
            ("spans", Right),
            ("wasted", Right),
        ];
        let rows: Vec<_> = self
            .report
            .lanes
            .iter()
            .map(|lane| {
                [
                    lane.name.clone(),
                    lane.kind.to_owned(),
                    percent(lane.utilization),
                    self.time(lane.busy_ns),
                    self.time(lane.idle_ns),
                    lane.slots.to_string(),
                    lane.spans.to_string(),
                    self.time(lane.wasted_ns),
                ]
            })
            .collect();
        table("Lanes", header, &rows, self.options)
    }

    fn idle(&self) -> String {
        let header = [("cause", Left), ("time", Right), ("share", Right)];
        let row = |idle: &crate::report::IdleReport| {
            [idle.cause.clone(), self.time(idle.ns), percent(idle.share)]
        };
        let rows: Vec<_> = self.report.idle.iter().map(row).collect();
        table("Idle time of the lanes that compute", header, &rows, self.options)
    }

    fn critical_path(&self) -> String {
        let header = [
            ("lane", Left),
            ("state", Left),
            ("op", Left),
            ("time", Right),
            ("share", Right),
            ("count", Right),
        ];
        let path = &self.report.critical_path;
        let rows: Vec<_> = path
            .iter()
            .take(self.options.rows_max)
            .map(|part| {
                [
                    part.lane.clone(),
                    part.cause.clone(),
                    part.op.clone(),
                    self.time(part.ns),
                    percent(part.share),
                    part.count.to_string(),
                ]
            })
            .collect();
        table(&self.title("Critical path", path.len()), header, &rows, self.options)
    }

    fn ops(&self) -> String {
        let header = [
            ("op", Left),
            ("lane", Left),
            ("count", Right),
            ("self time", Right),
            ("GFLOP/s", Right),
            ("GB/s", Right),
            ("median", Right),
            ("critical", Right),
        ];
        let rate = |value: Option<f64>| or_dash(value.map(|value| format!("{value:.1}")));
        let ops = &self.report.ops;
        let rows: Vec<_> = ops
            .iter()
            .take(self.options.rows_max)
            .map(|op| {
                [
                    op.name.clone(),
                    op.lane.clone(),
                    op.count.to_string(),
                    self.time(op.self_ns),
                    rate(op.gflop_per_s),
                    rate(op.gb_per_s),
                    self.maybe(op.duration_ns.p50),
                    self.time(op.critical_ns),
                ]
            })
            .collect();
        table(&self.title("Ops", ops.len()), header, &rows, self.options)
    }

    fn requests(&self) -> String {
        let requests = &self.report.requests;
        if requests.count == 0 {
            return String::new();
        }
        let speed = requests.tokens_per_second.map(|speed| format!(", {speed:.1} tokens/s"));
        let again = match requests.recomputed_tokens {
            0 => String::new(),
            again => format!(", {again} known but computed again"),
        };
        let title = format!(
            "Requests: {} ({} finished, {} cancelled, {} failed), {} prompt ({} cached{again}) and \
             {} generated tokens{}",
            requests.count,
            requests.finished,
            requests.cancelled,
            requests.failed,
            requests.prompt_tokens,
            requests.cached_tokens,
            requests.generated_tokens,
            speed.unwrap_or_default()
        );
        let header = [
            ("ms", Left),
            ("mean", Right),
            ("p50", Right),
            ("p90", Right),
            ("p95", Right),
            ("p99", Right),
            ("max", Right),
        ];
        let row = |name: &str, p: &Percentiles| {
            let [mean, p50, p90, p95, p99, max] = [p.mean, p.p50, p.p90, p.p95, p.p99, p.max]
                .map(|value| or_dash(value.map(|value| format!("{value:.3}"))));
            [name.to_owned(), mean, p50, p90, p95, p99, max]
        };
        let rows = [
            row("queued", &requests.queued_ms),
            row("TTFT", &requests.ttft_ms),
            row("TPOT", &requests.tpot_ms),
            row("ITL", &requests.itl_ms),
            row("token gap", &requests.gap_ms),
        ];
        table(&title, header, &rows, self.options)
            + &super::streams::sentences(self.report, self.options)
    }

    fn waits(&self) -> String {
        let header = [
            ("wait", Left),
            ("mode", Left),
            ("count", Right),
            ("slept", Right),
            ("polled", Right),
            ("late p50", Right),
            ("late p99", Right),
            ("error", Right),
            ("99 % margin", Right),
        ];
        let waits = &self.report.waits;
        let rows: Vec<_> = waits
            .iter()
            .take(self.options.rows_max)
            .map(|wait| {
                [
                    wait.name.clone(),
                    wait.mode.to_owned(),
                    wait.count.to_string(),
                    self.time(wait.slept_ns),
                    self.time(wait.spun_ns),
                    self.maybe(wait.late_ns.p50),
                    self.maybe(wait.late_ns.p99),
                    or_dash(wait.error_relative_median.map(percent)),
                    self.maybe(wait.margin_best_ns.map(|ns| ns as f64)),
                ]
            })
            .collect();
        table(&self.title("Predicted waits", waits.len()), header, &rows, self.options)
    }

    fn messages(&self) -> String {
        let header = [
            ("message", Left),
            ("count", Right),
            ("bytes", Right),
            ("delay p50", Right),
            ("delay p99", Right),
            ("stalled", Right),
            ("lost", Right),
        ];
        let messages = &self.report.messages;
        let rows: Vec<_> = messages
            .iter()
            .take(self.options.rows_max)
            .map(|message| {
                [
                    message.name.clone(),
                    message.count.to_string(),
                    bytes(message.bytes),
                    self.maybe(message.delay_ns.p50),
                    self.maybe(message.delay_ns.p99),
                    self.time(message.held_ns),
                    message.lost.to_string(),
                ]
            })
            .collect();
        let title = match self.report.messages_per_token {
            Some(count) => format!("Messages ({count:.1} per generated token)"),
            None => "Messages".to_owned(),
        };
        table(&self.title(&title, messages.len()), header, &rows, self.options)
    }

    fn counters(&self) -> String {
        let header = [
            ("counter", Left),
            ("lane", Left),
            ("min", Right),
            ("mean", Right),
            ("max", Right),
            ("last", Right),
        ];
        let counters = &self.report.counters;
        let rows: Vec<_> = counters
            .iter()
            .take(self.options.rows_max)
            .map(|counter| {
                [
                    counter.name.clone(),
                    counter.lane.clone(),
                    counter.min.to_string(),
                    format!("{:.2}", counter.mean),
                    counter.max.to_string(),
                    counter.last.to_string(),
                ]
            })
            .collect();
        table(&self.title("Counters", counters.len()), header, &rows, self.options)
    }

    fn freed(&self) -> String {
        let header = [("memory", Left), ("count", Right), ("bytes", Right)];
        let freed = &self.report.freed;
        let row = |freed: &crate::report::FreedReport| {
            [freed.name.clone(), freed.count.to_string(), bytes(freed.bytes)]
        };
        let rows: Vec<_> = freed.iter().take(self.options.rows_max).map(row).collect();
        table(&self.title("Memory freed", freed.len()), header, &rows, self.options)
    }
}
