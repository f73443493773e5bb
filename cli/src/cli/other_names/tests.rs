//! What the names of other programs mean, and that they are documented.

use clap::Command;

use super::row::Means;
use super::*;
use crate::commands::Cli;

fn translate(line: &[&str]) -> Result<String, Failure> {
    let words = std::iter::once("lapwing").chain(line.iter().copied()).map(OsString::from);
    let words = translated(&Cli::built(), words)?;
    let words: Vec<String> = words.iter().map(|word| word.display().to_string()).collect();
    Ok(words[1..].join(" "))
}

fn check(rows: &[(&[&str], &str)]) {
    for (line, expected) in rows {
        match translate(line) {
            Ok(words) => assert_eq!(words, *expected, "{line:?}"),
            Err(failure) => panic!("{line:?}: {failure:?}"),
        }
    }
}

#[test]
fn prompts_and_sampling_of_other_programs_mean_what_they_mean_there() {
    check(&[
        (&["run", "-hf", "o/r", "hi"], "run hi --model hf:o/r"),
        (&["run", "-hf", "o/r:Q8_0", "hi"], "run hi --model hf:o/r:Q8_0"),
        (&["run", "-hf", "o/r:Q8_0", "-hff", "f.gguf", "hi"], "run hi --model hf:o/r/f.gguf"),
        (&["run", "-m", "F", "-p", "hi"], "run -m F -- hi"),
        (&["run", "-m", "F", "--prompt", "-x"], "run -m F -- -x"),
        (&["run", "-m", "F", "-p", "hi", "-n", "8"], "run -m F -n 8 -- hi"),
        (&["run", "NAME", "-p", "hi"], "run NAME -- hi"),
        (&["run", "-p", "hi", "--", "NAME"], "run -- NAME hi"),
        (&["tokenize", "-m", "F", "-p", "hi"], "tokenize -m F -- hi"),
        (&["run", "-m", "F", "--n-predict", "8", "hi"], "run -m F --max-tokens 8 hi"),
        (&["run", "-m", "F", "--n-predict=8", "hi"], "run -m F --max-tokens 8 hi"),
        (&["run", "-m", "F", "-n", "-1", "hi"], "run -m F --max-tokens max hi"),
        (&["run", "-n=-1", "hi"], "run --max-tokens max hi"),
        (&["run", "--predict", "-1", "hi"], "run --max-tokens max hi"),
        (&["run", "--ctx-size", "4096", "hi"], "run --ctx 4096 hi"),
        (&["run", "-c", "4096", "hi"], "run -c 4096 hi"),
        (&["run", "-t", "2", "hi"], "run -t 2 hi"),
        (&["run", "-t", "-1", "hi"], "run hi"),
        (&["run", "-n8", "-t2", "hi"], "run -n8 -t2 hi"),
        (&["run", "-s", "-1", "hi"], "run hi"),
        (&["run", "-ngl", "0", "hi"], "run hi"),
        (&["run", "-fa", "hi"], "run hi"),
        (&["run", "-fa", "on", "hi"], "run hi"),
        (&["run", "-fa=1", "hi"], "run hi"),
        (&["run", "-sys", "Be brief", "hi"], "run --system Be brief hi"),
        (&["run", "--system-prompt", "Be brief", "hi"], "run --system Be brief hi"),
        (&["run", "-m", "F", "-cnv"], "run -m F --conversation"),
        (&["run", "-m", "F", "-i"], "run -m F --conversation"),
        (&["chat", "-m", "F", "-cnv"], "chat -m F"),
        (&["run", "-no-cnv", "hi"], "run --raw hi"),
        (&["run", "--temperature", "0.2", "hi"], "run --temp 0.2 hi"),
        (&["run", "--temp", "0", "--top-k", "40"], "run --temp 0 --top-k 40"),
        (&["run", "-ctk", "q8_0", "-ctv", "q8_0", "hi"], "run hi --kv int8"),
        (&["run", "-ctk", "f16", "hi"], "run hi --kv f16"),
        (&["run", "-b", "512", "-ub", "512", "hi"], "run hi"),
        (&["run", "-b", "2048", "-ub", "256", "hi"], "run hi --chunk 256"),
        (&["run", "-b", "64", "hi"], "run hi --chunk 64"),
        (&["run", "--no-mmap", "--mlock", "hi"], "run --no-mmap --mlock hi"),
        (&["run", "-lm", "mlock", "hi"], "run --no-mmap --mlock hi"),
        (&["run", "-lm", "mmap+mlock", "hi"], "run --mlock hi"),
        (&["run", "-lm", "dio", "hi"], "run --no-mmap hi"),
        (&["run", "-lm", "mmap", "hi"], "run hi"),
        (&["run", "-m", "F", "-f", "prompt.txt"], "run -m F -f prompt.txt"),
        (&["run", "-j", "{}", "hi"], "run --json-schema {} hi"),
        (&["run", "--grammar-file", "g.gbnf", "hi"], "run --grammar g.gbnf hi"),
        (&["run", "-v", "hi"], "run --stats hi"),
        (&["run", "-r", "User:", "hi"], "run --stop User: hi"),
        (&["run", "-md", "D", "hi"], "run --draft D hi"),
        (&["run", "--system", "-1", "hi"], "run --system -1 hi"),
    ]);
}

