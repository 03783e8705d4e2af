//! What is said when bytes are to be moved and the store is being served: how to do it over NBD.

use admin::{Control, GetStatus};
use std::path::Path;

use admin::Status;
use engine::{RequestError, VolumeInfo};
use format::catalog::VolumeName;
use images::{DiskImage, ForeignFormat, ImageError, ImageFormat};
use nbd::Listen;

use crate::args::{ExportArgs, ImportArgs};
use crate::control;
use crate::error::{CliError, Replaced};
use crate::image::padded;
use crate::shell::{shell_path, shell_word};

/// What `qemu-img` is told of an image.
#[derive(Debug)]
struct Described {
    /// Its name for the format.
    format: &'static str,
    /// The size of the disk in it, where we can read it.
    size_bytes: Option<u64>,
}

/// An error with the lines to use instead, when the store that is imported into is being served.
pub(super) fn refuse_import(args: &ImportArgs) -> Result<(), CliError> {
    let Some(mut server) = control::connect(&args.store)? else { return Ok(()) };
    let there = server.volumes()?.into_iter().find(|volume| volume.name == args.volume);
    let image = match args.file.as_os_str() == "-" {
        true => None,
        false => Some(describe(args)?),
    };
    let image_bytes = image.as_ref().and_then(|image| image.size_bytes);
    let (create, replaced) = match &there {
        Some(volume) => (None, replaced_of(volume, image_bytes)?),
        None => (Some(create_line(args, image_bytes)?), Replaced::Nothing),
    };
    let status = server.ask(GetStatus {})?;
    let uri = shell_word(&uri_of(&status, &args.volume));
    let copy = match image {
        Some(Described { format, .. }) => {
            format!("qemu-img convert -n -f {format} -O raw {} {uri}", shell_path(&args.file))
        }
        None => format!("nbdcopy -- - {uri}"),
    };
    let (store, volume) = (args.store.clone(), args.volume.clone());
    let lines: Vec<String> = create.into_iter().chain([copy]).collect();
    Err(CliError::ServedImport { store, pid: status.pid, volume, replaced, lines })
}

/// An error with the line to use instead, when the store that is exported from is being served.
pub(super) fn refuse_export(args: &ExportArgs) -> Result<(), CliError> {
    let Some(mut server) = control::connect(&args.store)? else { return Ok(()) };
    let status = server.ask(GetStatus {})?;
    let uri = shell_word(&uri_of(&status, &args.volume));
    let line = match args.file.as_os_str() == "-" {
        true => format!("nbdcopy -- {uri} -"),
        false => format!("qemu-img convert -f raw -O raw {uri} {}", shell_path(&args.file)),
    };
    Err(CliError::ServedExport { store: args.store.clone(), pid: status.pid, line })
}

/// An error when the store at `path` is being served, which streams need for themselves.
pub(super) fn refuse_stream(path: &Path) -> Result<(), CliError> {
    let Some(mut server) = control::connect(path)? else { return Ok(()) };
    let pid = server.ask(GetStatus {})?.pid;
    Err(CliError::ServedNoStream { store: path.to_owned(), pid })
}

fn uri_of(status: &Status, volume: &str) -> String {
    let address = status.addresses.first().and_then(|text| Listen::parse(text).ok());
    address.map(|address| address.uri(volume)).unwrap_or_default()
}

/// What a copy of an image of so many bytes replaces of `volume`, if that is one.
fn replaced_of(volume: &VolumeInfo, image_bytes: Option<u64>) -> Result<Replaced, CliError> {
    if volume.taken_unix_s.is_some() {
        return Err(RequestError::NotAVolume { name: volume.name.clone() }.into());
    }
    let reaches_its_end = image_bytes.is_some_and(|bytes| padded(bytes) >= volume.size_bytes);
    Ok(if reaches_its_end { Replaced::All } else { Replaced::Beginning(image_bytes) })
}

/// The line that makes the volume which an import would have made.
fn create_line(args: &ImportArgs, size_bytes: Option<u64>) -> Result<String, CliError> {
    if VolumeName::parse(&args.volume).is_err() {
        return Err(RequestError::BadName { name: args.volume.clone() }.into());
    }
    let (store, volume) = (shell_path(&args.store), shell_word(&args.volume));
    let size = size_bytes.map_or_else(|| "SIZE".to_owned(), |bytes| padded(bytes).to_string());
    let domain = args.domain.as_deref().map(|domain| format!(" --domain {}", shell_word(domain)));
    let domain = domain.unwrap_or_default();
    Ok(format!("tamis volume create {store} {volume} --size {size}{domain}"))
}

/// What the image is. The format is always named, since `qemu-img` takes some for raw;
/// raw it is only where an import would have taken it so.
fn describe(args: &ImportArgs) -> Result<Described, CliError> {
    let of = |format, size_bytes| Described { format, size_bytes };
    match DiskImage::open_as(&args.file, args.image_format()) {
        Ok(image) => {
            let format = match image.format() {
                ImageFormat::Raw => "raw",
                ImageFormat::Qcow2 => "qcow2",
                ImageFormat::Foreign(of) => of.qemu_name.unwrap_or("raw"),
            };
            Ok(of(format, Some(image.size_bytes())))
        }
        Err(ImageError::OtherFormat {
            format: ForeignFormat { qemu_name: Some(name), .. },
            ..
        }) => Ok(of(name, None)),
        Err(ImageError::Unsupported { .. }) => Ok(of("qcow2", None)),
        Err(other) => Err(other.into()),
    }
}
