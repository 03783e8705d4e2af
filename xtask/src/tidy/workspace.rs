//! What the checks look at: every Rust file, every other small text of ours, and what Cargo knows
//! of the packages. Loaded once; a check is a pure function of it, and so can be shown a bad
//! sample.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::modules;
use super::source::SourceFile;
use crate::failure::Failure;
use crate::program::Program;

/// The folders whose files are ours to keep tidy.
const FOLDERS: [&str; 6] = ["crates", "rtl", "xtask", "fuzz", ".ci", "docs"];
/// What was measured stays as it was written.
const RECORDS: &str = "docs/measurements";

/// Everything tidy reads.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    pub(crate) sources: Vec<SourceFile>,
    /// Scripts and manifests: path and text.
    pub(crate) texts: Vec<(PathBuf, String)>,
    /// What people read, without the record of measurements: path and text.
    pub(crate) documents: Vec<(PathBuf, String)>,
    pub(crate) packages: Vec<Package>,
    /// `xtask/ratchet.txt`, as it is and as it was committed last.
    pub(crate) ratchet: String,
    pub(crate) ratchet_before: String,
}

/// A package of the dependency graph, resolved for this host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    /// Does it live in this workspace.
    pub(crate) ours: bool,
    /// The names of what it depends on, by any kind of dependency.
    pub(crate) dependencies: Vec<String>,
}

impl Workspace {
    /// Reads the working tree at `root`, committed or not.
    pub(crate) fn load(root: &Path) -> Result<Workspace, Failure> {
        let mut workspace = Workspace { packages: packages(root)?, ..Workspace::default() };
        for folder in FOLDERS {
            workspace.read_folder(root, &root.join(folder))?;
        }
        workspace.read_file(root, &root.join("README.md"))?;
        modules::mark_test_files(&mut workspace.sources);
        workspace.ratchet = fs::read_to_string(root.join("xtask/ratchet.txt")).unwrap_or_default();
        let committed =
            Program::new("git").arg("-C").path(root).args(["show", "HEAD:xtask/ratchet.txt"]);
        workspace.ratchet_before = committed.output().unwrap_or_default();
        Ok(workspace)
    }

    fn read_folder(&mut self, root: &Path, folder: &Path) -> Result<(), Failure> {
        if !folder.is_dir() {
            return Ok(());
        }
        let entries = fs::read_dir(folder).map_err(Failure::file(folder))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                if path.file_name().is_some_and(|name| name != "target" && name != "corpus") {
                    self.read_folder(root, &path)?;
                }
            } else {
                self.read_file(root, &path)?;
            }
        }
        Ok(())
    }

    fn read_file(&mut self, root: &Path, path: &Path) -> Result<(), Failure> {
        let relative = path.strip_prefix(root).unwrap_or(path).to_path_buf();
        let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or("");
        let is_script = matches!(kind, "py" | "sh" | "toml" | "sv" | "svh" | "cpp" | "h")
            || relative.starts_with(".ci");
        if kind == "rs" {
            let text = fs::read_to_string(path).map_err(Failure::file(path))?;
            self.sources.push(SourceFile::new(relative, text));
        } else if kind == "md" && !relative.starts_with(RECORDS) {
            let text = fs::read_to_string(path).map_err(Failure::file(path))?;
            self.documents.push((relative, text));
        } else if is_script {
            let text = fs::read_to_string(path).map_err(Failure::file(path))?;
            self.texts.push((relative, text));
        }
        Ok(())
    }
}

/// The dependency graph of this host, so that a crate only another system needs is no concern.
fn packages(root: &Path) -> Result<Vec<Package>, Failure> {
    let version = Program::new("rustc").arg("-vV").output()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
    let cargo = Program::new("cargo")
        .args(["metadata", "--format-version", "1", "--filter-platform", host])
        .arg("--manifest-path")
        .path(&root.join("Cargo.toml"));
    Ok(read_packages(&cargo.json()?))
}

/// The packages in the answer of `cargo metadata` that are really in the resolved graph.
fn read_packages(metadata: &Value) -> Vec<Package> {
    let nodes = metadata["resolve"]["nodes"].as_array();
    let resolved: Vec<&str> =
        nodes.into_iter().flatten().filter_map(|node| node["id"].as_str()).collect();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .filter(|package| package["id"].as_str().is_some_and(|id| resolved.contains(&id)))
        .map(read_package)
        .collect()
}

fn read_package(package: &Value) -> Package {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    Package {
        name: word(&package["name"]),
        version: word(&package["version"]),
        license: package["license"].as_str().map(str::to_owned),
        ours: package["source"].is_null(),
        dependencies: dependencies.map(|dependency| word(&dependency["name"])).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::read_packages;

    #[test]
    fn only_resolved_packages_are_read() {
        let metadata = serde_json::json!({
            "packages": [
                { "id": "a", "name": "engine", "version": "0.1.0", "license": "Apache-2.0",
                  "source": null, "dependencies": [{ "name": "disk" }] },
                { "id": "b", "name": "elsewhere", "version": "1.0.0", "dependencies": [] },
            ],
            "resolve": { "nodes": [{ "id": "a" }] },
        });
        let packages = read_packages(&metadata);
        assert_eq!(packages.len(), 1);
        assert!(packages[0].ours);
        assert_eq!(packages[0].dependencies, ["disk"]);
    }
}
