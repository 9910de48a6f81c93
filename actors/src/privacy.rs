//! What a process holds in its memory, keys and tokens among it, stays there (O-62).

/// From here on the kernel writes no image of this process when it crashes, whoever would take it, and lets nobody but
/// root look into its memory, not even another process of the same user. Programs it starts are not meant by that. Called
/// first thing by everything that may hold a key or a token; where the kernel refuses, that is as it was before.
pub fn keep() {
    let _ = nix::sys::prctl::set_dumpable(false);
}

#[cfg(test)]
mod tests {
    use super::*;

    // case: O-62
    #[test]
    fn a_process_that_keeps_to_itself_leaves_no_image_when_it_crashes() {
        assert_eq!(nix::sys::prctl::get_dumpable(), Ok(true), "each test has a process of its own");
        keep();
        assert_eq!(nix::sys::prctl::get_dumpable(), Ok(false));
    }
}
