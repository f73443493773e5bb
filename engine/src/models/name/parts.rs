//! Models in parts: files named `NAME-00001-of-0000N.gguf`.

use super::HubFile;

/// Digits of each number in the name of a part.
const DIGITS: usize = 5;
/// Maximum number of parts; GGUF counts them in 16 bits.
const PARTS_MAX: usize = u16::MAX as usize;

/// The number of a part in its model.
#[derive(Debug, PartialEq, Eq)]
struct Part<'a> {
    /// The file without number and extension.
    stem: &'a str,
    extension: &'a str,
    /// From 1.
    number: usize,
    of: usize,
}

impl Part<'_> {
    fn read(file: &str) -> Option<Part<'_>> {
        let at = file.len().checked_sub(".gguf".len())?;
        let (whole, extension) = (file.get(..at)?, file.get(at..)?);
        if !extension.eq_ignore_ascii_case(".gguf") {
            return None;
        }
        let (before, of) = whole.rsplit_once("-of-")?;
        let (stem, number) = before.rsplit_once('-')?;
        let read = |text: &str| {
            let is_number = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| is_number)
        };
        let (number, of) = (read(number)?, read(of)?);
        let is_part = (1..=of).contains(&number) && of <= PARTS_MAX && !stem.is_empty();
        is_part.then_some(Part { stem, extension, number, of })
    }

    fn file(&self, number: usize) -> String {
        let Part { stem, extension, of, .. } = self;
        format!("{stem}-{number:0DIGITS$}-of-{of:0DIGITS$}{extension}")
    }
}

/// The files of the model that a file is a part of, in order; the file alone if it is whole.
pub(in crate::models) fn parts_of(file: &str) -> Vec<String> {
    match Part::read(file) {
        Some(part) => (1..=part.of).map(|number| part.file(number)).collect(),
        None => vec![file.to_owned()],
    }
}

/// Whether a file is a part of a model in several.
pub(in crate::models) fn is_part(file: &str) -> bool {
    Part::read(file).is_some()
}

/// Whether a file is a part other than the first, which stands for the model.
pub(in crate::models) fn is_later_part(file: &str) -> bool {
    Part::read(file).is_some_and(|part| part.number > 1)
}

impl HubFile {
    /// All files of the model, in order: this file, or the parts of the model that it is a part of.
    pub fn parts(&self) -> Vec<HubFile> {
        let file = |file| HubFile { file, ..self.clone() };
        parts_of(&self.file).into_iter().map(file).collect()
    }

    /// The last part of its path.
    pub(in crate::models) fn file_name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(&self.file)
    }

    /// The first file of the model.
    pub(super) fn first_part(&self) -> HubFile {
        match Part::read(&self.file) {
            Some(part) => HubFile { file: part.file(1), ..self.clone() },
            None => self.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_stands_for_all_parts_of_its_model() {
        let file: HubFile = "hf:o/r/Q4/x-Q4_K_M-00002-of-00003.gguf@v1".parse().unwrap();
        let names: Vec<_> = file.parts().iter().map(ToString::to_string).collect();
        assert_eq!(
            names,
            [1, 2, 3].map(|n| format!("hf:o/r/Q4/x-Q4_K_M-0000{n}-of-00003.gguf@v1"))
        );
        assert_eq!(file.first_part().to_string(), names[0]);
        assert!(is_part(&file.file) && is_later_part(&file.file));
        assert!(!is_later_part("x-00001-of-00003.gguf"));
        assert_eq!(parts_of("x-00001-of-00002.GGUF")[1], "x-00002-of-00002.GGUF");
    }

    #[test]
    fn a_file_that_only_looks_like_a_part_is_whole() {
        for file in [
            "x.gguf",
            "x-00000-of-00002.gguf",
            "x-00003-of-00002.gguf",
            "x-1-of-2.gguf",
            "x-00001-of-00002.bin",
            "-00001-of-00002.gguf",
            "x-00001-of-99999.gguf",
            "part-of-it.gguf",
            "é",
        ] {
            assert!(!is_part(file), "{file}");
            assert_eq!(parts_of(file), [file], "{file}");
        }
    }
}
