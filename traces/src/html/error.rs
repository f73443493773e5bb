//! Errors of creating a page.

/// Why a page could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HtmlError {
    /// A page shows one or two runs, an overview at least one.
    #[error("a page shows one or two runs, and an overview at least one; {0} were given")]
    Runs(usize),
    /// The analysis refers to spans or lanes that the timeline does not have.
    #[error(
        "the analysis of `{title}` does not belong to its timeline: analyse the timeline again"
    )]
    Foreign {
        /// Title of the run.
        title: String,
    },
    /// The header of the run could not be written as JSON.
    #[error("the run could not be written as JSON")]
    Header(#[source] serde_json::Error),
    /// The run could not be compressed.
    #[error("the run could not be compressed")]
    Compress(#[source] std::io::Error),
}
