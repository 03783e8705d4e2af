//! A disk as its guest sees it, from one file or from a chain of them.
//!
//! The chain is a list of layers, the image itself first. What a layer does not hold is looked
//! for in the next; what none holds is zeros. A chain may be of any length; one that comes back to
//! a file that is in it already is refused ([`ImageError::Loop`]).

use std::collections::HashSet;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::content::Content;
use crate::error::ImageError;
use crate::file::HostFile;
use crate::foreign::ForeignFormat;
use crate::layer::{Place, Span};
use crate::qcow2::{Backing, Qcow2Image};
use crate::qemu::QemuImage;
use crate::raw::{RawImage, content_of};

/// A run of data is not looked for any further.
const RUN_BYTES_MAX: u64 = 64 << 20;

/// An image that is open for reading.
#[derive(Debug)]
pub struct DiskImage {
    /// From the top to the bottom; never empty.
    layers: Vec<Layer>,
    size_bytes: u64,
}

/// What a file is, of what is read here.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ImageFormat {
    /// The disk itself.
    Raw,
    /// Tables that say where its clusters are.
    Qcow2,
    /// What QEMU's programs read.
    Foreign(&'static ForeignFormat),
}

#[derive(Debug)]
enum Layer {
    Raw(RawImage),
    Qcow2(Box<Qcow2Image>),
    Qemu(Box<QemuImage>),
}

impl DiskImage {
    /// Opens the image at `path`: a raw file, a block device, or a qcow2 image with all that is
    /// below it.
    ///
    /// # Errors
    /// [`ImageError`] when it, or an image below it, cannot be read or is not read here.
    pub fn open(path: &Path) -> Result<Self, ImageError> {
        Self::over(Layer::open(path, None)?, path)
    }

    /// Opens the image at `path` as one of this format, with all that is below it. Without one its
    /// first bytes tell, which a guest whose disk is a raw file may have written: nothing that they
    /// name is read then.
    ///
    /// # Errors
    /// [`ImageError`] as for [`Self::open`], and when a file below is named and was not asked for.
    pub fn open_as(path: &Path, format: Option<ImageFormat>) -> Result<Self, ImageError> {
        let top = Layer::open(path, format)?;
        if format.is_none() && top.names_another_file() {
            let (format, option) = ("a qcow2 image", "qcow2");
            return Err(ImageError::BackingUnasked { path: path.to_owned(), format, option });
        }
        Self::over(top, path)
    }

    fn over(mut top: Layer, path: &Path) -> Result<Self, ImageError> {
        top.open_data_file()?;
        let mut seen = HashSet::from([top.file().identity()]);
        let mut layers = vec![top];
        while let Some(next) = layers.last().and_then(Layer::backing) {
            let (below, format) = next?;
            let mut layer = Layer::open(&below, format)?;
            if !seen.insert(layer.file().identity()) {
                return Err(ImageError::Loop { path: path.to_owned(), again: below });
            }
            layer.open_data_file()?;
            layers.push(layer);
        }
        Ok(Self::new(layers))
    }

    /// Opens the file at `path` as it is, whatever its bytes look like.
    ///
    /// # Errors
    /// [`ImageError`] when it cannot be opened or is neither a file nor a block device.
    pub fn open_as_is(path: &Path) -> Result<Self, ImageError> {
        Ok(Self::new(vec![Layer::Raw(RawImage::new(HostFile::open(path)?))]))
    }

    fn new(layers: Vec<Layer>) -> Self {
        let size_bytes = layers.first().map_or(0, Layer::size_bytes);
        Self { layers, size_bytes }
    }

    /// What the ends of the file or block device at `path` say it is.
    ///
    /// # Errors
    /// [`ImageError`] when it cannot be opened, is neither, or cannot be read.
    pub fn content_of(path: &Path) -> Result<Content, ImageError> {
        content_of(&HostFile::open(path)?)
    }

    /// What the file itself is; what is below it may be of another format.
    #[must_use]
    pub fn format(&self) -> ImageFormat {
        match self.layers.first() {
            Some(Layer::Qcow2(_)) => ImageFormat::Qcow2,
            Some(Layer::Qemu(image)) => ImageFormat::Foreign(image.format()),
            Some(Layer::Raw(_)) | None => ImageFormat::Raw,
        }
    }

    /// The size of the disk, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// A run of data at or after `from_bytes`, the next there is; everything before it is zeros.
    /// `None` when only zeros follow. What follows the run may be data as well.
    ///
    /// # Errors
    /// [`ImageError`] when the system refuses or the image is damaged there.
    pub fn next_data(&self, from_bytes: u64) -> Result<Option<Range<u64>>, ImageError> {
        let mut at_bytes = from_bytes;
        while at_bytes < self.size_bytes {
            let (layer, span) = self.span(at_bytes)?;
            if layer.is_some() {
                return self.end_of_run(at_bytes, span.end_bytes).map(|end| Some(at_bytes..end));
            }
            at_bytes = span.end_bytes;
        }
        Ok(None)
    }

