use super::*;

// case: O-62
#[test]
fn what_is_wrong_with_a_token_is_told_by_name_and_never_shows_it() {
    for (error, code) in [
        (EnrolError::from(TokenError::NotAToken), "not_a_token"),
        (TokenError::Damaged.into(), "token_damaged"),
        (TokenError::OtherForm.into(), "token_other_form"),
        (TlsError::NoRoots.into(), "no_trust"),
        (EnrolError::OtherAnswer("another node"), "other_answer"),
        (EnrolError::Unanswered(GreetingError::Nonsense), "redemption_unanswered"),
    ] {
        let refusal = error.refusal();
        assert_eq!(refusal.code, code);
        let said = [&refusal.happened, &refusal.means, &refusal.remedy];
        assert!(said.iter().all(|text| !text.is_empty()), "{refusal:?}");
    }
}

#[test]
fn what_the_control_plane_refuses_is_told_in_its_words_and_what_to_do_before_it_was_reached_in_ours() {
    let said = Refusal::new("spent", "it was used", "another machine has it", "run `tenure reinvite edge-1`");
    assert_eq!(EnrolError::from(GreetingError::Refused(said.clone())).refusal(), said);
    let unreachable = EnrolError::from(DialError::Unreachable { tries: vec!["a:1: refused".to_owned()] });
    assert!(unreachable.refusal().remedy.ends_with("then give the same token again"));
}
