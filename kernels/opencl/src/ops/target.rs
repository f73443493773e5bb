//! For which kind of processor kernels are launched, and what tests choose in its place.

use super::shapes::Shapes;
#[cfg(test)]
use super::shapes::{FewRows, ManyRows};
use crate::discovery::OpenClKind;
use crate::pack::RunOrder;
use crate::session::Session;

/// The order of weights that kernels for a CPU read, or those for a GPU.
pub(super) fn order(is_cpu: bool) -> RunOrder {
    if is_cpu { RunOrder::ByWord } else { RunOrder::ByChannel }
}

/// Whether kernels are launched as on a CPU.
pub(super) fn is_cpu(session: &Session) -> bool {
    session.info().kind == OpenClKind::Cpu && !is_as_on_gpu()
}

/// Shapes that replace the tuned ones. In a test of the kernels of GPUs on a CPU the latter would not be
/// chosen.
pub(super) fn forced() -> Option<Shapes> {
    #[cfg(test)]
    if is_as_on_gpu() {
        return Some(Shapes { many: ManyRows::Group, few: FewRows::Group });
    }
    None
}

#[cfg(test)]
thread_local! {
    /// Whether kernels that this thread makes are launched as on a GPU.
    pub(crate) static AS_ON_GPU: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    /// Whether they may have a persistent kernel, of one group.
    pub(crate) static PERSISTENT: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    /// The kernels that this thread launched.
    pub(crate) static LAUNCHED: std::cell::RefCell<Vec<&'static str>> =
        const { std::cell::RefCell::new(Vec::new()) };
}

/// Whether a test wants the launches of a GPU on any device.
fn is_as_on_gpu() -> bool {
    #[cfg(test)]
    return AS_ON_GPU.get();
    #[cfg(not(test))]
    false
}

/// Whether a test wants a persistent kernel on any device.
pub(super) fn is_persistent_on_any() -> bool {
    #[cfg(test)]
    return PERSISTENT.get();
    #[cfg(not(test))]
    false
}
