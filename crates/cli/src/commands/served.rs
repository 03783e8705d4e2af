//! What is said when bytes are to be moved and the store is being served: how to do it over NBD.

use std::path::Path;

use nbd::Listen;

use crate::error::CliError;
use crate::shell::{shell_path, shell_word};
use crate::store;

/// Which way the bytes go.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    In,
    Out,
}

/// An error with the line to use instead, when the store at `path` is being served.
pub(super) fn refuse(
    path: &Path,
    volume: &str,
    direction: Direction,
    file: &Path,
) -> Result<(), CliError> {
    let Some(mut server) = store::connect(path)? else { return Ok(()) };
    let status = server.status()?;
    let address = status.addresses.first().and_then(|text| Listen::parse(text).ok());
    let uri = address.map(|address| address.uri(volume)).unwrap_or_default();
    let line = copy_line(&uri, direction, file);
    Err(CliError::ServedMoveByNbd { store: path.to_owned(), pid: status.pid, line })
}

/// An error when the store at `path` is being served, which streams need for themselves.
pub(super) fn refuse_stream(path: &Path) -> Result<(), CliError> {
    let Some(mut server) = store::connect(path)? else { return Ok(()) };
    let pid = server.status()?.pid;
    Err(CliError::ServedNoStream { store: path.to_owned(), pid })
}

fn copy_line(uri: &str, direction: Direction, file: &Path) -> String {
    let uri = shell_word(uri);
    match (direction, file.as_os_str() == "-") {
        (Direction::In, false) => {
            format!("qemu-img convert -n -f raw -O raw {} {uri}", shell_path(file))
        }
        (Direction::In, true) => format!("nbdcopy -- - {uri}"),
        (Direction::Out, false) => {
            format!("qemu-img convert -f raw -O raw {uri} {}", shell_path(file))
        }
        (Direction::Out, true) => format!("nbdcopy -- {uri} -"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Direction, copy_line};

    #[test]
    fn lines_can_be_pasted() {
        let uri = "nbd+unix:///vm1?socket=/s/nbd.sock";
        let line = |direction, file: &str| copy_line(uri, direction, Path::new(file));
        assert_eq!(
            line(Direction::In, "my disk.img"),
            "qemu-img convert -n -f raw -O raw 'my disk.img' 'nbd+unix:///vm1?socket=/s/nbd.sock'"
        );
        assert_eq!(
            line(Direction::Out, "out.img"),
            "qemu-img convert -f raw -O raw 'nbd+unix:///vm1?socket=/s/nbd.sock' out.img"
        );
        assert_eq!(line(Direction::In, "-"), "nbdcopy -- - 'nbd+unix:///vm1?socket=/s/nbd.sock'");
        assert_eq!(line(Direction::Out, "-"), "nbdcopy -- 'nbd+unix:///vm1?socket=/s/nbd.sock' -");
    }
}
