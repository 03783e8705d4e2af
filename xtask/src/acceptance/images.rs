//! Disk images with real contents, made once and kept under `target/acceptance/images`.
//!
//! The full form takes two Debian systems that share most of their packages, as the disks of two
//! machines do. The mirror is the one this machine's own apt uses. `mkfs.ext4 -d` fills an image
//! from a folder without mounting anything.

use std::fs;
use std::path::{Path, PathBuf};

use crate::acceptance::Setting;
use crate::clients;
use crate::failure::Failure;
use crate::program::Program;

/// What the second system has more than the first. Only packages whose dependencies are real ones:
/// debootstrap does not know what a virtual package (as gdb needs one) is provided by.
const MORE_PACKAGES: &str = "--include=git,curl,vim-nox,openssh-client,strace";

/// Two Debian systems, or in short form two small trees, each as an ext4 image.
pub(super) fn pair(setting: &Setting) -> Result<[PathBuf; 2], Failure> {
    if setting.short {
        let trees = [sources(setting), setting.root.join("crates")];
        let [first, second] = ["first", "second"].map(|name| setting.work.join(name));
        return Ok([
            image(&first, &setting.work, &trees[..1], "64M")?,
            image(&second, &setting.work, &trees, "64M")?,
        ]);
    }
    let kept = setting.kept()?;
    Ok([debian(&kept, "minbase", &[])?, debian(&kept, "richer", &[MORE_PACKAGES])?])
}

/// The sources of this project's dependencies: thousands of real files that any clone that was
/// built has. The short form takes the largest of them only.
pub(super) fn sources(setting: &Setting) -> PathBuf {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let registry = home.unwrap_or_default().join("registry/src");
    if !setting.short && registry.is_dir() {
        return registry;
    }
    let largest = ["-maxdepth", "2", "-name", "zstd-sys-*"];
    let found = Program::new("find").path(&registry).args(largest).output().unwrap_or_default();
    found.lines().next().map_or_else(|| setting.root.join("crates"), PathBuf::from)
}

fn debian(kept: &Path, name: &str, options: &[&str]) -> Result<PathBuf, Failure> {
    let system = kept.join(format!("{name}.root"));
    let made = kept.join(format!("{name}.img"));
    if made.exists() {
        return Ok(made);
    }
    if !system.exists() {
        bootstrap(kept, &system, options)?;
    }
    println!("making {}", made.display());
    image(&kept.join(name), kept, &[system], "1G")
}

fn bootstrap(kept: &Path, system: &Path, options: &[&str]) -> Result<(), Failure> {
    let missing = clients::missing(&["debootstrap", "root"]);
    if !missing.is_empty() {
        return Err(Failure::unmet("debootstrap and the right to use it", missing.join(", ")));
    }
    let (mirror, suite) = apt_source()
        .ok_or_else(|| Failure::unmet("a Debian mirror in the sources of apt", "none"))?;
    println!("bootstrapping {suite} from {mirror} into {}", system.display());
    let packages = kept.join("debs");
    fs::create_dir_all(&packages).map_err(Failure::file(&packages))?;
    // Under another name until it is whole.
    let partial = system.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(Failure::file(&partial))?;
    }
    let cache = format!("--cache-dir={}", packages.display());
    let bootstrap = Program::new("debootstrap").arg("--variant=minbase").arg(cache);
    bootstrap.args(options.iter().copied()).arg(suite).path(&partial).arg(mirror).run()?;
    fs::rename(&partial, system).map_err(Failure::file(system))
}

/// Makes `NAME.img` from one folder, or from several laid side by side.
fn image(name: &Path, work: &Path, trees: &[PathBuf], size: &str) -> Result<PathBuf, Failure> {
    let made = name.with_extension("img");
    let partial = name.with_extension("partial");
    let source = match trees {
        [tree] => tree.clone(),
        _ => side_by_side(&work.join("trees"), trees)?,
    };
    let make = Program::new("mkfs.ext4").args(["-q", "-F", "-b", "4096", "-d"]).path(&source);
    make.path(&partial).arg(size).run()?;
    fs::rename(&partial, &made).map_err(Failure::file(&made))?;
    Ok(made)
}

fn side_by_side(folder: &Path, trees: &[PathBuf]) -> Result<PathBuf, Failure> {
    fs::create_dir_all(folder).map_err(Failure::file(folder))?;
    for tree in trees {
        Program::new("cp").arg("-a").path(tree).path(folder).run()?;
    }
    Ok(folder.to_path_buf())
}

/// The mirror and release that this machine's apt takes Debian itself from.
fn apt_source() -> Option<(String, String)> {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    let more = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten();
    files.extend(more.map(|entry| entry.path()));
    files.sort();
    files.iter().find_map(|file| read_source(&fs::read_to_string(file).unwrap_or_default()))
}

/// Both notations: `deb URL SUITE main ...` and the `URIs:`, `Suites:` of a `.sources` file.
fn read_source(text: &str) -> Option<(String, String)> {
    let is_debian = |url: &str| url.trim_end_matches('/').ends_with("/debian");
    let mut url = None;
    for line in text.lines() {
        let words: Vec<&str> =
            line.split_whitespace().filter(|word| !word.starts_with('[')).collect();
        match words.as_slice() {
            ["deb", mirror, suite, ..] if is_debian(mirror) => {
                return Some(((*mirror).to_owned(), (*suite).to_owned()));
            }
            ["URIs:", mirror, ..] => url = is_debian(mirror).then(|| (*mirror).to_owned()),
            ["Suites:", suite, ..] if url.is_some() => return Some((url?, (*suite).to_owned())),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::read_source;

    #[test]
    fn both_notations_of_apt_are_read() {
        let found = Some(("http://mirror.example/debian".to_owned(), "bookworm".to_owned()));
        let old = "# deb x y\ndeb [arch=amd64] http://mirror.example/debian bookworm main\n";
        assert_eq!(read_source(old), found);
        let new = "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm b-updates\n";
        assert_eq!(read_source(new), found);
    }

    #[test]
    fn other_archives_are_passed_over() {
        let other = "deb https://packages.example/apt cloud main\n\
                     Types: deb\nURIs: http://mirror.example/debian-security\nSuites: x\n";
        assert_eq!(read_source(other), None);
    }
}
