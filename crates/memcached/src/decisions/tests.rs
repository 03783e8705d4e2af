//! Decisions about items: what conversations do not show.

use super::{ArithmeticDecision, DeleteDecision, GetDecision, Join, Number, StoreDecision};
use crate::answer::Answer;
use crate::expiry::Expiry;
use crate::hit::Change;
use crate::item::Item;
use crate::layout::Layout;
use crate::operation::{Arithmetic, Delete, Get, Recache, Store, StoreMode, Touch};

const NOW_S: u64 = 1000;

fn item() -> Item {
    Item {
        flags: 3,
        cas: 50,
        expires: Expiry::from_stored(NOW_S + 100),
        accessed_s: 900,
        generation: 4,
        ..Item::default()
    }
}

fn store(mode: StoreMode) -> Store<'static> {
    Store {
        key: b"a",
        value: b"new",
        value_bytes: 3,
        mode,
        flags: 7,
        expires: Expiry::NEVER,
        compare: None,
        invalidate: false,
        vivify: None,
        new_cas: None,
        place: None,
        layout: Layout::Whole,
        value_bytes_max: 10,
    }
}

fn sum() -> Arithmetic<'static> {
    Arithmetic {
        key: b"a",
        is_down: false,
        delta: 1,
        compare: None,
        vivify: None,
        initial: 5,
        touch: None,
        new_cas: None,
    }
}

