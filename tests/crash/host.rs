//! The host as it is shipped, but for its crash points.

fn main() -> std::process::ExitCode {
    tenure_host::cli::main()
}
