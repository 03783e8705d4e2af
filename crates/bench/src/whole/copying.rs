//! A file copied into a system and out of it, by the program that people copy with: `nbdcopy` to
//! and from servers, `dd` to and from files.
//!
//! Every byte is sent: neither side looks for zeros. Files that are not compressed by a file system
//! are written past the page cache, as by fio.

use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::fio::Target;
use crate::program::{bound, patiently};

/// `$0` is the file, `$1` where the copy is, `$2` how many bytes there are.
const COMPARE_SERVED: &str = r#"nbdcopy "$1" - | cmp --bytes="$2" -- "$0" -"#;
/// What `cmp` ends with where it finds a difference.
const DIFFERENT: i32 = 1;
/// What it says as well when a server did not answer to the end, which is no wrong byte.
const ENDED: &str = "EOF on -";

/// Copies `image` in, to its start, and flushes.
pub(super) fn copy_in(image: &Path, target: &Target) -> Result<(), Failure> {
    let command = match target {
        Target::Nbd { uri } => {
            let mut command = bound("nbdcopy");
            command.args(["--flush", "--sparse=0"]).arg(image).arg(uri);
            command
        }
        Target::Direct { path } => dd(image, path, &["oflag=direct", "conv=notrunc,fsync"]),
        Target::Buffered { path } => dd(image, path, &["conv=fsync"]),
    };
    run(command)
}

/// Reads all that was copied in, to nowhere.
pub(super) fn copy_out(target: &Target) -> Result<(), Failure> {
    let nowhere = Path::new("/dev/null");
    let command = match target {
        Target::Nbd { uri } => {
            let mut command = bound("nbdcopy");
            command.args(["--no-extents", uri, "null:"]);
            command
        }
        Target::Direct { path } => dd(path, nowhere, &["iflag=direct"]),
        Target::Buffered { path } => dd(path, nowhere, &[]),
    };
    run(command)
}

/// Holds the copy to `image`, all of its bytes.
///
/// # Errors
/// [`Failure::Differs`] when one of them is another.
pub(super) fn compare(image: &Path, target: &Target, size_bytes: u64) -> Result<(), Failure> {
    let size = size_bytes.to_string();
    let compared = match target {
        Target::Nbd { uri } => {
            let mut command = bound("sh");
            command.env("LC_ALL", "C").args(["-c", COMPARE_SERVED]).arg(image).args([uri, &size]);
            patiently(&mut command)
        }
        Target::Direct { path } | Target::Buffered { path } => {
            let mut command = bound("cmp");
            patiently(command.arg(format!("--bytes={size}")).arg("--").arg(image).arg(path))
        }
    };
    match compared {
        Err(Failure::Command { status, said, .. })
            if status.code() == Some(DIFFERENT) && !said.contains(ENDED) =>
        {
            Err(Failure::Differs { said })
        }
        compared => compared.map(drop),
    }
}

fn dd(from: &Path, to: &Path, how: &[&str]) -> Command {
    let mut command = bound("dd");
    let file = |name: &str, path: &Path| format!("{name}={}", path.display());
    command.args(["bs=1M", "status=none"]).args([file("if", from), file("of", to)]).args(how);
    command
}

fn run(mut command: Command) -> Result<(), Failure> {
    patiently(&mut command).map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{compare, copy_in, copy_out};
    use crate::failure::Failure;
    use crate::fio::Target;

    #[test]
    fn a_copy_is_the_same_until_one_byte_is_not() {
        let folder = std::env::temp_dir().join(format!("tamis-copying-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (image, copy) = (folder.join("image"), folder.join("copy"));
        let mut bytes: Vec<u8> = (0..3_u32 << 20).map(|at| (at % 253) as u8).collect();
        fs::write(&image, &bytes).unwrap();
        let target = Target::Buffered { path: copy.clone() };
        let outcome = || compare(&image, &target, bytes.len() as u64);
        copy_in(&image, &target).unwrap();
        copy_out(&target).unwrap();
        let same = outcome();
        let short = fs::write(&copy, &bytes[1 << 20..]).map(|()| outcome());
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(&copy, &bytes).unwrap();
        let other = compare(&image, &target, bytes.len() as u64);
        let nobody = format!("nbd+unix:///?socket={}", folder.join("none").display());
        let silent = compare(&image, &Target::Nbd { uri: nobody }, bytes.len() as u64);
        fs::remove_dir_all(&folder).unwrap();
        assert!(matches!(silent, Err(Failure::Command { .. })), "{silent:?}");
        same.unwrap();
        assert!(matches!(short.unwrap(), Err(Failure::Differs { .. })));
        assert!(matches!(other, Err(Failure::Differs { .. })), "{other:?}");
    }
}
