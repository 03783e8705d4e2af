//! What all operations share: buckets, accounts, and threads on which the engine's calls block.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use accounts::{Account, AccountsError};
use buckets::{Buckets, BucketsError, OpenBucket, now_unix_ms};
use objects::buffers::Buffers;
use s3s::auth::Credentials;
use s3s::dto::Timestamp;
use s3s::{S3Result, s3_error};
use store::Durability;
use tenants::{PartyId, Pool, Slot, Tenants};
use tokio::sync::{Semaphore, oneshot};

use crate::errors::refusal;
use crate::passage::Passage;

/// All changes are durable when they are answered; many share a flush.
pub(crate) const DURABLE: Durability = Durability::Durable;

/// Tells the operator something.
pub(crate) type Observer = Arc<dyn Fn(&str) + Send + Sync>;

/// The buckets and accounts of the store, for every request; a clone is the same.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) buckets: Buckets,
    /// Who may use them, and how much.
    pub(crate) tenants: Arc<Tenants>,
    /// Threads that may block.
    pub(crate) pool: Pool,
    pub(crate) observer: Observer,
    /// What bodies of answers are read into.
    pub(crate) pieces: Buffers,
    /// Footers of tables that are read at once: each is in memory as a whole.
    pub(crate) footers: Arc<Semaphore>,
}

impl Door {
    /// Runs on a thread that may block, when it is the turn of the tenant whose request this is.
    /// Where the client goes meanwhile, it runs to its end.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Self) -> S3Result<T> + Send + 'static,
    ) -> S3Result<T> {
        self.blocking_for(Passage::party(), run).await
    }

    /// The same, for a task that is not the one of a request.
    pub(crate) async fn blocking_for<T: Send + 'static>(
        &self,
        party: PartyId,
        run: impl FnOnce(&Self) -> S3Result<T> + Send + 'static,
    ) -> S3Result<T> {
        let slot = self.slot(party).await?;
        let door = self.clone();
        let run = move || {
            let done = run(&door);
            drop(slot);
            done
        };
        match tokio::task::spawn_blocking(run).await {
            Ok(done) => done,
            Err(ended) => Err(s3_error!(InternalError, "the request did not end: {ended}")),
        }
    }

    /// A thread that may block, when it is the party's turn.
    pub(crate) async fn slot(&self, party: PartyId) -> S3Result<Slot> {
        if let Some(slot) = self.pool.enter(party) {
            return Ok(slot);
        }
        let (sender, turn) = oneshot::channel();
        // Where the client has gone the slot is dropped, and the next in turn has it.
        self.pool.enter_then(party, 1, move |slot| drop(sender.send(slot)));
        turn.await.map_err(|_| s3_error!(InternalError, "the pool of threads has ended"))
    }

    /// A request whose signature is right: where its account is a tenant's, charges it, and waits
    /// until it is paid.
    ///
    /// # Errors
    /// `SlowDown`.
    pub(crate) async fn admit(&self, account: &Account, operation: &str) -> S3Result<()> {
        self.tenants.refresh().map_err(|error| self.unreadable_accounts(&error))?;
        match (Passage::current(), self.tenants.of(account)) {
            (Some(passage), Some(tenant)) => passage.admit(tenant, operation).await,
            _ => Ok(()),
        }
    }

    /// Opens a bucket.
    pub(crate) fn open(&self, bucket: &str) -> S3Result<OpenBucket> {
        self.buckets.open(bucket).map_err(|error| self.refuse(error, bucket))
    }

    /// Opens a bucket to change it; nobody changes a snapshot.
    pub(crate) fn open_for_changes(&self, bucket: &str) -> S3Result<OpenBucket> {
        let open = self.open(bucket)?;
        match open.is_read_only() {
            false => Ok(open),
            true => Err(s3_error!(AccessDenied, "{bucket} is read-only")),
        }
    }

    /// What the client hears of an error; of damage the operator hears as well.
    pub(crate) fn refuse(&self, error: impl Into<BucketsError>, place: &str) -> s3s::S3Error {
        refusal(&error.into(), place, &*self.observer)
    }

    /// The account that signed a request.
    pub(crate) fn account(&self, credentials: Option<&Credentials>) -> S3Result<Arc<Account>> {
        let Some(credentials) = credentials else {
            return Err(s3_error!(AccessDenied, "requests are signed with the key of an account"));
        };
        match self.tenants.accounts().by_access_key(&credentials.access_key) {
            Ok(Some(account)) => Ok(account),
            Ok(None) => Err(s3_error!(InvalidAccessKeyId)),
            Err(error) => Err(self.unreadable_accounts(&error)),
        }
    }

    /// What the client hears; the operator hears why.
    pub(crate) fn unreadable_accounts(&self, error: &AccountsError) -> s3s::S3Error {
        (self.observer)(&format!("S3 cannot read the accounts: {error}"));
        s3_error!(InternalError, "the accounts cannot be read")
    }
}

/// Where an object is, for operators.
pub(crate) fn place(bucket: &str, key: &str) -> String {
    format!("{bucket}/{key}")
}

/// A time as s3s has it.
pub(crate) fn timestamp(unix_ms: u64) -> Timestamp {
    (UNIX_EPOCH + Duration::from_millis(unix_ms)).into()
}

/// Milliseconds since 1970 of a time as s3s has it; what is before 1970 counts as then.
pub(crate) fn unix_ms(timestamp: &Timestamp) -> u64 {
    let mut text = Vec::new();
    let written = timestamp.format(s3s::dto::TimestampFormat::EpochSeconds, &mut text);
    let seconds = written.ok().and_then(|()| String::from_utf8(text).ok());
    let seconds = seconds.and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (seconds.max(0.0) * 1000.0).round() as u64
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    now_unix_ms()
}
