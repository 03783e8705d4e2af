//! What the system lets this process have: file descriptors and memory.
//!
//! A process in a container sees the memory of the whole machine, and is killed beyond that of its
//! control group: every group from its own up to the root has a say.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Where the kernel shows control groups.
const GROUPS_DIRECTORY: &str = "/sys/fs/cgroup";

/// Raises the number of file descriptors that this process may have to the most that it may raise
/// it to; returns how many that is.
#[must_use]
pub fn raise_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    // If it is refused, the limit stays what it was.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// File descriptors that this process has open now.
#[must_use]
pub fn open_descriptors() -> u64 {
    // Beside them the directory that is being read.
    let listed = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    (listed as u64).saturating_sub(1)
}

/// Memory that a process can have, and who says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// How much, in bytes.
    pub bytes: u64,
    /// The file of the control group that bounds it; none where that is the machine.
    pub group: Option<PathBuf>,
}

impl MemoryLimit {
    /// What this process can have: the memory of the machine, or less in a control group. None
    /// where the kernel does not say.
    #[must_use]
    pub fn of_this_process() -> Option<Self> {
        let machine = machine_bytes(&fs::read_to_string("/proc/meminfo").ok()?)?;
        let of_machine = Self { bytes: machine, group: None };
        let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let group = group_limit(&membership, Path::new(GROUPS_DIRECTORY));
        Some(group.filter(|group| group.bytes < machine).unwrap_or(of_machine))
    }
}

/// `MemTotal` of `/proc/meminfo`.
fn machine_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The smallest limit of the groups that `/proc/self/cgroup` names, and of those above them.
fn group_limit(membership: &str, root: &Path) -> Option<MemoryLimit> {
    let limits = membership.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
        // Version 2 has one hierarchy, which names no controllers.
        let (place, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|controller| controller == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => return Vec::new(),
        };
        let group = place.join(path.trim_start_matches('/'));
        group
            .ancestors()
            .take_while(|above| above.starts_with(&place))
            .filter_map(|above| limit_in(&above.join(file)))
            .collect()
    });
    limits.min_by_key(|limit| limit.bytes)
}

/// The limit in a file of a group; none for `max`, and where there is no such file.
fn limit_in(file: &Path) -> Option<MemoryLimit> {
    let bytes = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    Some(MemoryLimit { bytes, group: Some(file.to_owned()) })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::{MemoryLimit, group_limit, machine_bytes, open_descriptors, raise_descriptors};

    #[test]
    fn the_machines_memory_is_read_in_bytes() {
        assert_eq!(machine_bytes("MemTotal:       24575 kB\nMemFree: 1 kB\n"), Some(24575 << 10));
        assert_eq!(machine_bytes("MemFree: 1 kB\n"), None);
        assert!(MemoryLimit::of_this_process().unwrap().bytes > 1 << 20);
    }

    /// A directory as the kernel's, with these files.
    fn groups(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("tamis-groups-{name}-{}", std::process::id()));
        for (file, content) in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    #[test]
    fn every_group_above_counts_in_version_2() {
        let files = [
            ("a/memory.max", "146800640\n"),
            ("a/b/memory.max", "max\n"),
            ("a/b/c/memory.max", "1073741824\n"),
            ("other/memory.max", "1\n"),
        ];
        let root = groups("two", &files);
        let limit = |membership: &str| group_limit(membership, &root);
        let expected = MemoryLimit { bytes: 140 << 20, group: Some(root.join("a/memory.max")) };
        assert_eq!(limit("0::/a/b/c\n"), Some(expected.clone()));
        assert_eq!(limit("0::/a/b\n"), Some(expected));
        assert_eq!(limit("0::/\n"), None);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn version_1_has_a_hierarchy_of_its_own() {
        let files = [
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/docker/x/memory.limit_in_bytes", "73400320\n"),
            ("cpu/docker/x/memory.limit_in_bytes", "1\n"),
        ];
        let root = groups("one", &files);
        let membership = "5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n0::/\n";
        assert_eq!(group_limit(membership, &root).map(|limit| limit.bytes), Some(70 << 20));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn descriptors_are_raised_to_what_they_may_be() {
        let raised = raise_descriptors();
        assert_eq!(raise_descriptors(), raised);
        assert!((3..raised).contains(&open_descriptors()));
    }
}
