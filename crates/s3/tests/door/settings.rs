//! What buckets and objects are told to be like.

use crate::client::raw;
use crate::rig::Rig;

#[test]
fn buckets_are_made_once_and_deleted_empty() {
    let rig = Rig::with_bucket();
    let client = &rig.client;
    assert_eq!(client.put("/photos", b"").refused(), (409, "BucketAlreadyOwnedByYou".into()));
    let dates = client.get("/").elements("CreationDate");
    assert!(dates.len() == 1 && !dates[0].starts_with("1970"), "{dates:?}");
    assert_eq!(client.get("/").elements("CreationDate"), dates);
    assert_eq!(client.put("/Photos", b"").refused(), (400, "InvalidBucketName".into()));
    assert_eq!(client.request("HEAD", "/photos").send().status, 200);
    assert_eq!(client.request("HEAD", "/nothing").send().status, 404);
    for answer in ["location", "versioning", "acl"] {
        assert_eq!(client.get(&format!("/photos?{answer}")).status, 200, "{answer}");
    }
    assert_eq!(client.put("/photos/key", b"").status, 200);
    assert_eq!(client.delete("/photos").refused(), (409, "BucketNotEmpty".into()));
    assert_eq!(client.delete("/photos/key").status, 204);
    assert_eq!(client.delete("/photos").status, 204);
    assert_eq!(client.delete("/photos").refused(), (404, "NoSuchBucket".into()));
}

#[test]
fn tags_are_set_read_and_deleted() {
    let rig = Rig::with_bucket();
    assert_eq!(rig.client.put("/photos/key", b"").status, 200);
    assert_eq!(rig.client.get("/photos?tagging").refused(), (404, "NoSuchTagSet".into()));
    let tags = b"<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>";
    for place in ["/photos?tagging", "/photos/key?tagging"] {
        let put = rig.client.put(place, tags);
        assert!(put.status < 300, "{}", put.text());
        assert_eq!(rig.client.get(place).element("Value").as_deref(), Some("1"));
        assert_eq!(rig.client.delete(place).status, 204);
        assert_eq!(rig.client.get(place).element("Value"), None);
    }
}

#[test]
fn a_lifecycle_comes_back_and_what_it_cannot_be_is_refused() {
    let rig = Rig::with_bucket();
    let none = rig.client.get("/photos?lifecycle");
    assert_eq!(none.refused(), (404, "NoSuchLifecycleConfiguration".into()));
    let rule = |inner: &str| {
        format!(
            "<LifecycleConfiguration><Rule><ID>old</ID><Filter><Prefix>tmp/</Prefix></Filter>\
             <Status>Enabled</Status>{inner}</Rule></LifecycleConfiguration>"
        )
    };
    let put = |inner: &str| rig.client.put("/photos?lifecycle", rule(inner).as_bytes());
    let set = put("<Expiration><Days>7</Days></Expiration>");
    assert_eq!(set.status, 200, "{}", set.text());
    let got = rig.client.get("/photos?lifecycle");
    assert_eq!(got.element("Days").as_deref(), Some("7"));
    assert_eq!(got.element("ID").as_deref(), Some("old"));
    let moved = "<Transition><Days>7</Days><StorageClass>GLACIER</StorageClass></Transition>";
    assert_eq!(put(moved).refused(), (501, "NotImplemented".into()));
    let never = "<Expiration><Days>0</Days></Expiration>";
    assert_eq!(put(never).refused(), (400, "InvalidArgument".into()));
    assert_eq!(rig.client.delete("/photos?lifecycle").status, 204);
    assert_eq!(rig.client.get("/photos?lifecycle").status, 404);
}

#[test]
fn pages_of_other_origins_ask_as_cors_says() {
    let rig = Rig::with_bucket();
    let address = rig.client.address;
    let preflight = |origin: &str| {
        let headers = format!("origin: {origin}\r\naccess-control-request-method: PUT\r\n");
        raw(address, "OPTIONS", "/photos/key", &headers, b"")
    };
    assert_eq!(preflight("https://a.org").refused(), (403, "AccessForbidden".into()));
    let cors = b"<CORSConfiguration><CORSRule><AllowedOrigin>https://a.org</AllowedOrigin>\
                 <AllowedMethod>PUT</AllowedMethod><AllowedMethod>GET</AllowedMethod>\
                 <ExposeHeader>ETag</ExposeHeader></CORSRule></CORSConfiguration>";
    let put = rig.client.put("/photos?cors", cors);
    assert_eq!(put.status, 200, "{}", put.text());
    let allowed = preflight("https://a.org");
    assert_eq!(allowed.status, 200);
    assert_eq!(allowed.header("access-control-allow-origin"), Some("https://a.org"));
    assert_eq!(preflight("https://b.org").status, 403);
    let put = rig.client.request("PUT", "/photos/key").header("origin", "https://a.org").send();
    assert_eq!(put.header("access-control-expose-headers"), Some("ETag"));
    assert_eq!(rig.client.get("/photos?cors").elements("AllowedMethod"), ["PUT", "GET"]);
    assert_eq!(rig.client.delete("/photos?cors").status, 204);
    assert_eq!(preflight("https://a.org").status, 403);
}
