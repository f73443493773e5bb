//! How models write calls.
//!
//! A style is data: the texts around calls, names and arguments. How calls are read (`parts`), how earlier calls are written for
//! templates without a place for them, and the grammar of calls that a model has to make follow from it.

mod known;
mod write;

use crate::chat::ChatTemplate;
pub(crate) use known::{BARE, KNOWN, TAGGED};
pub(crate) use write::Called;

/// How a model writes calls: in a part of its answer, or as the whole answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Style {
    /// Its name.
    pub(crate) name: &'static str,
    /// Groups of texts: a template with all texts of a group is that of a model that writes this style.
    signs: &'static [&'static [&'static str]],
    /// Texts that begin a part with calls, of which a model is told the first. Without any, an answer as a whole is calls or none.
    pub(crate) open: &'static [&'static str],
    /// Text that ends the part. Without it, the part ends with its call, or that of JSON objects with the answer.
    pub(crate) close: &'static str,
    /// What stands between these texts and the calls: white space and brackets, which reading skips.
    pub(crate) around: [&'static str; 2],
    pub(crate) form: Form,
    /// The texts around the messages of an answer that may have several.
    pub(crate) turn: Option<Turn>,
}

/// What stands around the parts of an answer that are messages of their own. Reading leaves these texts out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Begins a message after another one; a prompt ends with it.
    pub(crate) start: &'static str,
    /// Before and after the text of the answer.
    pub(crate) text: [&'static str; 2],
    /// Ends the answer.
    pub(crate) end: &'static str,
    /// Whether prompts end with the text that begins calls, and that before the text of the answer begins with the same.
    pub(crate) is_begun: bool,
}

impl Turn {
    /// Its texts.
    pub(crate) fn marks(&self) -> impl Iterator<Item = &'static str> {
        let marks = [self.start, self.text[0], self.text[1], self.end].into_iter();
        marks.filter(|mark| !mark.is_empty())
    }
}

/// The form of calls.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Objects(Objects),
    Named(Named),
    Elements(Elements),
    Literals(Literals),
    Tree(Tree),
    /// Messages in the channels of the Harmony format, which also has thoughts and text.
    Channels,
}

/// JSON objects in a row, or in a list. Reading knows all names of members that are in use.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Objects {
    /// The member with the name of the function. Without it, the object has one member: the arguments, named as the function.
    pub(crate) name: Option<&'static str>,
    /// The member with the arguments.
    pub(crate) arguments: &'static str,
    /// The member with the number of the call, which comes first.
    pub(crate) number: Option<&'static str>,
}

/// A name, and a JSON object with the arguments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) begin: &'static str,
    /// After the id of the call, which follows `begin`. Without this text, calls have no id.
    pub(crate) id_end: &'static str,
    /// Texts before and after the name that are a part of it for the model.
    pub(crate) within: [&'static str; 2],
    /// What may begin a part between the name and the text after it, which reading skips.
    pub(crate) skipped: &'static str,
    pub(crate) between: &'static str,
    pub(crate) end: &'static str,
}

/// An element for the call, with one for each argument. Texts are written as they are, other values in JSON. Reading ignores white
/// space around these texts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Elements {
    pub(crate) begin: &'static str,
    pub(crate) name_end: &'static str,
    /// Before and after the number of the call, which follows `name_end` and which reading skips.
    pub(crate) number: Option<[&'static str; 2]>,
    pub(crate) key: &'static str,
    pub(crate) key_end: &'static str,
    /// After the key of a text, and of another value, where `{}` stands for the type of the value.
    pub(crate) attributes: [&'static str; 2],
    /// Before the value. If it ends a line, so does the value.
    pub(crate) value: &'static str,
    pub(crate) value_end: &'static str,
    pub(crate) end: &'static str,
    /// Around texts that contain the marks of elements.
    pub(crate) quotes: Option<[&'static str; 2]>,
}

/// A name with arguments in brackets, whose values are literals as in programs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Literals {
    pub(crate) begin: &'static str,
    pub(crate) brackets: [char; 2],
    /// Between the name of an argument and its value.
    pub(crate) assign: char,
    /// Before and after a text, in place of quotation marks with escapes.
    pub(crate) quote: Option<&'static str>,
}

/// An element for the call, in which each value is an element named as its argument. Values of objects and lists are elements again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) begin: &'static str,
    pub(crate) name_end: &'static str,
    /// Begins every tag inside of a call.
    pub(crate) tag: &'static str,
    /// Name of the elements of a list.
    pub(crate) item: &'static str,
    pub(crate) end: &'static str,
}

impl Style {
    /// How a model with this template writes calls. One whose template has no place for functions is told to use tags.
    pub(crate) fn of(template: Option<&ChatTemplate>) -> &'static Style {
        let Some(template) = template else { return &TAGGED };
        let known = KNOWN.iter().find(|style| style.is_of(template.source()));
        known.copied().unwrap_or(match template.variable_of_tools() {
            Some(_) => &BARE,
            None => &TAGGED,
        })
    }

    /// Whether the template is that of a model that writes this style.
    fn is_of(&self, template: &str) -> bool {
        let has_all = |group: &&[&str]| group.iter().all(|sign| template.contains(sign));
        self.signs.iter().any(has_all)
    }

    /// Its texts, of which some may be control tokens of the vocabulary.
    pub(crate) fn texts(&self) -> Vec<&'static str> {
        let mut texts = self.open.to_vec();
        texts.push(self.close);
        match &self.form {
            Form::Objects(_) => {}
            Form::Channels => texts.extend(CHANNEL_MARKS),
            Form::Named(named) => {
                let Named { begin, id_end, skipped, between, end, .. } = *named;
                texts.extend([begin, id_end, skipped, between, end]);
            }
            Form::Elements(elements) => {
                let Elements { begin, name_end, key, key_end, value, value_end, end, .. } =
                    elements;
                texts.extend([*begin, *name_end, *key, *key_end, *value, *value_end, *end]);
            }
            Form::Literals(literals) => texts.extend(literals.quote),
            Form::Tree(tree) => texts.extend([tree.begin, tree.name_end, tree.tag, tree.end]),
        }
        texts.retain(|text| !text.is_empty());
        texts
    }
}

/// The marks of messages in channels.
pub(crate) const CHANNEL_MARKS: [&str; 6] =
    ["<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>"];
