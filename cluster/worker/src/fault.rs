//! Failures in the types by which Dynamo decides: whether a client is told, or another worker tries.

use dynamo_backend_common::{BackendError, DynamoError, ErrorType};
use lapwing_engine::{Error, ErrorKind, RunError};

/// The request is wrong, and would be for every worker.
pub(crate) fn invalid(message: impl Into<String>) -> DynamoError {
    let message = message.into();
    let fault = DynamoError::builder().error_type(ErrorType::InvalidArgument);
    fault.message(message.clone()).public_message(message).build()
}

/// This worker does not answer any more; another one may.
pub(crate) fn ended() -> DynamoError {
    let class = ErrorType::Backend(BackendError::EngineShutdown);
    DynamoError::builder().error_type(class).message("the engine has ended").build()
}

/// The engine cannot be started.
pub(crate) fn start(message: impl Into<String>) -> DynamoError {
    let class = ErrorType::Backend(BackendError::Unknown);
    DynamoError::builder().error_type(class).message(message).build()
}

/// A failure of the engine.
pub(crate) fn of(error: &Error) -> DynamoError {
    let fault = DynamoError::builder().error_type(class(error)).message(error.to_string());
    fault.public_message(error.for_clients()).build()
}

fn class(error: &Error) -> ErrorType {
    match (error.run_error(), error.kind()) {
        (Some(RunError::RateLimited { .. }), _) => ErrorType::RateLimited,
        // Another worker may have room, and a lost device is this worker's only.
        (Some(RunError::QueueFull { .. }), _) => ErrorType::WorkerOverloaded,
        (
            Some(
                RunError::ShuttingDown
                | RunError::Device { .. }
                | RunError::ActorDied { .. }
                | RunError::MailboxFull { .. },
            ),
            _,
        ) => ErrorType::Backend(BackendError::EngineShutdown),
        (_, ErrorKind::Request) => ErrorType::InvalidArgument,
        (_, ErrorKind::Busy) => ErrorType::WorkerOverloaded,
        _ => ErrorType::Backend(BackendError::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dynamo_knows_whose_fault_it_is_and_whether_another_worker_may_answer() {
        let device = || RunError::Device { device: "gpu".into(), reason: "/dev/dri".into() };
        let rows = [
            (RunError::EmptyPrompt, "request.invalid_argument"),
            (RunError::PromptTooLong { tokens: 9, context: 8 }, "request.invalid_argument"),
            (RunError::OutOfKvPages { wanted: 2, capacity: 1 }, "request.invalid_argument"),
            (RunError::QueueFull { limit: 4 }, "capacity.worker_overloaded"),
            (RunError::ShuttingDown, "backend.engine_shutdown"),
            (device(), "backend.engine_shutdown"),
        ];
        for (error, reason) in rows {
            assert_eq!(of(&error.clone().into()).reason().as_str(), reason, "{error}");
        }
        let told = of(&device().into()).public_message().map(str::to_owned).expect("a message");
        assert!(!told.contains("/dev"), "{told}");
    }
}