#[test]
fn commands_of_other_programs_mean_what_they_mean_there() {
    check(&[
        (
            &["bench", "-p", "512", "-n", "128", "-r", "3", "-o", "json"],
            "bench -p 512 -n 128 -r 3 --json",
        ),
        (&["bench", "-o", "today.json"], "bench -o today.json"),
        (
            &["bench", "--strategy", "a", "--strategy", "b", "--quick"],
            "bench --quick --strategy a,b",
        ),
        (&["serve", "-m", "F", "--port", "8080"], "serve -m F --port 8080"),
        (&["serve", "-np", "4"], "serve --parallel 4"),
        (&["serve", "F", "--max-model-len", "4096"], "serve F --ctx 4096"),
        (&["serve", "--enable-prefix-caching", "--max-num-seqs", "8"], "serve --parallel 8"),
        (&["list"], "models"),
        (&["--json", "ls"], "--json models"),
        (&["show", "NAME"], "inspect NAME"),
        (&["rm", "NAME"], "models --remove NAME"),
        (
            &["run", "NAME", "--verbose", "--format", "json", "hi"],
            "run NAME --stats --json-schema {\"type\":\"object\"} hi",
        ),
        (&["bench", "-m", "F", "-v"], "bench -m F"),
        (&["help", "run"], "help run"),
    ]);
}

#[test]
fn what_has_no_counterpart_says_what_to_type_instead() {
    let rows: [(&[&str], &[&str]); 30] = [
        (&["run", "-ngl", "99", "hi"], &["'-ngl' of llama.cpp", "--gpu-layers N"]),
        (&["bench", "-m", "F", "-ngl", "99", "-t", "2"], &["--device cpu+gpu=opencl"]),
        (&["bench", "-pg", "512,128"], &["'-pg' of llama.cpp", "-d 512"]),
        (&["bench", "-o", "csv"], &["'-o csv' of llama.cpp", "--json"]),
        (&["run", "-fa", "off", "hi"], &["'-fa off' of llama.cpp", "leave it out"]),
        (&["run", "-ctk", "q4_0", "hi"], &["'-ctk q4_0' of llama.cpp", "--kv int8"]),
        (&["run", "-ctk", "f16", "-ctv", "q8_0", "hi"], &["one type", "--kv f16 or --kv int8"]),
        (&["run", "-c", "0", "hi"], &["'-c 0' of llama.cpp", "training context"]),
        (&["run", "-tb", "4", "hi"], &["-t N"]),
        (&["run", "--lora", "a.gguf", "hi"], &["merge the adapter"]),
        (&["run", "--draft", "16", "hi"], &["'--draft 16' of llama.cpp", "--draft lookup"]),
        (&["run", "-hff", "f.gguf", "hi"], &["-m hf:owner/repo/file.gguf"]),
        (&["run", "--mirostat", "2", "hi"], &["--min-p"]),
        (&["run", "-p"], &["'-p' needs a value"]),
        (&["run", "--think", "hi"], &["'--think' of Ollama"]),
        (&["chat", "-p", "hi"], &["lapwing run"]),
        (&["serve", "-a", "NAME"], &["-m NAME=MODEL"]),
        (&["serve", "F", "-tp", "2"], &["'-tp' of vLLM", "--device"]),
        (&["serve", "F", "--served-model-name", "x"], &["-m NAME=MODEL"]),
        (&["stop", "NAME"], &["'stop' is a command of Ollama", "--keep-alive"]),
        (&["create", "NAME"], &["lapwing serve -m NAME=FILE.gguf"]),
        (&["run", "--bad", "hi"], &["`lapwing run` has no option '--bad'", "lapwing run -h"]),
        (&["run", "-temp", "0", "hi"], &["no option '-temp': did you mean --temp?"]),
        (&["run", "--top_p", "1", "hi"], &["--top-p"]),
        (&["models", "-hf", "o/r"], &["`lapwing models` has no option '-hf'"]),
        (&["tokenize", "-sys", "x", "hi"], &["`lapwing tokenize` has no option '-sys'"]),
        (&["run", "-mgemma", "hi"], &["'-mgemma'", "-m gemma"]),
        (&["-m", "F", "-p", "hi"], &["'-m' comes after a command", "lapwing run -m"]),
        (&["nonsense"], &["'nonsense'", "lapwing --help"]),
        (&["modles"], &["did you mean `lapwing models`"]),
    ];
    for (line, says) in rows {
        let Err(Failure::Instead { message }) = translate(line) else { panic!("{line:?}") };
        for part in says {
            assert!(message.contains(part), "{line:?}: {message}");
        }
    }
}

