//! Programs that speak S3 find in a bucket what they put there, and a killed server has it as well.
//!
//! Python's clients that Debian does not package (s3fs, pyarrow, Polars) are used where the Python
//! of `TAMIS_PYTHON` has them; they are not installed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::acceptance::Setting;
use crate::acceptance::s3_door::Door;
use crate::acceptance::seed::Dice;
use crate::acceptance::server::Store;
use crate::clients;
use crate::failure::Failure;
use crate::program::Program;

/// A Python with further clients.
const FURTHER_PYTHON: &str = "TAMIS_PYTHON";
/// Files of the tree that is copied.
const FILES: u64 = 120;

pub(super) fn run(setting: &Setting) -> Result<(), Failure> {
    let store = Store::init(setting, if setting.short { "1G" } else { "8G" })?;
    let door = Door::of(setting, &store)?;
    let listen = door.listen();
    let options = ["--memory", "256M", "--s3", &listen];
    let server = store.serve(&options)?;
    for script in ["s3_boto3.py", "s3_uploads.py"] {
        let boto3 = door.script(setting, script).arg(setting.seed.to_string());
        println!("{}", boto3.output()?.trim());
    }
    s3s_e2e(&door)?;
    if let Some(python) = std::env::var_os(FURTHER_PYTHON) {
        let script = setting.root.join("xtask/scripts/s3_data.py");
        let data = Program::new(python).path(&script).arg(&door.endpoint);
        println!("{}", data.arg(&door.access_key).arg(&door.secret).output()?.trim());
    }
    let tree = make_tree(setting)?;
    rclone(setting, &door, &tree)?;
    s3cmd(setting, &door, &tree)?;
    restic(setting, &door, &tree)?;
    server.kill()?;
    let server = store.serve(&options)?;
    let kept = door.rclone(setting)?.args(["check", "--download"]).path(&tree);
    kept.arg("tamis:tree").run()?;
    door.restic(setting)?.args(["check", "--read-data"]).run()?;
    println!("after kill -9 rclone and restic find all that was answered");
    server.stop()?;
    store.check()
}

impl Door {
    fn rclone(&self, setting: &Setting) -> Result<Program, Failure> {
        let file = setting.work.join("rclone.conf");
        let text = format!(
            "[tamis]\ntype = s3\nprovider = Other\nendpoint = {}\naccess_key_id = {}\n\
             secret_access_key = {}\n",
            self.endpoint, self.access_key, self.secret
        );
        fs::write(&file, text).map_err(Failure::file(&file))?;
        // A bundle of certificates in the environment is one that its HTTP client cannot take.
        let program = Program::new("env").args(["-u", "AWS_CA_BUNDLE", "rclone"]);
        Ok(program.args(["--retries", "1", "--config"]).path(&file))
    }

    fn s3cmd(&self, setting: &Setting) -> Result<Program, Failure> {
        let file = setting.work.join("s3cfg");
        let (address, key, secret) = (&self.address, &self.access_key, &self.secret);
        let text = format!(
            "[default]\naccess_key = {key}\nsecret_key = {secret}\nhost_base = {address}\n\
             host_bucket = {address}\nuse_https = False\n"
        );
        fs::write(&file, text).map_err(Failure::file(&file))?;
        Ok(Program::new("s3cmd").arg("--config").path(&file))
    }

    /// Secrets are in the environment: an argument would be in lists of processes.
    fn restic(&self, setting: &Setting) -> Result<Program, Failure> {
        let cache = setting.work.join("restic-cache");
        let program = Program::new("env")
            .arg(format!("AWS_ACCESS_KEY_ID={}", self.access_key))
            .arg(format!("AWS_SECRET_ACCESS_KEY={}", self.secret))
            .args(["RESTIC_PASSWORD=acceptance", "restic", "--quiet", "--cache-dir"]);
        let program = program.path(&cache).arg("--repo");
        Ok(program.arg(format!("s3:{}/restic", self.endpoint)))
    }
}

/// The tests that s3s has of servers, by Amazon's SDK for Rust: they build for long, so they are
/// used where they are installed. Those of temporary credentials ask for what is not done here.
fn s3s_e2e(door: &Door) -> Result<(), Failure> {
    if !Program::new("s3s-e2e").arg("--list").succeeds() {
        println!("s3s-e2e is not installed (cargo install s3s-e2e --version 0.14.1 --locked)");
        return Ok(());
    }
    let tests = Program::new("env")
        .arg(format!("AWS_ENDPOINT_URL={}", door.endpoint))
        .arg(format!("AWS_ACCESS_KEY_ID={}", door.access_key))
        .arg(format!("AWS_SECRET_ACCESS_KEY={}", door.secret))
        .args(["AWS_REGION=us-east-1", "RUST_LOG=off", "s3s-e2e"])
        .args(["--filter", "^Basic/", "--filter", "^Advanced/[^S]"]);
    let said = tests.output()?;
    let passed = said.lines().filter(|line| line.contains("/test_") && line.contains("PASSED"));
    println!("s3s-e2e: {} tests of Amazon's SDK pass", passed.count());
    Ok(())
}

