//! How much of what was acknowledged may be on its way before a session waits for it.

use engine::ChunkBuf;

use crate::failure::Broken;
use crate::session::Session;
use crate::workload::SECTORS;

/// Chunks acknowledged in a store with room before they are waited for: so no write has to wait.
const BACKLOG_CHUNKS_MAX: u64 = 120;

impl Session<'_> {
    /// A buffer for a write; what is on its way goes on as long as there is none.
    pub(crate) fn buf_for(
        &mut self,
        offset_bytes: u64,
        length_bytes: usize,
    ) -> Result<ChunkBuf, Broken> {
        loop {
            match self.opening.client.try_buffer(offset_bytes, length_bytes) {
                Some(buf) => return Ok(buf),
                None => self.drain()?,
            }
        }
    }

    /// So many sectors more are acknowledged: what is too much is waited for.
    pub(crate) fn drain_backlog(&mut self, sectors: u64) -> Result<(), Broken> {
        self.backlog_chunks += sectors.div_ceil(SECTORS) + 1;
        if !self.shape.tight && self.backlog_chunks > BACKLOG_CHUNKS_MAX {
            self.drain()?;
        }
        Ok(())
    }

    /// Waits until nothing acknowledged is on its way any more.
    pub(crate) fn drain(&mut self) -> Result<(), Broken> {
        self.wait_for_all()?;
        for _ in 0..4 {
            while self.step()? {}
            self.opening.tick();
        }
        self.backlog_chunks = 0;
        Ok(())
    }
}
