//! A client of S3 over TCP, a connection for each request.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::signing::{Signer, canonical_query, encoded, now, sha256};

/// How the body is signed.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Payload {
    Signed,
    Unsigned,
    /// In chunks of 64 KiB, each signed.
    Chunks,
    /// In chunks, none signed, with a trailer.
    Trailer(&'static str, &'static str),
    /// In chunks, none signed, with a trailer that is announced and does not come.
    NoTrailer(&'static str),
    /// Signed with this SHA-256.
    Claimed(&'static str),
}

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) access_key: String,
    pub(crate) secret: String,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// What stands between the first pair of tags of this name.
    pub(crate) fn element(&self, name: &str) -> Option<String> {
        self.elements(name).into_iter().next()
    }

    pub(crate) fn elements(&self, name: &str) -> Vec<String> {
        let text = self.text();
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let parts = text.split(&open).skip(1);
        parts.filter_map(|part| Some(part.split_once(&close)?.0.to_owned())).collect()
    }

    /// Status and code of an error.
    pub(crate) fn refused(&self) -> (u16, String) {
        (self.status, self.element("Code").unwrap_or_default())
    }
}

pub(crate) struct Request<'a> {
    client: &'a Client,
    method: &'a str,
    path: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    payload: Payload,
    announced: Option<u64>,
}

impl Client {
    /// A request; `target` may have a query, which is not encoded yet.
    pub(crate) fn request<'a>(&'a self, method: &'a str, target: &str) -> Request<'a> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Request {
            client: self,
            method,
            path: encoded(path, true),
            query: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            headers: Vec::new(),
            body: Vec::new(),
            payload: Payload::Signed,
            announced: None,
        }
    }

    pub(crate) fn get(&self, target: &str) -> Answer {
        self.request("GET", target).send()
    }

    pub(crate) fn put(&self, target: &str, body: &[u8]) -> Answer {
        self.request("PUT", target).body(body).send()
    }

    pub(crate) fn delete(&self, target: &str) -> Answer {
        self.request("DELETE", target).send()
    }

    pub(crate) fn post(&self, target: &str, body: &str) -> Answer {
        self.request("POST", target).body(body.as_bytes()).send()
    }
}