    /// Bytes of all its data, as long as `go_on` says so: what is read of it, holes left out.
    ///
    /// # Errors
    /// As of [`Self::next_data`].
    pub fn data_bytes(&self, mut go_on: impl FnMut() -> bool) -> Result<u64, ImageError> {
        let (mut at_bytes, mut data_bytes) = (0, 0);
        while let Some(run) = self.next_data(at_bytes)?.filter(|_| go_on()) {
            data_bytes += run.end - run.start;
            at_bytes = run.end;
        }
        Ok(data_bytes)
    }

    fn end_of_run(&self, start_bytes: u64, first_end_bytes: u64) -> Result<u64, ImageError> {
        let mut end_bytes = first_end_bytes;
        while end_bytes < self.size_bytes && end_bytes - start_bytes < RUN_BYTES_MAX {
            match self.span(end_bytes) {
                Ok((Some(_), span)) => end_bytes = span.end_bytes,
                // What is wrong there is told when the next run is looked for.
                Ok((None, _)) | Err(_) => break,
            }
        }
        Ok(end_bytes.min(self.size_bytes))
    }

    /// Fills `out` with the disk from `offset_bytes` on, with zeros beyond its end.
    ///
    /// # Errors
    /// [`ImageError`] when the system refuses or the image is damaged there; what `out` holds then
    /// means nothing.
    pub fn read_at(&self, offset_bytes: u64, out: &mut [u8]) -> Result<(), ImageError> {
        let (mut at_bytes, mut rest) = (offset_bytes, out);
        while !rest.is_empty() {
            let (layer, span) = self.span(at_bytes)?;
            let left = usize::try_from(span.end_bytes - at_bytes).unwrap_or(usize::MAX);
            let (part, behind) = rest.split_at_mut(left.min(rest.len()));
            match (layer, span.place) {
                (Some(layer), Place::Host(host_bytes)) => layer.read_at(host_bytes, part)?,
                (Some(Layer::Qcow2(image)), Place::Compressed(cluster)) => {
                    image.read_compressed(cluster, part)?;
                }
                _ => part.fill(0),
            }
            at_bytes += part.len() as u64;
            rest = behind;
        }
        Ok(())
    }

    /// That every file of it ends where it did when it was opened: who has read all of it asks, for
    /// what a file has gained since is not in what was read.
    ///
    /// # Errors
    /// [`ImageError::LengthChanged`] when one does not, and [`ImageError::Io`].
    pub fn check_length(&self) -> Result<(), ImageError> {
        self.layers.iter().flat_map(Layer::files).try_for_each(HostFile::check_length)
    }

    /// Lets the system read the next `length_bytes` before they are asked for, where the disk's
    /// place in the file is known without looking.
    pub fn read_ahead(&self, offset_bytes: u64, length_bytes: u64) {
        if let [Layer::Raw(raw)] = self.layers.as_slice() {
            raw.file().read_ahead(offset_bytes, length_bytes);
        }
    }

    /// The layer that holds what is at `at_bytes`, if any does, and how far.
    fn span(&self, at_bytes: u64) -> Result<(Option<&Layer>, Span), ImageError> {
        let mut end_bytes = if at_bytes < self.size_bytes { self.size_bytes } else { u64::MAX };
        for layer in &self.layers {
            let span = layer.span(at_bytes)?;
            end_bytes = end_bytes.min(span.end_bytes);
            let span = Span { end_bytes, ..span };
            match span.place {
                Place::Below => {}
                Place::Zeros => return Ok((None, span)),
                Place::Host(_) | Place::Compressed(_) => return Ok((Some(layer), span)),
            }
        }
        Ok((None, Span { end_bytes, place: Place::Zeros }))
    }
}

