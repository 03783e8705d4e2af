//! All that was measured in one call, for people, for programs, and for `docs/measurements`.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::allocations::Allocations;
use crate::codecs::Codecs;
use crate::cores::Cores;
use crate::doors::Doors;
use crate::failure::Failure;
use crate::in_process::InProcess;
use crate::instructions::Instructions;
use crate::kinds::Kinds;
use crate::latency::Latency;
use crate::machine::Machine;
use crate::overwrite::Overwrite;
use crate::wanted::{self, Wanted};
use crate::whole::Whole;

/// One call's figures, and what there is to know of them.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    /// Of the time in which the processors had work, what the machine's host gave to others.
    pub(crate) stolen_percent: f64,
    /// What the figures are held to.
    pub(crate) wanted: Vec<Wanted>,
    #[serde(flatten)]
    pub(crate) figures: Figures,
}

/// What was asked for.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Figures {
    pub(crate) in_process: Option<InProcess>,
    pub(crate) overwrite: Option<Overwrite>,
    pub(crate) kinds: Option<Kinds>,
    pub(crate) codecs: Option<Codecs>,
    pub(crate) whole: Option<Whole>,
    pub(crate) allocations: Option<Allocations>,
    pub(crate) cores: Option<Cores>,
    pub(crate) instructions: Option<Instructions>,
    pub(crate) latency: Option<Latency>,
    pub(crate) doors: Option<Doors>,
}

impl Figures {
    /// What they are held to.
    pub(crate) fn wanted(&self) -> Vec<Wanted> {
        let in_process = self.in_process.iter().flat_map(InProcess::wanted);
        let overwrite = self.overwrite.iter().map(Overwrite::wanted);
        let whole = self.whole.iter().flat_map(Whole::wanted);
        let latency = self.latency.iter().flat_map(Latency::wanted);
        let doors = self.doors.iter().flat_map(Doors::wanted);
        in_process.chain(overwrite).chain(doors).chain(whole).chain(latency).collect()
    }
}

impl Report {
    /// As JSON, with every sample.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Writes it as a page of the measurements, whose name begins with its number, and the plots
    /// into a folder beside it that has that number as its name.
    pub(crate) fn write_page(&self, path: &Path) -> Result<(), Failure> {
        let Figures { whole, cores, .. } = &self.figures;
        let mut plots = whole.as_ref().map_or(Ok(Vec::new()), Whole::plots)?;
        plots.extend(cores.as_ref().map_or(Ok(Vec::new()), Cores::plots)?);
        let title = match (whole, cores) {
            (Some(_), Some(_)) => "how fast Tamis is",
            (Some(_), None) => "whole systems",
            (None, _) => "what more processors give",
        };
        let number = number(path);
        let folder = make_folder(path)?;
        let mut page = format!(
            "# {number}: {title}\n\nMade by the command below, which overwrites this \
             page.\n\n{self}\n"
        );
        for (plot, svg) in plots {
            let file = folder.join(plot);
            std::fs::write(&file, svg).map_err(Failure::file(&file))?;
            page.push_str(&format!("![{plot}]({number}/{plot})\n"));
        }
        std::fs::write(path, page).map_err(Failure::file(path))
    }
}

/// Makes the folder beside a page that its plots go to: before anything is measured, so that
/// nobody learns after hours that it cannot be made.
pub(crate) fn make_folder(page: &Path) -> Result<PathBuf, Failure> {
    let folder = page.with_file_name(number(page));
    std::fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
    Ok(folder)
}

/// What a page's name begins with.
fn number(page: &Path) -> String {
    let name = page.file_stem().unwrap_or_default().to_string_lossy();
    name.split('-').next().unwrap_or_default().to_owned()
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Machine { processor, cores, memory_mib, kernel, date, commit, command } = &self.machine;
        writeln!(
            f,
            "- **Machine**: {cores} CPUs of {processor}, {memory_mib} MiB, {kernel}\n\
             - **Stolen by the host**, of the processors' time: {:.1}%\n\
             - **Commit**: {commit}\n- **Date**: {date}\n- **Command**: `{command}`",
            self.stolen_percent,
        )?;
        wanted::table(f, &self.wanted)?;
        if let Some(figures) = &self.figures.in_process {
            write!(f, "\n## The engine beside its kernels\n\n{figures}")?;
        }
        if let Some(figures) = &self.figures.overwrite {
            write!(f, "\n## Overwriting at random\n\n{figures}")?;
        }
        if let Some(figures) = &self.figures.doors {
            write!(f, "\n## Through NBD, by one client\n\n{figures}")?;
        }
        if let Some(figures) = &self.figures.whole {
            write!(f, "\n{figures}")?;
        }
        if let Some(figures) = &self.figures.allocations {
            write!(f, "\n## Allocations\n\n{figures}")?;
        }
        if let Some(figures) = &self.figures.instructions {
            write!(f, "\n## Instructions\n\n{figures}")?;
        }
        if let Some(figures) = &self.figures.cores {
            write!(f, "\n{figures}")?;
        }
        if let Some(figures) = &self.figures.latency {
            write!(f, "\n## How long clients wait\n\n{figures}")?;
        }
        if let Some(figures) = &self.figures.kinds {
            write!(f, "\n## Fingerprints\n\n{figures}")?;
        }
        if let Some(figures) = &self.figures.codecs {
            write!(f, "\n## Frames\n\n{figures}")?;
        }
        Ok(())
    }
}
