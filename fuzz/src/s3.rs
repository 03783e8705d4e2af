//! A store in memory with a bucket, the real S3 server before it, and signed requests.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use accounts::{Accounts, NewAccount};
use buckets::{Buckets, BucketsOptions, NewBucket};
use s3::{S3Options, S3Server, Timeouts};
use store::{CreateOptions, Options, Store};
use tenants::Tenants;

#[path = "../../crates/s3/tests/door/signing.rs"]
#[expect(dead_code, reason = "the tests of the door use more of it")]
mod signing;

use signing::{Signer, canonical_query, encoded, now};

/// The bucket that is there.
pub const BUCKET: &str = "fuzz";
const CAPACITY_BYTES: u64 = 256 << 20;
/// A server that neither answers nor ends for so long hangs.
const PATIENCE: Duration = Duration::from_secs(20);
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// The store and its server, for as long as the process lives.
pub struct S3Served {
    buckets: Buckets,
    address: SocketAddr,
    access_key: String,
    secret: String,
    _store: Store,
    _server: S3Server,
}

/// The one of this process.
pub fn s3_served() -> &'static S3Served {
    static SERVED: OnceLock<S3Served> = OnceLock::new();
    SERVED.get_or_init(S3Served::begin)
}

impl S3Served {
    fn begin() -> Self {
        let directory: PathBuf = format!("/tmp/tamis-fuzz-s3-{}", std::process::id()).into();
        std::fs::create_dir_all(&directory).expect("a folder can be made");
        let disk = store::create_in_memory(&CreateOptions::new(CAPACITY_BYTES), 3);
        let disk = disk.expect("such stores are made every day");
        let store = Store::open_in_memory(&disk, Options::default()).expect("it opens");
        let options = BucketsOptions { memory_bytes: 32 << 20, ..BucketsOptions::default() };
        let buckets = Buckets::start(store.client().clone(), options).expect("there are threads");
        let accounts = Arc::new(Accounts::in_directory(&directory));
        let write = vec!["*".parse().expect("it is a pattern")];
        let new = NewAccount { name: "fuzz".to_owned(), write, ..NewAccount::default() };
        let account = accounts.create(new).expect("it is the first one");
        let options = S3Options {
            buckets: buckets.clone(),
            tenants: Arc::new(Tenants::over(accounts).expect("the file was just written")),
            observer: Box::new(|note| {
                panic!("nothing that a client does is a matter for the operator: {note}")
            }),
            timeouts: Timeouts::default(),
        };
        let mut server = S3Server::start(options).expect("there are threads");
        let address = server.listen(([127, 0, 0, 1], 0).into()).expect("there is a port");
        let (access_key, secret) = (account.access_key, account.secret.reveal().to_owned());
        let served = Self { buckets, address, access_key, secret, _store: store, _server: server };
        served.empty();
        served
    }

    /// Makes the bucket anew.
    pub fn empty(&self) {
        let all = self.buckets.list().expect("they can be listed");
        for bucket in all {
            self.buckets.delete(&bucket.name, true).expect("nobody uses it");
        }
        self.buckets.create(BUCKET, &NewBucket::default()).expect("it is not there");
    }

    /// Sends a request, signed; returns all that comes back.
    pub fn ask(
        &self,
        method: &str,
        path: &str,
        query: &[(String, String)],
        headers: &[(String, Vec<u8>)],
        body: &[u8],
    ) -> Vec<u8> {
        let (time, host) = (now(), self.address.to_string());
        let signed = [
            ("host", host.as_str()),
            ("x-amz-content-sha256", UNSIGNED),
            ("x-amz-date", time.as_str()),
        ];
        let signed = signed.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let (path, query) = (encoded(path, true), canonical_query(query));
        let signer = Signer { secret: &self.secret, time: &time };
        let signature = signer.request(method, &path, &query, &signed, UNSIGNED);
        let (key, scope, length) = (&self.access_key, signer.scope(), body.len());
        let mut sent = format!(
            "{method} {path}?{query} HTTP/1.1\r\nhost: {host}\r\nx-amz-date: {time}\r\n\
             x-amz-content-sha256: {UNSIGNED}\r\ncontent-length: {length}\r\nconnection: close\r\n\
             authorization: AWS4-HMAC-SHA256 Credential={key}/{scope}, \
             SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature={signature}\r\n"
        )
        .into_bytes();
        for (name, value) in headers {
            sent.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        sent.extend(b"\r\n");
        sent.extend(body);
        let mut stream = TcpStream::connect(self.address).expect("the server goes on");
        stream.set_read_timeout(Some(PATIENCE)).expect("it is a time");
        let _ = stream.write_all(&sent);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("the server answers or ends");
        answer
    }
}
