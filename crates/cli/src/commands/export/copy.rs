//! The bytes of an export: pieces of the volume, read by several threads, put in their places.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::data::VolumeData;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::target::Target;
use crate::volume_walk::{PIECE_BYTES, Piece, VolumeWalk};

/// Pieces that are read ahead of a stream.
const READ_AHEAD_PIECES: usize = 8;

/// Copies all of `volume` to `target`; returns the bytes that were no holes and the time it took.
pub(super) fn copy(
    volume: &VolumeData,
    target: Target,
    mut progress: Progress,
    interrupt: &Interrupt,
) -> Result<(u64, Duration), CliError> {
    let copied = match target.file() {
        Some(file) => {
            let source = Source::new(volume, &mut progress, interrupt);
            copy_to_file(&source, file, &target)
        }
        None => copy_to_stream(volume, &target, &mut progress, interrupt),
    };
    // The bar goes before anything is said about how it went.
    let took = progress.finish();
    match copied {
        Ok(data_bytes) => {
            target.complete()?;
            Ok((data_bytes, took))
        }
        Err(error) => {
            target.abandon();
            Err(error)
        }
    }
}

/// Where the readers get their next pieces.
struct Source<'a> {
    volume: &'a VolumeData,
    interrupt: &'a Interrupt,
    walk: Mutex<(VolumeWalk<'a>, &'a mut Progress)>,
    /// Set by the first reader that fails, so that the others end as well.
    failed: AtomicBool,
}

impl<'a> Source<'a> {
    fn new(volume: &'a VolumeData, progress: &'a mut Progress, interrupt: &'a Interrupt) -> Self {
        let walk = Mutex::new((VolumeWalk::new(volume), progress));
        Self { volume, interrupt, walk, failed: AtomicBool::new(false) }
    }

    fn next_piece(&self) -> Result<Option<Piece>, CliError> {
        self.interrupt.check()?;
        if self.failed.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let mut guard = self.walk.lock().unwrap_or_else(PoisonError::into_inner);
        let (walk, progress) = &mut *guard;
        let piece = walk.next_piece()?;
        progress.advance(piece.map_or(0, |piece| piece.length_bytes));
        Ok(piece)
    }
}

