//! skeleton
pub(super) struct Links;
impl Links {
    pub(super) fn new(_t: &crate::Timeline) -> Links {
        Links
    }
}
