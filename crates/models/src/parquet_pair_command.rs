//! `models parquet-pair`: what variants of a Parquet file take beside it, by pages and by content.

use std::path::PathBuf;

use clap::Args;
use models::multes::{Cut, Overhead, overhead};

/// How files become values, as Figure 7 compares.
const CUTS: [Cut; 3] = [Cut::Pages, Cut::Content(512), Cut::Content(1024)];

#[derive(Args)]
#[command(after_help = "Example: models parquet-pair /var/tmp/pair, of parquet_pair.py")]
pub(crate) struct Arguments {
    /// The folder that `xtask/scripts/parquet_pair.py` filled.
    folder: PathBuf,
    /// The file that gets the figures.
    #[arg(long, value_name = "FILE", default_value = "crates/models/src/multes/figures.json")]
    into: PathBuf,
}

impl Arguments {
    /// Counts and writes.
    pub(crate) fn run(&self) -> Result<(), String> {
        let original = self.read("original.parquet")?;
        let variants = [
            ("half of the rows filtered out", self.read("rows.parquet")?),
            ("a column removed", self.read("column.parquet")?),
        ];
        let found: Vec<Overhead> = variants
            .iter()
            .flat_map(|(name, file)| CUTS.map(|cut| overhead(&original, (name, file), cut)))
            .collect();
        let text = serde_json::to_string_pretty(&found).map_err(|error| error.to_string())?;
        std::fs::write(&self.into, text + "\n")
            .map_err(|error| format!("{} cannot be written: {error}", self.into.display()))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        let path = self.folder.join(name);
        std::fs::read(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
    }
}
