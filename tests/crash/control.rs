//! The control plane as it is shipped, but for its crash points.

fn main() -> std::process::ExitCode {
    tenure_controlplane::cli::main()
}
