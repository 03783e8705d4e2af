//! The ten lines of the crate's head, as a program: makes a store in a new directory below the
//! temporary one, writes to a volume of it and reads that back.
//!
//! ```text
//! cargo run -p store --example first_store
//! ```

use std::error::Error;
use std::{env, fs, process};

use store::{CreateOptions, Options, Store};

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::temp_dir().join(format!("first-store-{}", process::id()));
    store::create(&path, &CreateOptions::new(64 << 20))?;
    let store = Store::open(&path, Options::default())?;
    let volume = store.create_volume("disk0", 1 << 30)?;
    volume.write_at(4096, &[7; 8192])?;
    volume.flush_blocking()?;
    let mut bytes = [0; 8192];
    volume.read_at(4096, &mut bytes)?;
    assert_eq!(bytes, [7; 8192]);
    store.close()?;
    println!("wrote and read {} bytes of {}", bytes.len(), path.display());
    Ok(fs::remove_dir_all(&path)?)
}
