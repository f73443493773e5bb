//! Errors in the form that clients of a server get.

use super::{Cause, Error, ErrorKind, RerankError, RunError};

impl Error {
    /// The message for a client of a server, who can neither see its files nor choose its options. The rest is for the one
    /// who runs the server.
    pub fn for_clients(&self) -> String {
        let text = match (&self.source, self.kind) {
            (Cause::NoTemplate { .. }, _) => {
                "the model has no chat template; send plain text instead of messages"
            }
            (Cause::Pooling { number: 4 }, _) => {
                "the model is a reranker; send it a query and documents, or use a model that makes embeddings"
            }
            (Cause::Pooling { .. }, _) => "the model asks for a kind of pooling that is not known",
            (Cause::Rerank(RerankError::NoHead { .. }), _) => {
                "the model is no reranker: it has no head that makes scores; use a model that has one"
            }
            (Cause::Rerank(RerankError::NoPairs { .. }), _) => {
                "the model does not say how a query and a document become one text; use another reranker"
            }
            (Cause::Run(RunError::Encoder), _) => {
                "the model is an encoder: it makes embeddings only, no text and no scores; send the text to an \
                 embedding interface, or use a model that generates"
            }
            (Cause::Run(RunError::Drafts), _) => {
                "layers of the draft model keep a state of the rows before, so its drafts cannot be rolled back; choose another draft model"
            }
            (_, ErrorKind::Request | ErrorKind::Busy) => return self.to_string(),
            (Cause::Run(RunError::ShuttingDown), _) => return self.to_string(),
            (_, ErrorKind::Answer) => {
                "the model's answer was cut, or has another form than is needed; send the request again"
            }
            (_, ErrorKind::Engine) => "the engine has failed; the log of the server says why",
            (_, ErrorKind::Model | ErrorKind::Fetch | ErrorKind::Config) => {
                "the model cannot be loaded; the log of the server says why"
            }
        };
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn clients_are_told_neither_paths_nor_options() {
        let path = || PathBuf::from("/srv/models/model.gguf");
        let source = || std::io::Error::other("/dev/sda");
        let all: Vec<Error> = vec![
            Error::no_template(path()),
            Error::no_chat(path(), crate::chat::ChatFault::NoTemplate),
            Error::pooling(9),
            RerankError::NoHead { path: path() }.into(),
            RerankError::NoPairs { path: path() }.into(),
            Error::npu_alone(),
            Error::prefixes(path(), crate::prefix_file::PrefixFileError::from(source())),
            Error::unknown("policy", "no-such-policy", "fcfs"),
            Error::prompt_too_long(100, 50, 20),
            Error::bias(7, 3),
            Error::thread(source()),
            lapwing_kernels::weights::WeightError::Open { path: path(), source: source() }.into(),
            RunError::Encoder.into(),
            RunError::Drafts.into(),
            RunError::EmptyPrompt.into(),
            RunError::QueueFull { limit: 4 }.into(),
            RunError::OutOfKvPages { wanted: 2, capacity: 1 }.into(),
            RunError::Device { device: "gpu".into(), reason: "/dev/dri".into() }.into(),
            RunError::ActorDied { actor: "cpu".into(), reason: "/src".into() }.into(),
        ];
        for error in all {
            let told = error.for_clients();
            for part in ["/", "--", "ulimit", "command line", "lapwing "] {
                assert!(!told.contains(part), "{part:?} in {told:?}, of {error}");
            }
        }
    }
}