/// The commands in which a row can count.
fn commands_of<'a>(cli: &'a Command, row: &'a Row) -> impl Iterator<Item = &'a Command> {
    cli.get_subcommands().filter(move |command| {
        let needed = row.needs().is_none_or(|option| has(command, &format!("--{option}")));
        needed && (row.commands.is_empty() || row.commands.contains(&command.get_name()))
    })
}

#[test]
fn every_row_counts_somewhere_and_means_options_that_exist() {
    let cli = Cli::built();
    for (program, rows) in TABLES {
        for row in rows {
            assert!(commands_of(&cli, row).next().is_some(), "{program}: {row:?}");
            let counts_anyway = !row.values.is_empty() || row.means == Means::Strategy;
            for name in row.names {
                let counts =
                    commands_of(&cli, row).any(|command| counts_anyway || !has(command, name));
                assert!(counts, "{program}: {name} is an option of every command of {row:?}");
            }
        }
    }
}

/// What a row means, as the documentation says it.
fn meaning(row: &Row) -> String {
    match row.means {
        Means::Option(option) => format!("`{option}`"),
        Means::Words(words) => format!("`{}`", words.join(" ")),
        Means::Argument => "the prompt or text".to_owned(),
        Means::Holds => "nothing needs to be done".to_owned(),
        Means::Repository => "`-m hf:owner/repo[:QUANT]`".to_owned(),
        Means::RepositoryFile => "`-m hf:owner/repo/file.gguf`".to_owned(),
        Means::Chunk => "`--chunk N`, the least of both, if it is below 512".to_owned(),
        Means::Kv => "`--kv`; q8_0 is int8".to_owned(),
        Means::Strategy => "`--strategy A,B` for two: they are compared".to_owned(),
        Means::Instead(sentence) => format!("an error: {sentence}"),
    }
}

fn line(row: &Row) -> String {
    let names: Vec<String> = row.names.iter().map(|name| format!("`{name}`")).collect();
    let values: Vec<&str> = row.values.iter().copied().filter(|value| !value.is_empty()).collect();
    let values = match values.is_empty() {
        true => String::new(),
        false => format!(" with {}", values.join(", ")),
    };
    let within = match row.commands.is_empty() {
        true => String::new(),
        false => format!(" ({})", row.commands.join(", ")),
    };
    format!("| {}{values}{within} | {} |\n", names.join(", "), meaning(row).replace('|', "\\|"))
}

/// `docs/names.md` has the tables; `WRITE=1` writes them.
#[test]
fn the_documentation_has_every_name() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/names.md");
    let written = std::fs::read_to_string(&path).expect("docs/names.md");
    let head = written.split("\n## ").next().expect("a head").to_owned();
    let mut text = head;
    for program in ["llama.cpp", "Ollama", "vLLM"] {
        text.push_str(&format!("\n## {program}\n\n| typed | meaning |\n|---|---|\n"));
        let rows = TABLES.iter().filter(|(of, _)| *of == program).flat_map(|(_, rows)| rows.iter());
        rows.for_each(|row| text.push_str(&line(row)));
    }
    text.push_str("\n## Commands\n\n| typed | meaning |\n|---|---|\n");
    for (name, meaning) in commands::COMMANDS {
        let meaning = match meaning {
            Meaning::Words(words) => format!("`lapwing {}`", words.join(" ")),
            Meaning::Instead(sentence) => format!("an error: {sentence}"),
        };
        text.push_str(&format!("| `{name}` | {meaning} |\n"));
    }
    text.push_str(
        "\n## Variables\n\n`lapwing serve` says which of these are set; it reads none of them.\n\n",
    );
    text.push_str("| variable | what sets the same |\n|---|---|\n");
    for (name, here) in environment::VARIABLES {
        text.push_str(&format!("| `{name}` | {here} |\n"));
    }
    if std::env::var_os("WRITE").is_some() {
        std::fs::write(&path, &text).expect("write");
    }
    assert_eq!(text, written, "run this test again with WRITE=1");
}
