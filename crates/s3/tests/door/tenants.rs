//! Tenants: rates, quotas and figures, and that nobody pays or waits for another.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use accounts::TenantLimits;
use tenants::Operation;

use crate::client::Answer;
use crate::rig::{Rig, noise};

fn bytes_per_s(bytes: u64) -> TenantLimits {
    let bytes_per_s = NonZeroU64::new(bytes);
    TenantLimits { bytes_per_s, burst_ms: Some(0), ..TenantLimits::default() }
}

#[test]
fn who_is_far_over_its_rate_is_told_so_and_others_go_on() {
    let rig = Rig::new();
    let aggressor = rig.tenant("aggressor", TenantLimits::default());
    let victim = rig.tenant("victim", bytes_per_s(1 << 30));
    assert_eq!(aggressor.put("/aggressor-1", b"").status, 200);
    assert_eq!(victim.put("/victim-1", b"").status, 200);
    assert_eq!(aggressor.put("/aggressor-1/key", &noise(100_000, 1)).status, 200);
    rig.set_tenant("aggressor", |limits| *limits = bytes_per_s(1000));
    // What goes at once is paid afterwards: a hundred seconds.
    assert_eq!(aggressor.get("/aggressor-1/key").body, noise(100_000, 1));
    for _ in 0..3 {
        let refused = aggressor.get("/aggressor-1/key").refused();
        assert_eq!(refused, (503, "SlowDown".to_owned()));
        assert_eq!(victim.put("/victim-1/key", &noise(100_000, 2)).status, 200);
        assert_eq!(victim.get("/victim-1/key").body, noise(100_000, 2));
    }
    // Nobody pays for what others send in its name.
    let mut forged = victim.clone();
    forged.secret = aggressor.secret.clone();
    rig.set_tenant("victim", |limits| *limits = bytes_per_s(1000));
    assert_eq!(forged.put("/victim-1/key", &noise(100_000, 3)).status, 403);
    assert_eq!(victim.request("HEAD", "/victim-1/key").send().status, 200);

    rig.set_tenant("aggressor", |limits| *limits = TenantLimits::default());
    assert_eq!(aggressor.get("/aggressor-1/key").body, noise(100_000, 1));
    let figures = rig.tenants.of_domain("aggressor").unwrap().figures();
    let count = |operation: Operation| {
        figures.operations.iter().find(|found| found.operation == operation).unwrap().operations
    };
    // What was refused was not carried out.
    assert_eq!((count(Operation::Write), count(Operation::Read)), (2, 2));
    assert_eq!(figures.bytes_in, 100_000);
    assert!(figures.bytes_out >= 200_000 && figures.throttled_ns > 0, "{figures:?}");
}

#[test]
fn those_who_wait_follow_a_change_of_their_rates() {
    const CLIENTS: u64 = 40;
    let rig = Rig::new();
    let slow = rig.tenant("slow", TenantLimits::default());
    assert_eq!(slow.put("/slow-1", b"").status, 200);
    // One a second: half a minute of them waits, and the others are told to come later.
    rig.set_tenant("slow", |limits| {
        limits.requests_per_s = NonZeroU64::new(1);
        limits.burst_ms = Some(0);
    });
    let refused = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| match slow.get("/slow-1?location").status {
                200 => (),
                503 => {
                    refused.fetch_add(1, Ordering::SeqCst);
                }
                other => panic!("{other}"),
            });
        }
        while refused.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        rig.set_tenant("slow", |limits| limits.requests_per_s = None);
        rig.tenants.refresh().unwrap();
    });
    let figures = rig.tenants.of_domain("slow").unwrap().figures();
    let answered: u64 = figures.operations.iter().map(|of| of.operations).sum();
    assert_eq!(answered - 1 + refused.into_inner(), CLIENTS);
}

