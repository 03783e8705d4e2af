//! Who may do what, and what nobody may.

use engine::control::SnapshotRequest;

use crate::client::raw;
use crate::rig::Rig;

#[test]
fn signatures_are_checked() {
    let rig = Rig::with_bucket();
    assert_eq!(rig.client.put("/photos/key", b"hello").status, 200);
    let mut wrong = rig.client.clone();
    wrong.secret.push('x');
    assert_eq!(wrong.get("/photos/key").refused(), (403, "SignatureDoesNotMatch".into()));
    wrong.access_key.push('x');
    assert_eq!(wrong.get("/photos/key").refused(), (403, "InvalidAccessKeyId".into()));
    let address = rig.client.address;
    let anonymous = raw(address, "GET", "/photos/key", "", b"");
    assert_eq!(anonymous.refused(), (403, "AccessDenied".into()));
    let old = raw(address, "GET", "/photos/key", "authorization: AWS a:b\r\n", b"");
    assert_eq!(old.refused(), (501, "NotImplemented".into()));
    let url = rig.client.request("GET", "/photos/key").presigned();
    assert_eq!(raw(address, "GET", &url, "", b"").body, b"hello");
    assert_eq!(raw(address, "DELETE", &url, "", b"").refused().1, "SignatureDoesNotMatch");
    let url = rig.client.request("PUT", "/photos/other").presigned();
    assert_eq!(raw(address, "PUT", &url, "", b"bytes").status, 200);
    assert_eq!(rig.client.get("/photos/other").body, b"bytes");
}

#[test]
fn accounts_do_what_they_may_and_no_more() {
    let rig = Rig::with_bucket();
    assert_eq!(rig.client.put("/photos/key", b"hello").status, 200);
    let denied = (403, "AccessDenied".to_owned());
    let reader = rig.account("reader", &["photos"], &["own-*"]);
    assert_eq!(reader.get("/photos/key").body, b"hello");
    assert_eq!(reader.put("/photos/key", b"").refused(), denied);
    assert_eq!(reader.delete("/photos/key").refused(), denied);
    assert_eq!(reader.delete("/photos").refused(), denied);
    assert_eq!(reader.put("/mine", b"").refused(), denied);
    assert_eq!(reader.put("/own-photos", b"").status, 200);
    assert_eq!(reader.get("/").elements("Name"), ["own-photos", "photos"]);
    let copy = reader.request("PUT", "/own-photos/key");
    assert_eq!(copy.header("x-amz-copy-source", "photos/key").send().status, 200);
    let stranger = rig.account("stranger", &[], &["strange"]);
    assert_eq!(stranger.get("/photos/key").refused(), denied);
    assert_eq!(stranger.get("/nothing/key").refused(), denied);
    assert_eq!(stranger.put("/strange", b"").status, 200);
    assert_eq!(stranger.get("/").elements("Name"), ["strange"]);
    let copy = stranger.request("PUT", "/strange/key");
    assert_eq!(copy.header("x-amz-copy-source", "photos/key").send().refused(), denied);
}

#[test]
fn what_is_not_done_is_refused() {
    let rig = Rig::with_bucket();
    let refused = (501, "NotImplemented".to_owned());
    for target in ["/photos?policy", "/photos?versions", "/photos?website", "/photos/key?torrent"] {
        assert_eq!(rig.client.get(target).refused(), refused, "{target}");
    }
    for target in ["/photos?versioning", "/photos?acl", "/photos?object-lock", "/photos/key?acl"] {
        let put = rig.client.put(target, b"<a/>");
        assert_eq!(put.refused(), refused, "{target}");
    }
    for (name, value) in [
        ("x-amz-server-side-encryption", "AES256"),
        ("x-amz-storage-class", "GLACIER"),
        ("x-amz-acl", "public-read"),
        ("x-amz-object-lock-legal-hold", "ON"),
    ] {
        let put = rig.client.request("PUT", "/photos/key").header(name, value).send();
        assert_eq!(put.refused(), refused, "{name}");
    }
    assert_eq!(rig.client.get("/photos/key").status, 404);
}

#[test]
fn a_snapshot_is_a_bucket_that_nobody_changes() {
    let rig = Rig::with_bucket();
    assert_eq!(rig.client.put("/photos/key", b"before").status, 200);
    let (volumes, name) = (vec!["photos".to_owned()], "monday".to_owned());
    rig.store.client().ask(SnapshotRequest { volumes, name, taken_unix_s: 1 }).unwrap();
    assert_eq!(rig.client.put("/photos/key", b"after").status, 200);
    assert_eq!(rig.client.get("/photos@monday/key").body, b"before");
    assert_eq!(rig.client.get("/photos@monday?list-type=2").elements("Key"), ["key"]);
    let refused = (403, "AccessDenied".to_owned());
    assert_eq!(rig.client.put("/photos@monday/key", b"").refused(), refused);
    assert_eq!(rig.client.delete("/photos@monday/key").refused(), refused);
    assert_eq!(rig.client.delete("/photos@monday").refused(), refused);
    assert_eq!(rig.client.get("/").elements("Name"), ["photos"]);
    assert_eq!(rig.client.get("/photos@tuesday/key").refused(), (404, "NoSuchBucket".into()));
}