impl Layer {
    /// Opens the file at `path`, which is of this format, or of the one that its first bytes tell.
    fn open(path: &Path, format: Option<ImageFormat>) -> Result<Self, ImageError> {
        let file = HostFile::open(path)?;
        let content = content_of(&file)?;
        let path = || path.to_owned();
        let qemu = |file, format, others_asked| {
            Ok(Self::Qemu(Box::new(QemuImage::open(file, format, others_asked)?)))
        };
        match (format, content) {
            (Some(ImageFormat::Raw), _) | (None, Content::Disk) => {
                Ok(Self::Raw(RawImage::new(file)))
            }
            (None | Some(ImageFormat::Qcow2), Content::Qcow2) => {
                Ok(Self::Qcow2(Box::new(Qcow2Image::open(file)?)))
            }
            (Some(ImageFormat::Qcow2), _) => {
                let what = "it does not begin like one".to_owned();
                Err(ImageError::Damaged { path: path(), what })
            }
            (None, Content::TamisStream) => Err(ImageError::Stream { path: path() }),
            (None, Content::Compressed(compression)) => {
                Err(ImageError::Compressed { path: path(), compression })
            }
            (None, Content::Foreign(format)) => qemu(file, format, false),
            (Some(ImageFormat::Foreign(format)), _) => qemu(file, format, true),
        }
    }

    fn size_bytes(&self) -> u64 {
        match self {
            Self::Raw(raw) => raw.file().size_bytes(),
            Self::Qcow2(qcow2) => qcow2.size_bytes(),
            Self::Qemu(qemu) => qemu.size_bytes(),
        }
    }

    fn file(&self) -> &HostFile {
        match self {
            Self::Raw(raw) => raw.file(),
            Self::Qcow2(qcow2) => qcow2.file(),
            Self::Qemu(qemu) => qemu.file(),
        }
    }

    fn span(&self, at_bytes: u64) -> Result<Span, ImageError> {
        match self {
            Self::Raw(raw) => raw.span(at_bytes),
            Self::Qcow2(qcow2) => qcow2.span(at_bytes),
            Self::Qemu(qemu) => Ok(qemu.span(at_bytes)),
        }
    }

    fn read_at(&self, host_bytes: u64, out: &mut [u8]) -> Result<(), ImageError> {
        match self {
            Self::Raw(raw) => raw.file().read_exact_at(host_bytes, out),
            Self::Qcow2(qcow2) => qcow2.read_at(host_bytes, out),
            Self::Qemu(qemu) => qemu.read_at(host_bytes, out),
        }
    }

    /// All files of this layer.
    fn files(&self) -> impl Iterator<Item = &HostFile> {
        let (raw, qcow2) = match self {
            Self::Raw(raw) => (Some(raw.file()), None),
            Self::Qcow2(qcow2) => (None, Some(qcow2.files())),
            Self::Qemu(qemu) => (Some(qemu.file()), None),
        };
        raw.into_iter().chain(qcow2.into_iter().flatten())
    }

    /// Whether its header names a file beside its own.
    fn names_another_file(&self) -> bool {
        let Self::Qcow2(image) = self else { return false };
        image.backing().is_some() || image.data_file_name().is_some()
    }

    /// Opens the file that holds its clusters, if that is another.
    fn open_data_file(&mut self) -> Result<(), ImageError> {
        let Self::Qcow2(image) = self else { return Ok(()) };
        let Some(name) = image.data_file_name() else { return Ok(()) };
        let path = locate(image.file().path(), name)?;
        image.set_data_file(HostFile::open(&path)?);
        Ok(())
    }

    /// The image below this one, when there is one and it can be found.
    fn backing(&self) -> Option<Result<(PathBuf, Option<ImageFormat>), ImageError>> {
        let Self::Qcow2(image) = self else { return None };
        let backing = image.backing()?;
        let path = image.file().path();
        Some(locate(path, &backing.name).and_then(|below| Ok((below, format_of(path, backing)?))))
    }
}

/// The format of a backing file, where the image at `path` says it.
fn format_of(path: &Path, backing: &Backing) -> Result<Option<ImageFormat>, ImageError> {
    match backing.format.as_deref() {
        None => Ok(None),
        Some(b"raw" | b"host_device" | b"file") => Ok(Some(ImageFormat::Raw)),
        Some(b"qcow2") => Ok(Some(ImageFormat::Qcow2)),
        Some(_) => {
            let what = "over a backing file that is neither raw nor qcow2";
            Err(ImageError::Unsupported { path: path.to_owned(), what })
        }
    }
}

/// Where a file is that the image at `path` names: names are relative to the image's own directory.
fn locate(path: &Path, name: &[u8]) -> Result<PathBuf, ImageError> {
    let name = name.strip_prefix(b"file:").unwrap_or(name);
    // QEMU takes what stands before a colon as a protocol, unless a slash comes first.
    let before_colon = name.split(|byte| *byte == b':').next().unwrap_or_default();
    let has_protocol = before_colon.len() < name.len() && !before_colon.contains(&b'/');
    if has_protocol || name.contains(&0) {
        let what = "over something that is no file";
        return Err(ImageError::Unsupported { path: path.to_owned(), what });
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    Ok(folder.join(Path::new(OsStr::from_bytes(name))))
}

#[cfg(test)]
mod tests;
