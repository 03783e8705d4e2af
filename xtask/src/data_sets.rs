//! `cargo xtask data-sets DIR`: four sets of real data, as `tamis bench detect` is measured over in
//! docs/measurements/015, made of what Debian's and Python's registries give.
//!
//! Each set is a folder of DIR. A set is built beside it and takes its name when it is whole, so
//! one that is there is left as it is, and a task that was broken off goes on where it stopped.
//! What was downloaded stays in DIR/downloads.
//!
//! The releases of Python's packages are named here and never change. Those of Debian are what
//! Debian 12 has today, with its latest fixes: figures of another day are of nearly the same bytes.
//! Which those are, apt knows from its last `apt-get update`, which is the user's to run: it takes
//! a right that nothing else here does. Without one, or after an old one, apt downloads nothing.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::program::Program;

const DJANGO_RELEASES: [&str; 14] = [
    "4.0", "4.0.6", "4.1", "4.1.5", "4.1.10", "4.2", "4.2.4", "4.2.7", "4.2.11", "4.2.16", "5.0",
    "5.0.3", "5.0.6", "5.1",
];
const NUMPY_RELEASES: [&str; 12] = [
    "1.26.0", "1.26.1", "1.26.2", "1.26.3", "1.26.4", "2.0.0", "2.0.1", "2.0.2", "2.1.0", "2.1.1",
    "2.1.2", "2.1.3",
];
const PACKAGES: &str = include_str!("data_sets/packages.txt");
/// Of the images, beside what Debian cannot be without.
const INSTALLED: &str = "gcc,git,man-db,nginx,openssh-server,python3,qemu-utils,sqlite3,vim";
/// What the three images lack, by the beginnings of the packages' names.
const LEFT_OUT: [&[&str]; 3] = [&[], &["git_", "nginx"], &["gcc-12_", "cpp-12_", "vim"]];
const IMAGE_SIZE: &str = "2G";
const IMAGE_BYTES_KEPT: u64 = 1 << 30;

/// Makes a set from what was or is downloaded, first folder, in the second one.
type Make = fn(&Path, &Path) -> Result<(), Failure>;

/// Makes what is not there yet under `dir`.
pub(crate) fn run(dir: &Path) -> Result<(), Failure> {
    let downloads = dir.join("downloads");
    make_folder(&downloads)?;
    let downloads = fs::canonicalize(&downloads).map_err(Failure::file(&downloads))?;
    let sets: [(&str, Make); 4] =
        [("source", source), ("versions", versions), ("packages", packages), ("vm", vm)];
    for (name, make) in sets {
        let (set, making) = (dir.join(name), dir.join(format!("{name}.new")));
        if set.exists() {
            println!("{name}: is there");
            continue;
        }
        remove_folder(&making)?;
        make_folder(&making)?;
        make(&downloads, &making)?;
        fs::rename(&making, &set).map_err(Failure::file(&set))?;
        println!("{name}: made");
    }
    Ok(())
}

/// Every release of Django, as its authors packed the sources.
fn source(downloads: &Path, set: &Path) -> Result<(), Failure> {
    for release in DJANGO_RELEASES {
        let folder = downloads.join("django").join(release);
        download(&folder, &format!("django=={release}"), &["--no-binary=:all:"])?;
        for archive in files_of(&folder)? {
            Program::new("tar").arg("-xzf").path(&archive).arg("-C").path(set).run()?;
        }
    }
    Ok(())
}

/// Every release of numpy, as one installs it: mostly machine code.
fn versions(downloads: &Path, set: &Path) -> Result<(), Failure> {
    let built = [
        "--only-binary=:all:",
        "--python-version=3.11",
        "--implementation=cp",
        "--platform=manylinux2014_x86_64",
    ];
    for release in NUMPY_RELEASES {
        let folder = downloads.join("numpy").join(release);
        download(&folder, &format!("numpy=={release}"), &built)?;
        for wheel in files_of(&folder)? {
            let unpacked = set.join(release);
            Program::new("unzip").arg("-q").path(&wheel).arg("-d").path(&unpacked).run()?;
        }
    }
    Ok(())
}

fn download(folder: &Path, what: &str, how: &[&str]) -> Result<(), Failure> {
    if !files_of(folder)?.is_empty() {
        return Ok(());
    }
    let pip = Program::new("pip").args(["download", "--quiet", "--no-deps"]);
    pip.args(how.iter().copied()).arg("--dest").path(folder).arg(what).run()
}

/// Packages of Debian, each once.
fn packages(downloads: &Path, set: &Path) -> Result<(), Failure> {
    let folder = downloads.join("packages");
    if files_of(&folder)?.len() < PACKAGES.split_whitespace().count() {
        let apt = Program::new("apt-get").folder(&folder).args(["download", "--quiet"]);
        let downloaded = apt.args(PACKAGES.split_whitespace()).run();
        downloaded.map_err(|failure| Failure::NotDownloaded { failure: Box::new(failure) })?;
    }
    for package in files_of(&folder)? {
        unpack(&package, &set.join(package.file_stem().unwrap_or_default()))?;
    }
    Ok(())
}

/// Images of ext4 with most of their packages in common.
fn vm(downloads: &Path, set: &Path) -> Result<(), Failure> {
    let debian = downloads.join("debian");
    let archives = debian.join("var/cache/apt/archives");
    if !debian.join("debootstrap/debpaths").exists() {
        let debootstrap = Program::new("debootstrap").args([
            "--download-only",
            "--variant=minbase",
            "--include",
            INSTALLED,
            "bookworm",
        ]);
        debootstrap.path(&debian).run()?;
    }
    for (number, left_out) in LEFT_OUT.iter().enumerate() {
        let tree = set.join("tree");
        for package in files_of(&archives)? {
            let name = package.file_name().unwrap_or_default().to_string_lossy();
            if !left_out.iter().any(|beginning| name.starts_with(beginning)) {
                unpack(&package, &tree)?;
            }
        }
        image(&tree, &set.join(format!("{number}.img")), number)?;
        remove_folder(&tree)?;
    }
    Ok(())
}

/// The beginning of a file system that holds `tree`; its names of itself are made of `number`.
fn image(tree: &Path, image: &Path, number: usize) -> Result<(), Failure> {
    let uuid = format!("00000000-0000-4000-8000-{number:012}");
    let extended = format!("hash_seed={uuid},lazy_itable_init=0");
    let mkfs = Program::new("mkfs.ext4").args(["-q", "-U", &uuid, "-E", &extended, "-d"]);
    mkfs.path(tree).path(image).arg(IMAGE_SIZE).run()?;
    let file = fs::File::options().write(true).open(image).map_err(Failure::file(image))?;
    file.set_len(IMAGE_BYTES_KEPT).map_err(Failure::file(image))
}

fn unpack(package: &Path, folder: &Path) -> Result<(), Failure> {
    Program::new("dpkg-deb").arg("--extract").path(package).path(folder).run()
}

/// The files in `folder`, which is made if it is not there, in order.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    make_folder(folder)?;
    let entries = fs::read_dir(folder).map_err(Failure::file(folder))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    files.sort();
    Ok(files)
}

fn make_folder(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(Failure::file(folder))
}

fn remove_folder(folder: &Path) -> Result<(), Failure> {
    if folder.exists() { fs::remove_dir_all(folder).map_err(Failure::file(folder)) } else { Ok(()) }
}
