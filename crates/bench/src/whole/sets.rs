//! Sets of real data, each as one file of what is written somewhere in it.
//!
//! A set is a folder: of disk images, or of anything else, of which an ext4 image is made (`mke2fs
//! -d`, which needs no mount). Blocks that are all zeros are left out: most are what a disk has not
//! been used for, and who skips a hole is not fast. The blocks are as large as the largest unit in
//! which any of the systems looks for duplicates or compresses, so what was equal at equal places
//! of a unit stays so. Of several images, each gives the same share.

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::interrupt;
use crate::program::{bound, output, patiently};

/// A record of ZFS, and the most that btrfs compresses at once.
const BLOCK_BYTES: usize = 128 << 10;
const MIB: u64 = 1 << 20;
/// Where and when every image of a tree is made, for the same bytes in every run.
const UUID: &str = "6f1c2d3e-0000-4000-8000-000000000001";
const TIME: &str = "1700000000";

/// One set, ready to be copied.
pub(super) struct Set {
    pub(super) name: String,
    pub(super) image: PathBuf,
    /// Whole MiB.
    pub(super) size_bytes: u64,
}

impl Set {
    /// Makes it in `folder` of what is in `source`, at most so many bytes.
    pub(super) fn make(source: &Path, folder: &Path, bytes_max: u64) -> Result<Self, Failure> {
        let source = source.canonicalize().map_err(Failure::file(source))?;
        let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        eprintln!("making the set {name}");
        let image = folder.join(format!("set-{name}"));
        let mut of_tree = None;
        let parts = match disk_images(&source)? {
            Some(images) => images,
            None => vec![of_tree.insert(image_of_tree(&source, &image)?).clone()],
        };
        let size_bytes = pack(&parts, folder, &image, bytes_max)?;
        if let Some(tree) = of_tree {
            fs::remove_file(&tree).map_err(Failure::file(&tree))?;
        }
        if size_bytes == 0 {
            return Err(Failure::EmptySet(source));
        }
        Ok(Self { name, image, size_bytes })
    }

    /// Brings it into the page cache, so that no copy is measured reading it from the disk.
    pub(super) fn warm(&self) -> Result<(), Failure> {
        let mut file = File::open(&self.image).map_err(Failure::file(&self.image))?;
        std::io::copy(&mut file, &mut std::io::sink()).map_err(Failure::file(&self.image))?;
        interrupt::check()
    }
}

/// The images in a folder that holds nothing else, in the order of their names.
fn disk_images(source: &Path) -> Result<Option<Vec<PathBuf>>, Failure> {
    let entries = fs::read_dir(source).map_err(Failure::file(source))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let is_image = |path: &PathBuf| {
        let known = |ending| ["img", "raw", "qcow2"].iter().any(|known| ending == *known);
        path.is_file() && path.extension().is_some_and(known)
    };
    Ok((!paths.is_empty() && paths.iter().all(is_image)).then_some(paths))
}

/// An ext4 image with all of a folder, beside `image`.
fn image_of_tree(source: &Path, image: &Path) -> Result<PathBuf, Failure> {
    let path = image.with_extension("ext4");
    let counted = |what: &[&str]| -> Result<u64, Failure> {
        let answer = output(Command::new("du").args(what).arg(source))?;
        let number = answer.split_whitespace().next().and_then(|word| word.parse().ok());
        number.ok_or_else(|| Failure::Answer { command: "du".to_owned(), missing: "a size" })
    };
    let (bytes, files) = (counted(&["-s", "--block-size=1"])?, counted(&["-s", "--inodes"])?);
    let size_mib = (bytes + bytes / 10) / MIB + files / 1024 + 64;
    let mut command = bound("mke2fs");
    command.env("E2FSPROGS_FAKE_TIME", TIME).args(["-q", "-F", "-t", "ext4", "-m", "0"]);
    command.args(["-U", UUID, "-E", &format!("hash_seed={UUID}")]);
    command.args(["-N", &(files + 1024).to_string(), "-d"]).arg(source).arg(&path);
    patiently(command.arg(format!("{size_mib}M")))?;
    Ok(path)
}

