//! How simulated drafts depart from their usual form, as options.

use clap::Args;
use lapwing_engine::draft::DraftForm;

/// The form of simulated drafts.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct DraftFormArgs {
    /// Synchronous drafts as in published decoders: the last token of a draft that was accepted completely has a pass of the
    /// draft model of its own, in place of a row of the next one
    #[arg(long)]
    sync_bonus_pass: bool,

    /// Asynchronous drafts: where no draft is there, as after a rejection, the target computes a pass without one in place of
    /// waiting; it checks the first token of the draft that is made meanwhile (PEARL). For models in memories of their own
    #[arg(long)]
    pre_verify: bool,

    /// Asynchronous drafts without a chosen length: the target verifies as many tokens as are there, up to 63 (PEARL)
    #[arg(long)]
    post_verify: bool,
}

impl DraftFormArgs {
    /// The form.
    pub(crate) fn form(self) -> DraftForm {
        DraftForm {
            bonus_pass: self.sync_bonus_pass,
            pre_verify: self.pre_verify,
            post_verify: self.post_verify,
        }
    }
}
