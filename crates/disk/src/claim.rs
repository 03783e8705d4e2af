//! Whose a device is, and making it ours.
//!
//! A device is taken if nothing of anybody begins there, and gets a mark that says whose it is
//! before it is let go: two stores that are made at once cannot both have it, for each claims it
//! alone. A mark without more behind it is either another store's zone that is still empty, or what
//! a growth of this store has left that did not come to its end; then it is taken again.

use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;

use format::mark::Mark;
use format::units::{BLOCK_BYTES, UUID_BYTES, Zone};

use crate::buffer::AlignedBuf;
use crate::error::{CreateFilesError, FileError, refused};
use crate::place::{self, Access, Opened, write_zeros_to};

type Result<T> = std::result::Result<T, CreateFilesError>;

/// A device counts as blank when it begins with so many zeros: partition tables, and all common
/// file systems and volume managers, leave their mark here.
pub(crate) const BLANK_BYTES: usize = 1 << 20;

/// Who wants zones.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Claimant {
    /// Of the store.
    pub(crate) uuid: [u8; UUID_BYTES],
    /// Data zones that its geometry has; what is marked as a further one was never taken.
    known: Option<usize>,
}

impl Claimant {
    /// A store that is made: it has no zone yet.
    pub(crate) fn new(uuid: [u8; UUID_BYTES]) -> Self {
        Self { uuid, known: None }
    }

    /// A store that grows, with so many data zones as its geometry has.
    pub(crate) fn growing(uuid: [u8; UUID_BYTES], data_zones: usize) -> Self {
        Self { uuid, known: Some(data_zones) }
    }

    fn has_left_over(self, mark: Mark) -> bool {
        let is_further = match (mark.zone, self.known) {
            (Zone::Data(number), Some(known)) => usize::from(number) >= known,
            _ => false,
        };
        mark.uuid == self.uuid && is_further
    }
}

/// What a file or device begins with.
enum Begin {
    Blank,
    /// A mark, and nothing behind it.
    Marked(Mark),
    Something,
}

/// Makes a device ours.
pub(crate) fn claim_device(
    path: &Path,
    size_bytes: u64,
    zeroed: bool,
    mark: Mark,
    claimant: Claimant,
) -> Result<()> {
    let opened = place::open(path, Access::ReadWrite).map_err(|error| match error.kind() {
        ErrorKind::ResourceBusy => CreateFilesError::DeviceBusy { path: path.to_owned() },
        _ => refused("open", path, error),
    })?;
    if opened.size_bytes < size_bytes {
        let (path, needed_bytes) = (path.to_owned(), size_bytes);
        let size_bytes = opened.size_bytes;
        return Err(CreateFilesError::DeviceTooSmall { path, size_bytes, needed_bytes });
    }
    match begin_of(&opened, path)? {
        Begin::Blank => {}
        Begin::Marked(found) if claimant.has_left_over(found) => {}
        Begin::Marked(found) => {
            let (path, uuid) = (path.to_owned(), found.uuid);
            return Err(CreateFilesError::DeviceOfStore { path, zone: found.zone, uuid });
        }
        Begin::Something => {
            return Err(CreateFilesError::DeviceNotBlank { path: path.to_owned() });
        }
    }
    if zeroed {
        let written = write_zeros_to(&opened.file, 0..size_bytes);
        written.map_err(|source| FileError::new("write zeros to", path, source))?;
    }
    write_mark(&opened, path, mark)
}

/// Whether a file is nobody's: blank, or what a growth of this store has left.
pub(crate) fn is_free(opened: &Opened, path: &Path, claimant: Claimant) -> Result<bool> {
    Ok(match begin_of(opened, path)? {
        Begin::Blank => true,
        Begin::Marked(mark) => claimant.has_left_over(mark),
        Begin::Something => false,
    })
}

fn begin_of(opened: &Opened, path: &Path) -> Result<Begin> {
    let begin_bytes = usize::try_from(opened.size_bytes).unwrap_or(usize::MAX).min(BLANK_BYTES);
    let mut begin = AlignedBuf::new_stale(begin_bytes);
    let read = opened.file.read_exact_at(&mut begin, 0);
    read.map_err(|source| FileError::new("read", path, source))?;
    let (first, rest) = begin.split_at(begin_bytes.min(BLOCK_BYTES));
    let is_blank = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
    Ok(match (is_blank(first) && is_blank(rest), Mark::decode(first)) {
        (true, _) => Begin::Blank,
        (false, Ok(mark)) if is_blank(rest) => Begin::Marked(mark),
        (false, _) => Begin::Something,
    })
}