#[test]
fn long_bodies_go_at_the_rate_both_ways() {
    let rig = Rig::new();
    let tenant = rig.tenant("acme", bytes_per_s(16 << 20));
    assert_eq!(tenant.put("/acme-1", b"").status, 200);
    let long = noise(3 << 20, 1);
    assert_eq!(tenant.put("/acme-1/long", &long).status, 200);
    assert_eq!(tenant.get("/acme-1/long").body, long);
    let figures = rig.tenants.of_domain("acme").unwrap().figures();
    assert_eq!(figures.bytes_in, 3 << 20);
    assert!(figures.throttled_requests > 6, "{figures:?}");
}

#[test]
fn a_quota_is_of_all_buckets_of_a_tenant_and_copies_and_uploads_count() {
    let rig = Rig::new();
    let limits = TenantLimits { quota_bytes: Some(100_000), ..TenantLimits::default() };
    let tenant = rig.tenant("acme", limits);
    for bucket in ["/acme-1", "/acme-2"] {
        assert_eq!(tenant.put(bucket, b"").status, 200);
    }
    assert_eq!(tenant.put("/acme-1/key", &noise(60_000, 1)).status, 200);
    let over = (403, "QuotaExceeded".to_owned());
    let refused = tenant.put("/acme-2/key", &noise(40_001, 2));
    assert_eq!(refused.refused(), over);
    assert!(refused.text().contains("buckets of the tenant hold 60000 bytes"));
    let copy = tenant.request("PUT", "/acme-2/key").header("x-amz-copy-source", "acme-1/key");
    assert_eq!(copy.send().refused(), over);
    assert_eq!(tenant.put("/acme-2/key", &noise(40_000, 2)).status, 200);
    let upload = tenant.post("/acme-1/up?uploads", "").element("UploadId").unwrap();
    let part = format!("/acme-1/up?partNumber=1&uploadId={upload}");
    assert_eq!(tenant.put(&part, &noise(10, 3)).refused(), over);
    // Others have the store.
    assert_eq!(rig.client.put("/photos", b"").status, 200);
    assert_eq!(rig.client.put("/photos/key", &noise(200_000, 4)).status, 200);
    rig.set_tenant("acme", |limits| limits.quota_bytes = Some(100_010));
    assert_eq!(tenant.put(&part, &noise(10, 3)).status, 200);
    assert_eq!(tenant.delete("/acme-1/key").status, 204);
    assert_eq!(tenant.put("/acme-2/key", &noise(100_000, 5)).status, 200);
}

#[test]
fn nothing_tells_of_what_another_tenant_has() {
    let rig = Rig::new();
    let (one, two) =
        (rig.tenant("one", TenantLimits::default()), rig.tenant("two", TenantLimits::default()));
    assert_eq!(one.put("/one-1", b"").status, 200);
    assert_eq!(two.put("/two-1", b"").status, 200);
    let (same, other) = (noise(50_000, 1), noise(50_000, 2));
    assert_eq!(one.put("/one-1/key", &same).status, 200);
    let duplicates = || rig.store.client().stats().unwrap().counters.chunks_duplicate;
    let before = duplicates();
    let (shared, fresh) = (two.put("/two-1/a", &same), two.put("/two-1/b", &other));
    assert_eq!(duplicates(), before);
    let names =
        |answer: &Answer| answer.headers.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!((shared.status, names(&shared)), (fresh.status, names(&fresh)));
    // The same in its own domain is a duplicate.
    assert_eq!(two.put("/two-1/c", &same).status, 200);
    assert!(duplicates() > before);
    // A bucket of another is as one that nobody has, in name, content and list.
    for target in ["/one-1", "/one-1/key", "/one-9", "/one-9/key"] {
        assert_eq!(two.get(target).refused(), (403, "AccessDenied".to_owned()), "{target}");
        assert_eq!(two.put(target, b"").refused(), (403, "AccessDenied".to_owned()), "{target}");
    }
    assert_eq!(two.get("/").elements("Name"), ["two-1"]);
}
