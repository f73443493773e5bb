//! Comma-separated values (RFC 4180, with line feeds).

/// A table of these rows, of which the first has the names of the columns. Cells are quoted where they must be.
pub fn table<Row, Cell>(rows: impl IntoIterator<Item = Row>) -> String
where
    Row: IntoIterator<Item = Cell>,
    Cell: AsRef<[u8]>,
{
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    for row in rows {
        writer.write_record(row).expect("memory takes every record");
    }
    let bytes = writer.into_inner().expect("memory takes every record");
    String::from_utf8(bytes).expect("cells are texts")
}

/// The cells of one line, without the white space around them. `None` if the line is empty, or has a quotation without its end.
pub(crate) fn cells(line: &str) -> Option<Vec<String>> {
    // The library takes the end of the line for that of a quotation.
    if line.matches('"').count() % 2 == 1 {
        return None;
    }
    let mut reader = csv::ReaderBuilder::new();
    let reader = reader.has_headers(false).trim(csv::Trim::All);
    let mut records = reader.from_reader(line.as_bytes()).into_records();
    let record = records.next()?.ok()?;
    Some(record.iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let row = ["a, b", "say \"c\"", "", "1.5"];
        let text = table([["one", "two", "three", "four"], row]);
        assert_eq!(text, "one,two,three,four\n\"a, b\",\"say \"\"c\"\"\",,1.5\n");
        let read = cells(text.lines().nth(1).expect("two lines"));
        assert_eq!(read.as_deref(), Some(&row.map(str::to_owned)[..]));
        assert_eq!(cells(" x , y "), Some(vec!["x".to_owned(), "y".to_owned()]));
        assert_eq!(cells(""), None);
        assert_eq!(cells("\"a,1"), None);
    }
}