fn copy_to_file(source: &Source<'_>, file: &File, target: &Target) -> Result<u64, CliError> {
    let readers = source.volume.readers();
    thread::scope(|scope| {
        let start = |_| scope.spawn(|| copy_pieces(source, file, target));
        let running: Vec<_> = (0..readers).map(start).collect();
        let mut data_bytes = 0;
        let mut outcome = Ok(());
        for reader in running {
            match reader.join().map_err(|_| CliError::EngineVanished).flatten() {
                Ok(bytes) => data_bytes += bytes,
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome.map(|()| data_bytes)
    })
}

fn copy_pieces(source: &Source<'_>, file: &File, target: &Target) -> Result<u64, CliError> {
    let copied = try_copy_pieces(source, file, target);
    if copied.is_err() {
        source.failed.store(true, Ordering::Relaxed);
    }
    copied
}

fn try_copy_pieces(source: &Source<'_>, file: &File, target: &Target) -> Result<u64, CliError> {
    let mut buf = Vec::new();
    let mut data_bytes = 0;
    while let Some(piece) = source.next_piece()? {
        if piece.hole {
            if target.needs_zeros() {
                write_zeros_at(file, &piece).map_err(|source| target.failed(source))?;
            }
            continue;
        }
        buf.resize(usize::try_from(piece.length_bytes).unwrap_or(0), 0);
        source.volume.read(piece.offset_bytes, &mut buf)?;
        file.write_all_at(&buf, piece.offset_bytes).map_err(|source| target.failed(source))?;
        data_bytes += piece.length_bytes;
    }
    Ok(data_bytes)
}

fn write_zeros_at(file: &File, piece: &Piece) -> std::io::Result<()> {
    let zeros = vec![0; usize::try_from(piece.length_bytes.min(PIECE_BYTES)).unwrap_or(0)];
    let mut done = 0;
    while done < piece.length_bytes {
        let part = part_of(&zeros, piece.length_bytes - done);
        file.write_all_at(part, piece.offset_bytes + done)?;
        done += part.len() as u64;
    }
    Ok(())
}

/// As much of `bytes` as `most_bytes` allow.
fn part_of(bytes: &[u8], most_bytes: u64) -> &[u8] {
    let length = usize::try_from(most_bytes).unwrap_or(usize::MAX).min(bytes.len());
    bytes.get(..length).unwrap_or(bytes)
}

/// What a stream is made of.
enum Part {
    Data(Vec<u8>),
    Zeros(u64),
}

fn copy_to_stream(
    volume: &VolumeData,
    target: &Target,
    progress: &mut Progress,
    interrupt: &Interrupt,
) -> Result<u64, CliError> {
    let source = Source::new(volume, progress, interrupt);
    let (parts, received) = sync_channel(READ_AHEAD_PIECES);
    thread::scope(|scope| {
        let reader = scope.spawn(|| read_ahead(&source, parts));
        let mut out = std::io::stdout().lock();
        let mut data_bytes = 0;
        let mut written = Ok(());
        for part in received {
            written = write_part(&mut out, &part, &mut data_bytes);
            if written.is_err() {
                break;
            }
        }
        let written = written.and_then(|()| out.flush());
        // The receiver is gone by now, so a reader that would wait at it ends.
        reader.join().map_err(|_| CliError::EngineVanished).flatten()?;
        written.map_err(|source| target.failed(source))?;
        Ok(data_bytes)
    })
}

fn read_ahead(source: &Source<'_>, parts: SyncSender<Part>) -> Result<(), CliError> {
    while let Some(piece) = source.next_piece()? {
        let part = if piece.hole {
            Part::Zeros(piece.length_bytes)
        } else {
            let mut buf = vec![0; usize::try_from(piece.length_bytes).unwrap_or(0)];
            source.volume.read(piece.offset_bytes, &mut buf)?;
            Part::Data(buf)
        };
        if parts.send(part).is_err() {
            break;
        }
    }
    Ok(())
}

fn write_part(out: &mut impl Write, part: &Part, data_bytes: &mut u64) -> std::io::Result<()> {
    match part {
        Part::Data(bytes) => {
            *data_bytes += bytes.len() as u64;
            out.write_all(bytes)
        }
        Part::Zeros(length_bytes) => {
            let zeros = vec![0; usize::try_from((*length_bytes).min(PIECE_BYTES)).unwrap_or(0)];
            let mut left = *length_bytes;
            while left > 0 {
                let part = part_of(&zeros, left);
                out.write_all(part)?;
                left -= part.len() as u64;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt;

    use engine::{Opener, Options};

    use super::copy;
    use crate::commands::scratch::{ScratchShape, ScratchStore};
    use crate::data::VolumeData;
    use crate::interrupt::Interrupt;
    use crate::progress::{Progress, Unit};
    use crate::store::OpenStore;
    use crate::target::Target;
    use crate::testing::Folder;

    /// What a device held before shines through no hole, however long.
    #[test]
    fn holes_are_written_to_a_device_as_zeros() {
        const SIZE_BYTES: usize = 8 << 20;
        let folder = Folder::new();
        let shape = ScratchShape {
            capacity_bytes: 64 << 20,
            chunk_bytes: 4096,
            detection: Default::default(),
            tables_bytes_min: 0,
        };
        let scratch = ScratchStore::make(folder.path(), "export", &shape).unwrap();
        let path = folder.path().join("device");
        fs::write(&path, vec![0xff; SIZE_BYTES + 4096]).unwrap();
        let mut expected = vec![0; SIZE_BYTES];
        let options = Options { memory_bytes: 64 << 20, ..Default::default() };
        OpenStore::with(scratch.path(), options, |store| {
            let client = store.client();
            client.create_volume("v", SIZE_BYTES as u64, false)?;
            let volume = client.open_volume("v", Opener::new("a test", 0))?;
            for at in [4096, 5 << 20] {
                expected[at..at + 8192].fill(7);
                client.write_at(&volume, at as u64, &[7; 8192])?;
            }
            let file = File::options().write(true).open(&path).unwrap();
            let progress = Progress::new("exporting", Unit::Bytes, None);
            let target = Target::device_of(file);
            let volume = VolumeData::Here(client.clone(), volume);
            copy(&volume, target, progress, &Interrupt::default())
        })
        .unwrap();
        let device = File::open(&path).unwrap();
        let mut held = vec![0; SIZE_BYTES + 4096];
        device.read_exact_at(&mut held, 0).unwrap();
        assert!(held[..SIZE_BYTES] == expected);
        assert_eq!(held[SIZE_BYTES..], [0xff; 4096], "what is behind the image stays");
    }
}
