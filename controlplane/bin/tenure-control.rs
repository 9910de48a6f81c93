//! The control plane's program. Everything is in the library.

fn main() -> std::process::ExitCode {
    tenure_controlplane::cli::main()
}
