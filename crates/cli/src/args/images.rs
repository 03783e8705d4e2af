//! Disk images: copied in, copied out, and judged before there is a store.

use std::path::PathBuf;

use clap::Args;
use images::ImageFormat;

use super::options::{Confirm, EngineArgs, Force, Format, memory_as_serve};
use super::values::{
    Codecs, ImportFormat, VolumeCodec, parse_base, parse_chunk_size, parse_codecs,
    parse_estimate_memory, parse_import_format, parse_threads, parse_volume_codec,
};

/// Copy a disk image into a volume
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis import /srv/store vm1 vm1.img
      creates volume vm1 with the size of the image if it is not there; holes
      stay holes
  zstd -dc vm1.img.zst | tamis import /srv/store vm1 -
  tamis import /srv/store vm1 /dev/sdb --overwrite
      replaces all that vm1 held, after a question; in a script, and with an
      image from standard input, it needs --yes
  tamis import /srv/store vm2 vm2.img --domain tenantA
      as `tamis volume create --domain`, if vm2 is not there
  tamis import /srv/store vm3 overlay.qcow2 --format qcow2
      with the backing files that it names
  tamis import /srv/store vm4 appliance.vmdk
      through qemu-nbd, if that is installed (Debian: qemu-utils); so VHDX, VDI,
      VHD, Parallels, QED
  ssh host tamis export /srv/store vm1@tue - --from @mon |
      tamis import /srv/copy vm1 -
      brings a volume that stands at vm1@mon to vm1@tue

Without --format the first bytes of a file say what it is. The guest of a raw
image can write them: files that an image names, as backing files and parts of a
VMDK, are read only if its format is given, and --format raw takes any file as
it is. A disk compressed by gzip, bzip2, xz or zstd is expanded. A stream whose
start is damaged is refused, and so is anything else than a stream with --format
stream. An image goes into a volume called NAME~importing, which takes the place
of NAME, or of what it held, when it is complete: until then NAME is as it was,
whatever fails, and the store needs room for both. What an import that was
killed has left is removed by the next one. A stream that `tamis export` made
with --stream or --from is known by its start, and leaves the volume with the
snapshot that it names; if it is cut or damaged the volume is as before. After
an import that was killed, run the same command again to resume, unless the
volume has been rolled back, imported into or had a snapshot taken since. What
--overwrite discards for VOLUME@B is kept as VOLUME@B~replaced until then; after
a kill `tamis snapshot rollback` goes back to it. A stream carries no domain:
--domain names it again. Into a store that is served it goes through the server,
which puts its clients first; --memory and --threads then mean nothing, and a
volume that a client has open is refused. With --force an image disconnects the
clients when it is complete, and a stream before it begins. --compression is for
a volume that the import makes: it is the volume's own from then on.")]
#[command(mut_arg("memory", memory_as_serve))]
pub(crate) struct ImportArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Name of the volume; created if it is not there
    pub(crate) volume: String,
    /// The image: a file, a block device, a stream, or - for standard input, which is raw,
    /// compressed or a stream
    pub(crate) file: PathBuf,
    /// What the file is: raw, qcow2, stream, or vmdk, vhdx, vdi, vpc, qed, parallels, bochs or dmg,
    /// which are read through qemu-nbd [default: what its first bytes say]
    #[arg(long = "format", value_name = "FORMAT", value_parser = parse_import_format)]
    pub(crate) import_format: Option<ImportFormat>,
    /// Replace what the volume holds; with a stream that begins at a snapshot, what it has changed
    /// since that snapshot
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) confirm: Confirm,
    #[command(flatten)]
    pub(crate) force: Force,
    /// Domain of the volume, as with `tamis volume create`; one that is there must be in it
    #[arg(long, value_name = "NAME")]
    pub(crate) domain: Option<String>,
    /// What the volume's data is compressed with, as with `tamis volume create`; one that is there
    /// must have it
    #[arg(long, value_name = "CODEC", value_parser = parse_volume_codec)]
    pub(crate) compression: Option<VolumeCodec>,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Copy a volume out as a raw disk image, or a snapshot as a stream for another store
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis export /srv/store vm1 vm1.img
      writes a sparse file, which appears under its name only when it is
      complete
  tamis export /srv/store vm1 - | zstd > vm1.img.zst
  tamis export /srv/store vm1 /dev/sdb --overwrite
  tamis export /srv/store vm1@monday vm1.stream --stream
  tamis export /srv/store vm1@tuesday vm1.stream --from @monday
      streams for `tamis import` into another store: all of a snapshot, and what
      changed since an earlier one; checksummed, with the ranges that are gone
      as well

