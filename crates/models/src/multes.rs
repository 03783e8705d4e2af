//! Multes++ (FPL 2020): fingerprints at the rate of the line, and round trips, in closed form;
//! tenants before one pipeline (`tenants.rs`); a Parquet file and its variants (`parquet_pair.rs`).
//!
//! A core takes 66 cycles for 64 bytes; a value goes to one core, with the block of padding that
//! SHA-256 adds. The line brings 8 bytes a cycle, headers among them.

mod pair_rows;
mod parquet_pair;
mod rabin;
mod tenants;

use crate::row::Tolerance::{AtLeast, AtMost, Percent};
use crate::row::{Paper, Row};

use crate::units::Cycles;
use pair_rows::pair_rows;
pub use parquet_pair::{Cut, Overhead, VALUE_BYTES_MAX, overhead, values};
pub use tenants::{Share, Tenant, share};

const CLOCK_MHZ: f64 = 156.25;
const BLOCK_BYTES: u64 = 64;
const CYCLES_PER_BLOCK: u64 = 66;
const LINE_BYTES_PER_CYCLE: f64 = 8.0;
const CORES: u32 = 9;
/// SHA-256 appends a bit and a length of 8 bytes.
const PADDING_BYTES: u64 = 9;
/// Ethernet with preamble and gap, IP and TCP: what comes beside a value that fits one packet.
const HEADER_BYTES: f64 = 78.0;

/// Bytes a cycle that this number of cores hashes while values are long.
#[must_use]
pub fn hashed_bytes_per_cycle(cores: u32) -> f64 {
    f64::from(cores) * BLOCK_BYTES as f64 / CYCLES_PER_BLOCK as f64
}

/// Cycles from a value's first byte at a core to its fingerprint.
#[must_use]
pub fn hash_cycles(value_bytes: u64) -> Cycles {
    Cycles((value_bytes + PADDING_BYTES).div_ceil(BLOCK_BYTES) * CYCLES_PER_BLOCK)
}

/// How many times over the cores hash values of this length as the line brings them.
#[must_use]
pub fn hashing_margin(value_bytes: u64) -> f64 {
    let hashed = f64::from(CORES) * value_bytes as f64 / hash_cycles(value_bytes).0 as f64;
    let brought = LINE_BYTES_PER_CYCLE * value_bytes as f64 / (value_bytes as f64 + HEADER_BYTES);
    hashed / brought
}

/// Round trips for several elements of an array that are asked for together: its directory, then
/// the elements.
#[must_use]
pub fn array_round_trips(requests: u32) -> f64 {
    f64::from(1 + requests) / f64::from(requests.max(1))
}

const fn at(id: &'static str, section: &'static str) -> (Paper, &'static str, &'static str) {
    (Paper::Multes, id, section)
}

/// All of its rows.
#[must_use]
pub fn rows() -> Vec<Row> {
    [hashing(), vec![isolation()], the_rest(), pair_rows()].concat()
}

fn hashing() -> Vec<Row> {
    vec![
        Row::statement(
            at("K1a", "Implementation"),
            "nine cores hash 8 bytes a cycle",
            hashed_bytes_per_cycle(CORES) >= LINE_BYTES_PER_CYCLE,
        ),
        Row::statement(
            at("K1b", "Implementation"),
            "eight cores do not",
            hashed_bytes_per_cycle(CORES - 1) < LINE_BYTES_PER_CYCLE,
        )
        .note("derived: 8.73 and 7.76 bytes a cycle"),
        Row::modelled(
            at("K2", "Latency"),
            "what hashing adds to a set of 512 bytes: \"in the range of 3\"",
            "us",
            (3.38, Percent(15.0)),
            hash_cycles(512).microseconds(CLOCK_MHZ),
        )
        .note("3.38 is eight blocks, derived; ours has the block of padding"),
        Row::modelled(
            at("K3a", "Throughput"),
            "hashing beside the line, values of 512 bytes",
            "x",
            (1.0, AtLeast),
            hashing_margin(512),
        ),
        Row::modelled(
            at("K3b", "Throughput"),
            "the same, 128 bytes",
            "x",
            (1.0, AtLeast),
            hashing_margin(128),
        )
        .note(
            "so hashing is not what limits values below 512 bytes, as the paper says; \
               how often its hash table and allocator take a set it does not say, and the knee \
               is not modelled",
        ),
        Row::unknown(at("K3c", "Fig 6"), "throughput by length of values"),
    ]
}

/// Seven tenants that offer ten times their rate, beside one that keeps to its own.
fn isolation() -> Row {
    let request_bytes = 512.0 + HEADER_BYTES;
    let rate = LINE_BYTES_PER_CYCLE / 8.0;
    let tenant = |offered| Tenant { rate, burst_bytes: 2.0 * request_bytes, offered };
    let mut tenants = vec![tenant(10.0 * rate); 7];
    tenants.push(tenant(0.9 * rate));
    let shares = share(&tenants, request_bytes, LINE_BYTES_PER_CYCLE, 1_000_000);
    let kept = shares[7].served / tenants[7].offered;
    Row::statement(
        at("K8", "Architecture"),
        "a tenant within its rate is served in full beside seven that offer tenfold",
        kept > 0.99 && shares[..7].iter().all(|share| share.served < 1.01 * rate),
    )
    .predicted_with(&[])
    .note(
        "a token bucket for each tenant, which is Multes' way; the text that we have names the \
         tenants and not the buckets",
    )
}

fn the_rest() -> Vec<Row> {
    vec![
        Row::exact(
            at("K4a", "Latency"),
            "round trips for one element of an array",
            "",
            (2.0, 0),
            array_round_trips(1),
        ),
        Row::modelled(
            at("K4b", "Latency"),
            "round trips an element, of sixteen",
            "",
            (2.0, AtMost),
            array_round_trips(16),
        )
        .note("\"quickly amortized\""),
        Row::unknown(at("K4c", "Fig 5"), "latency of arrays"),
        Row::physical(at("K5a", "Resources"), "logic with eight tenants", "%", 57.0),
        Row::physical(at("K5b", "Resources"), "power", "W", 12.0),
        Row::unknown(at("K7", "Figs 3, 6"), "one client from 128 bytes to 64 KiB"),
    ]
}

#[cfg(test)]
mod tests {
    use super::{array_round_trips, hash_cycles, hashing_margin};

    #[test]
    fn a_value_that_fills_its_blocks_needs_one_for_the_padding() {
        assert_eq!(hash_cycles(55).0, 66);
        assert_eq!(hash_cycles(56).0, 132);
        assert_eq!(hash_cycles(512).0, 9 * 66);
    }

    #[test]
    fn long_values_are_hashed_as_fast_as_the_line_brings_them() {
        assert!([128, 256, 512, 1024].into_iter().all(|bytes| hashing_margin(bytes) >= 1.0));
        assert!(array_round_trips(1) > array_round_trips(2));
    }
}
