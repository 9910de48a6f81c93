use super::*;

#[test]
fn versions_are_ordered_as_dpkg_orders_them() {
    let rising = [
        "0.9",
        "1.0~beta1~svn1245",
        "1.0~beta1",
        "1.0",
        "1.0-0.1",
        "1.0-1",
        "1.0-1+b1",
        "1.0-1+deb12u1",
        "1.0-1.1",
        "1.0-2",
        "1.0-10",
        "1.0a",
        "1.0+dfsg",
        "1.0.1",
        "1.9",
        "1.10",
        "2.0~rc1",
        "2.0",
        "1:0.1",
        "1:0.1-1",
        "2:0",
    ];
    for (at, a) in rising.iter().enumerate() {
        for (other, b) in rising.iter().enumerate() {
            assert_eq!(compare(a, b), at.cmp(&other), "{a} {b}");
        }
    }
    assert_eq!(compare("1.0", "1.0-0"), Ordering::Equal);
    assert_eq!(compare("1.01", "1.1"), Ordering::Equal);
    assert!(is_older("1.22.1-9", "1.22.1-9+deb12u1"));
}
