//! The figures of [`Stats`], taken from totals that are exact at every step.

use std::sync::atomic::Ordering;

use format::BLOCK_BYTES;
use format::catalog::{CatalogEntry, VolumeState};
use format::units::Zone;

use crate::devices::WrittenBytes;
use crate::engine::Engine;
use crate::stats::stages::StageTimes;
use crate::stats::{
    AcceleratorFigures, Counters, ReadCacheFigures, Stats, UnderWay, VolumeStats, Written,
};
use crate::volumes::new_volumes::count_domains;

impl Engine {
    /// The store as it is now, what is buffered not included.
    pub(crate) fn stats(&self) -> Stats {
        let (core, totals) = (&self.core, &self.core.state.totals);
        let chunk_bytes = u64::from(core.geometry.chunk_bytes);
        let (deletions, deletions_held) = self.deletions_figures();
        let logical_bytes = totals.mapped_chunks * chunk_bytes;
        let snapshot_chunks = core.state.catalog.iter().filter_map(mapped_by_snapshot).sum::<u64>();
        let snapshot_bytes = snapshot_chunks * chunk_bytes;
        let unique_bytes = totals.unique_chunks * chunk_bytes;
        let table_bytes = core.state.store.used_blocks() * BLOCK_BYTES as u64;
        let [data_used_ratio, tables_used_ratio] = core.used_ratios();
        let [dedup_ratio, compression_ratio, reduction_ratio] =
            ratios(logical_bytes + snapshot_bytes, unique_bytes, totals.live_frame_bytes);
        Stats {
            uuid: format!("{:032x}", u128::from_be_bytes(core.geometry.uuid)),
            logical_bytes,
            snapshot_bytes,
            deletions,
            deletions_held,
            unique_chunks: totals.unique_chunks,
            unique_bytes,
            stored_bytes: totals.live_frame_bytes,
            table_bytes,
            journal_bytes: core.geometry.journal_bytes,
            device_bytes: self.device_bytes(table_bytes),
            allocated_bytes: self.allocated_bytes(),
            free_bytes: self.free_bytes(),
            promised_bytes: self.promised_bytes(),
            capacity_bytes: core.geometry.capacity_bytes(),
            kept_bytes: core.placement.kept_bytes(),
            dead_bytes: totals.dead_frame_bytes,
            collectable_bytes: core.placement.space.collectable_bytes(),
            copied_chunks: totals.copied_chunks,
            copy_bytes: totals.copy_frame_bytes,
            data_used_ratio,
            data_taken_ratio: core.data_taken_ratio(),
            tables_used_ratio,
            watermark_percent: core.watermarks.highest(),
            dedup_ratio,
            compression_ratio,
            reduction_ratio,
            memory_bytes: self.resident_bytes(),
            memory_bytes_max: self.memory_bytes_max,
            under_way: self.under_way(),
            compression: core.state.compression.to_string(),
            chunk_bytes: core.geometry.chunk_bytes,
            fingerprint: core.geometry.detection.kind.name().to_owned(),
            verify: core.geometry.detection.verify,
            domains: count_domains(core),
            damaged_chunks: core.damage.len() as u64,
            given_up_chunks: core.state.given_up_chunks(),
            volumes: self.volume_stats(),
            writing_stopped: core.stopped.as_ref().map(ToString::to_string),
            written: self.written(),
            tables: self.tables_figures(),
            read_cache: self.read_cache(),
            accelerator: AcceleratorFigures::of(self.writes.offload.as_ref(), &core.stages),
            stages: StageTimes::of(&core.stages, &core.workers, &core.intake.expanding),
            counters: self.counters(),
        }
    }

    /// What the files hold of the device's room.
    fn device_bytes(&self, table_bytes: u64) -> u64 {
        let unused_bytes =
            self.core.room_of_containers(self.core.placement.space.unused_containers());
        let occupied_bytes = self.core.geometry.capacity_bytes() - unused_bytes;
        let superblock_bytes = self.core.devices.size_bytes(Zone::Superblock);
        occupied_bytes + table_bytes + self.core.geometry.journal_bytes + superblock_bytes
    }

    /// What all zones take where they are.
    fn allocated_bytes(&self) -> u64 {
        let ahead = self.core.devices.allocation_ahead();
        let taken_of = |zone, zone_bytes| match (zone, ahead) {
            (Zone::Data(number), Some(ahead)) => ahead.taken_bytes(number).unwrap_or(zone_bytes),
            _ => zone_bytes,
        };
        self.core.geometry.zones().map(|(zone, zone_bytes)| taken_of(zone, zone_bytes)).sum()
    }

    /// Volumes that are being given back, and those among the deleted that wait for others.
    fn deletions_figures(&self) -> (u64, u64) {
        let held = self.core.volumes.deletions.held(&self.core.state.catalog);
        (self.core.volumes.deletions.count() - held, held)
    }

    /// Memory of all caches and of the write buffer.
    fn resident_bytes(&self) -> u64 {
        self.core.state.resident_bytes()
            + self.duplicates.directories.resident_bytes()
            + self.core.frames.resident_bytes()
            + self.ahead.resident_bytes()
            + self.core.intake.lookaside.resident_bytes()
            + self.write_bytes()
    }

