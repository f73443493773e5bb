//! Why a page cannot be made.

/// Why no page was made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HtmlError {
    /// One run or two fit on a page, and at least one on an overview.
    #[error("a page shows one or two runs and an overview at least one, not {0}: give it as many")]
    Runs(usize),
    /// An analysis names spans or lanes that its timeline does not have.
    #[error("the analysis of `{title}` is not one of its timeline: analyse the timeline again")]
    Foreign {
        /// The run's title.
        title: String,
    },
    /// The lanes and names could not be written as JSON.
    #[error("the run's names could not be written")]
    Header(#[source] serde_json::Error),
    /// The run could not be compressed.
    #[error("the run could not be compressed")]
    Compress(#[source] std::io::Error),
}
