//! Multi-part uploads.

use crate::client::Client;
use crate::rig::{Rig, noise};

const PART_BYTES: usize = 5 << 20;

fn begin(client: &Client, key: &str) -> String {
    let begun = client.request("POST", &format!("/photos/{key}?uploads"));
    begun.header("x-amz-meta-who", "me").send().element("UploadId").unwrap()
}

fn put_part(client: &Client, key: &str, upload: &str, number: u32, bytes: &[u8]) -> String {
    let target = format!("/photos/{key}?partNumber={number}&uploadId={upload}");
    let put = client.put(&target, bytes);
    assert_eq!(put.status, 200, "{}", put.text());
    put.header("etag").unwrap().to_owned()
}

fn completion(parts: &[(u32, String)]) -> String {
    let part = |(number, etag): &(u32, String)| {
        format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>")
    };
    let parts: String = parts.iter().map(part).collect();
    format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>")
}

#[test]
fn parts_make_an_object() {
    let rig = Rig::with_bucket();
    let client = &rig.client;
    let upload = begin(client, "big");
    let (one, two) = (noise(PART_BYTES, 1), noise(1000, 2));
    let mut parts = vec![
        (1, put_part(client, "big", &upload, 1, &one)),
        (2, put_part(client, "big", &upload, 2, &two)),
    ];
    assert_eq!(client.put("/photos/source", &noise(3000, 3)).status, 200);
    let copied = client
        .request("PUT", &format!("/photos/big?partNumber=3&uploadId={upload}"))
        .header("x-amz-copy-source", "photos/source")
        .header("x-amz-copy-source-range", "bytes=1000-1999")
        .send();
    let etag = copied.element("ETag").unwrap().replace("&quot;", "\"");
    let listed = client.get(&format!("/photos/big?uploadId={upload}&max-parts=2"));
    assert_eq!(listed.elements("PartNumber"), ["1", "2"]);
    assert_eq!(listed.element("IsTruncated").as_deref(), Some("true"));
    assert_eq!(client.get("/photos?uploads").element("UploadId"), Some(upload.clone()));
    let target = format!("/photos/big?uploadId={upload}");
    let small = client.post(&target, &completion(&[parts[1].clone(), (3, etag.clone())]));
    assert_eq!(small.refused(), (400, "EntityTooSmall".into()));
    let order = client.post(&target, &completion(&[parts[1].clone(), parts[0].clone()]));
    assert_eq!(order.refused(), (400, "InvalidPartOrder".into()));
    let other = client.post(&target, &completion(&[(1, parts[1].1.clone())]));
    assert_eq!(other.refused(), (400, "InvalidPart".into()));
    let done = client.post(&target, &completion(&parts));
    assert_eq!(done.status, 200, "{}", done.text());
    assert!(done.element("ETag").unwrap().contains("-2"));
    let got = client.get("/photos/big");
    assert!(got.body == [one, two].concat());
    assert_eq!(got.header("x-amz-meta-who"), Some("me"));
    parts.clear();
    assert_eq!(client.post(&target, &completion(&[(3, etag)])).refused().1, "NoSuchUpload");
}

#[test]
fn an_aborted_upload_is_gone() {
    let rig = Rig::with_bucket();
    let upload = begin(&rig.client, "big");
    put_part(&rig.client, "big", &upload, 1, b"1");
    assert_eq!(rig.client.delete("/photos").refused(), (409, "BucketNotEmpty".into()));
    let target = format!("/photos/big?uploadId={upload}");
    assert_eq!(rig.client.delete(&target).status, 204);
    assert_eq!(rig.client.delete(&target).refused(), (404, "NoSuchUpload".into()));
    assert_eq!(rig.client.get("/photos?uploads").element("UploadId"), None);
    let malformed = rig.client.delete("/photos/big?uploadId=7");
    assert_eq!(malformed.refused(), (404, "NoSuchUpload".into()));
    assert_eq!(rig.client.delete("/photos").status, 204);
}

#[test]
fn checksums_of_parts_make_that_of_the_object() {
    let rig = Rig::with_bucket();
    let client = &rig.client;
    let upload = begin(client, "big");
    let target = format!("/photos/big?partNumber=1&uploadId={upload}");
    let put = client.request("PUT", &target).header("x-amz-checksum-crc32", "y/Q5Jg==");
    let etag = put.body(b"123456789").send().header("etag").unwrap().to_owned();
    let parts = completion(&[(1, etag)]);
    let target = format!("/photos/big?uploadId={upload}");
    let wrong = client
        .request("POST", &target)
        .header("x-amz-checksum-type", "FULL_OBJECT")
        .header("x-amz-checksum-crc32", "AAAAAA==")
        .body(parts.as_bytes())
        .send();
    assert_eq!(wrong.refused(), (400, "BadDigest".into()));
    let right = client
        .request("POST", &target)
        .header("x-amz-checksum-type", "FULL_OBJECT")
        .header("x-amz-checksum-crc32", "y/Q5Jg==")
        .body(parts.as_bytes())
        .send();
    assert_eq!(right.element("ChecksumCRC32").as_deref(), Some("y/Q5Jg=="), "{}", right.text());
}

#[test]
fn uploads_are_listed_by_prefix_and_delimiter_in_pages() {
    let rig = Rig::with_bucket();
    let client = &rig.client;
    for key in ["a/1", "a/2", "a/2", "b", "c/d/1", "c/e", "z"] {
        begin(client, key);
    }
    let pages = |query: &str, limit: usize| {
        let (mut names, mut markers) = (Vec::new(), String::new());
        loop {
            let page = client.get(&format!("/photos?uploads&max-uploads={limit}{query}{markers}"));
            assert_eq!(page.status, 200, "{}", page.text());
            let (keys, groups) = (page.elements("Key"), page.elements("CommonPrefixes"));
            assert!(keys.len() + groups.len() <= limit);
            names.extend(keys);
            names.extend(groups.iter().map(|group| group.replace("<Prefix>", "")));
            let Some(key) = page.element("NextKeyMarker") else { break };
            let upload = page.element("NextUploadIdMarker").unwrap_or_default();
            markers = format!("&key-marker={key}&upload-id-marker={upload}");
        }
        let mut names: Vec<String> =
            names.iter().map(|name| name.replace("</Prefix>", "")).collect();
        names.sort();
        names
    };
    for limit in 1..9 {
        assert_eq!(pages("", limit), ["a/1", "a/2", "a/2", "b", "c/d/1", "c/e", "z"], "{limit}");
        assert_eq!(pages("&delimiter=/", limit), ["a/", "b", "c/", "z"], "{limit}");
        assert_eq!(pages("&delimiter=/&prefix=c/", limit), ["c/d/", "c/e"], "{limit}");
        assert_eq!(pages("&prefix=a", limit), ["a/1", "a/2", "a/2"], "{limit}");
    }
}