/// Files of many lengths, some of them alike.
fn make_tree(setting: &Setting) -> Result<PathBuf, Failure> {
    let tree = setting.work.join("tree");
    let mut dice = Dice::new(setting.seed);
    let length_max = if setting.short { 60_000 } else { 2_000_000 };
    for number in 0..FILES {
        let folder = tree.join(format!("folder {}", number % 7));
        fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
        let file = folder.join(format!("file-{number}.bin"));
        let line = format!("line {} of {}\n", dice.between(0, 1000), number % 10);
        let bytes = line.repeat(1 + dice.between(0, length_max / 16) as usize);
        fs::write(&file, bytes).map_err(Failure::file(&file))?;
    }
    Ok(tree)
}

/// Copies, checks, synchronises what changed, and brings back.
fn rclone(setting: &Setting, door: &Door, tree: &Path) -> Result<(), Failure> {
    door.rclone(setting)?.args(["mkdir", "tamis:tree"]).run()?;
    door.rclone(setting)?.arg("copy").path(tree).arg("tamis:tree").run()?;
    door.rclone(setting)?.args(["check", "--download"]).path(tree).arg("tamis:tree").run()?;
    let gone = tree.join("folder 0/file-0.bin");
    fs::remove_file(&gone).map_err(Failure::file(&gone))?;
    let new = tree.join("new file");
    fs::write(&new, b"new").map_err(Failure::file(&new))?;
    door.rclone(setting)?.arg("sync").path(tree).arg("tamis:tree").run()?;
    door.rclone(setting)?.arg("check").path(tree).arg("tamis:tree").run()?;
    let back = setting.work.join("rclone-back");
    door.rclone(setting)?.args(["copy", "tamis:tree"]).path(&back).run()?;
    same(tree, &back)?;
    mounted(setting, door, tree)?;
    println!("rclone: copied, checked, synchronised and brought back {FILES} files");
    Ok(())
}

/// The bucket as a directory, where the machine lets a program mount one.
fn mounted(setting: &Setting, door: &Door, tree: &Path) -> Result<(), Failure> {
    let lacks = clients::missing(&["fusermount3", "fuse"]);
    if !lacks.is_empty() {
        println!("skipped: rclone mount needs {}", lacks.join(", "));
        return Ok(());
    }
    let place = setting.work.join("rclone-mounted");
    fs::create_dir_all(&place).map_err(Failure::file(&place))?;
    door.rclone(setting)?
        .args(["mount", "--daemon", "--read-only", "tamis:tree"])
        .path(&place)
        .run()?;
    let compared = same(tree, &place);
    Program::new("fusermount3").arg("-u").path(&place).run()?;
    compared?;
    println!("rclone: a mounted bucket has the same files");
    Ok(())
}

fn s3cmd(setting: &Setting, door: &Door, tree: &Path) -> Result<(), Failure> {
    let folder = tree.join("folder 1");
    let (file, back) = (folder.join("file-1.bin"), setting.work.join("s3cmd-back"));
    door.s3cmd(setting)?.args(["mb", "s3://s3cmd"]).run()?;
    door.s3cmd(setting)?.arg("put").path(&file).arg("s3://s3cmd/one").run()?;
    door.s3cmd(setting)?.args(["get", "s3://s3cmd/one"]).path(&back).run()?;
    same(&file, &back)?;
    door.s3cmd(setting)?.args(["cp", "s3://s3cmd/one", "s3://s3cmd/two"]).run()?;
    let listed = door.s3cmd(setting)?.args(["ls", "s3://s3cmd"]).output()?;
    if !listed.contains("s3://s3cmd/two") {
        return Err(Failure::unmet("s3cmd lists s3://s3cmd/two", listed));
    }
    door.s3cmd(setting)?.args(["del", "--recursive", "--force", "s3://s3cmd"]).run()?;
    door.s3cmd(setting)?.args(["rb", "s3://s3cmd"]).run()?;
    println!("s3cmd: made, put, got, copied, listed, deleted");
    Ok(())
}

/// A repository of a backup program, which checks all that it reads.
fn restic(setting: &Setting, door: &Door, tree: &Path) -> Result<(), Failure> {
    door.restic(setting)?.arg("init").run()?;
    for _ in 0..2 {
        door.restic(setting)?.arg("backup").path(tree).run()?;
    }
    door.restic(setting)?.args(["check", "--read-data"]).run()?;
    let back = setting.work.join("restic-back");
    door.restic(setting)?.args(["restore", "latest", "--target"]).path(&back).run()?;
    let restored = tree.strip_prefix("/").unwrap_or(tree);
    same(tree, &back.join(restored))?;
    door.restic(setting)?.args(["forget", "--keep-last", "1", "--prune"]).run()?;
    door.restic(setting)?.arg("check").run()?;
    println!("restic: backed up, checked, restored, pruned");
    Ok(())
}

fn same(one: &Path, other: &Path) -> Result<(), Failure> {
    Program::new("diff").arg("-r").path(one).path(other).run()
}
