//! Memory is what `--memory` says: the server's peak stays within it plus 64 MiB and 2 for each
//! connection, under load with more data than any cache holds: from few and from many.

use std::fs;

use crate::acceptance::Setting;
use crate::acceptance::server::{Server, Store};
use crate::failure::Failure;
use crate::program::Program;

const MEMORY: &str = "256M";
const MEMORY_BYTES: u64 = 256 << 20;
/// What the program itself, its stacks and its allocator may take beside the bounded pools.
const BESIDE_BYTES: u64 = 64 << 20;
/// What each connection after the first four may take beside that.
const CONNECTION_BYTES: u64 = 2 << 20;
/// The load: mixed, random, half compressible, some of it repeated, verified as it is read back.
const LOAD: [&str; 12] = [
    "--name=load",
    "--ioengine=nbd",
    "--rw=randrw",
    "--rwmixread=30",
    "--bsrange=4k-256k",
    "--iodepth=32",
    "--buffer_compress_percentage=50",
    "--dedupe_percentage=30",
    "--verify=crc32c",
    "--end_fsync=1",
    "--minimal",
    "--thread",
];
/// Few connections with much each, and many.
const CONNECTIONS: [(u64, [&str; 3]); 2] = [
    (4, ["--numjobs=4", "--offset_increment=1G", "--size=512M"]),
    (64, ["--numjobs=64", "--offset_increment=128M", "--size=16M"]),
];

pub(super) fn run(setting: &Setting) -> Result<(), Failure> {
    let store = Store::init(setting, "4G")?;
    let server = store.serve(&["--memory", MEMORY])?;
    store.create_volume("disk", "10G")?;
    for (connections, size) in CONNECTIONS {
        for _ in 0..if setting.short { 1 } else { 3 } {
            let load = Program::new("fio").folder(&setting.work).args(LOAD).args(size);
            load.arg(format!("--uri={}", store.uri("disk"))).run()?;
        }
        let beside = BESIDE_BYTES + (connections - 4) * CONNECTION_BYTES;
        let (peak, most) = (peak_bytes(&server)?, MEMORY_BYTES + beside);
        println!(
            "{connections} connections: peak {} MiB of {} + {}",
            peak >> 20,
            MEMORY_BYTES >> 20,
            beside >> 20
        );
        if peak > most {
            return Err(Failure::unmet(
                format!("at most {most} bytes of memory"),
                peak.to_string(),
            ));
        }
    }
    server.stop()?;
    store.check()
}

/// The largest resident size the server ever had.
pub(super) fn peak_bytes(server: &Server) -> Result<u64, Failure> {
    let path = format!("/proc/{}/status", server.process());
    let text = fs::read_to_string(&path).map_err(Failure::file(path.as_ref()))?;
    read_peak(&text).ok_or_else(|| Failure::unmet("a line VmHWM", text))
}

fn read_peak(status: &str) -> Option<u64> {
    let facts = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = facts.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::read_peak;

    #[test]
    fn the_peak_is_read_from_what_the_kernel_says() {
        assert_eq!(read_peak("VmPeak:\t9 kB\nVmHWM:\t    2048 kB\n"), Some(2 << 20));
        assert_eq!(read_peak("VmPeak:\t9 kB\n"), None);
    }
}
