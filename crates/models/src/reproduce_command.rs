//! `models reproduce`: writes `docs/reproduction.md` and its plots, from the models alone.

use std::path::PathBuf;

use clap::Args;
use models::reproduction::{page, parameters, plots, rows};

#[derive(Args)]
#[command(after_help = "Example: models reproduce")]
pub(crate) struct Arguments {
    /// The folder that gets `reproduction.md` and a folder `reproduction` with plots.
    #[arg(long, value_name = "FOLDER", default_value = "docs")]
    into: PathBuf,
}

impl Arguments {
    /// Writes the page and its plots.
    pub(crate) fn run(&self) -> Result<(), String> {
        let mut files = vec![(self.into.join("reproduction.md"), page(&rows(), &parameters()))];
        let folder = self.into.join("reproduction");
        let drawn = plots().map_err(|error| error.to_string())?;
        files.extend(drawn.into_iter().map(|(name, svg)| (folder.join(name), svg)));
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
        for (path, text) in files {
            std::fs::write(&path, text)
                .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        }
        Ok(())
    }
}
