//! The reader of each form of calls.

use std::sync::Arc;

use super::elements::ElementCalls;
use super::form::CallForm;
use super::literals::LiteralCalls;
use super::named::NamedCalls;
use super::objects::ObjectCalls;
use super::tree::TreeCalls;
use crate::tools::{Form, Signatures, Style};

/// The reader of a style; none for channels, which are read as a whole.
pub(super) fn reader(
    style: &'static Style,
    signatures: &Arc<Signatures>,
) -> Option<Box<dyn CallForm>> {
    let signatures = Arc::clone(signatures);
    match &style.form {
        Form::Objects(objects) => Some(Box::new(ObjectCalls::new(objects))),
        Form::Named(named) => Some(Box::new(NamedCalls::new(named, signatures))),
        Form::Elements(elements) => Some(Box::new(ElementCalls::new(elements, signatures))),
        Form::Literals(literals) => Some(Box::new(LiteralCalls::new(literals, signatures))),
        Form::Tree(tree) => Some(Box::new(TreeCalls::new(tree, signatures))),
        Form::Channels => None,
    }
}