    /// Where what was written since the store was opened went.
    fn written(&self) -> Written {
        let chunk_bytes = u64::from(self.core.geometry.chunk_bytes);
        let counters = self.counters();
        let to_device = self.core.devices.written();
        let WrittenBytes { data, tables, journal, superblock } = to_device;
        let again_bytes = counters.frame_bytes_moved + counters.frame_bytes_copied;
        let frame_bytes = counters.frame_bytes_stored + again_bytes;
        let device_bytes = data + tables + journal + superblock;
        let client_bytes = counters.bytes_written;
        let amplification =
            if client_bytes == 0 { 0.0 } else { device_bytes as f64 / client_bytes as f64 };
        Written {
            client_bytes,
            duplicate_bytes: counters.chunks_duplicate * chunk_bytes,
            dropped_bytes: (counters.chunks_zero + counters.chunks_absorbed) * chunk_bytes,
            new_frame_bytes: counters.frame_bytes_stored,
            moved_frame_bytes: counters.frame_bytes_moved,
            copied_frame_bytes: counters.frame_bytes_copied,
            container_bytes: data.saturating_sub(frame_bytes),
            table_bytes: tables,
            journal_bytes: journal,
            superblock_bytes: superblock,
            device_bytes,
            amplification,
        }
    }

    fn read_cache(&self) -> ReadCacheFigures {
        let Counters { frames_hit, frames_ahead, frames_missed, .. } = self.counters();
        let found = frames_hit + frames_ahead;
        let asked = found + frames_missed;
        ReadCacheFigures {
            frames: self.core.frames.len() as u64,
            bytes: self.core.frames.resident_bytes() + self.ahead.resident_bytes(),
            bytes_max: self.core.frames.bytes_max() + self.ahead.bytes_max(),
            hits: frames_hit,
            hits_at_doors: self.core.intake.lookaside.chunks.load(Ordering::Relaxed),
            hits_ahead: frames_ahead,
            misses: frames_missed,
            hit_ratio: if asked == 0 { 0.0 } else { found as f64 / asked as f64 },
            hits_to_compare: self.core.counters.frames_hit_to_compare,
            hits_ahead_to_compare: self.core.counters.frames_ahead_to_compare,
            ahead_read_bytes: self.ahead.read_bytes,
            ahead_used_bytes: self.ahead.used_bytes,
        }
    }

    /// What clients can write now, though nothing of it were stored already or could be compressed:
    /// what they are promised room for, or are after the next checkpoints.
    fn free_bytes(&self) -> u64 {
        self.core.intake.lock().space.free_bytes(self.core.placement.coming_room_bytes())
    }

    /// What volumes with a reservation do not map of it yet. The lock ends here: held over the
    /// making of all figures, it would be taken twice.
    fn promised_bytes(&self) -> u64 {
        self.core.intake.lock().space.promised_bytes()
    }

    /// Memory of writes.
    fn write_bytes(&self) -> u64 {
        self.core.intake.credits.used_bytes() + self.core.quota_line.aside_bytes()
    }

    fn under_way(&self) -> UnderWay {
        UnderWay {
            reserved_chunks: self.core.intake.lock().space.reserved_chunks(),
            quota_chunks: self.core.volumes.iter().map(|volume| volume.quota_reserved()).sum(),
            write_bytes: self.write_bytes(),
            read_bytes: self.core.intake.read_credits.used_bytes(),
        }
    }

    fn volume_stats(&self) -> Vec<VolumeStats> {
        let chunk_bytes = u64::from(self.core.geometry.chunk_bytes);
        let figures = |volume: &std::sync::Arc<crate::door::volume::VolumeShared>| VolumeStats {
            name: volume.name(),
            size_bytes: volume.size_bytes(),
            mapped_bytes: chunk_bytes
                * self.core.state.catalog.get(volume.id).map_or(0, |entry| entry.mapped_chunks),
            written: self.core.volumes.written.of(volume.id),
        };
        self.core.volumes.iter().map(figures).collect()
    }

    fn counters(&self) -> Counters {
        let Counters { reads, bytes_read, frames_hit, .. } = self.core.counters;
        let lookaside = &self.core.intake.lookaside;
        Counters {
            reads: reads + lookaside.reads.load(Ordering::Relaxed),
            bytes_read: bytes_read + lookaside.bytes.load(Ordering::Relaxed),
            frames_hit: frames_hit + lookaside.chunks.load(Ordering::Relaxed),
            chunks_absorbed: self.core.buffer.absorbed,
            chunks_damaged: self.core.intake.expanding.damaged.load(Ordering::Relaxed),
            ..self.core.counters.clone()
        }
    }
}

fn ratio(of: u64, to: u64) -> Option<f64> {
    (to > 0).then(|| of as f64 / to as f64)
}

/// What deduplication saves, what compression does, and both: none where there is nothing to
/// divide by.
fn ratios(referenced_bytes: u64, unique_bytes: u64, stored_bytes: u64) -> [Option<f64>; 3] {
    let dedup = ratio(referenced_bytes, unique_bytes).filter(|&ratio| ratio >= 1.0);
    let compression = ratio(unique_bytes, stored_bytes);
    // One division, as an estimate makes it: the product of the two differs in its last digit.
    let both = dedup.and_then(|_| ratio(referenced_bytes, stored_bytes));
    [dedup, compression, both]
}

/// Chunks that a snapshot maps which is there; none for volumes, and for what is being deleted.
fn mapped_by_snapshot(entry: &CatalogEntry) -> Option<u64> {
    let is_snapshot = entry.lineage.snapshot_of.is_some();
    (is_snapshot && entry.state == VolumeState::Live).then_some(entry.mapped_chunks)
}
