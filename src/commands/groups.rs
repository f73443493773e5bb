//! The help of `lapwing`: commands in groups, and short and long help of each.

use clap::Command;
use clap::builder::Styles;

/// Names of the commands by what they are for.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Use", &["run", "chat", "pull", "models", "completions"]),
    ("Inspect", &["inspect", "tokenize", "devices", "plan"]),
    ("Measure", &["bench", "profile", "perplexity", "timeline"]),
    ("Simulate", &["simulate", "what-if", "sweep", "sensitivity", "reproduce", "calibrate", "fit"]),
];

/// End of the short help, which shows neither examples nor the form of the JSON.
const MORE: &str = "--help shows more, with examples";

/// Groups the commands in the help of `cli`, and shows the text after the options in long helps only.
pub(super) fn arrange(cli: Command) -> Command {
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}\n{}Options:{}\n{{options}}{{after-help}}",
        groups(&cli),
        Styles::styled().get_header(),
        Styles::styled().get_header().render_reset(),
    );
    long_only(cli.mut_subcommands(long_only)).help_template(template)
}

fn long_only(command: Command) -> Command {
    match command.get_after_help().cloned() {
        Some(text) => command.after_long_help(text).after_help(MORE),
        None => command,
    }
}

/// All groups, one line for each command.
fn groups(cli: &Command) -> String {
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter());
    let width = names.map(|name| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (title, names) in GROUPS {
        text.push_str(&format!("{header}{title}:{header:#}\n"));
        for name in names {
            let about = cli.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {literal}{name:width$}{literal:#}  {about}\n"));
        }
        text.push('\n');
    }
    text.pop();
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_command_is_in_one_group() {
        let cli = crate::commands::Cli::command();
        let mut grouped: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let mut all: Vec<&str> = cli.get_subcommands().map(Command::get_name).collect();
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }

    #[test]
    fn short_help_has_no_examples_and_long_help_has() {
        let mut cli = arrange(crate::commands::Cli::command());
        cli.build();
        for name in ["run", "inspect", "simulate"] {
            let command = cli.find_subcommand_mut(name).expect(name);
            let (short, long) = (command.render_help(), command.render_long_help());
            let (short, long) = (short.to_string(), long.to_string());
            assert!(!short.contains("Examples:") && short.contains(MORE), "{name}: {short}");
            assert!(long.contains("Examples:") && !long.contains(MORE), "{name}: {long}");
        }
        let short = cli.render_help().to_string();
        for (title, _) in GROUPS {
            assert!(short.contains(&format!("{title}:\n")), "{short}");
        }
        assert!(short.lines().count() < 40, "{short}");
    }
}
