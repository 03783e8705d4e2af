//! One request on its way: whose it is, what it is charged, and how long it took.
//!
//! ```text
//! http.rs: Passage ─ auth.rs: admit ── over its rate: waits, or SlowDown ── carried out
//!               └─ Toll: bytes of the body, and of the answer: charged as they go;
//!                        the next are not read, or sent, before these are paid
//! ```
//!
//! A request is charged when its signature is known to be right: nobody pays for what others send
//! in his name. Who waits holds its connection and no thread.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use s3s::{HttpResponse, S3Result, StdError, s3_error};
use tenants::{Operation, PartyId, Tenant};
use tokio::time::sleep;

/// Who would wait longer is told to come back later.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// How soon one that waits follows a change of its rates.
const LOOK_TIME: Duration = Duration::from_millis(500);

tokio::task_local! {
    static PASSAGE: Arc<Passage>;
}

/// A request on its way.
#[derive(Debug)]
pub(crate) struct Passage {
    began: Instant,
    /// How long it waited for its rates before it was carried out.
    waited_ns: AtomicU64,
    of: OnceLock<(Arc<Tenant>, Operation)>,
}

impl Passage {
    pub(crate) fn begin() -> Arc<Self> {
        Arc::new(Self { began: Instant::now(), waited_ns: AtomicU64::new(0), of: OnceLock::new() })
    }

    /// Runs what answers the request; [`Passage::current`] is this one in it.
    pub(crate) async fn scope<F: Future>(self: &Arc<Self>, answer: F) -> F::Output {
        PASSAGE.scope(Arc::clone(self), answer).await
    }

    /// The request that is being answered by this task.
    pub(crate) fn current() -> Option<Arc<Self>> {
        PASSAGE.try_with(Arc::clone).ok()
    }

    /// Whose the request of this task is, as pools call it.
    pub(crate) fn party() -> PartyId {
        let of = |passage: &Arc<Self>| Some(passage.of.get()?.0.party());
        PASSAGE.try_with(of).ok().flatten().unwrap_or(PartyId::NOBODY)
    }

    /// The tenant, once the request is known to be its.
    pub(crate) fn tenant(&self) -> Option<&Arc<Tenant>> {
        self.of.get().map(|(tenant, _)| tenant)
    }

    /// The request is this tenant's: charges it, and waits until it is paid.
    ///
    /// # Errors
    /// `SlowDown`, when that would take long; then it is not charged.
    pub(crate) async fn admit(&self, tenant: Arc<Tenant>, operation: &str) -> S3Result<()> {
        let charged = tenant.charge_within(1, 0, Instant::now(), WAIT_MAX);
        let Ok(waits) = charged else {
            return Err(s3_error!(SlowDown, "the account is over its rate"));
        };
        let _ = self.of.set((Arc::clone(&tenant), operation_of(operation)));
        if let Some(waits) = waits {
            let began = Instant::now();
            rest(tenant, waits).await;
            let ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.waited_ns.store(ns, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The answer, whose bytes are charged as they go; how long it took is counted.
    pub(crate) fn answered(self: &Arc<Self>, answer: HttpResponse) -> HttpResponse {
        let Some((tenant, operation)) = self.of.get() else { return answer };
        let waited = Duration::from_nanos(self.waited_ns.load(Ordering::Relaxed));
        tenant.record(*operation, 0, self.began.elapsed().saturating_sub(waited));
        let toll = Toll::new(Arc::clone(self), Way::Out);
        answer.map(|body| s3s::Body::http_body_unsync(Charged { body, toll }))
    }
}

fn operation_of(name: &str) -> Operation {
    let begins = |fronts: &[&str]| fronts.iter().any(|front| name.starts_with(front));
    match name {
        _ if begins(&["Get", "Head"]) => Operation::Read,
        _ if begins(&["List"]) => Operation::List,
        _ if begins(&["Delete", "Abort"]) => Operation::Delete,
        _ if begins(&["Put", "Copy", "Upload", "Complete", "Create"]) => Operation::Write,
        _ => Operation::Other,
    }
}

/// Waits as long as a charge said, or less when the rates are raised meanwhile.
pub(crate) async fn rest(tenant: Arc<Tenant>, waits: Duration) {
    let mut changes = tenant.changes();
    let mut end = Instant::now() + waits;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        sleep(left.min(LOOK_TIME)).await;
        if tenant.changes() != changes {
            changes = tenant.changes();
            let now = Instant::now();
            end = end.min(now + tenant.debt(now));
        }
    }
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    In,
    Out,
}

/// Charges the bytes of a body.
pub(crate) struct Toll {
    passage: Arc<Passage>,
    way: Way,
    /// Bytes that came before it was known whose they are.
    uncharged: u64,
    resting: Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>,
}

impl Toll {
    pub(crate) fn new(passage: Arc<Passage>, way: Way) -> Self {
        Self { passage, way, uncharged: 0, resting: None }
    }

    /// Ready when the bytes before are paid.
    pub(crate) fn poll_paid(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(resting) = &mut self.resting {
            std::task::ready!(resting.as_mut().poll(context));
            self.resting = None;
        }
        Poll::Ready(())
    }

    /// Charges bytes that have come, or are about to go.
    pub(crate) fn charge(&mut self, bytes: u64) {
        self.uncharged += bytes;
        let Some(tenant) = self.passage.tenant() else { return };
        let bytes = std::mem::take(&mut self.uncharged);
        match self.way {
            Way::In => tenant.add_bytes_in(bytes),
            Way::Out => tenant.add_bytes_out(bytes),
        }
        if let Some(waits) = tenant.charge(0, bytes, Instant::now()) {
            self.resting = Some(Box::pin(rest(Arc::clone(tenant), waits)));
        }
    }
}

/// The body of an answer to a tenant.
struct Charged<B> {
    body: B,
    toll: Toll,
}

impl<B: Body<Data = Bytes, Error = StdError> + Unpin> Body for Charged<B> {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        if !self.body.is_end_stream() {
            std::task::ready!(self.toll.poll_paid(context));
        }
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && let Some(bytes) = frame.data_ref()
        {
            self.toll.charge(bytes.len() as u64);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use tenants::Operation;

    use super::operation_of;

    #[test]
    fn operations_are_told_apart() {
        for (name, operation) in [
            ("HeadObject", Operation::Read),
            ("ListParts", Operation::List),
            ("AbortMultipartUpload", Operation::Delete),
            ("UploadPartCopy", Operation::Write),
            ("CompleteMultipartUpload", Operation::Write),
        ] {
            assert_eq!(operation_of(name), operation, "{name}");
        }
    }
}
