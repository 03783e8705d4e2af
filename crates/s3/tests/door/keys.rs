//! Keys and texts that no friend would use.

use crate::client::raw;
use crate::rig::Rig;
use crate::signing::encoded;

fn hostile_keys() -> Vec<String> {
    let mut keys: Vec<String> = [
        "nul\0key",
        "..",
        "../up",
        "a/../b",
        ".",
        "/",
        "//",
        "a//b",
        "end/",
        " ",
        "+",
        "%2F",
        "%00",
        "line\nfeed",
        "cr\rkey",
        "tab\tkey",
        "\u{1}\u{1f}",
        "\u{7f}",
        "\u{fffe}",
        "\u{feff}bom",
        "<&>\"'",
        "]]>",
        "日本語",
        "\u{1f600}",
        "?query",
        "#fragment",
        "a\\b",
        "key;a=b",
    ]
    .map(str::to_owned)
    .to_vec();
    keys.push("x".repeat(1024));
    keys.push("é".repeat(512));
    keys
}

#[test]
fn any_text_of_1024_bytes_is_a_key() {
    let rig = Rig::with_bucket();
    let client = &rig.client;
    for key in hostile_keys() {
        let target = |method| {
            let path = format!("/photos/{}", encoded(&key, true));
            client.request(method, "/photos").raw_path(&path)
        };
        let put = target("PUT").body(key.as_bytes()).send();
        assert_eq!(put.status, 200, "{key:?}: {}", put.text());
        let got = target("GET").send();
        assert!(got.status == 200 && got.body == key.as_bytes(), "{key:?}");
        assert_eq!(target("HEAD").send().status, 200, "{key:?}");
        let listed = client.get("/photos?list-type=2&encoding-type=url");
        let shown = listed.element("Key").unwrap().replace("%2F", "/").replace('*', "%2A");
        assert_eq!(shown, encoded(&key, true).replace("~", "%7E"), "{key:?}");
        let listed = client.get("/photos?list-type=2");
        let has_control = |byte: &u8| *byte < 0x20 && !b"\t\n".contains(byte);
        assert!(!listed.body.iter().any(has_control), "{key:?}: {}", listed.text());
        assert!(!listed.text().contains('\u{fffe}'), "XML cannot hold it");
        assert_eq!(listed.elements("Key").len(), 1, "{key:?}");
        assert_eq!(target("DELETE").send().status, 204, "{key:?}");
        assert_eq!(target("GET").send().refused(), (404, "NoSuchKey".into()));
    }
    for long in ["x".repeat(1025), "é".repeat(513)] {
        let target = format!("/photos/{long}");
        assert_eq!(client.put(&target, b"").refused(), (400, "KeyTooLongError".into()));
        assert_eq!(client.get(&target).refused(), (400, "KeyTooLongError".into()));
        assert_eq!(client.delete(&target).refused(), (400, "KeyTooLongError".into()));
    }
    assert_eq!(client.get("/photos?list-type=2").element("KeyCount").as_deref(), Some("0"));
}

#[test]
fn paths_that_are_no_text_are_refused() {
    let rig = Rig::with_bucket();
    for path in ["/photos/%ff", "/photos/a%c3", "/%ff/key", "/photos/%ed%a0%80"] {
        let got = rig.client.request("GET", "/photos").raw_path(path).send();
        assert_eq!(got.refused(), (400, "InvalidURI".into()), "{path}");
    }
    let address = rig.client.address;
    for target in ["*", "photos/key", "http://", "/photos/a b"] {
        assert!((400..500).contains(&raw(address, "GET", target, "", b"").status), "{target}");
    }
    for name in ["/a", "/UPPER", "/photos@", "/a..b", "/192.168.1.1", "/%00%00%00", "/é-é-é"] {
        let put = rig.client.put(name, b"");
        assert_eq!(put.refused(), (400, "InvalidBucketName".into()), "{name}");
    }
    assert_eq!(rig.client.get("/photos/none").status, 404);
}

#[test]
fn what_no_header_or_document_can_hold_is_refused() {
    let rig = Rig::with_bucket();
    let put = |name: &str, value: &str| {
        rig.client.request("PUT", "/photos/key").header(name, value).send()
    };
    for text in ["=?UTF-8?Q?a=0Ab?=", "=?UTF-8?B?AAo=?=", "=?UTF-8?Q?=7F?="] {
        let refused = put("x-amz-meta-a", text);
        assert_eq!(refused.refused(), (400, "InvalidArgument".into()), "{text}");
    }
    assert_eq!(put("x-amz-tagging", "a=%01").refused(), (400, "InvalidTag".into()));
    assert_eq!(put("x-amz-tagging", "%0A=1").refused(), (400, "InvalidTag".into()));
    assert_eq!(put("x-amz-meta-a", &"v".repeat(2048)).refused().1, "MetadataTooLarge");
    assert_eq!(rig.client.get("/photos/key").status, 404);
    assert_eq!(put("x-amz-meta-a", "=?UTF-8?Q?=C3=BC?=").status, 200);
    assert_eq!(rig.client.get("/photos/key").status, 200);
    for query in ["response-content-type=a%0Ab", "response-expires=never"] {
        let got = rig.client.get(&format!("/photos/key?{query}").replace("%0A", "\n"));
        assert!((400..500).contains(&got.status), "{query}: {} {}", got.status, got.text());
    }
}

/// s3cmd without settings signs for `US`, and signs again for the region that it hears.
#[test]
fn a_signature_for_no_region_hears_of_one() {
    let rig = Rig::with_bucket();
    let credential = "Credential=KEY/20261129/US/s3/aws4_request";
    let header =
        format!("authorization: AWS4-HMAC-SHA256 {credential},SignedHeaders=host,Signature=0\r\n");
    let answer = raw(rig.client.address, "GET", "/photos?location", &header, b"");
    assert_eq!(answer.refused(), (400, "AuthorizationHeaderMalformed".into()));
    assert_eq!(answer.element("Region").as_deref(), Some("us-east-1"));
    let query = "X-Amz-Credential=KEY%2F20261129%2FUS%2Fs3%2Faws4_request&X-Amz-Signature=0";
    let answer = raw(rig.client.address, "GET", &format!("/photos/key?{query}"), "", b"");
    assert_eq!(answer.refused(), (400, "AuthorizationHeaderMalformed".into()));
}
