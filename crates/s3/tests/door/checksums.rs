//! An upload remembers the checksum that it was begun for.

use crate::client::{Answer, Client};
use crate::rig::{Rig, noise};

const PART_BYTES: usize = 5 << 20;

fn begin(client: &Client, algorithm: &str, kind: &str) -> Answer {
    let begun = client.request("POST", "/photos/big?uploads");
    let begun = begun.header("x-amz-checksum-algorithm", algorithm);
    match kind {
        "" => begun.send(),
        kind => begun.header("x-amz-checksum-type", kind).send(),
    }
}

fn complete(client: &Client, upload: &str, etags: &[String], kind: &str) -> Answer {
    let part = |(at, etag): (usize, &String)| {
        format!("<Part><PartNumber>{}</PartNumber><ETag>{etag}</ETag></Part>", at + 1)
    };
    let parts: String = etags.iter().enumerate().map(part).collect();
    let document = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
    let target = format!("/photos/big?uploadId={upload}");
    let request = client.request("POST", &target).body(document.as_bytes());
    match kind {
        "" => request.send(),
        kind => request.header("x-amz-checksum-type", kind).send(),
    }
}

#[test]
fn parts_and_completion_hold_to_the_checksum_of_the_upload() {
    let rig = Rig::with_bucket();
    let client = &rig.client;
    assert_eq!(client.put("/photos/source", &noise(1000, 2)).status, 200);
    let (first, second) = (noise(PART_BYTES, 1), noise(1000, 2));
    let whole = client.request("PUT", "/photos/whole").header("x-amz-checksum-crc32", "AAAAAA==");
    let whole = whole.body(&[first.clone(), second.clone()].concat()).send();
    assert_eq!(whole.refused().1, "BadDigest");
    for (algorithm, kind, is) in [
        ("CRC32", "", "COMPOSITE"),
        ("CRC32C", "FULL_OBJECT", "FULL_OBJECT"),
        ("CRC64NVME", "", "FULL_OBJECT"),
        ("SHA256", "", "COMPOSITE"),
    ] {
        let begun = begin(client, algorithm, kind);
        assert_eq!(begun.header("x-amz-checksum-type"), Some(is));
        let upload = begun.element("UploadId").unwrap();
        let target = |number: u32| format!("/photos/big?partNumber={number}&uploadId={upload}");
        // A sender that gives none has it computed.
        let put = client.put(&target(1), &first);
        let name = format!("x-amz-checksum-{}", algorithm.to_ascii_lowercase());
        assert!(put.header(&name).is_some(), "{algorithm}: {:?}", put.headers);
        let copy = client.request("PUT", &target(2)).header("x-amz-copy-source", "photos/source");
        let copy = copy.send();
        assert!(copy.element(&format!("Checksum{algorithm}")).is_some(), "{}", copy.text());
        let other = client.request("PUT", &target(3)).header("x-amz-checksum-sha1", "AAAA");
        assert_eq!(other.send().refused(), (400, "InvalidRequest".into()));
        let listed = client.get(&format!("/photos/big?uploadId={upload}"));
        assert_eq!(listed.element("ChecksumType").as_deref(), Some(is));
        assert_eq!(listed.element("ChecksumAlgorithm").as_deref(), Some(algorithm));
        let uploads = client.get("/photos?uploads");
        assert_eq!(uploads.element("ChecksumType").as_deref(), Some(is));
        let etags = [
            put.header("etag").unwrap().to_owned(),
            copy.element("ETag").unwrap().replace("&quot;", "\""),
        ];
        let not = if is == "COMPOSITE" { "FULL_OBJECT" } else { "COMPOSITE" };
        let refused = complete(client, &upload, &etags, not);
        assert_eq!(refused.refused(), (400, "InvalidRequest".into()), "{}", refused.text());
        let done = complete(client, &upload, &etags, "");
        assert_eq!(done.element("ChecksumType").as_deref(), Some(is), "{}", done.text());
        let got = client.request("GET", "/photos/big").header("x-amz-checksum-mode", "ENABLED");
        let got = got.send();
        assert!(got.body == [first.clone(), second.clone()].concat());
        let text = got.header(&name).unwrap();
        assert_eq!(text.contains('-'), is == "COMPOSITE", "{text}");
        if is == "FULL_OBJECT" {
            let again = client.request("PUT", "/photos/again").header(&name, text).body(&got.body);
            assert_eq!(again.send().status, 200, "it is the checksum of the bytes");
        }
    }
    for (algorithm, kind) in [("SHA1", "FULL_OBJECT"), ("CRC64NVME", "COMPOSITE"), ("MD5", "")] {
        let refused = begin(client, algorithm, kind);
        assert_eq!(refused.refused(), (400, "InvalidRequest".into()), "{algorithm} {kind}");
    }
}

#[test]
fn parts_of_a_completed_object_are_counted() {
    let rig = Rig::with_bucket();
    let client = &rig.client;
    let begun = client.request("POST", "/photos/big?uploads").send();
    let upload = begun.element("UploadId").unwrap();
    let put = |number: u32, bytes: &[u8]| {
        let put = client.put(&format!("/photos/big?partNumber={number}&uploadId={upload}"), bytes);
        put.header("etag").unwrap().to_owned()
    };
    let etags = [put(1, &noise(PART_BYTES, 1)), put(2, b"2")];
    assert_eq!(complete(client, &upload, &etags, "").status, 200);
    let get = |part: u32| client.get(&format!("/photos/big?partNumber={part}"));
    assert_eq!(get(1).refused(), (501, "NotImplemented".into()));
    assert_eq!(get(3).refused(), (416, "InvalidPartNumber".into()));
    let attributes = client.request("GET", "/photos/big?attributes");
    let attributes = attributes.header("x-amz-object-attributes", "ObjectParts").send();
    assert_eq!(attributes.element("PartsCount").as_deref(), Some("2"), "{}", attributes.text());
    assert_eq!(client.put("/photos/small", b"small").status, 200);
    let one = client.get("/photos/small?partNumber=1");
    assert_eq!((one.status, one.body.as_slice()), (206, &b"small"[..]));
    assert_eq!(client.get("/photos/small?partNumber=2").refused().1, "InvalidPartNumber");
    let both = client.request("GET", "/photos/small?partNumber=1").header("range", "bytes=0-1");
    assert_eq!(both.send().refused(), (400, "InvalidRequest".into()));
}
