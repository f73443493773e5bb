//! Drafts of several drafters.

use std::sync::Arc;

use super::suffix::{self, SHARE};
use super::{DraftTree, Drafter, DrafterEntry, PromptLookup};

/// Proposes the continuations of several drafters as one tree. Where they differ, that of an earlier drafter counts
/// as the likelier one.
#[derive(Debug)]
pub struct DrafterUnion(Vec<Box<dyn Drafter>>);

impl DrafterUnion {
    /// The union of these drafters, in the order of preference.
    pub fn new(drafters: Vec<Box<dyn Drafter>>) -> DrafterUnion {
        DrafterUnion(drafters)
    }
}

/// `lookup+suffix`.
pub const LOOKUP_AND_SUFFIX: DrafterEntry = DrafterEntry::new(
    "lookup+suffix",
    "what lookup and suffix propose, verified together",
    &[SHARE],
    |parameters| {
        let suffix = suffix::maker(parameters);
        Arc::new(move || {
            let both: Vec<Box<dyn Drafter>> =
                vec![Box::new(PromptLookup::new()), Box::new(suffix())];
            Box::new(DrafterUnion::new(both))
        })
    },
);

impl Drafter for DrafterUnion {
    /// The first proposal that is not empty.
    fn draft(&mut self, ids: &[u32], most: usize) -> Vec<u32> {
        // Every drafter sees every token.
        let drafts: Vec<_> = self.0.iter_mut().map(|drafter| drafter.draft(ids, most)).collect();
        drafts.into_iter().find(|draft| !draft.is_empty()).unwrap_or_default()
    }

    fn draft_tree(&mut self, ids: &[u32], most: usize) -> DraftTree {
        let mut tree = DraftTree::default();
        for drafter in &mut self.0 {
            tree.merge(&drafter.draft_tree(ids, most));
        }
        tree
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RecentText, SuffixDrafter};
    use super::*;

    #[test]
    fn continuations_that_differ_are_branches() {
        let suffix = SuffixDrafter::new(&RecentText::new());
        let mut union = DrafterUnion::new(vec![Box::new(PromptLookup::new()), Box::new(suffix)]);
        // The latest continuation of 1 2 is 4, the most frequent one 3.
        let text = [5, 1, 2, 3, 6, 1, 2, 3, 7, 1, 2, 4, 8, 1, 2];
        let tree = union.draft_tree(&text, 1);
        let mut expected = DraftTree::from(vec![4]);
        expected.add(&[3]);
        assert_eq!(tree, expected);
        assert_eq!(union.draft(&text, 1), [4]);
    }
}
