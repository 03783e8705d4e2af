//! `tamis account stats`: what tenants may use, what they hold, and what they did.

use std::collections::HashMap;

use accounts::AccountsError;
use admin::{ListTenants, TenantOperations, TenantShown};
use engine::Weighing;
use serde::Serialize;

use crate::args::AccountStatsArgs;
use crate::control::Store;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output;
use crate::size::{human_bytes, human_count};
use crate::table::{Align, Table};

/// What `--json` prints.
#[derive(Serialize)]
struct AllStats {
    tenants: Vec<Stats>,
}

#[derive(Serialize)]
struct Stats {
    name: String,
    domain: String,
    quota_bytes: Option<u64>,
    requests_per_second: Option<u64>,
    bytes_per_second: Option<u64>,
    burst_ms: u32,
    buckets: u64,
    objects: u64,
    logical_bytes: u64,
    mapped_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    physical: Option<Physical>,
    operations: Vec<Operations>,
    in_bytes: u64,
    out_bytes: u64,
    throttled_ns: u64,
    throttled_requests: u64,
}

/// What is stored for a tenant.
#[derive(Serialize)]
struct Physical {
    stored_bytes: u64,
    reduction_ratio: f64,
}

#[derive(Serialize)]
struct Operations {
    operation: String,
    operations: u64,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
}

pub(super) fn run(args: &AccountStatsArgs) -> Result<(), CliError> {
    let interrupt = Interrupt::listen()?;
    let tenants = Store::with(&args.store, |store| {
        let all = store.ask(ListTenants { name: args.name.clone() })?;
        if let (Some(name), []) = (&args.name, &all[..]) {
            return Err(AccountsError::NoTenant { name: name.clone() }.into());
        }
        let weighed = |tenant: TenantShown| -> Result<Stats, CliError> {
            let physical = match args.physical {
                true => Some(weigh_domain(store, &tenant, &interrupt)?),
                false => None,
            };
            Ok(stats_of(tenant, physical))
        };
        all.into_iter().map(weighed).collect::<Result<Vec<Stats>, CliError>>()
    })?;
    if args.format.json {
        return output::print_json(&AllStats { tenants });
    }
    if tenants.is_empty() {
        output::say("no account is a tenant: make one with `tamis account create --tenant`");
        return Ok(());
    }
    output::print_table(&table_of(&tenants))
}

fn stats_of(tenant: TenantShown, physical: Option<Physical>) -> Stats {
    let of_kind = |of: TenantOperations| {
        let TenantOperations { operation, operations, p50_ns, p99_ns } = of;
        Operations { operation, operations, p50_ns, p99_ns }
    };
    Stats {
        name: tenant.name,
        domain: tenant.domain,
        quota_bytes: tenant.quota_bytes,
        requests_per_second: tenant.requests_per_s,
        bytes_per_second: tenant.bytes_per_s,
        burst_ms: tenant.burst_ms,
        buckets: tenant.buckets,
        objects: tenant.objects,
        logical_bytes: tenant.logical_bytes,
        mapped_bytes: tenant.mapped_bytes,
        physical,
        operations: tenant.operations.into_iter().map(of_kind).collect(),
        in_bytes: tenant.bytes_in,
        out_bytes: tenant.bytes_out,
        throttled_ns: tenant.throttled_ns,
        throttled_requests: tenant.throttled_requests,
    }
}

/// What is stored for the buckets of a tenant, each chunk once. What snapshots alone hold is not
/// counted.
fn weigh_domain(
    store: &Store,
    tenant: &TenantShown,
    interrupt: &Interrupt,
) -> Result<Physical, CliError> {
    let mut stored_bytes = 0;
    let mut several: HashMap<u64, u32> = HashMap::new();
    for volume in store.volumes()? {
        if volume.domain.as_ref() != Some(&tenant.domain) || volume.taken_unix_s.is_some() {
            continue;
        }
        let mut weighing = Weighing::of(&volume.name);
        while let Some(request) = weighing.request() {
            interrupt.check()?;
            // Where it is gone through once more, that is for chunks with several references.
            let is_first_pass = request.pbns.start == 0;
            let step = store.ask(request)?;
            stored_bytes += if is_first_pass { step.single.frame_bytes } else { 0 };
            several.extend(step.several.iter().map(|chunk| (chunk.pbn, chunk.frame_bytes)));
            if !weighing.add(step) {
                return Err(CliError::VolumeReplaced { name: volume.name });
            }
        }
    }
    stored_bytes += several.values().map(|bytes| u64::from(*bytes)).sum::<u64>();
    let reduction_ratio = match stored_bytes {
        0 => 1.0,
        stored => tenant.logical_bytes as f64 / stored as f64,
    };
    Ok(Physical { stored_bytes, reduction_ratio })
}

fn table_of(tenants: &[Stats]) -> Table {
    let mut table = Table::with_heading([
        ("TENANT", Align::Left),
        ("BUCKETS", Align::Right),
        ("LOGICAL", Align::Right),
        ("QUOTA", Align::Right),
        ("STORED", Align::Right),
        ("READS", Align::Right),
        ("P99", Align::Right),
        ("WRITES", Align::Right),
        ("P99", Align::Right),
        ("IN", Align::Right),
        ("OUT", Align::Right),
        ("THROTTLED", Align::Right),
    ]);
    for tenant in tenants {
        let of = |kind: &str| tenant.operations.iter().find(|of| of.operation == kind);
        let count = |kind: &str| of(kind).map_or(0, |of| of.operations);
        let p99 = |kind: &str| of(kind).and_then(|of| of.p99_ns).map(human_time);
        table.row([
            tenant.name.clone(),
            human_count(tenant.buckets),
            human_bytes(tenant.logical_bytes),
            tenant.quota_bytes.map(human_bytes).unwrap_or_default(),
            tenant.physical.as_ref().map(|of| human_bytes(of.stored_bytes)).unwrap_or_default(),
            human_count(count("read")),
            p99("read").unwrap_or_default(),
            human_count(count("write")),
            p99("write").unwrap_or_default(),
            human_bytes(tenant.in_bytes),
            human_bytes(tenant.out_bytes),
            human_time(tenant.throttled_ns),
        ]);
    }
    table
}

fn human_time(ns: u64) -> String {
    match ns {
        0 => "0".to_owned(),
        1..1_000_000 => format!("{} us", ns.div_ceil(1000)),
        1_000_000..10_000_000_000 => format!("{} ms", ns / 1_000_000),
        10_000_000_000.. => format!("{} s", ns / 1_000_000_000),
    }
}
