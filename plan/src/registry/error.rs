//! Errors of choices and of names.

/// Why a text chooses nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ChoiceError {
    /// Nothing has that name.
    #[error("there is no {kind} '{name}'; it must be {}", one_of(known, nearest.as_deref()))]
    Unknown {
        /// What was to be chosen, such as `policy`.
        kind: &'static str,
        /// The name.
        name: String,
        /// The names that there are, with commas between them.
        known: String,
        /// The most similar one of them, if one is similar.
        nearest: Option<String>,
    },
    /// There is no such parameter.
    #[error("the {of} has no parameter '{found}'; it has {known}")]
    Parameter {
        /// What was chosen, with its name, such as `policy vtc`.
        of: String,
        /// The parameter.
        found: String,
        /// The parameters that it has, with commas between them.
        known: String,
    },
    /// A parameter has an impossible value.
    #[error("{parameter} of the {of} is '{found}', but must be a number from {from} to {to}")]
    Value {
        /// What was chosen, with its name.
        of: String,
        /// The parameter.
        parameter: String,
        /// Its value.
        found: String,
        /// Least value.
        from: f64,
        /// Greatest value.
        to: f64,
    },
}

/// Similarity of two names from which one may be meant by the other (Jaro-Winkler, 0 to 1).
const LIKENESS_MIN: f64 = 0.7;

impl ChoiceError {
    /// The error that none of these names is `name`, with the most similar one.
    pub fn unknown(kind: &'static str, name: &str, known: &[&str]) -> ChoiceError {
        let alike = known.iter().map(|known| (strsim::jaro_winkler(known, name), *known));
        let nearest = alike.filter(|(likeness, _)| *likeness > LIKENESS_MIN);
        let nearest = nearest.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known.to_owned());
        ChoiceError::Unknown { kind, name: name.to_owned(), known: known.join(", "), nearest }
    }

    /// What the text must be, as words that follow "must be".
    pub fn expected(&self) -> String {
        match self {
            ChoiceError::Unknown { known, nearest, .. } => one_of(known, nearest.as_deref()),
            wrong => format!("valid: {wrong}"),
        }
    }
}

fn one_of(known: &str, nearest: Option<&str>) -> String {
    let hint = nearest.map(|nearest| format!(" (did you mean {nearest}?)"));
    format!("one of {known}{}", hint.unwrap_or_default())
}

/// A name that an entry of a registry cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Another entry has it.
    #[error("there is a {kind} '{name}' already; choose another name")]
    Taken {
        /// What was to be named, such as `strategy`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// It has characters that lists of names cannot have.
    #[error("'{name}' cannot name a {kind}; use letters, digits, - and _")]
    Invalid {
        /// What was to be named.
        kind: &'static str,
        /// The name.
        name: String,
    },
}
