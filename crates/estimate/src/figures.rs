//! What was counted, made into what a person asks for.
//!
//! Names are those of `tamis stats`: *data* is what a store would map (`logical_bytes` there: whole
//! chunks that are not zeros), *stored* the frames of the unique chunks. What a store needs besides
//! is estimated from the capacity of its pages and told apart.
//!
//! A figure that comes from a sample has a standard error. The sample takes each unique chunk with
//! probability `p = 2^-level`, independently of the others, so a total of `x` over it, divided by
//! `p`, has the variance `(1 - p) / p^2 * sum of x^2`. Ratios of two totals have the usual error of
//! a ratio estimator.

use format::BLOCK_BYTES;
use format::detection::FilterBlocks;
use format::directory::DIRECTORY_ENTRY_BYTES;
use format::{bucket, map_page, pba_page, pointer_page};
use serde::Serialize;

use crate::sample::{Sample, Sums};

/// A figure and its standard error, which is 0 for what was counted exactly.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figure {
    /// The figure.
    pub value: f64,
    /// Its standard error, in the same unit.
    pub error: f64,
}

impl Figure {
    /// `total / self`, where `total` is exact.
    fn into_ratio_of(self, total: u64) -> Self {
        if self.value == 0.0 {
            return Self::exact(1.0);
        }
        let value = total as f64 / self.value;
        Self { value, error: value * self.error / self.value }
    }

    fn exact(value: f64) -> Self {
        Self { value, error: 0.0 }
    }

    fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, error: self.error * factor }
    }

    /// The figure as a count.
    #[must_use]
    pub fn rounded(&self) -> u64 {
        self.value.round() as u64
    }
}

/// What a store with chunks of one size would make of the data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeFigures {
    /// The chunk size.
    pub chunk_bytes: u32,
    /// Whether every fingerprint fitted into memory: no figure has an error then.
    pub exact: bool,
    /// The share of the unique chunks that the figures are from.
    #[serde(rename = "sampled_ratio")]
    pub sampled_fraction: f64,
    /// Of the logical bytes, what is holes or chunks of zeros: nothing of it is stored.
    pub zero_bytes: u64,
    /// Chunks that are not zeros.
    pub data_chunks: u64,
    /// The same in bytes: what a store would map.
    pub data_bytes: u64,
    /// Different chunks.
    pub unique_chunks: Figure,
    /// The same in bytes.
    pub unique_bytes: Figure,
    /// `data_bytes / unique_bytes`.
    pub dedup_ratio: Figure,
    /// One for each codec.
    pub codecs: Vec<CodecFigures>,
}

/// What a store with chunks of one size and one codec would take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CodecFigures {
    /// The codec, as `tamis init --compression` takes it.
    pub compression: String,
    /// Frames, with their headers; what hardly compresses is not compressed.
    pub stored_bytes: Figure,
    /// Directories of containers and pages of tables, estimated.
    pub metadata_bytes: Figure,
    /// Both: what the device gives.
    pub device_bytes: Figure,
    /// `unique_bytes / stored_bytes`.
    pub compression_ratio: Figure,
    /// `data_bytes / stored_bytes`.
    pub reduction_ratio: Figure,
    /// What is saved of the data, metadata counted: `1 - device_bytes / data_bytes`. None where
    /// part of a file was read and the rest was not: what is saved of that part is not what is
    /// saved of the file.
    #[serde(rename = "saved_ratio")]
    pub saved_fraction: Option<Figure>,
}

/// What is counted of one chunk size while data is read.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Chunks that are not zeros.
    pub(crate) data_chunks: u64,
    /// Bytes of files in them: the last chunk of a file may be longer than what is in it.
    pub(crate) nonzero_bytes: u64,
}

/// A sample, spread to all that it stands for.
#[derive(Debug)]
pub(crate) struct Spread {
    pub(crate) chunks: Figure,
    pub(crate) codecs: Vec<CodecSpread>,
}

