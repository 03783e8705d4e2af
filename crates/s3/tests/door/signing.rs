//! Signatures of version 4, written from Amazon's description and not from s3s.

use std::time::{SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// `20261129T073000Z`.
pub(crate) fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days since 1 March of the year 0, in eras of 400 years.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

pub(crate) fn encoded(text: &str, keeps_slash: bool) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(byte as char);
            }
            b'/' if keeps_slash => encoded.push('/'),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// A query in the order and form in which it is signed.
pub(crate) fn canonical_query(pairs: &[(String, String)]) -> String {
    let mut all: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", encoded(name, false), encoded(value, false)))
        .collect();
    all.sort();
    all.join("&")
}

pub(crate) struct Signer<'a> {
    pub(crate) secret: &'a str,
    pub(crate) time: &'a str,
}

impl Signer<'_> {
    pub(crate) fn scope(&self) -> String {
        format!("{}/us-east-1/s3/aws4_request", &self.time[..8])
    }

    fn sign(&self, text: &str) -> String {
        let day = hmac(format!("AWS4{}", self.secret).as_bytes(), &self.time[..8]);
        let service = hmac(&hmac(&day, "us-east-1"), "s3");
        hex(&hmac(&hmac(&service, "aws4_request"), text))
    }

    /// `headers` are sorted.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        query: &str,
        headers: &[(String, String)],
        payload: &str,
    ) -> String {
        let lines: String =
            headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(";");
        let canonical = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{payload}");
        let (time, scope) = (self.time, self.scope());
        let digest = sha256(canonical.as_bytes());
        self.sign(&format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{digest}"))
    }

    pub(crate) fn chunk(&self, before: &str, bytes: &[u8]) -> String {
        let (time, scope) = (self.time, self.scope());
        let (none, digest) = (sha256(b""), sha256(bytes));
        self.sign(&format!("AWS4-HMAC-SHA256-PAYLOAD\n{time}\n{scope}\n{before}\n{none}\n{digest}"))
    }
}
