//! The commands of `lapwing --help`, in groups.

use clap::Command;

/// Groups of commands, in the order of the help.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Use",
        &[
            "run",
            "chat",
            "serve",
            "pull",
            "models",
            "ps",
            "embed",
            "rerank",
            "convert",
            "export-hf",
            "completions",
        ],
    ),
    ("Inspect", &["inspect", "tokenize", "devices", "plan", "timeline"]),
    ("Measure", &["bench", "load", "profile", "prepare", "ranges", "perplexity", "report"]),
    (
        "Simulate",
        &[
            "simulate",
            "sweep",
            "study",
            "what-if",
            "sensitivity",
            "speculate",
            "reproduce",
            "fit",
            "calibrate",
        ],
    ),
];

/// The same command line, whose help lists its commands in groups.
pub(super) fn group(cli: Command) -> Command {
    let (title, name) = (*cli.get_styles().get_header(), *cli.get_styles().get_literal());
    let width = cli.get_subcommands().map(|command| command.get_name().len()).max().unwrap_or(0);
    let mut text = String::from("{about}\n\n{usage-heading} {usage}\n");
    for (group, commands) in GROUPS {
        text.push_str(&format!("\n{title}{group}:{title:#}\n"));
        for command in commands.iter().filter_map(|name| cli.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let command = command.get_name();
            text.push_str(&format!("  {name}{command:<width$}{name:#}  {about}\n"));
        }
    }
    text.push_str(&format!("\n{title}Options:{title:#}\n{{options}}{{after-help}}"));
    cli.help_template(text)
}

#[cfg(test)]
mod tests {
    use super::{GROUPS, group};
    use crate::commands::Cli;
    use clap::CommandFactory;

    #[test]
    fn every_command_is_in_one_group() {
        let cli = Cli::command();
        let mut all: Vec<&str> = cli.get_subcommands().map(|command| command.get_name()).collect();
        let mut grouped: Vec<&str> =
            GROUPS.iter().flat_map(|(_, commands)| commands.iter().copied()).collect();
        all.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, all);
    }

    #[test]
    fn help_is_short_and_long() {
        let mut cli = group(Cli::command());
        let (short, long) = (cli.render_help().to_string(), cli.render_long_help().to_string());
        for (title, commands) in GROUPS {
            for help in [&short, &long] {
                let of_group = help.split(&format!("\n{title}:\n")).nth(1).expect(title);
                let of_group = of_group.split("\n\n").next().expect("its end");
                let names = of_group.lines().filter_map(|line| line.split_whitespace().next());
                assert!(names.eq(commands.iter().copied()), "{title}: {of_group}");
            }
        }
        assert!(!short.contains("Exit codes") && long.contains("Exit codes"));
        cli.build();
        for command in cli.get_subcommands_mut().filter(|command| command.get_name() != "help") {
            let (short, long) = (command.render_help(), command.render_long_help());
            let (short, long) = (short.to_string(), long.to_string());
            let name = command.get_name();
            assert!(!short.contains("Example") && long.contains("Example"), "{name}: {short}");
        }
    }
}
