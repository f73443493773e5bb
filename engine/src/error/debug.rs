//! The `Debug` form of errors.

use std::error::Error as _;
use std::fmt;

use super::Error;

impl fmt::Debug for Error {
    /// The message, and each cause that the message does not have.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.to_string();
        f.write_str(&message)?;
        let mut cause = self.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !message.contains(&text) {
                write!(f, "\ncaused by: {text}")?;
            }
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::super::{ChatError, Error, WeightError};

    #[test]
    fn a_program_that_returns_an_error_prints_its_message() {
        let source = io::Error::other("the disk is gone");
        let open = WeightError::Open { path: "/models/small.gguf".into(), source };
        let message = open.to_string();
        let printed = format!("{:?}", Error::from(open));
        assert!(
            printed.starts_with(&message) && printed.contains("/models/small.gguf"),
            "{printed}"
        );
        assert!(!printed.contains("Open {") && !printed.contains("kind:"), "{printed}");
        assert_eq!(printed.matches("the disk is gone").count(), 1, "{printed}");
    }

    #[derive(Debug, thiserror::Error)]
    #[error("line 3 is odd")]
    struct Outer {
        source: io::Error,
    }

    #[test]
    fn causes_follow_a_message_that_does_not_have_them() {
        let source = Outer { source: io::Error::other("a byte is missing") };
        let error = Error::from(ChatError::Failed { source: Box::new(source) });
        let want = "the model's chat template failed: line 3 is odd\ncaused by: a byte is missing";
        assert_eq!(format!("{error:?}"), want);
        assert_eq!(format!("{error:#?}"), want);
    }
}
