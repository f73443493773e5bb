//! Errors of names that are unknown, with the nearest known ones.

use clap::Command;

use super::TABLES;
use crate::cli::failure::Failure;

/// Likeness above which a name is suggested, from 0 to 1.
const LIKENESS_MIN: f64 = 0.8;
/// Maximum number of suggestions.
const SUGGESTED_MAX: usize = 3;

/// An option that a command does not have.
pub(super) fn option(command: &Command, name: &str) -> Failure {
    let wanted = name.trim_start_matches('-');
    let own = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set())
        .filter_map(|arg| arg.get_long())
        .map(|long| format!("--{long}"));
    let here = |row: &&super::Row| {
        let option = row.needs().map(|option| format!("--{option}"));
        option.is_some_and(|option| super::has(command, &option))
    };
    let others = TABLES.iter().flat_map(|(_, rows)| rows.iter()).filter(here);
    let others = others.flat_map(|row| row.names.iter().map(|name| (*name).to_owned()));
    let nearest = nearest(wanted, own.chain(others));
    let value = separate_value(command, name);
    let command = command.get_name();
    Failure::instead(match (nearest.is_empty(), value) {
        (false, _) => format!(
            "`lapwing {command}` has no option '{name}': did you mean {}?",
            nearest.join(" or ")
        ),
        (true, Some(hint)) => format!(
            "`lapwing {command}` has no option '{name}': `lapwing {command} -h` lists its options, and a value \
             is written apart, as in {hint}"
        ),
        (true, None) => {
            format!(
                "`lapwing {command}` has no option '{name}': `lapwing {command} -h` lists its options"
            )
        }
    })
}

/// `-m gemma` for `-mgemma`, if the command has an option `-m` with a value.
fn separate_value(command: &Command, name: &str) -> Option<String> {
    let letters = name.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
    let (at, _) = letters.char_indices().nth(1)?;
    let takes_value = |arg: &clap::Arg| {
        arg.get_short() == letters.chars().next() && arg.get_action().takes_values()
    };
    command.get_arguments().any(takes_value).then_some(())?;
    Some(format!("-{} {}", &letters[..at], &letters[at..]))
}

/// An option before the command.
pub(super) fn before_a_command(name: &str) -> Failure {
    Failure::instead(format!(
        "'{name}' comes after a command, as in `lapwing run -m MODEL PROMPT`; `lapwing --help` lists the commands"
    ))
}

/// A command that does not exist.
pub(super) fn command(cli: &Command, name: &str) -> Failure {
    let commands = cli.get_subcommands().map(|command| command.get_name().to_owned());
    let nearest = nearest(name, commands);
    if !nearest.is_empty() {
        let nearest = nearest.iter().map(|name| format!("`lapwing {name}`")).collect::<Vec<_>>();
        return Failure::instead(format!(
            "there is no command '{name}': did you mean {}?",
            nearest.join(" or ")
        ));
    }
    Failure::instead(format!(
        "there is no command '{name}': `lapwing run '{name}'` takes it as a prompt or a model, and `lapwing \
         --help` lists the commands"
    ))
}

/// The names most like the wanted one, the best first.
fn nearest(wanted: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let likeness = |name: &str| match name.trim_start_matches('-') {
        // Names of one letter are like nothing.
        known if known.len() < 2 || wanted.len() < 2 => 0.0,
        known => strsim::jaro_winkler(known, &wanted),
    };
    let mut rated: Vec<(f64, String)> = names.map(|name| (likeness(&name), name)).collect();
    rated.retain(|(likeness, _)| *likeness > LIKENESS_MIN);
    rated.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    rated.dedup_by(|a, b| a.1 == b.1);
    // An equal name with other dashes is meant for sure.
    let most =
        if rated.first().is_some_and(|(likeness, _)| *likeness >= 1.0) { 1 } else { SUGGESTED_MAX };
    rated.into_iter().take(most).map(|(_, name)| name).collect()
}
