//! Finds the library of a vendor: where a variable says, in Python packages, and in the vendor's own folders.

use std::fs;
use std::path::{Path, PathBuf};

/// A library, and where it may be.
#[derive(Debug)]
pub struct Wanted {
    /// The variable with the path of the library or of its folder. If it is set, nothing else is searched.
    pub variable: &'static str,
    /// Beginning of the library's file name, with or without a version after its ending.
    pub file: &'static str,
    /// Folder of the library below a folder of Python packages.
    pub package: &'static str,
    /// Other folders.
    pub folders: Vec<PathBuf>,
    /// The other folders in words.
    pub others: &'static str,
}

impl Wanted {
    /// The path of the library: from the variable, or else from the Python packages of an active virtual
    /// environment, of the user and of the system, and from the other folders.
    ///
    /// # Errors
    /// The places that were searched.
    pub fn find(&self) -> Result<PathBuf, String> {
        if let Some(path) = variable(self.variable).map(PathBuf::from) {
            return self.at(&path).map_err(|at| format!("{at} (of {})", self.variable));
        }
        let environment = variable("VIRTUAL_ENV").map(PathBuf::from);
        let user = std::env::home_dir().map(|home| home.join(".local"));
        let roots: Vec<PathBuf> = environment
            .into_iter()
            .chain(user)
            .chain(["/usr/local", "/usr"].map(PathBuf::from))
            .collect();
        let packages = roots.iter().flat_map(|root| self.python_packages(root));
        let mut folders = packages.chain(self.folders.iter().cloned());
        folders.find_map(|folder| self.in_folder(&folder)).ok_or_else(|| {
            let roots: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
            format!(
                "the Python packages of {}, {} and the variable {}",
                roots.join(", "),
                self.others,
                self.variable
            )
        })
    }

    /// The library at a path, which is a file or a folder.
    ///
    /// # Errors
    /// The path.
    pub fn at(&self, path: &Path) -> Result<PathBuf, String> {
        let found = match path.is_dir() {
            true => self.in_folder(path),
            false => path.is_file().then(|| path.to_owned()),
        };
        found.ok_or_else(|| path.display().to_string())
    }

    /// The package's folder in each folder of Python packages below a root.
    fn python_packages(&self, root: &Path) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        for lib in ["lib", "lib64"] {
            for python in entries(&root.join(lib), "python3") {
                for packages in ["site-packages", "dist-packages"] {
                    folders.push(python.join(packages).join(self.package));
                }
            }
        }
        folders
    }

    fn in_folder(&self, folder: &Path) -> Option<PathBuf> {
        entries(folder, self.file).into_iter().find(|path| path.is_file())
    }
}

/// The value of a variable that is set.
pub fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The entries of a folder whose names begin like this, the last one first, so that a newer version
/// comes before an older one.
pub fn entries(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let begins = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(prefix);
    let mut paths: Vec<PathBuf> = entries.filter(begins).map(|entry| entry.path()).collect();
    paths.sort_unstable();
    paths.reverse();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_library_of_a_package_is_found_and_nothing_else() {
        let wanted = Wanted {
            variable: "LAPWING_NOTHING",
            file: "libwanted.so",
            package: "wanted/libs",
            folders: Vec::new(),
            others: "no other folder",
        };
        let root = tempfile::tempdir().expect("a folder");
        assert_eq!(wanted.in_folder(root.path()), None);
        let libs = root.path().join("lib/python3.11/site-packages/wanted/libs");
        fs::create_dir_all(&libs).expect("folders");
        for name in ["libwanted2.so.2641", "readme"] {
            fs::write(libs.join(name), "").expect("a file");
        }
        let found = |root: &Path| {
            wanted.python_packages(root).iter().find_map(|folder| wanted.in_folder(folder))
        };
        assert_eq!(found(root.path()), None);
        for name in ["libwanted.so.2400", "libwanted.so.2641"] {
            fs::write(libs.join(name), "").expect("a file");
        }
        assert_eq!(found(root.path()), Some(libs.join("libwanted.so.2641")));
        assert_eq!(wanted.at(&libs), Ok(libs.join("libwanted.so.2641")));
        assert_eq!(wanted.at(&root.path().join("x")), Err(format!("{}/x", root.path().display())));
    }
}
