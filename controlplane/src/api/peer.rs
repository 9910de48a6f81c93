//! Who is at the other end of the local socket, by the kernel's word.

use tenure_protocol::refusal::Refusal;
use tokio::net::UnixStream;

use super::GROUP;

/// Whether the peer may operate: root, we ourselves, or a member of the group.
pub(super) fn may_operate(stream: &UnixStream) -> Result<(), Refusal> {
    let peer = stream.peer_cred().map_err(|_| not_allowed("somebody the kernel does not name"))?;
    let own = nix::unistd::Uid::effective().as_raw();
    if peer.uid() == 0 || peer.uid() == own || is_member(peer.uid(), peer.gid()) {
        return Ok(());
    }
    Err(not_allowed(&format!("user {}", peer.uid())))
}

/// Whether the user has the group, as its own or as one more. Where accounts cannot be looked up, nobody has.
fn is_member(uid: u32, gid: u32) -> bool {
    let Ok(Some(group)) = nix::unistd::Group::from_name(GROUP) else { return false };
    let name =
        nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(uid)).ok().flatten().map(|user| user.name);
    group.gid.as_raw() == gid || name.is_some_and(|name| group.mem.contains(&name))
}

fn not_allowed(who: &str) -> Refusal {
    Refusal::new(
        "not_allowed",
        format!("{who} may not speak to this control plane"),
        "its socket is for root, for the user it runs as, and for the group `tenure`: they hold the whole fleet",
        "run the command as one of them",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_not_let_in_is_told_who_would_be() {
        let refusal = not_allowed("user 1000");
        assert_eq!(refusal.code, "not_allowed");
        assert!(refusal.happened.contains("user 1000") && refusal.means.contains("the group `tenure`"));
    }

    #[test]
    fn a_user_without_the_group_is_no_member() {
        assert!(!is_member(u32::MAX - 7, u32::MAX - 7));
    }
}