A store that is served is read through its server, which puts its clients first;
--memory and --threads then mean nothing. A snapshot is exported as it is, a
volume that is being written as its parts are when they are read: take a
snapshot first.")]
#[command(mut_arg("memory", memory_as_serve))]
pub(crate) struct ExportArgs {
    /// Directory of the store
    pub(crate) store: PathBuf,
    /// Name of the volume
    pub(crate) volume: String,
    /// The image: a file to be made, a block device, or - for standard output; a stream goes to no
    /// device
    pub(crate) file: PathBuf,
    /// Write a stream of what changed since this snapshot of the same volume
    #[arg(long, value_name = "@NAME", value_parser = parse_base)]
    pub(crate) from: Option<String>,
    /// Write a stream of all that the snapshot holds
    #[arg(long, conflicts_with = "from")]
    pub(crate) stream: bool,
    /// Replace the file if it is there, or what the block device holds
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    #[command(flatten)]
    pub(crate) format: Format,
}

/// Say what a store would save for files, directories, devices and images, before there is one
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis estimate vm1.qcow2 vm2.qcow2 /dev/sdb
      the disks in raw and qcow2 images, and on a device; at every chunk size,
      with lz4
  tamis estimate /srv/backups --chunk-size 4K,64K --compression all --json
      every file in a directory as it is (a qcow2 image in it as well), links
      not followed

Nothing is written. Each disk and each file is cut into chunks from its own
start. Holes count as zeros. Figures are exact while the fingerprints of all
chunks fit into --memory, about 24 bytes for each unique chunk; beyond that they
come from a sample, and their standard errors are told. What cannot be read is
listed at the end, and the exit code is then 1; if a file is read only in part,
no percentage is given, since it would be of that part. A PATH that is not there
ends it before anything is read, with 3.")]
pub(crate) struct EstimateArgs {
    /// Files, directories, block devices, raw and qcow2 images
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Chunk sizes to try, separated by commas [default: all, 4K to 64K]
    #[arg(long, value_name = "SIZE", value_parser = parse_chunk_size, value_delimiter = ',')]
    pub(crate) chunk_size: Vec<u32>,
    /// What to compress with: lz4, zstd, zstd:LEVEL or none, separated by commas, or all, which is
    /// lz4, zstd and none
    #[arg(
        long,
        value_name = "CODEC",
        value_parser = parse_codecs,
        value_delimiter = ',',
        default_value = "lz4"
    )]
    pub(crate) compression: Vec<Codecs>,
    /// Memory for fingerprints and buffers, at least 16M; auto is 256M, or half of what the machine
    /// or its control group has where that is less
    #[arg(long, value_name = "SIZE", value_parser = parse_estimate_memory, default_value = "auto")]
    pub(crate) memory: u64,
    /// Threads that fingerprint and compress [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<u16>,
    #[command(flatten)]
    pub(crate) format: Format,
}

impl ImportArgs {
    /// The format of the image, if one was asked for.
    pub(crate) fn image_format(&self) -> Option<ImageFormat> {
        match self.import_format {
            Some(ImportFormat::Image(format)) => Some(format),
            Some(ImportFormat::Stream) | None => None,
        }
    }
}
