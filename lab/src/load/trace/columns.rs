//! Tables of requests: comma-separated values whose first line names the columns.

use jiff::civil::DateTime;

use super::{LoadRequest, TraceForm};
use crate::table::cells;

/// Positions of the columns of a table.
pub(super) struct Columns {
    pub(super) form: TraceForm,
    /// Names and positions of time, prompt and output.
    required: [(&'static str, usize); 3],
    client: Option<usize>,
}

/// Names of the columns of time, prompt and output.
const TABLES: [(TraceForm, [&str; 3]); 3] = [
    (TraceForm::Table, ["at", "prompt_tokens", "output_tokens"]),
    (TraceForm::Azure, ["TIMESTAMP", "ContextTokens", "GeneratedTokens"]),
    (TraceForm::BurstGpt, ["Timestamp", "Request tokens", "Response tokens"]),
];

impl Columns {
    /// The columns that a line names.
    pub(super) fn of(line: &str) -> Result<Columns, String> {
        let names = cells(line).unwrap_or_default();
        let place = |wanted: &str| names.iter().position(|name| name == wanted);
        let found = TABLES.into_iter().find_map(|(form, [at, prompt, output])| {
            let column = |name| place(name).map(|place| (name, place));
            let required = [column(at)?, column(prompt)?, column(output)?];
            let client = place("client").filter(|_| form == TraceForm::Table);
            Some(Columns { form, required, client })
        });
        found.ok_or_else(|| {
            let forms = TABLES.map(|(_, names)| names.join(","));
            format!("it must be a JSON object, or name columns: {}", forms.join("; or "))
        })
    }

    /// The request of a line.
    pub(super) fn read(&self, line: &str) -> Result<LoadRequest, String> {
        let cells = cells(line).ok_or("it has no columns, or a quotation without its end")?;
        let cell = |(name, at): (&str, usize)| {
            cells.get(at).map(String::as_str).ok_or_else(|| format!("the column {name} is missing"))
        };
        let count = |column: (&str, usize)| {
            let count = cell(column)?.parse();
            count.map_err(|_| format!("{} is not a number of tokens", column.0))
        };
        let [at, prompt, output] = self.required;
        let time = seconds(cell(at)?);
        let time = time.ok_or_else(|| format!("{} is neither a number nor a date", at.0))?;
        let client = self.client.and_then(|at| cells.get(at)).map_or("", String::as_str);
        Ok(LoadRequest::new(time, client, count(prompt)?, count(output)?))
    }
}

/// A number of seconds, or a date and time in seconds from 1970 on. A zone other than UTC is ignored, since all
/// times of a trace have the same.
fn seconds(text: &str) -> Option<f64> {
    if let Ok(number) = text.parse::<f64>() {
        return number.is_finite().then_some(number);
    }
    let text = text.split_once('+').map_or(text, |(date, _zone)| date);
    let date: DateTime = text.trim_end_matches('Z').parse().ok()?;
    let since = date.since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0)).ok()?;
    since.total((jiff::Unit::Second, jiff::SpanRelativeTo::days_are_24_hours())).ok()
}
