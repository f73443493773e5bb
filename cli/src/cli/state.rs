//! What the program remembers of earlier calls.

use std::path::{Path, PathBuf};

/// The folder of the program's state: `$XDG_STATE_HOME/lapwing`, or else `~/.local/state/lapwing`; `None` without a home.
pub(crate) fn folder() -> Option<PathBuf> {
    let set = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || Some(std::env::home_dir()?.join(".local").join("state"));
    let state = set.filter(|path| path.is_absolute()).or_else(home)?;
    Some(state.join("lapwing"))
}

/// Whether this is the first time that `what` is done by a user with this state, as far as that can be remembered: where
/// nothing can be written, it never is.
pub(crate) fn is_first(what: &str, folder: &Path) -> bool {
    let made = std::fs::create_dir_all(folder);
    let mark = folder.join(format!("{what}.done"));
    made.and_then(|()| std::fs::File::create_new(mark)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_is_remembered() {
        let folder = tempfile::tempdir().expect("folder");
        let state = folder.path().join("a").join("lapwing");
        assert!(is_first("tried", &state));
        assert!(!is_first("tried", &state));
        assert!(is_first("seen", &state));
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("a file");
        assert!(!is_first("tried", &file.join("lapwing")), "nothing can be remembered there");
    }
}
