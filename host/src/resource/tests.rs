use super::*;

#[test]
fn accounts_are_the_machines_own_and_the_first_of_a_name_counts() {
    let folder = tempfile::tempdir().unwrap();
    let ground = crate::ground::Ground::new(folder.path(), true);
    let own = crate::ground::own::Own::look(&ground);
    let read = || Accounts::read(&Walker::new(&ground, &own).unwrap());
    let name = |text: &str| text.parse::<Principal>().unwrap();
    // A root without account files still has its root.
    assert_eq!((read().user(&name("root")), read().user(&name("app"))), (Some(0), None));
    std::fs::create_dir(folder.path().join("etc")).unwrap();
    let passwd = "root:x:0:0::/root:/bin/sh\n\nbroken\napp:x:101:102::/:/bin/false\napp:x:9:9::/:\n:x:5:5:\nbad:x:-1:0\n";
    std::fs::write(folder.path().join("etc/passwd"), passwd).unwrap();
    std::fs::write(folder.path().join("etc/group"), "www-data:x:33:app\n").unwrap();
    let accounts = read();
    assert_eq!(accounts.user(&name("app")), Some(101));
    assert_eq!(accounts.user(&name("bad")), None);
    assert_eq!(accounts.user(&Principal::Number(77)), Some(77));
    assert_eq!((accounts.group(&name("www-data")), accounts.group(&name("app"))), (Some(33), None));
}

// rule: I-05
#[test]
fn an_account_file_that_cannot_be_read_is_not_one_that_lacks_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let ground = crate::ground::Ground::new(folder.path(), true);
    let own = crate::ground::own::Own::look(&ground);
    std::fs::create_dir_all(folder.path().join("etc/passwd")).unwrap();
    let accounts = Accounts::read(&Walker::new(&ground, &own).unwrap());
    assert!(accounts.is_unread("/etc/passwd"));
    assert!(!accounts.is_unread("/etc/group"), "one that is not there has no names");
}
