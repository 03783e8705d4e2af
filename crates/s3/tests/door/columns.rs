//! Columns of tables, near their data.

use crate::client::{Answer, Client};
use crate::rig::{Rig, noise};

/// A file of pyarrow: 1,000 rows in groups of 300; `number` is the square of the row.
const TABLE: &[u8] = include_bytes!("../../../segments/tests/data/v2.parquet");
/// Leaves out the two groups before row 600.
const LATE: &str = r#"[["number",">=",360000]]"#;

fn asked(client: &Client, columns: &str, filter: &str) -> Answer {
    let target = format!("/photos/table?x-tamis-columns={columns}&x-tamis-filter={filter}");
    client.request("GET", &target).header("range", "bytes=-65536").send()
}

/// The parts of a body, with their offsets.
fn parts(mut body: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let mut found = Vec::new();
    while !body.is_empty() {
        let number = |at: usize| u64::from_le_bytes(body[at..at + 8].try_into().unwrap()) as usize;
        let (offset, length) = (number(0), number(8));
        found.push((offset, body[16..16 + length].to_vec()));
        body = &body[16 + length..];
    }
    found
}

#[test]
fn the_footer_comes_first_and_then_what_can_match() {
    let rig = Rig::with_bucket();
    assert_eq!(rig.client.put("/photos/table", TABLE).status, 200);
    let plain = rig.client.get("/photos/table");
    let mut lengths = Vec::new();
    for (columns, filter) in [("", "[]"), ("number", "[]"), ("number,pair", LATE), ("word", LATE)] {
        let answer = asked(&rig.client, columns, filter);
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), Some("application/vnd.tamis.parts"));
        assert_eq!(answer.header("etag"), plain.header("etag"));
        let parts = parts(&answer.body);
        let (footer_at, footer) = &parts[0];
        assert!(footer_at + footer.len() == TABLE.len() && footer.ends_with(b"PAR1"));
        for (offset, bytes) in &parts {
            assert_eq!(bytes, &TABLE[*offset..offset + bytes.len()], "{columns} {filter}");
        }
        lengths.push((parts.len() - 1, answer.body.len()));
    }
    let groups: Vec<usize> = lengths.iter().map(|(parts, _)| *parts).collect();
    // The last column of a group and the first of the next are neighbours.
    assert_eq!(groups, [1, 4, 3, 2]);
    assert!(lengths[0].1 > TABLE.len() && lengths[3].1 < lengths[0].1, "{lengths:?}");
    let nothing = asked(&rig.client, "number", r#"[["number","<",0]]"#);
    assert_eq!(parts(&nothing.body).len(), 1);
}

fn footer_bytes() -> usize {
    let length = TABLE[TABLE.len() - 8..].first_chunk().unwrap();
    u32::from_le_bytes(*length) as usize
}

#[test]
fn it_is_a_read_like_any_other() {
    let rig = Rig::with_bucket();
    assert_eq!(rig.client.put("/photos/table", TABLE).status, 200);
    let target = "/photos/table?x-tamis-columns=number";
    let stranger = rig.account("stranger", &[], &["strange"]);
    assert_eq!(stranger.get(target).refused(), (403, "AccessDenied".into()));
    let reader = rig.account("reader", &["photos"], &[]);
    assert_eq!(reader.get(target).status, 200);
    let request = |name: &str, value: &str| rig.client.request("GET", target).header(name, value);
    let other = request("if-match", "\"00000000000000000000000000000000\"").send();
    assert_eq!(other.refused(), (412, "PreconditionFailed".into()));
    let etag = rig.client.get(target).header("etag").unwrap().to_owned();
    assert_eq!(request("if-match", &etag).send().status, 200);
    assert_eq!(request("if-none-match", &etag).send().status, 304);
    let version = rig.client.get(&format!("{target}&versionId=3"));
    assert_eq!(version.refused(), (501, "NotImplemented".into()));
    let none = rig.client.get("/photos/none?x-tamis-columns=number");
    assert_eq!(none.refused(), (404, "NoSuchKey".into()));
    assert_eq!(rig.client.request("HEAD", target).send().status, 200);
    let presigned = rig.client.request("GET", target).presigned();
    let answer = crate::client::raw(rig.client.address, "GET", &presigned, "", b"");
    assert_eq!(answer.body, rig.client.get(target).body);
}

#[test]
fn what_is_no_table_or_no_question_is_told() {
    let rig = Rig::with_bucket();
    let no_table = (400, "ParquetParsingError".to_owned());
    let lies = |length: u32| [&b"PAR1"[..], &[0; 100], &length.to_le_bytes(), b"PAR1"].concat();
    let mut zeros = TABLE.to_vec();
    let footer_at = TABLE.len() - 8 - footer_bytes();
    zeros[footer_at..TABLE.len() - 8].fill(0xff);
    for body in [vec![], b"PAR1".to_vec(), noise(1000, 2), lies(u32::MAX), lies(100), zeros] {
        assert_eq!(rig.client.put("/photos/table", &body).status, 200);
        assert_eq!(asked(&rig.client, "number", "[]").refused(), no_table);
    }
    assert_eq!(rig.client.put("/photos/table", TABLE).status, 200);
    let no_question = (400, "InvalidArgument".to_owned());
    for (columns, filter) in [
        ("nobody", "[]"),
        ("number", r#"[["nobody","=",1]]"#),
        ("number", "number >= 3"),
        ("number", r#"[["number","like",1]]"#),
    ] {
        assert_eq!(asked(&rig.client, columns, filter).refused(), no_question, "{filter}");
    }
    let part = rig.client.get("/photos/table?x-tamis-columns=number&partNumber=1");
    assert_eq!(part.refused(), (400, "InvalidRequest".into()));
}
