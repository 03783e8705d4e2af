//! Documents of XML that no friend would send, to each operation that reads one.

use std::net::Shutdown;

use crate::client::read_answer;
use crate::rig::Rig;

const TARGETS: [(&str, &str); 6] = [
    ("POST", "/photos?delete"),
    ("PUT", "/photos?tagging"),
    ("PUT", "/photos?cors"),
    ("PUT", "/photos?lifecycle"),
    ("PUT", "/photos/key?tagging"),
    ("POST", "/photos/key?uploadId=0000000000000007"),
];

fn bomb() -> Vec<u8> {
    let mut bomb = "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY a0 \"aaaaaaaaaa\">".to_owned();
    for at in 1..30 {
        let before = format!("&a{};", at - 1).repeat(10);
        bomb.push_str(&format!("<!ENTITY a{at} \"{before}\">"));
    }
    bomb.push_str("]><Tagging><TagSet><Tag><Key>&a29;</Key></Tag></TagSet></Tagging>");
    bomb.into_bytes()
}

#[test]
fn documents_that_are_none_are_refused() {
    let rig = Rig::with_bucket();
    assert_eq!(rig.client.put("/photos/key", b"1").status, 200);
    let deep = [b"<a>".repeat(200_000), b"</a>".repeat(200_000)].concat();
    let documents: [&[u8]; 11] = [
        b"x",
        b"<",
        b"<Other/>",
        b"<Tagging><TagSet></Tagging>",
        b"<Tagging/><Tagging/>",
        b"<Delete><Object></Object></Delete>",
        b"\xff\xfe<\0T\0",
        b"<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><Tagging>&a;</Tagging>",
        b"<CORSConfiguration><CORSRule><MaxAgeSeconds>x</MaxAgeSeconds></CORSRule>\
          </CORSConfiguration>",
        &bomb(),
        &deep,
    ];
    for (method, target) in TARGETS {
        for document in documents {
            let answer = rig.client.request(method, target).body(document).send();
            let shown = String::from_utf8_lossy(&document[..document.len().min(60)]).into_owned();
            let said = answer.text();
            assert_eq!(answer.status, 400, "{target} {shown}: {said}");
            assert_eq!(answer.element("Code").as_deref(), Some("MalformedXML"), "{target} {shown}");
        }
        let huge = vec![b' '; (8 << 20) + 1];
        let huge = rig.client.request(method, target).body(&huge).send();
        assert_eq!(huge.refused(), (400, "MaxMessageLengthExceeded".into()), "{target}");
        let request = rig.client.request(method, target).body(&[b' '; 1000]);
        let mut stream = request.begin(|length| length - 500);
        stream.shutdown(Shutdown::Write).unwrap();
        let cut = read_answer(&mut stream, method);
        assert_eq!(cut.refused(), (400, "IncompleteBody".into()), "{target}: {}", cut.text());
    }
    assert_eq!(rig.client.get("/photos/key").body, b"1");
}

#[test]
fn documents_are_held_to_their_limits() {
    let rig = Rig::with_bucket();
    let many = "<Object><Key>k</Key></Object>".repeat(1001);
    let many = rig.client.post("/photos?delete", &format!("<Delete>{many}</Delete>"));
    assert_eq!(many.refused(), (400, "MalformedXML".into()));
    let tags = "<Tag><Key>k</Key><Value>v</Value></Tag>".repeat(2);
    let tags = format!("<Tagging><TagSet>{tags}</TagSet></Tagging>");
    let twice = rig.client.put("/photos?tagging", tags.as_bytes());
    assert_eq!(twice.refused(), (400, "InvalidTag".into()));
    let rule = "<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod>\
                </CORSRule>";
    let cors = |rules: usize| {
        let document = format!("<CORSConfiguration>{}</CORSConfiguration>", rule.repeat(rules));
        rig.client.put("/photos?cors", document.as_bytes())
    };
    assert_eq!(cors(101).refused(), (400, "MalformedXML".into()));
    assert_eq!(cors(100).status, 200);
    let long = "x".repeat(61 << 10);
    let long = format!(
        "<CORSConfiguration><CORSRule><AllowedOrigin>{long}</AllowedOrigin>\
         <AllowedMethod>GET</AllowedMethod></CORSRule></CORSConfiguration>"
    );
    assert_eq!(rig.client.put("/photos?cors", long.as_bytes()).refused().1, "EntityTooLarge");
    let keys: String = (0..1000).map(|at| format!("<Object><Key>{at}</Key></Object>")).collect();
    let deleted = rig.client.post("/photos?delete", &format!("<Delete>{keys}</Delete>"));
    assert_eq!(deleted.elements("Deleted").len(), 1000);
}
