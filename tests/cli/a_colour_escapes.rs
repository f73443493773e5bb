//! Colours appear where they are wanted and nowhere else.

use crate::support::{ended, lapwing, model};

const ESCAPE: char = '\u{1b}';

#[test]
fn colours_are_only_on_terminals_and_obey_no_color() {
    let llama = model("llama.gguf");
    let rows: [&[&str]; 5] = [
        &["models"],
        &["devices"],
        &["inspect", &llama],
        &["run", "-m", "none.gguf", "x"],
        &["--help"],
    ];
    for args in rows {
        let all = |color: &[(&str, &str)]| {
            let mut command = lapwing(args);
            command.envs(color.iter().copied());
            let ended = ended(command);
            ended.stdout + &ended.stderr
        };
        assert!(!all(&[]).contains(ESCAPE), "{args:?} into a pipe");
        assert!(all(&[("CLICOLOR_FORCE", "1")]).contains(ESCAPE), "{args:?} has no colours");
        let both = all(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]);
        assert!(!both.contains(ESCAPE), "{args:?} with NO_COLOR: {both}");
    }
}

#[test]
fn every_help_has_an_example() {
    let commands = [
        "run",
        "chat",
        "pull",
        "models",
        "inspect",
        "tokenize",
        "devices",
        "perplexity",
        "bench",
        "completions",
    ];
    let overview = ended(lapwing(&["--help"])).stdout;
    for command in commands {
        assert!(overview.contains(&format!("\n  {command} ")), "{command} is not in {overview}");
        let help = ended(lapwing(&[command, "--help"])).stdout;
        let example = format!("\n  lapwing {command}");
        assert!(
            help.contains(&example) || help.contains(&format!("| lapwing {command}")),
            "{help}"
        );
        assert!(help.contains("With --json"), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
}
