//! What an accelerator did, and how guesses of what is new came out.

use accelerator::{DeviceFigures, EmulatedSettings, Offload, OffloadFigures, Predicted};

use crate::stats::stages::StageClock;

/// What an accelerator did since the store was opened. Times are 0 where nobody keeps time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AcceleratorFigures {
    /// The device and its settings.
    pub device: String,
    /// Batches that it has begun with.
    pub submissions: u64,
    /// Chunks that it fingerprinted.
    pub chunks_hashed: u64,
    /// Chunks that it compressed, with their fingerprints or after the look-up.
    pub chunks_compressed: u64,
    /// Chunks of a batch, beside the most that it may have: 0 to 1; 0 before the first.
    pub batch_fill_ratio: f64,
    /// Batches that it held at one time, at most.
    pub held_max: u64,
    /// Batches that waited for room in it at one time, at most.
    pub waiting_max: u64,
    /// New chunks that were taken for new: compressed with the fingerprint.
    pub predicted_new: u64,
    /// Duplicates that were taken for duplicates: fingerprinted only.
    pub predicted_duplicate: u64,
    /// Duplicates that were taken for new: compressed in vain.
    pub compressed_in_vain: u64,
    /// Their bytes.
    pub in_vain_bytes: u64,
    /// New chunks that were taken for duplicates: submitted twice.
    pub sent_twice: u64,
    /// Part of the chunks that were taken for what they are, 0 to 1; 0 before the first.
    pub predicted_ratio: f64,
    /// Time in which the device had something to do.
    pub active_ns: u64,
    /// Of that time, part that its units that hash were taken, 0 to 1, on average.
    pub hash_busy_ratio: f64,
    /// The same of its units that compress.
    pub compress_busy_ratio: f64,
}

impl AcceleratorFigures {
    /// None without an accelerator.
    pub(crate) fn of(offload: Option<&Offload>, clock: &StageClock) -> Option<Self> {
        let OffloadFigures { predicted, in_vain_bytes, waiting_max, device, capacity } =
            offload?.figures(clock.now());
        let Predicted { new, duplicate, in_vain, sent_twice } = predicted;
        let DeviceFigures { submissions, chunks, active_ticks, .. } = device;
        let busy = |ticks, units| part(ticks, active_ticks * units as u64);
        Some(Self {
            device: EmulatedSettings { capacity }.to_string(),
            submissions,
            chunks_hashed: device.chunks_hashed,
            chunks_compressed: device.chunks_compressed,
            batch_fill_ratio: part(chunks, submissions * capacity.batch_chunks as u64),
            held_max: device.held_max,
            waiting_max,
            predicted_new: new,
            predicted_duplicate: duplicate,
            compressed_in_vain: in_vain,
            in_vain_bytes,
            sent_twice,
            predicted_ratio: predicted.right_ratio(),
            active_ns: clock.ns(active_ticks),
            hash_busy_ratio: busy(device.hash_ticks, capacity.hash_units),
            compress_busy_ratio: busy(device.compress_ticks, capacity.compress_units),
        })
    }
}

fn part(of: u64, all: u64) -> f64 {
    of as f64 / all.max(1) as f64
}
