//! Kinds of device that this version does not support, and their drivers on this machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::found::Device;

/// A kind of device, and the libraries that its drivers install.
pub(super) struct AbsentKind {
    pub(super) kind: &'static str,
    title: &'static str,
    libraries: &'static [&'static str],
}

pub(super) const ABSENT_KINDS: [AbsentKind; 1] =
    [AbsentKind { kind: "npu", title: "Other NPUs", libraries: &["librknnrt.so"] }];

/// Library folders of common systems.
const FOLDERS: [&str; 14] = [
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib/arm-linux-gnueabihf",
    "/system/vendor/lib64",
    "/vendor/lib64",
    "/System/Library/Frameworks",
    "C:\\Windows\\System32",
];

impl AbsentKind {
    pub(super) fn look_for(&self, folders: &[PathBuf]) -> Device {
        let found: BTreeSet<PathBuf> = folders
            .iter()
            .flat_map(|folder| self.libraries.iter().map(move |library| folder.join(library)))
            .filter(|path| path.exists())
            .map(|path| path.canonicalize().unwrap_or(path))
            .collect();
        let libraries: Vec<String> = found.iter().map(|path| path.display().to_string()).collect();
        let driver = if libraries.is_empty() {
            format!("no driver library found ({})", self.libraries.join(", "))
        } else {
            format!("driver library found ({})", libraries.join(", "))
        };
        Device {
            kind: self.kind,
            present: false,
            why: format!("not supported by this version of Lapwing; {driver}"),
            libraries,
        }
    }

    pub(super) fn title(kind: &str) -> &str {
        let known = ABSENT_KINDS.iter().find(|absent| absent.kind == kind);
        known.map_or(kind, |absent| absent.title)
    }
}

/// The folders that a loader searches, without duplicates.
pub(super) fn library_folders() -> Vec<PathBuf> {
    let named = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let named: Vec<PathBuf> = std::env::split_paths(&named).collect();
    let usual = FOLDERS.iter().map(|folder| Path::new(folder).to_owned());
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in named.into_iter().chain(usual).filter(|folder| folder.is_absolute()) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unused_driver_is_still_reported() {
        let folder = tempfile::tempdir().expect("folder");
        let kind = &ABSENT_KINDS[0];
        let before = kind.look_for(&[folder.path().to_owned()]);
        assert!(before.libraries.is_empty() && before.why.contains("no driver library"));
        std::fs::write(folder.path().join("librknnrt.so"), b"").expect("write");
        let after = kind.look_for(&[folder.path().to_owned()]);
        assert!(!after.present && after.libraries[0].ends_with("librknnrt.so"), "{}", after.why);
    }
}
