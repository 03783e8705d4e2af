//! A served store in memory, with accounts.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use accounts::{Account, Accounts, NewAccount, TenantLimits};
use buckets::{Buckets, BucketsOptions, DomainQuotas};
use format::units::Zone;
use s3::{S3Options, S3Server, Timeouts};
use store::{CreateOptions, Options, Store};
use tenants::Tenants;

use crate::client::Client;

/// So far reaches what a test has written.
const DATA_BYTES: usize = 64 << 20;

type Damage = Box<dyn Fn(&[u8])>;

pub(crate) struct Rig {
    pub(crate) store: Store,
    /// Changes a byte of the disk where these bytes lie as they were put.
    pub(crate) damage: Damage,
    buckets: Buckets,
    /// An account that may do everything.
    pub(crate) client: Client,
    notes: Arc<Mutex<Vec<String>>>,
    accounts: Arc<Accounts>,
    pub(crate) tenants: Arc<Tenants>,
    server: Option<S3Server>,
    directory: PathBuf,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with_timeouts(Timeouts::default())
    }

    pub(crate) fn with_timeouts(timeouts: Timeouts) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("s3-door-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let disk = store::create_in_memory(&CreateOptions::new(512 << 20), 1).unwrap();
        let store = Store::open_in_memory(&disk, Options::default()).unwrap();
        let accounts = Arc::new(Accounts::in_directory(&directory));
        let tenants = Arc::new(Tenants::over(Arc::clone(&accounts)).unwrap());
        let options = BucketsOptions {
            memory_bytes: 32 << 20,
            domain_quotas: Some(quotas_of(&tenants)),
            ..BucketsOptions::default()
        };
        let buckets = Buckets::start(store.client().clone(), options).unwrap();
        let notes = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&notes);
        let mut server = S3Server::start(S3Options {
            buckets: buckets.clone(),
            tenants: Arc::clone(&tenants),
            observer: Box::new(move |note| taken.lock().unwrap().push(note.to_owned())),
            timeouts,
        })
        .unwrap();
        let address = server.listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let all = account(&accounts, "all", &["*"], &["*"]);
        let client = client_of(address, &all);
        let server = Some(server);
        let damage = Box::new(move |bytes: &[u8]| {
            let data = disk.peek(Zone::Data(0), 0, DATA_BYTES);
            let at = data.windows(64).position(|found| found == &bytes[..64]);
            disk.corrupt(Zone::Data(0), at.expect("it is stored raw") as u64 + 10, |byte| {
                *byte ^= 1
            });
        });
        Self { store, damage, buckets, client, notes, accounts, tenants, server, directory }
    }

    /// With a bucket `photos`.
    pub(crate) fn with_bucket() -> Self {
        let rig = Self::new();
        assert_eq!(rig.client.put("/photos", b"").status, 200);
        rig
    }

    /// What the operator has heard up to now, and is not held against the test.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.lock().unwrap())
    }

    /// A tenant that may do everything with buckets whose names begin with its own.
    pub(crate) fn tenant(&self, name: &str, limits: TenantLimits) -> Client {
        let write = vec![format!("{name}-*").parse().unwrap()];
        let (name, tenant) = (name.to_owned(), Some(limits));
        let new = NewAccount { name, write, tenant, ..NewAccount::default() };
        client_of(self.client.address, &self.accounts.create(new).unwrap())
    }

    /// Changes what a tenant may use.
    pub(crate) fn set_tenant(&self, name: &str, change: impl FnOnce(&mut TenantLimits)) {
        self.accounts.set_tenant(name, change).unwrap();
    }

    /// Another account.
    pub(crate) fn account(&self, name: &str, read: &[&str], write: &[&str]) -> Client {
        client_of(self.client.address, &account(&self.accounts, name, read, write))
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.server.take().unwrap().stop();
        let closed = self.buckets.close();
        if !std::thread::panicking() {
            closed.unwrap();
            // Nothing that a client does is a matter for the operator.
            assert_eq!(*self.notes.lock().unwrap(), [""; 0]);
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn quotas_of(tenants: &Arc<Tenants>) -> DomainQuotas {
    let tenants = Arc::clone(tenants);
    DomainQuotas::new(move |domain| tenants.of_domain(domain)?.quota_bytes())
}

fn account(accounts: &Accounts, name: &str, read: &[&str], write: &[&str]) -> Account {
    let patterns = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    let (name, read, write) = (name.to_owned(), patterns(read), patterns(write));
    accounts.create(NewAccount { name, read, write, ..NewAccount::default() }).unwrap()
}

fn client_of(address: std::net::SocketAddr, account: &Account) -> Client {
    let (access_key, secret) = (account.access_key.clone(), account.secret.reveal().to_owned());
    Client { address, access_key, secret }
}

/// Bytes that no two seeds share.
pub(crate) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as u8
    };
    (0..length).map(next).collect()
}
