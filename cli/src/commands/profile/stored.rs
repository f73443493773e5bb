//! The stored profiles: lists and removes them.

use std::path::{Path, PathBuf};

use lapwing_engine::models::ModelCache;
use lapwing_engine::profile::Profile;
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::output::{print, print_json};
use crate::cli::session::Session;
use crate::cli::table::{Align, table};
use crate::cli::visible::visible;

/// Removes every profile.
const ALL: &str = "all";

#[derive(Serialize)]
struct Stored {
    name: String,
    model: Option<String>,
    devices: Vec<String>,
    points: usize,
    /// Points that should have been measured.
    asked: usize,
    /// Why it cannot be read.
    error: Option<String>,
}

fn folder() -> Result<PathBuf, Failure> {
    Ok(ModelCache::open(None)?.dir().join("profiles"))
}

/// Files of the stored profiles, sorted by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Failure::file("list the profiles in", folder, &error)),
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    files.sort();
    Ok(files)
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn stored(path: &Path) -> Stored {
    let name = name(path);
    match Profile::load(path) {
        Ok(profile) => Stored {
            name,
            devices: profile.devices.iter().map(|device| device.description.clone()).collect(),
            points: profile.devices.iter().map(|device| device.samples.len()).sum(),
            asked: profile.devices.iter().map(|device| device.asked).sum(),
            model: Some(profile.model),
            error: None,
        },
        Err(error) => Stored {
            name,
            model: None,
            devices: Vec::new(),
            points: 0,
            asked: 0,
            error: Some(error.to_string()),
        },
    }
}

/// Prints the stored profiles.
pub(super) fn list(session: &Session) -> Result<(), Failure> {
    let folder = folder()?;
    let profiles: Vec<Stored> = files(&folder)?.iter().map(|path| stored(path)).collect();
    if session.json {
        return print_json(&serde_json::json!({ "profiles": profiles }));
    }
    if profiles.is_empty() {
        let folder = folder.display().to_string();
        return print(&format!("no profiles in {}\n", visible(&folder)));
    }
    let rows = profiles.iter().map(|profile| {
        let what = profile.error.clone().unwrap_or_else(|| profile.devices.join("; "));
        let points = format!("{} of {}", profile.points, profile.asked);
        [profile.name.clone(), points, what]
    });
    let header = [("name", Align::Left), ("points", Align::Right), ("devices", Align::Left)];
    print(&format!(
        "{}\nstored in {}; `lapwing profile --remove NAME` removes one, `--remove all` all\n",
        table(header, rows.collect()),
        visible(&folder.display().to_string()),
    ))
}

/// Removes a profile by name, or all.
pub(super) fn remove(which: &str, session: &Session) -> Result<(), Failure> {
    let folder = folder()?;
    let found: Vec<PathBuf> =
        files(&folder)?.into_iter().filter(|path| which == ALL || name(path) == which).collect();
    if found.is_empty() && which != ALL {
        let text = format!("there is no stored profile '{which}'");
        return Err(Failure::failed(text).hint("`lapwing profile --list` shows their names"));
    }
    for path in &found {
        std::fs::remove_file(path).map_err(|error| Failure::file("remove", path, &error))?;
    }
    let removed: Vec<String> = found.iter().map(|path| name(path)).collect();
    if session.json {
        return print_json(&serde_json::json!({ "removed": removed }));
    }
    let lines: String = removed.iter().map(|name| format!("removed {}\n", visible(name))).collect();
    print(if lines.is_empty() { "no profiles to remove\n" } else { &lines })
}
