//! Bytes that the disk has lost: an error for the objects that had them, and never other bytes.

use std::io::Read;

use crate::rig::{Rig, noise};

#[test]
fn damage_is_an_error_of_its_object_alone() {
    let rig = Rig::with_bucket();
    let client = &rig.client;
    let (first, late, whole) = (noise(3 << 20, 1), noise(3 << 20, 2), noise(3 << 20, 3));
    for (key, bytes) in [("first", &first), ("late", &late), ("whole", &whole)] {
        assert_eq!(client.put(&format!("/photos/{key}"), bytes).status, 200);
    }
    rig.store.client().flush_blocking().unwrap();
    (rig.damage)(&first);
    (rig.damage)(&late[2 << 20..]);
    let answer = client.get("/photos/first");
    assert_eq!(answer.refused(), (500, "InternalError".into()));
    assert!(!answer.text().contains("photos"), "where bytes are is the operator's matter");
    // Its beginning has been sent when the damage is met: the connection ends before the length.
    let mut stream = client.request("GET", "/photos/late").begin(|all| all);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let at = answer.windows(4).position(|found| found == b"\r\n\r\n").unwrap() + 4;
    let body = &answer[at..];
    assert!(body.len() < late.len() && *body == late[..body.len()], "{} bytes", body.len());
    let range = client.request("GET", "/photos/late").header("range", "bytes=0-1048575").send();
    assert!(range.status == 206 && range.body == late[..1 << 20]);
    assert_eq!(client.request("HEAD", "/photos/first").send().status, 200);
    let copy = client.put("/other", b"");
    assert_eq!(copy.status, 200);
    let copy = client.request("PUT", "/other/copy").header("x-amz-copy-source", "photos/first");
    // No byte was read: the copy has the same chunks, the damaged one as well.
    assert_eq!(copy.send().status, 200);
    assert_eq!(client.get("/other/copy").refused(), (500, "InternalError".into()));
    assert!(client.get("/photos/whole").body == whole);
    let notes = rig.take_notes();
    assert!(
        notes
            .iter()
            .all(|note| ["/first: ", "/late: ", "/copy: "].iter().any(|key| note.contains(key)))
    );
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert_eq!(client.delete("/photos/first").status, 204);
    assert_eq!(client.put("/photos/first", &whole).status, 200);
    assert!(client.get("/photos/first").body == whole);
}
