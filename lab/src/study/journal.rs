//! The runs of a study that has not ended: a line of JSON for each.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::numbers::Numbers;

/// Name of the file.
pub(super) const JOURNAL: &str = "unfinished.jsonl";

/// The runs so far.
pub(super) struct Journal {
    file: File,
}

/// A run that has ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Number of the scenario, and of its run.
    pub(super) scenario: usize,
    pub(super) run: usize,
    /// Numbers as texts, which have every bit.
    numbers: BTreeMap<String, String>,
    error: Option<String>,
}

impl Entry {
    pub(super) fn new(scenario: usize, run: usize, outcome: &Result<Numbers, String>) -> Entry {
        let numbers = outcome.as_ref().map(|numbers| &numbers.0);
        let numbers = numbers.into_iter().flatten();
        let numbers = numbers.map(|(name, number)| (name.clone(), number.to_string())).collect();
        Entry { scenario, run, numbers, error: outcome.as_ref().err().cloned() }
    }

    /// The outcome; `None` if a number is damaged.
    pub(super) fn outcome(self) -> Option<Result<Numbers, String>> {
        if let Some(error) = self.error {
            return Some(Err(error));
        }
        let numbers = self.numbers.into_iter();
        let numbers = numbers.map(|(name, number)| Some((name, number.parse().ok()?)));
        Some(Ok(Numbers(numbers.collect::<Option<_>>()?)))
    }
}

impl Journal {
    /// A new one in a folder.
    pub(super) fn create(folder: &Path) -> io::Result<Journal> {
        Ok(Journal { file: File::create(folder.join(JOURNAL))? })
    }

    /// The one of a folder, and its runs. Where a line is damaged, as the last one of a process that was killed, it and what
    /// follows are dropped.
    pub(super) fn open(folder: &Path) -> io::Result<(Journal, Vec<Entry>)> {
        let path = folder.join(JOURNAL);
        let text = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
        let (mut entries, mut kept) = (Vec::new(), 0);
        for line in text.split_inclusive('\n').take_while(|line| line.ends_with('\n')) {
            let Ok(entry) = serde_json::from_str::<Entry>(line) else { break };
            entries.push(entry);
            kept += line.len();
        }
        let file = OpenOptions::new().append(true).open(&path)?;
        file.set_len(kept as u64)?;
        Ok((Journal { file }, entries))
    }

    /// Adds a run.
    pub(super) fn add(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_string(entry)?;
        line.push('\n');
        self.file.write_all(line.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_keeps_every_bit_and_drops_a_damaged_end() {
        let folder = std::env::temp_dir().join(format!("lapwing-journal-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let numbers = BTreeMap::from([("a".to_owned(), 0.1 + 0.2), ("b".to_owned(), 1e-300 / 3.0)]);
        let outcomes = [Ok(Numbers(numbers)), Err("no \"device\"\nat all".to_owned())];
        let mut journal = Journal::create(&folder).expect("a journal");
        for (run, outcome) in outcomes.iter().enumerate() {
            journal.add(&Entry::new(2, run, outcome)).expect("a line");
        }
        journal.file.write_all(b"{\"scenario\":2,\"ru").expect("half a line");
        for more in 0..2 {
            let (mut journal, entries) = Journal::open(&folder).expect("a journal");
            assert_eq!(entries.len(), 2 + more);
            let read = entries.into_iter().take(2).map(|it| it.outcome().expect("an outcome"));
            assert_eq!(read.collect::<Vec<_>>(), outcomes);
            journal.add(&Entry::new(3, 0, &outcomes[0])).expect("a line");
        }
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