/// Writes the used blocks of all `parts` to `image`, and returns how many bytes they are.
fn pack(parts: &[PathBuf], folder: &Path, image: &Path, bytes_max: u64) -> Result<u64, Failure> {
    let file = File::create(image).map_err(Failure::file(image))?;
    let mut packed = BufWriter::new(file);
    let mut written_bytes = 0;
    for (number, part) in parts.iter().enumerate() {
        let share = (bytes_max - written_bytes) / (parts.len() - number) as u64;
        let raw = part.extension().is_none_or(|ending| ending != "qcow2");
        written_bytes += if raw {
            append_used(part, &mut packed, share)?
        } else {
            let expanded = folder.join("expanded");
            let mut convert = bound("qemu-img");
            patiently(convert.args(["convert", "-O", "raw"]).arg(part).arg(&expanded))?;
            let appended = append_used(&expanded, &mut packed, share)?;
            fs::remove_file(&expanded).map_err(Failure::file(&expanded))?;
            appended
        };
    }
    let size_bytes = written_bytes / MIB * MIB;
    let file = packed.into_inner().map_err(|broken| broken.into_error());
    let file = file.map_err(Failure::file(image))?;
    file.set_len(size_bytes).and_then(|()| file.sync_all()).map_err(Failure::file(image))?;
    Ok(size_bytes)
}

/// Appends the blocks of `part` that are not all zeros, and returns how many bytes they are.
fn append_used(part: &Path, packed: &mut impl Write, bytes_max: u64) -> Result<u64, Failure> {
    let mut file = File::open(part).map_err(Failure::file(part))?;
    let mut block = vec![0; BLOCK_BYTES];
    let mut written_bytes = 0;
    while written_bytes + BLOCK_BYTES as u64 <= bytes_max {
        interrupt::check()?;
        match file.read_exact(&mut block) {
            Ok(()) if block.iter().all(|byte| *byte == 0) => {}
            Ok(()) => {
                packed.write_all(&block).map_err(Failure::file(part))?;
                written_bytes += BLOCK_BYTES as u64;
            }
            // An end that is no whole block is left out.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(Failure::file(part)(error)),
        }
    }
    Ok(written_bytes)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::PathBuf;
    use std::time::{Duration, SystemTime};

    use super::{BLOCK_BYTES, MIB, Set};
    use crate::failure::Failure;

    struct Folder(PathBuf);

    impl Folder {
        fn make(name: &str) -> Self {
            let name = format!("tamis-sets-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(path.join("set")).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Half of the blocks are zeros.
    fn image(fill: u8, blocks: usize) -> Vec<u8> {
        let block =
            |number: usize| vec![if number.is_multiple_of(2) { fill } else { 0 }; BLOCK_BYTES];
        (0..blocks).flat_map(block).collect()
    }

    #[test]
    fn every_image_gives_its_share_and_zeros_are_left_out() {
        let folder = Folder::make("images");
        let source = folder.0.join("set");
        // The first has less than its share: the others give more.
        for (name, fill, blocks) in [("a.img", 1, 8), ("b.img", 2, 64), ("c.raw", 3, 64)] {
            fs::write(source.join(name), image(fill, blocks)).unwrap();
        }
        let set = Set::make(&source, &folder.0, 4 * MIB).unwrap();
        assert_eq!((set.name.as_str(), set.size_bytes), ("set", 4 * MIB));
        let bytes = fs::read(&set.image).unwrap();
        let blocks = |fill| bytes.iter().filter(|byte| **byte == fill).count() / BLOCK_BYTES;
        assert_eq!([0, 1, 2, 3].map(blocks), [0, 4, 14, 14]);
    }

    #[test]
    fn a_tree_becomes_an_image_with_its_files() {
        let folder = Folder::make("tree");
        let source = folder.0.join("set");
        fs::create_dir(source.join("within")).unwrap();
        let content: Vec<u8> = (0..3 * MIB).map(|at| (at % 251) as u8).collect();
        fs::write(source.join("within/file.img"), &content).unwrap();
        // A time of access that no reading moves: it would be all that differs.
        let accessed =
            fs::FileTimes::new().set_accessed(SystemTime::now() + Duration::from_secs(3600));
        for path in ["within/file.img", "within", ""].map(|path| source.join(path)) {
            File::open(path).unwrap().set_times(accessed).unwrap();
        }
        let made = ["first", "second"].map(|run| {
            let folder = folder.0.join(run);
            fs::create_dir(&folder).unwrap();
            let set = Set::make(&source, &folder, 64 * MIB).unwrap();
            fs::read(&set.image).unwrap()
        });
        assert!(made[0].windows(4096).step_by(4096).any(|block| block == &content[..4096]));
        assert!(made[0] == made[1], "two images of one tree differ");
    }

    #[test]
    fn a_set_of_nothing_is_refused() {
        let folder = Folder::make("nothing");
        let source = folder.0.join("set");
        fs::write(source.join("a.img"), vec![0; 2 << 20]).unwrap();
        let refused = Set::make(&source, &folder.0, MIB);
        assert!(matches!(refused, Err(Failure::EmptySet(_))));
    }
}
