//! The `lapwing` program. `lapwing --help` describes it.

use std::process::ExitCode;

fn main() -> ExitCode {
    lapwing_cli::main()
}