/// Marks what is blank, durably.
pub(crate) fn write_mark(opened: &Opened, path: &Path, mark: Mark) -> Result<()> {
    let block = AlignedBuf::padded(&mark.encode());
    let written = opened.file.write_all_at(&block, 0).and_then(|()| opened.file.sync_all());
    Ok(written.map_err(|source| FileError::new("write the mark of a zone to", path, source))?)
}

/// Takes the mark from a device that nothing came of. Best effort: it is said why nothing did.
pub(crate) fn let_go(path: &Path, claimant: Claimant) {
    let Ok(opened) = place::open(path, Access::ReadWrite) else { return };
    if let Ok(Begin::Marked(mark)) = begin_of(&opened, path)
        && mark.uuid == claimant.uuid
    {
        let _ = write_zeros_to(&opened.file, 0..BLOCK_BYTES as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    const OURS: [u8; 16] = [1; 16];
    const THEIRS: [u8; 16] = [2; 16];
    const SECOND: Mark = Mark { uuid: OURS, zone: Zone::Data(1) };

    /// A device is claimed by its bytes and its length only, so that a file does.
    fn device(name: &str, length_bytes: u64) -> (std::path::PathBuf, File) {
        let name = format!("tamis-claim-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = File::create(&path).unwrap();
        file.set_len(length_bytes).unwrap();
        (path, file)
    }

    fn claimed(name: &str, length_bytes: u64, held: Option<usize>) -> (Result<()>, Vec<u8>) {
        let (path, file) = device(name, length_bytes);
        held.into_iter().for_each(|at| file.write_all_at(b"X", at as u64).unwrap());
        let result = claim_device(&path, 2 << 20, true, SECOND, Claimant::new(OURS));
        let left = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        (result, left)
    }

    #[test]
    fn a_device_that_holds_something_is_not_touched() {
        for at in [0, BLANK_BYTES / 2, BLANK_BYTES - 1] {
            let (result, left) = claimed("held", 4 << 20, Some(at));
            let is_refused = matches!(result, Err(CreateFilesError::DeviceNotBlank { .. }));
            assert!(is_refused, "byte {at}: {result:?}");
            assert_eq!(left[at], b'X');
        }
    }

    #[test]
    fn a_blank_device_is_taken_as_far_as_it_is_asked_for_and_marked() {
        let (result, left) = claimed("blank", 4 << 20, Some(3 << 20));
        assert!(result.is_ok(), "{result:?}");
        assert_eq!(left[3 << 20], b'X', "behind what was asked for");
        assert_eq!(Mark::decode(&left), Ok(SECOND));
    }

    #[test]
    fn a_device_that_is_too_small_is_refused() {
        let (result, _) = claimed("small", 1 << 20, None);
        let sizes = (1 << 20, 2 << 20);
        let Err(CreateFilesError::DeviceTooSmall { size_bytes, needed_bytes, .. }) = result else {
            panic!("{result:?}");
        };
        assert_eq!((size_bytes, needed_bytes), sizes);
    }

    #[test]
    fn a_device_that_a_store_has_and_has_not_written_to_is_taken_by_no_other() {
        let (path, _) = device("taken", 4 << 20);
        let claim = |mark, claimant| claim_device(&path, 2 << 20, false, mark, claimant);
        claim(SECOND, Claimant::growing(OURS, 1)).unwrap();
        let theirs = Mark { uuid: THEIRS, zone: Zone::Tables };
        for claimant in [Claimant::new(THEIRS), Claimant::growing(THEIRS, 1)] {
            match claim(theirs, claimant) {
                Err(CreateFilesError::DeviceOfStore { zone, uuid, .. }) => {
                    assert_eq!((zone, uuid), (SECOND.zone, OURS));
                }
                other => panic!("{other:?}"),
            }
        }
        // Its own store has it, or has only begun to.
        let twice = claim(SECOND, Claimant::growing(OURS, 2));
        assert!(matches!(twice, Err(CreateFilesError::DeviceOfStore { .. })), "{twice:?}");
        let third = Mark { zone: Zone::Data(2), ..SECOND };
        claim(third, Claimant::growing(OURS, 1)).unwrap();
        assert_eq!(Mark::decode(&fs::read(&path).unwrap()), Ok(third));
        let_go(&path, Claimant::new(THEIRS));
        assert_eq!(Mark::decode(&fs::read(&path).unwrap()), Ok(third));
        let_go(&path, Claimant::growing(OURS, 1));
        claim(theirs, Claimant::new(THEIRS)).unwrap();
        fs::remove_file(&path).unwrap();
    }
}