#[derive(Debug)]
pub(crate) struct CodecSpread {
    pub(crate) frame_bytes: Figure,
    /// Plain bytes to frame bytes.
    pub(crate) compression: Figure,
}

/// What `sample` says of all unique chunks, which have `chunk_bytes` each.
pub(crate) fn spread(sample: &Sample, chunk_bytes: u32) -> Spread {
    let fraction = fraction(sample);
    let entries = sample.entries() as f64;
    // Relative to the sum over the sample, the error of a total has this factor.
    let missed = (1.0 - fraction).sqrt();
    let total = |sum: f64, squares: f64| Figure {
        value: sum / fraction,
        error: missed * squares.sqrt() / fraction,
    };
    let plain_bytes = entries * f64::from(chunk_bytes);
    let codec = |sums: Sums| {
        let sum = sums.bytes as f64;
        let ratio = if sum > 0.0 { plain_bytes / sum } else { 1.0 };
        // Sum over the sample of (plain - ratio * frame)^2.
        let chunk_bytes = f64::from(chunk_bytes);
        let residue =
            chunk_bytes * (plain_bytes - 2.0 * ratio * sum) + ratio * ratio * sums.squares;
        let error = if sum > 0.0 { missed * residue.max(0.0).sqrt() / sum } else { 0.0 };
        CodecSpread {
            frame_bytes: total(sum, sums.squares),
            compression: Figure { value: ratio, error },
        }
    };
    Spread {
        chunks: total(entries, entries),
        codecs: sample.sums().into_iter().map(codec).collect(),
    }
}

/// The share of the unique chunks that is in `sample`.
fn fraction(sample: &Sample) -> f64 {
    0.5_f64.powi(sample.level() as i32)
}

impl SizeFigures {
    /// The same of data that lacks the rest of a file which was read in part.
    pub(crate) fn of_a_part(self) -> Self {
        let codecs = self.codecs.into_iter().map(CodecFigures::of_a_part).collect();
        Self { codecs, ..self }
    }

    /// The figures of chunks of `chunk_bytes` in `logical_bytes` of files; `codecs` are the names
    /// of those that the sample was measured with.
    pub(crate) fn new(
        chunk_bytes: u32,
        logical_bytes: u64,
        tally: Tally,
        sample: &Sample,
        codecs: &[String],
    ) -> Self {
        let spread = spread(sample, chunk_bytes);
        let data_bytes = tally.data_chunks * u64::from(chunk_bytes);
        let unique_bytes = spread.chunks.times(f64::from(chunk_bytes));
        let of_codec = |(codec, name): (&CodecSpread, &String)| {
            CodecFigures::new(name, codec, spread.chunks, &tally, data_bytes)
        };
        Self {
            chunk_bytes,
            exact: sample.level() == 0,
            sampled_fraction: fraction(sample),
            zero_bytes: logical_bytes.saturating_sub(tally.nonzero_bytes),
            data_chunks: tally.data_chunks,
            data_bytes,
            unique_chunks: spread.chunks,
            unique_bytes,
            dedup_ratio: unique_bytes.into_ratio_of(data_bytes),
            codecs: spread.codecs.iter().zip(codecs).map(of_codec).collect(),
        }
    }
}

impl CodecFigures {
    /// The same of data that lacks the rest of a file which was read in part.
    pub(crate) fn of_a_part(self) -> Self {
        Self { saved_fraction: None, ..self }
    }

