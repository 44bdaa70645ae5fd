//! The `portcullis` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    portcullis::cli::main()
}
