//! Messages that no honest client sends: each gets an error or a closed connection, and the honest
//! client beside it never notices.
//!
//! The room `nbd` tests the protocol byte by byte by itself; this is the same from outside, through
//! a real socket of the real binary.

use crate::acceptance::Setting;
use crate::acceptance::server::Store;
use crate::failure::Failure;

pub(super) fn run(setting: &Setting) -> Result<(), Failure> {
    let store = Store::init(setting, "256M")?;
    let server = store.serve(&[])?;
    store.create_volume("disk", "64M")?;
    setting.script("hostile.py").arg(store.uri("disk")).path(store.socket()).show()?;
    server.stop()?;
    store.check()
}
