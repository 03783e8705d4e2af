//! A store that is full: it refuses writes, reads right, takes TRIM, and writes again.
//!
//! The script `fill.py` does the client's part and keeps a model of what it wrote; here the store
//! is then closed, checked, opened again, and read once more against that model.

use crate::acceptance::Setting;
use crate::acceptance::server::Store;
use crate::failure::Failure;

const VOLUME: &str = "disk";

pub(super) fn run(setting: &Setting) -> Result<(), Failure> {
    let store = Store::init(setting, if setting.short { "256M" } else { "1G" })?;
    let server = store.serve(&[])?;
    store.create_volume(VOLUME, "10G")?;
    let free = store.stats()?.number("free_bytes")?;
    println!("{} MiB free in the empty store", free >> 20);
    let model = setting.work.join("model.json");
    let script = |phase| setting.script("fill.py").arg(phase).path(&model).arg(store.uri(VOLUME));
    script("fill").arg(free.to_string()).show()?;
    server.stop()?;
    store.check()?;
    let server = store.serve(&[])?;
    script("verify").show()?;
    server.stop()
}
