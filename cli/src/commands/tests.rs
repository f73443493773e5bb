//! Names and help texts of all commands.

use std::collections::BTreeMap;

use clap::{Arg, Command, Parser};

use super::{Cli, WIDTH};

/// All commands, with their arguments built.
fn commands() -> Vec<Command> {
    let mut cli = Cli::grouped();
    cli.build();
    let all = cli.get_subcommands().filter(|command| command.get_name() != "help");
    all.cloned().collect()
}

/// The documented options of a command.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_positional())
}

/// Lines of the text after the options must fit the maximum width: clap would wrap a longer line and
/// leave a single word on the next one.
#[test]
fn no_line_of_help_is_wrapped() {
    let cli = Cli::grouped();
    for command in std::iter::once(&cli).chain(cli.get_subcommands()) {
        let helps = [command.get_after_help(), command.get_after_long_help()];
        for help in helps.into_iter().flatten().map(ToString::to_string) {
            for line in help.lines() {
                assert!(line.chars().count() <= WIDTH, "{}: {line}", command.get_name());
            }
        }
    }
}

#[test]
fn a_short_and_a_long_name_belong_together_in_every_command() {
    let mut long_of: BTreeMap<char, (String, String)> = BTreeMap::new();
    let mut short_of: BTreeMap<String, (Option<char>, String)> = BTreeMap::new();
    for command in commands() {
        for option in options(&command) {
            let name = command.get_name().to_owned();
            let long = option.get_long().expect("every option has a long name").to_owned();
            if let Some(short) = option.get_short() {
                let known = long_of.entry(short).or_insert_with(|| (long.clone(), name.clone()));
                assert_eq!(known.0, long, "-{short} in {name} and in {}", known.1);
            }
            let short = option.get_short();
            let known = short_of.entry(long.clone()).or_insert_with(|| (short, name.clone()));
            assert_eq!(known.0, short, "--{long} in {name} and in {}", known.1);
        }
    }
}

/// Whether an option means a concept.
type Means = fn(&Arg) -> bool;

/// What an option means, by the words of its help or by its value, and its only name.
#[test]
fn a_concept_has_one_name_in_all_commands() {
    let concepts: [(&str, Means); 8] = [
        ("model", |arg| has_value(arg, "MODEL")),
        ("prompt-tokens", |arg| says(arg, "tokens of the prompt") || says(arg, "prompt lengths")),
        ("max-tokens", |arg| says(arg, "to generate") || says(arg, "generated lengths")),
        ("max-tokens", |arg| says(arg, "decode steps")),
        ("trace", |arg| has_value(arg, "FILE.lwt")),
        ("html", |arg| has_value(arg, "FILE.html")),
        ("file", |arg| has_value(arg, "FILE") && says(arg, "read") && !says(arg, "cached")),
        ("seed", |arg| says(arg, "seed of the")),
    ];
    // Kinds of output that have an option of their own; any other file is the command's main output.
    let kinds = ["trace", "html", "csv", "requests-out", "perfetto", "chrome", "plot", "history"];
    for (name, is_concept) in concepts {
        let mut found = 0;
        for command in commands() {
            for option in options(&command).filter(|option| is_concept(option)) {
                assert_eq!(option.get_long(), Some(name), "{}", command.get_name());
                found += 1;
            }
        }
        assert!(found > 0, "no command has --{name}");
    }
    for command in commands() {
        let written = |arg: &&Arg| says(arg, "write") && arg.get_action().takes_values();
        for option in options(&command).filter(written) {
            let long = option.get_long().expect("a long name");
            let is_named = kinds.contains(&long) || long == "output";
            assert!(is_named, "{}: --{long}", command.get_name());
        }
    }
}

fn says(arg: &Arg, words: &str) -> bool {
    arg.get_help().is_some_and(|help| help.to_string().to_lowercase().contains(words))
}

fn has_value(arg: &Arg, value: &str) -> bool {
    arg.get_value_names().is_some_and(|names| names.iter().any(|name| name.as_str() == value))
}

/// Old spellings, each beside the present one.
const ALIASES: [(&str, &str); 20] = [
    ("bench --prompt 128,512", "bench -p 128,512"),
    ("bench --prompt 128", "bench --prompt-tokens 128"),
    ("bench --generate 16,32", "bench -n 16,32"),
    ("bench --generate 16", "bench --max-tokens 16"),
    ("bench --save today.json", "bench -o today.json"),
    ("bench --save today.json", "bench --output today.json"),
    ("plan --length 300", "plan -p 300"),
    ("plan -l 300", "plan -p 300"),
    ("plan --prompt 300", "plan --prompt-tokens 300"),
    ("simulate --prompt 300", "simulate -p 300"),
    ("simulate --prompt 300", "simulate --prompt-tokens 300"),
    ("simulate --decode 4", "simulate -n 4"),
    ("simulate --decode 4", "simulate --max-tokens 4"),
    ("sweep --over chunk=1,2 --prompt 9 --decode 0", "sweep --over chunk=1,2 -p 9 -n 0"),
    ("what-if --prompt 9 --decode 0 npu.rate=2x", "what-if -p 9 -n 0 npu.rate=2x"),
    ("sensitivity --prompt 9 --decode 0", "sensitivity -p 9 -n 0"),
    ("calibrate --device phone --simulate m.gguf", "calibrate --device phone -m m.gguf"),
    ("calibrate --device phone --prompt 64,300", "calibrate --device phone -p 64,300"),
    ("simulate --seed 7", "simulate -s 7"),
    ("perplexity text.txt -c 64", "perplexity text.txt --ctx 64"),
];

fn parsed(line: &str) -> String {
    let words = std::iter::once("lapwing").chain(line.split_whitespace());
    let cli = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}"));
    format!("{:?}", cli.command)
}

#[test]
fn old_spellings_mean_the_same_as_present_ones() {
    for (old, present) in ALIASES {
        assert_eq!(parsed(old), parsed(present), "{old}");
    }
}

#[test]
fn old_spellings_are_hidden() {
    let retired = ["prompt", "length", "generate", "decode", "save", "simulate"];
    for command in commands() {
        for option in options(&command) {
            let visible = option.get_visible_aliases().unwrap_or_default();
            let names = option.get_long().into_iter().chain(visible);
            for name in names {
                assert!(!retired.contains(&name), "{} shows --{name}", command.get_name());
            }
        }
    }
}
