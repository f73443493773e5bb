//! What a report must not have: paths, and the names of the machine and its users.

use std::path::Path;

use serde_json::Value;
use sysinfo::System;

/// What stands for something private.
const HIDDEN: &str = "…";
/// What stands for a folder until the whole path is shortened.
const HIDDEN_FOLDER: &str = "/…";

/// Fewest letters of a name or a path that is looked for: shorter ones are parts of other words.
const LETTERS_MIN: usize = 3;

/// What is private on this machine.
#[derive(Debug, Default)]
pub(super) struct Private {
    /// Folders, the longest first.
    folders: Vec<String>,
    /// Names of the machine and its users.
    names: Vec<String>,
}

impl Private {
    /// That of this machine and of a run with this model.
    pub(super) fn here(model: &Path) -> Private {
        let variable = |name: &str| std::env::var(name).ok();
        let homes = ["HOME", "USERPROFILE"].into_iter().filter_map(variable);
        let mut folders: Vec<String> = homes.collect();
        let home_names = folders.iter().filter_map(|home| Path::new(home).file_name());
        let home_names: Vec<String> =
            home_names.map(|name| name.to_string_lossy().into_owned()).collect();
        let paths = [std::env::current_dir().ok(), Some(std::env::temp_dir())];
        let paths = paths.into_iter().flatten().chain(model.parent().map(Path::to_owned));
        folders.extend(paths.map(|path| path.display().to_string()));
        folders.retain(|folder| folder.chars().count() > LETTERS_MIN);
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.len()));
        let users = ["USER", "LOGNAME", "USERNAME"].into_iter().filter_map(variable);
        let mut names: Vec<String> = users.chain(home_names).chain(System::host_name()).collect();
        names.retain(|name| name.chars().count() >= LETTERS_MIN);
        Private { folders, names }
    }

    /// A text of a program or a driver, such as the reason of a failure, without anything private.
    pub(super) fn cleaned(&self, text: &str) -> String {
        let text = self.without_paths(text);
        self.names.iter().fold(text, |text, name| without_word(&text, name))
    }

    /// Removes the folders of all paths from the texts of a value.
    pub(super) fn clean(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.without_paths(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.clean(value)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.clean(value)),
            _ => {}
        }
    }

    fn without_paths(&self, text: &str) -> String {
        // Folders with spaces in their names are known here only.
        let text = self
            .folders
            .iter()
            .fold(text.to_owned(), |text, folder| text.replace(&**folder, HIDDEN_FOLDER));
        let mut cleaned = String::with_capacity(text.len());
        let mut rest = &*text;
        while let Some(start) = path_in(rest) {
            cleaned.push_str(&rest[..start]);
            let path = &rest[start..];
            let end = path.find(ends_path).unwrap_or(path.len());
            let last = path[..end].rsplit(['/', '\\']).next().unwrap_or_default();
            cleaned.push_str(HIDDEN);
            cleaned.push('/');
            cleaned.push_str(last);
            rest = &path[end..];
        }
        cleaned.push_str(rest);
        cleaned
    }
}

/// Where the first absolute path of a text begins: `/` or `C:\` that continues no word, before a name.
fn path_in(text: &str) -> Option<usize> {
    let mut before = None;
    text.char_indices().find_map(|(at, letter)| {
        let follows_word = before.is_some_and(|before: char| before.is_alphanumeric());
        let follows_path = matches!(before, Some('/' | '\\' | '.' | '-' | '_' | '…'));
        before = Some(letter);
        let mut next = text[at..].chars().skip(1);
        let is_path = match letter {
            '/' => next.next().is_some_and(|next| next.is_alphanumeric() || ".…".contains(next)),
            letter if letter.is_ascii_alphabetic() => text[at + 1..].starts_with(":\\"),
            _ => false,
        };
        (is_path && !follows_word && !follows_path).then_some(at)
    })
}

fn ends_path(letter: char) -> bool {
    letter.is_whitespace() || "\"'`(),;<>[]|".contains(letter)
}

/// The text without a word.
fn without_word(text: &str, word: &str) -> String {
    let is_part = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric());
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        cleaned.push_str(before);
        let is_whole = !is_part(cleaned.chars().next_back()) && !is_part(after.chars().next());
        cleaned.push_str(if is_whole { HIDDEN } else { word });
        rest = after;
    }
    cleaned.push_str(rest);
    cleaned
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn private() -> Private {
        let folders = vec!["/home/Jane Doe".to_owned()];
        Private { folders, names: vec!["jane".to_owned(), "janes-laptop".to_owned()] }
    }

    #[test]
    fn paths_keep_their_last_part_only() {
        let rows = [
            ("cannot open /opt/secret/lib/libOpenCL.so.1: no", "cannot open …/libOpenCL.so.1: no"),
            ("the library '/a/b.so' (in /c/d)", "the library '…/b.so' (in …/d)"),
            ("npu=qnn:library=/srv/of jane/x.so", "npu=qnn:library=…/of …/x.so"),
            ("C:\\Users\\jane\\x.dll is gone", "…/x.dll is gone"),
            ("/home/Jane Doe/my models/a.gguf", "…/my models/a.gguf"),
            ("'/home/Jane Doe/models/a.gguf'", "'…/a.gguf'"),
            ("in /home/Jane Doe: no room", "in …/…: no room"),
            ("sizes=1/32/64, 3 tokens/s, and/or", "sizes=1/32/64, 3 tokens/s, and/or"),
            ("see https://example.org/a/b", "see https://example.org/a/b"),
            ("a / b", "a / b"),
        ];
        for (text, cleaned) in rows {
            assert_eq!(private().cleaned(text), cleaned, "{text}");
        }
        let mut value = json!({ "a": ["/x/y/z.so", 1], "b": { "c": "gpu=opencl:0" } });
        private().clean(&mut value);
        assert_eq!(value, json!({ "a": ["…/z.so", 1], "b": { "c": "gpu=opencl:0" } }));
    }

    #[test]
    fn names_are_hidden_where_they_are_words() {
        let rows = [
            ("jane@janes-laptop failed", "…@… failed"),
            ("janet and jane.", "janet and …."),
            ("no name", "no name"),
        ];
        for (text, cleaned) in rows {
            assert_eq!(private().cleaned(text), cleaned, "{text}");
        }
    }
}
