//! What QEMU's programs are asked about an image, and how they fail.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::ImageError;
use crate::foreign::ForeignFormat;

/// An image, as the command line of `qemu-img` names it.
#[derive(Copy, Clone, Debug)]
pub(super) struct Asked<'a> {
    pub(super) format: &'static ForeignFormat,
    /// QEMU's own name of the format.
    pub(super) qemu_name: &'static str,
    /// Of the image, in full: QEMU takes what stands before a colon for a protocol.
    pub(super) path: &'a Path,
}

impl Asked<'_> {
    /// What `qemu-img` says of the image when it is asked to `verb`.
    pub(super) fn read<T>(
        self,
        verb: &str,
        parse: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<T, ImageError> {
        let mut command = Command::new("qemu-img");
        command.args([verb, "--output=json", "-f", self.qemu_name]).arg(self.path);
        let output =
            command.stdin(Stdio::null()).output().map_err(|source| self.unstarted(source))?;
        if !output.status.success() {
            return Err(self.damaged(last_line(&output.stderr)));
        }
        parse(&output.stdout).ok_or_else(|| self.damaged(format!("nobody understands its {verb}")))
    }

    /// The error of a program that does not start.
    pub(super) fn unstarted(self, source: std::io::Error) -> ImageError {
        let path = self.path.to_owned();
        match source.kind() {
            ErrorKind::NotFound => ImageError::OtherFormat { path, format: self.format },
            _ => ImageError::Qemu { path, what: source.to_string() },
        }
    }

    pub(super) fn damaged(self, what: String) -> ImageError {
        ImageError::DamagedForeign { path: self.path.to_owned(), format: self.format, what }
    }
}

/// What a program of QEMU complained of last, without its own name.
pub(super) fn last_line(stderr: &[u8]) -> String {
    let said = String::from_utf8_lossy(stderr).into_owned();
    let line = said.trim().lines().last().unwrap_or("it does not say why").to_owned();
    let names = ["qemu-img: ", "qemu-nbd: "];
    let line = names.iter().find_map(|name| line.strip_prefix(name)).unwrap_or(&line);
    line.chars().filter(|letter| !letter.is_control()).collect()
}