    fn new(
        name: &str,
        spread: &CodecSpread,
        unique_chunks: Figure,
        tally: &Tally,
        data_bytes: u64,
    ) -> Self {
        let stored_bytes = spread.frame_bytes;
        let metadata_bytes = metadata_bytes(tally.data_chunks, unique_chunks);
        let device_bytes = Figure {
            value: stored_bytes.value + metadata_bytes.value,
            error: stored_bytes.error + metadata_bytes.error,
        };
        let left = device_bytes.times(1.0 / data_bytes.max(1) as f64);
        Self {
            compression: name.to_owned(),
            stored_bytes,
            metadata_bytes,
            device_bytes,
            compression_ratio: spread.compression,
            reduction_ratio: stored_bytes.into_ratio_of(data_bytes),
            saved_fraction: Some(Figure { value: 1.0 - left.value, error: left.error }),
        }
    }
}

/// An entry in a directory and its shares of the pages of the tables, for each unique chunk; a
/// share of a page of a map for each chunk that is mapped.
fn metadata_bytes(data_chunks: u64, unique_chunks: Figure) -> Figure {
    // Pages that point to pages.
    let above = 1.0 + 1.0 / (pointer_page::FANOUT as f64 - 1.0);
    let share_bytes = |entries: f64| BLOCK_BYTES as f64 * above / entries;
    let bucket = share_bytes(f64::from(bucket::LOAD_MEAN));
    let filter = FilterBlocks::default().bits_per_chunk() / 8.0;
    let tables = bucket + filter + share_bytes(pba_page::SLOTS as f64);
    let of_unique = unique_chunks.times(DIRECTORY_ENTRY_BYTES as f64 + tables);
    let of_maps = data_chunks as f64 * share_bytes(map_page::SLOTS as f64);
    Figure { value: of_unique.value + of_maps, error: of_unique.error }
}

#[cfg(test)]
mod tests {
    use format::units::Fingerprint;

    use super::{Figure, SizeFigures, Tally};
    use crate::sample::Sample;

    #[test]
    fn ratios_are_those_of_a_store() {
        let mut sample = Sample::new(1 << 20, 1);
        for byte in 1..=10 {
            let fingerprint = Fingerprint([byte; 32]);
            assert!(sample.take_in(&fingerprint));
            sample.measure(&fingerprint, &[2048]);
        }
        let tally = Tally { data_chunks: 40, nonzero_bytes: 40 * 4096 - 96 };
        let figures = SizeFigures::new(4096, 100 * 4096, tally, &sample, &["lz4".to_owned()]);
        assert!(figures.exact);
        assert_eq!(figures.zero_bytes, 60 * 4096 + 96);
        assert_eq!(figures.data_bytes, 40 * 4096);
        assert_eq!(figures.unique_chunks, Figure { value: 10.0, error: 0.0 });
        assert_eq!(figures.dedup_ratio.value, 4.0);
        let [codec] = figures.codecs.as_slice() else { panic!() };
        assert_eq!(codec.stored_bytes.value, 20480.0);
        assert_eq!((codec.compression_ratio.value, codec.reduction_ratio.value), (2.0, 8.0));
        // 44 in a directory, 53 in a bucket and 1 in its filter, 16 in the PBN-PBA table; 6 in a
        // map.
        let metadata_bytes = codec.metadata_bytes.value;
        assert!((1366.0..1406.0).contains(&metadata_bytes), "{metadata_bytes}");
        let device_bytes = codec.device_bytes.value;
        assert_eq!(device_bytes, 20480.0 + metadata_bytes);
        assert_eq!(codec.saved_fraction.unwrap().value, 1.0 - device_bytes / (40.0 * 4096.0));
    }

    #[test]
    fn of_nothing_nothing_is_saved_and_no_figure_is_odd() {
        let sample = Sample::new(1 << 20, 1);
        let figures = SizeFigures::new(4096, 0, Tally::default(), &sample, &["lz4".to_owned()]);
        assert_eq!(figures.dedup_ratio.value, 1.0);
        for figure in [figures.codecs[0].compression_ratio, figures.codecs[0].reduction_ratio] {
            assert_eq!(figure, Figure { value: 1.0, error: 0.0 });
        }
        assert_eq!(figures.codecs[0].device_bytes, Figure::default());
    }
}