fn change_of(get: &Get<'_>, found: &Item) -> Change {
    match get.decide(Some(found), NOW_S, || panic!("a read of an item needs no version")) {
        GetDecision::Hit(hit) => hit.change(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_read_says_how_much_of_the_item_changes() {
    let get = Get::new(b"a");
    assert_eq!(change_of(&get, &item()), Change::Access);
    let fresh = Item { accessed_s: NOW_S, fetched: true, ..item() };
    assert_eq!(change_of(&get, &fresh), Change::None);
    assert_eq!(change_of(&Get { marks_access: false, ..get }, &item()), Change::None);
    assert_eq!(change_of(&Get { touch: Some(Expiry::NEVER), ..get }, &item()), Change::Item);
    let recache = Recache { before: Expiry::from_stored(NOW_S + 101), is_after_touch: false };
    let winning = Get { recache: Some(recache), ..get };
    assert_eq!(change_of(&winning, &item()), Change::Item);
    let same = Get { touch: Some(item().expires), ..get };
    assert_eq!(change_of(&same, &fresh), Change::None);
}

#[test]
fn versions_are_taken_only_for_what_is_written() {
    let none = || panic!("nothing is written");
    assert_eq!(Get::new(b"a").decide(None, NOW_S, none), GetDecision::Miss);
    let refused = store(StoreMode::Add).decide(Some((&item(), 1)), NOW_S, none);
    assert_eq!(refused, StoreDecision::Refuse(Answer::NotStored));
    assert_eq!(Delete::new(b"a").decide(Some(&item()), NOW_S, none), DeleteDecision::Remove);
    let given = Store { new_cas: Some(9), ..store(StoreMode::Set) };
    let StoreDecision::Write { item, .. } = given.decide(None, NOW_S, none) else {
        panic!("a set writes")
    };
    assert_eq!(item.cas, 9);
    let refused = sum().decide(Some((&item, b"x")), NOW_S, none);
    assert_eq!(refused, ArithmeticDecision::Refuse(Answer::NotANumber));
}

#[test]
fn joined_values_are_bounded() {
    for (old_bytes, fits) in [(7, true), (8, false), (u64::MAX, false)] {
        let append = store(StoreMode::Append);
        let decided = append.decide(Some((&item(), old_bytes)), NOW_S, || 51);
        match decided {
            StoreDecision::Write { item, join, value_bytes } => {
                assert!(fits);
                assert_eq!((join, value_bytes, item.flags), (Join::Append, 10, 3));
            }
            StoreDecision::Refuse(answer) => {
                assert!(!fits);
                assert_eq!(answer, Answer::NotStored);
            }
        }
    }
}

#[test]
fn a_new_value_has_none_of_the_marks_of_the_old() {
    let old = Item { stale: true, win_sent: true, fetched: true, ..item() };
    for mode in [StoreMode::Set, StoreMode::Replace, StoreMode::Append] {
        let decided = store(mode).decide(Some((&old, 1)), NOW_S, || 51);
        let StoreDecision::Write { item, .. } = decided else { panic!("{decided:?}") };
        assert!(!item.stale && !item.win_sent && !item.fetched);
        assert_eq!((item.cas, item.accessed_s), (51, NOW_S));
    }
}

#[test]
fn an_older_version_that_invalidates_stores_a_stale_value() {
    let invalidating = Store { compare: Some(49), invalidate: true, ..store(StoreMode::Set) };
    let old = Item { win_sent: true, ..item() };
    let decided = invalidating.decide(Some((&old, 1)), NOW_S, || 51);
    let StoreDecision::Write { item, .. } = decided else { panic!("{decided:?}") };
    assert!(item.stale && item.win_sent);
    assert_eq!(item.expires, old.expires);
    let newer = Store { compare: Some(51), ..invalidating };
    let decided = newer.decide(Some((&old, 1)), NOW_S, || 52);
    assert_eq!(decided, StoreDecision::Refuse(Answer::Exists));
}

#[test]
fn an_emptied_item_keeps_its_version_unless_it_is_stale() {
    let emptying = Delete { removes_value: true, ..Delete::new(b"a") };
    let decided = emptying.decide(Some(&item()), NOW_S, || panic!("it keeps its version"));
    let DeleteDecision::Keep { item: kept, is_emptied: true } = decided else {
        panic!("{decided:?}")
    };
    assert_eq!((kept.cas, kept.flags, kept.expires), (50, 0, Expiry::NEVER));
    let both = Delete { invalidate: true, ..emptying };
    let decided = both.decide(Some(&item()), NOW_S, || 51);
    let DeleteDecision::Keep { item: kept, .. } = decided else { panic!("{decided:?}") };
    assert!(kept.stale && kept.cas == 51);
}

#[test]
fn numbers_keep_their_width_and_long_values_are_none() {
    for (old, number, value) in [
        (&b"10"[..], 11, &b"11"[..]),
        (b"99", 100, b"100"),
        (b"7 \t", 8, b"8  "),
        (b" 7", 8, b"8 "),
        (b"7 8", 8, b"8  "),
    ] {
        let decided = sum().decide(Some((&item(), old)), NOW_S, || 51);
        let ArithmeticDecision::Write { hit, number: sum, value: text } = decided else {
            panic!("{decided:?}")
        };
        assert_eq!((sum, text.as_bytes()), (number, value));
        assert_eq!((hit.item.cas, hit.item.expires), (51, item().expires));
    }
    let long = [b"1".to_vec(), vec![b' '; 64]].concat();
    for old in [&long[..], b"", b" ", b"-1", b"1x", b"x"] {
        let decided = sum().decide(Some((&item(), old)), NOW_S, || 51);
        assert_eq!(decided, ArithmeticDecision::Refuse(Answer::NotANumber), "{old:?}");
    }
    assert_eq!(Number::new(u64::MAX, 64).as_bytes().len(), 64);
    let made = Arithmetic { vivify: Some(Expiry::NEVER), ..sum() };
    let decided = made.decide(None, NOW_S, || 51);
    assert!(matches!(decided, ArithmeticDecision::Write { number: 5, .. }));
}

#[test]
fn a_touch_counts_as_a_read() {
    let touch = Touch { key: b"a", expires: Expiry::NEVER };
    assert_eq!(touch.decide(None, NOW_S), None);
    let touched = touch.decide(Some(&item()), NOW_S).unwrap();
    assert_eq!((touched.expires, touched.fetched), (Expiry::NEVER, true));
    assert_eq!((touched.accessed_s, touched.cas), (NOW_S, 50));
}
