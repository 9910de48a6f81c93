use super::*;

#[test]
fn a_kernel_table_is_read_as_addresses_that_listen() {
    let table = "  sl  local_address rem_address   st tx_queue rx_queue\n   0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1\n   1: 0100007F:1538 0100007F:C350 01 00000000:00000000\n   2: 00000000:0016 00000000:0000 0A 0:0\n";
    assert_eq!(listeners(table, Family::V4), ["tcp 127.0.0.1:5432", "tcp 0.0.0.0:22"]);
    let table =
        "head\n 0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A x\n";
    assert_eq!(listeners(table, Family::V6), ["tcp [::1]:8080"]);
}

#[test]
fn a_damaged_table_yields_nothing_and_no_panic() {
    for line in ["", "0:", "0: zz:zz y 0A", "0: 0100007F:99999 x 0A", "0: 01:10 x 0A"] {
        assert_eq!(listener(line, Family::V4), None, "{line}");
    }
}

#[test]
fn what_the_system_calls_itself_is_two_words() {
    assert_eq!(os_release("NAME=\"Debian\"\nID=debian\nVERSION_ID=\"12\"\n"), "debian 12");
    assert_eq!(os_release("ID=arch\n"), "arch");
    assert_eq!(memory("MemTotal:       2048 kB\nMemFree: 1 kB\n"), 2 * 1024 * 1024);
}

#[test]
fn the_machine_id_stays_here_and_only_its_digest_is_told() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("etc")).unwrap();
    std::fs::write(root.path().join("etc/machine-id"), "0123456789abcdef0123456789abcdef\n").unwrap();
    let machine = profile(root.path(), false).machine;
    assert_eq!(machine.len(), 64);
    assert!(!machine.contains("0123456789abcdef"));
}

// rule: H-20
#[test]
fn the_running_version_is_reported_and_a_disk_that_cannot_be_measured_says_so() {
    let facts = facts(Path::new("/nowhere/at/all"), Moment::from_millis(7));
    assert_eq!(facts.running_version, SOFTWARE);
    assert_eq!(facts.disk, Disk::Unmeasurable);
    assert_eq!(facts.observed_at, Millis(7));
    assert!(matches!(super::facts(Path::new("/"), Moment::from_millis(7)).disk, Disk::Measured { .. }));
}
