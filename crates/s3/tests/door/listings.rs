//! Listings of objects, of both kinds.

use crate::rig::Rig;

fn filled() -> Rig {
    let rig = Rig::with_bucket();
    for key in ["a/1", "a/2", "b", "c/1", "d e", "z"] {
        assert_eq!(rig.client.put(&format!("/photos/{key}"), b"1").status, 200);
    }
    rig
}

#[test]
fn pages_of_the_second_kind_make_the_whole() {
    let rig = filled();
    let (mut keys, mut prefixes, mut token) = (Vec::new(), Vec::new(), String::new());
    loop {
        let target = format!("/photos?list-type=2&max-keys=2&delimiter=/{token}");
        let page = rig.client.get(&target);
        assert!(page.elements("Contents").len() + page.elements("CommonPrefixes").len() <= 2);
        keys.extend(page.elements("Key"));
        prefixes.extend(page.elements("CommonPrefixes"));
        match page.element("NextContinuationToken") {
            Some(next) => token = format!("&continuation-token={next}"),
            None => break,
        }
    }
    assert_eq!(keys, ["b", "d e", "z"]);
    assert_eq!(prefixes, ["<Prefix>a/</Prefix>", "<Prefix>c/</Prefix>"]);
    let after = rig.client.get("/photos?list-type=2&start-after=b&encoding-type=url");
    assert_eq!(after.elements("Key"), ["c/1", "d%20e", "z"]);
    let none = rig.client.get("/photos?list-type=2&max-keys=0");
    assert_eq!(none.element("IsTruncated").as_deref(), Some("false"));
    let bad = rig.client.get("/photos?list-type=2&continuation-token=***");
    assert_eq!(bad.refused(), (400, "InvalidArgument".into()));
}

#[test]
fn pages_of_the_first_kind_make_the_whole() {
    let rig = filled();
    let (mut all, mut marker) = (Vec::new(), String::new());
    loop {
        let target = format!("/photos?max-keys=1&delimiter=/&marker={marker}");
        let page = rig.client.get(&target);
        all.extend(page.elements("Key"));
        all.extend(page.elements("CommonPrefixes"));
        match page.element("NextMarker") {
            Some(next) => marker = next,
            None => break,
        }
    }
    let (a, c) = ("<Prefix>a/</Prefix>", "<Prefix>c/</Prefix>");
    assert_eq!(all, [a, "b", c, "d e", "z"]);
    let under = rig.client.get("/photos?prefix=a/&delimiter=/");
    assert_eq!(under.elements("Key"), ["a/1", "a/2"]);
}
