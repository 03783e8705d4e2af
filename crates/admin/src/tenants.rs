//! What tenants may use, and did, as it is asked and answered.

use ::tenants::{OperationFigures, Tenant};
use buckets::{Buckets, DomainUsage};
use serde::{Deserialize, Serialize};

use crate::error::ControlError;
use crate::json::plain;
use crate::local::Local;

/// Lists tenants with their figures, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListTenants {
    /// Only this one.
    pub name: Option<String>,
}

/// The operations of one kind since the store is served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantOperations {
    /// Their kind: read, write, delete, list or other.
    pub operation: String,
    /// How many were answered.
    pub operations: u64,
    /// Half of them took no longer.
    pub p50_ns: Option<u64>,
    /// The same for 99 of a hundred.
    pub p99_ns: Option<u64>,
}

/// A tenant: what it may use, what it holds, and what it did since the store is served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantShown {
    /// The name of its account.
    pub name: String,
    /// The dedup domain of its buckets.
    pub domain: String,
    /// Most bytes of the objects in all its buckets together.
    pub quota_bytes: Option<u64>,
    /// Requests a second.
    pub requests_per_s: Option<u64>,
    /// Bytes a second.
    pub bytes_per_s: Option<u64>,
    /// What it may do at once after a pause.
    pub burst_ms: u32,
    /// Its buckets.
    pub buckets: u64,
    /// Objects in them.
    pub objects: u64,
    /// Bytes of the objects, as they were put.
    pub logical_bytes: u64,
    /// Bytes that its buckets map: index, log and values, before deduplication.
    pub mapped_bytes: u64,
    /// One of each kind.
    pub operations: Vec<TenantOperations>,
    /// Bytes that it sent.
    pub bytes_in: u64,
    /// Bytes that it was sent.
    pub bytes_out: u64,
    /// How long its requests waited for its rates, all together.
    pub throttled_ns: u64,
    /// How many of them did.
    pub throttled_requests: u64,
}

pub(crate) fn list_tenants(
    store: &Local,
    wish: ListTenants,
) -> Result<Vec<TenantShown>, ControlError> {
    let Some(tenants) = store.tenants() else { return Ok(Vec::new()) };
    // Where the file of accounts cannot be read, the tenants are those that are known.
    let _ = tenants.refresh();
    let buckets = store.buckets()?;
    let wished = |tenant: &Tenant| wish.name.as_ref().is_none_or(|name| tenant.name() == name);
    let all = tenants.all().into_iter().filter(|tenant| wished(tenant));
    all.map(|tenant| shown(&buckets, &tenant)).collect()
}

fn shown(buckets: &Buckets, tenant: &Tenant) -> Result<TenantShown, ControlError> {
    let DomainUsage { buckets, objects, logical_bytes, mapped_bytes } =
        buckets.domain_usage(tenant.domain())?;
    let (rates, figures) = (tenant.rates(), tenant.figures());
    let of_kind = |of: OperationFigures| TenantOperations {
        operation: of.operation.name().to_owned(),
        operations: of.operations,
        p50_ns: of.p50_ns,
        p99_ns: of.p99_ns,
    };
    Ok(TenantShown {
        name: tenant.name().to_owned(),
        domain: tenant.domain().to_owned(),
        quota_bytes: tenant.quota_bytes(),
        requests_per_s: rates.requests_per_s.map(Into::into),
        bytes_per_s: rates.bytes_per_s.map(Into::into),
        burst_ms: rates.burst_ms,
        buckets,
        objects,
        logical_bytes,
        mapped_bytes,
        operations: figures.operations.into_iter().map(of_kind).collect(),
        bytes_in: figures.bytes_in,
        bytes_out: figures.bytes_out,
        throttled_ns: figures.throttled_ns,
        throttled_requests: figures.throttled_requests,
    })
}

plain!(ListTenants, TenantShown);
