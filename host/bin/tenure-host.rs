//! The host of Tenure: see `tenure_host::cli`.

fn main() -> std::process::ExitCode {
    tenure_host::cli::main()
}