impl Request<'_> {
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn body(mut self, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self
    }

    pub(crate) fn payload(mut self, payload: Payload) -> Self {
        self.payload = payload;
        self
    }

    /// A path that is encoded already.
    pub(crate) fn raw_path(mut self, path: &str) -> Self {
        self.path = path.to_owned();
        self
    }

    /// Announces another length than the body has.
    pub(crate) fn announced(mut self, bytes: u64) -> Self {
        self.announced = Some(bytes);
        self
    }

    /// Sends the first bytes of the request; the connection stays open.
    pub(crate) fn begin(self, cut: impl FnOnce(usize) -> usize) -> TcpStream {
        let (bytes, address) = self.bytes();
        let mut stream = TcpStream::connect(address).unwrap();
        let _ = stream.write_all(&bytes[..cut(bytes.len())]);
        stream
    }

    pub(crate) fn send(self) -> Answer {
        let (method, bytes) = (self.method.to_owned(), self.bytes());
        let mut stream = TcpStream::connect(bytes.1).unwrap();
        // Who refuses a request early may not read all of it.
        let _ = stream.write_all(&bytes.0);
        read_answer(&mut stream, &method)
    }

    /// Sends it as a client does that keeps its connection and waits for "100 Continue" before the
    /// body; returns the answer, when the server has ended the connection, or after `enough` bytes.
    pub(crate) fn send_after_continue(self, enough: usize) -> Vec<u8> {
        let (bytes, address) = self.bytes();
        let text = String::from_utf8(bytes).unwrap();
        let text = text.replace("connection: close", "expect: 100-continue");
        let (head, body) = text.split_at(text.find("\r\n\r\n").unwrap() + 4);
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let (mut answer, mut some) = (Vec::new(), [0; 4096]);
        let mut body = Some(body);
        while answer.len() < enough {
            let count = stream.read(&mut some).unwrap();
            if count == 0 {
                break;
            }
            answer.extend_from_slice(&some[..count]);
            if answer.starts_with(b"HTTP/1.1 100 ") {
                // Nothing else is sent a second time.
                if let Some(body) = body.take() {
                    stream.write_all(body.as_bytes()).unwrap();
                }
            }
        }
        answer
    }

    /// The URL that anybody may use for a minute.
    pub(crate) fn presigned(mut self) -> String {
        let time = now();
        let signer = Signer { secret: &self.client.secret, time: &time };
        let credential = format!("{}/{}", self.client.access_key, signer.scope());
        for (name, value) in [
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", &credential),
            ("X-Amz-Date", &time),
            ("X-Amz-Expires", "60"),
            ("X-Amz-SignedHeaders", "host"),
        ] {
            self.query.push((name.to_owned(), value.to_owned()));
        }
        let query = canonical_query(&self.query);
        let host = vec![("host".to_owned(), self.client.address.to_string())];
        let signature = signer.request(self.method, &self.path, &query, &host, "UNSIGNED-PAYLOAD");
        format!("{}?{query}&X-Amz-Signature={signature}", self.path)
    }

    /// The request as it is sent, and whereto.
    pub(crate) fn bytes(mut self) -> (Vec<u8>, SocketAddr) {
        let (time, address) = (now(), self.client.address);
        let length = self.announced.unwrap_or(self.body.len() as u64).to_string();
        let hash = match self.payload {
            Payload::Signed => sha256(&self.body),
            Payload::Unsigned => "UNSIGNED-PAYLOAD".to_owned(),
            Payload::Chunks => "STREAMING-AWS4-HMAC-SHA256-PAYLOAD".to_owned(),
            Payload::Trailer(name, _) => {
                self.headers.push(("x-amz-trailer".to_owned(), name.to_owned()));
                "STREAMING-UNSIGNED-PAYLOAD-TRAILER".to_owned()
            }
            Payload::NoTrailer(name) => {
                self.headers.push(("x-amz-trailer".to_owned(), name.to_owned()));
                "STREAMING-UNSIGNED-PAYLOAD-TRAILER".to_owned()
            }
            Payload::Claimed(hash) => hash.to_owned(),
        };
        let is_framed =
            matches!(self.payload, Payload::Chunks | Payload::Trailer(..) | Payload::NoTrailer(_));
        if is_framed {
            self.headers.push(("x-amz-decoded-content-length".to_owned(), length));
            self.headers.push(("content-encoding".to_owned(), "aws-chunked".to_owned()));
        }
        self.headers.push(("host".to_owned(), address.to_string()));
        self.headers.push(("x-amz-date".to_owned(), time.clone()));
        self.headers.push(("x-amz-content-sha256".to_owned(), hash.clone()));
        self.headers.sort();
        let signer = Signer { secret: &self.client.secret, time: &time };
        let query = canonical_query(&self.query);
        let signature = signer.request(self.method, &self.path, &query, &self.headers, &hash);
        let body = self.framed(&signer, &signature);
        let content_length = match self.announced.filter(|_| !is_framed) {
            Some(announced) => announced,
            None => body.len() as u64,
        };
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        let mut head = format!("{} {}?{query} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!(
            "authorization: AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n",
            self.client.access_key,
            signer.scope(),
            names.join(";"),
            signature,
            content_length
        ));
        ([head.as_bytes(), &body].concat(), address)
    }

    fn framed(&self, signer: &Signer<'_>, seed: &str) -> Vec<u8> {
        let mut framed = Vec::new();
        match self.payload {
            Payload::Signed | Payload::Unsigned | Payload::Claimed(_) => framed.extend(&self.body),
            Payload::Chunks => {
                let mut before = seed.to_owned();
                for chunk in self.body.chunks(64 << 10).chain([&[][..]]) {
                    before = signer.chunk(&before, chunk);
                    let head = format!("{:x};chunk-signature={before}\r\n", chunk.len());
                    framed.extend([head.as_bytes(), chunk, b"\r\n"].concat());
                }
            }
            Payload::Trailer(name, value) => {
                for chunk in self.body.chunks(64 << 10) {
                    let head = format!("{:x}\r\n", chunk.len());
                    framed.extend([head.as_bytes(), chunk, b"\r\n"].concat());
                }
                framed.extend(format!("0\r\n{name}:{value}\r\n\r\n").as_bytes());
            }
            Payload::NoTrailer(_) => {
                for chunk in self.body.chunks(64 << 10) {
                    let head = format!("{:x}\r\n", chunk.len());
                    framed.extend([head.as_bytes(), chunk, b"\r\n"].concat());
                }
                framed.extend(b"0\r\n\r\n");
            }
        }
        framed
    }
}

/// Sends a request that nothing is added to.
pub(crate) fn raw(
    address: SocketAddr,
    method: &str,
    target: &str,
    headers: &str,
    body: &[u8],
) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!(
        "{method} {target} HTTP/1.1\r\nhost: {address}\r\n{headers}content-length: {length}\r\n\
         connection: close\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    read_answer(&mut stream, method)
}

pub(crate) fn read_answer(stream: &mut TcpStream, method: &str) -> Answer {
    let mut bytes = Vec::new();
    // A connection that is reset behind an answer has delivered it.
    let _ = stream.read_to_end(&mut bytes);
    let at = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer");
    let head = String::from_utf8(bytes[..at].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.map(|line| line.split_once(": ").unwrap());
    let headers: Vec<_> =
        headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    let body = bytes[at + 4..].to_vec();
    let answer = Answer { status, headers, body };
    assert!(answer.header("transfer-encoding").is_none(), "bodies have lengths");
    if let Some(length) = answer.header("content-length").filter(|_| method != "HEAD") {
        assert_eq!(answer.body.len().to_string(), length);
    }
    answer
}
