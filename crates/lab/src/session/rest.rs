//! A store at rest: nothing is left of what was asked, and what it tells of holes is exact.

use engine::{Extent, Reply, UnderWay, control};

use crate::failure::Broken;
use crate::oracle::{CHUNK_BYTES, Register, Value};
use crate::session::Session;
use crate::session::waiting::Waiting;
use crate::simulation::opening::strange;

/// Runs of data and holes that are asked for of each volume.
const EXTENTS_MAX: u32 = 64;

impl Session<'_> {
    /// Lets the store do whatever it does when nobody asks anything, and looks at what is left.
    pub(crate) fn idle(&mut self) -> Result<(), Broken> {
        self.holders.end_all();
        self.come_to_rest()?;
        self.oracle.deletions_ended();
        if self.trouble.is_none() { self.expect_rest() } else { Ok(()) }
    }

    pub(crate) fn come_to_rest(&mut self) -> Result<(), Broken> {
        self.wait_for_all()?;
        let mut still = 0;
        while still < 40 {
            // A slow device moves nothing for longer than that.
            if self.step()? || self.opening.ear.heard().mischief.in_flight() > 0 {
                still = 0;
            } else {
                still += 1;
                self.opening.tick();
            }
        }
        self.backlog_chunks = 0;
        Ok(())
    }

    /// Nothing that was deleted is left, but for what clones hold; nothing is held for requests.
    fn expect_rest(&mut self) -> Result<(), Broken> {
        let done = self.done(Waiting::Plain, None);
        let tag = done.tag;
        self.opening.client.administer(control::GetStats {}, done);
        match self.wait_for(tag)?.map_err(Broken::Request)? {
            Reply::Stats(stats) if stats.deletions > 0 => {
                Err(strange("an idle store that deletes", &stats.deletions))
            }
            Reply::Stats(stats) if stats.under_way != UnderWay::default() => {
                Err(strange("an idle store that nobody asks", &stats.under_way))
            }
            // Of a cache of so few pages a schedule needs what has left it.
            Reply::Stats(_) if self.shape.cache_pages < 64 => Ok(()),
            Reply::Stats(_) => self.expect_exact_extents(),
            other => Err(strange("an idle store", &other)),
        }
    }

    /// Data is where something is, and holes are where nothing is, chunk by chunk.
    fn expect_exact_extents(&mut self) -> Result<(), Broken> {
        let volumes: Vec<_> = self.opening.volumes.clone().into_iter().collect();
        for (volume, handle) in volumes.into_iter().filter(|(_, handle)| handle.size_bytes() > 0) {
            let done = self.done(Waiting::Plain, None);
            let (tag, length_bytes) = (done.tag, handle.size_bytes());
            self.opening.client.extents(&handle, 0, length_bytes, EXTENTS_MAX, done);
            match self.wait_for(tag)?.map_err(Broken::Request)? {
                Reply::Extents(extents) => self.expect_exact(volume, &extents)?,
                other => return Err(strange("extents", &other)),
            }
        }
        Ok(())
    }

    fn expect_exact(&self, volume: u32, extents: &[Extent]) -> Result<(), Broken> {
        let chunk_bytes = CHUNK_BYTES as u64;
        let holds = |lba: &u64| *self.oracle.now(Register::Chunk(volume, *lba)) != Value::Nothing;
        let mut at_bytes = 0;
        for extent in extents {
            let lbas =
                at_bytes / chunk_bytes..(at_bytes + extent.length_bytes).div_ceil(chunk_bytes);
            let chunks = lbas.end - lbas.start;
            let held = self.oracle.chunks(volume, lbas).iter().filter(|lba| holds(lba)).count();
            if held as u64 != if extent.hole { 0 } else { chunks } {
                return Err(strange("extents of an idle store", &(volume, at_bytes, extent, held)));
            }
            at_bytes += extent.length_bytes;
        }
        Ok(())
    }
}
