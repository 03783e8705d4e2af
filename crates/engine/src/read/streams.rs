//! Who reads on from where it read last: sequential readers, told from the ranges they ask for.
//!
//! A *stream* is a place in a volume at which the next read of a sequential reader would begin. One
//! that begins there, or so little behind that it may have overtaken another in flight, carries the
//! stream on; any other read begins a new stream. A few are remembered, by all volumes together,
//! the one that was carried on longest ago goes first. Random readers begin streams that nobody
//! carries on.
//!
//! After [`READS_MIN`] reads and [`RUN_BYTES_MIN`] bytes what comes next is to be read ahead: as
//! much as was read, up to a window, in halves of it, so that the reader always has half a window.

use std::collections::VecDeque;
use std::ops::Range;

use format::units::VolumeId;

/// Streams that are remembered.
const STREAMS_MAX: usize = 32;
/// Reads and bytes in sequence after which a reader is sequential.
const READS_MIN: u32 = 3;
const RUN_BYTES_MIN: u64 = 96 << 10;

struct Stream {
    volume: VolumeId,
    next_bytes: u64,
    reads: u32,
    run_bytes: u64,
    /// Up to here it has been read ahead.
    ahead_bytes: u64,
}

/// Places at which sequential readers may go on.
#[derive(Default)]
pub(crate) struct Streams {
    /// The one that was carried on last at the end.
    streams: VecDeque<Stream>,
}

impl Streams {
    /// A client reads this; what is to be read ahead because of it, if anything.
    pub(crate) fn follow(
        &mut self,
        volume: VolumeId,
        range: Range<u64>,
        window_bytes: u64,
    ) -> Option<Range<u64>> {
        let length_bytes = range.end - range.start;
        let carries_on = |stream: &Stream| {
            let skipped_bytes = range.start.checked_sub(stream.next_bytes);
            stream.volume == volume && skipped_bytes.is_some_and(|by| by <= 2 * length_bytes)
        };
        let Some(at) = self.streams.iter().rposition(carries_on) else {
            self.begin(volume, &range);
            return None;
        };
        let mut stream = self.streams.remove(at)?;
        stream.next_bytes = range.end;
        stream.reads += 1;
        stream.run_bytes += length_bytes;
        let due = stream.due(window_bytes);
        self.streams.push_back(stream);
        due
    }

    fn begin(&mut self, volume: VolumeId, range: &Range<u64>) {
        let (next_bytes, run_bytes) = (range.end, range.end - range.start);
        if self.streams.len() >= STREAMS_MAX {
            self.streams.pop_front();
        }
        self.streams.push_back(Stream { volume, next_bytes, reads: 1, run_bytes, ahead_bytes: 0 });
    }
}

impl Stream {
    fn due(&mut self, window_bytes: u64) -> Option<Range<u64>> {
        let window_bytes = window_bytes.min(self.run_bytes);
        let is_sequential = self.reads >= READS_MIN && self.run_bytes >= RUN_BYTES_MIN;
        let start_bytes = self.ahead_bytes.max(self.next_bytes);
        let end_bytes = self.next_bytes + window_bytes;
        if !is_sequential || start_bytes + window_bytes / 2 > end_bytes {
            return None;
        }
        self.ahead_bytes = end_bytes;
        Some(start_bytes..end_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::Streams;
    use format::units::VolumeId;
    use std::ops::Range;

    const KIB: u64 = 1024;
    const WINDOW: u64 = 512 * KIB;

    fn reads(
        streams: &mut Streams,
        volume: u32,
        starts: impl Iterator<Item = u64>,
        length_bytes: u64,
    ) -> Vec<Range<u64>> {
        let follow = |start| streams.follow(VolumeId(volume), start..start + length_bytes, WINDOW);
        starts.filter_map(follow).collect()
    }

    #[test]
    fn what_follows_a_sequential_reader_is_asked_for_once_and_before_it_comes() {
        let mut streams = Streams::default();
        let ahead = reads(&mut streams, 1, (0..1000).map(|at| at * 4 * KIB), 4 * KIB);
        assert_eq!(ahead[0], 96 * KIB..192 * KIB);
        assert!(ahead.windows(2).all(|two| two[0].end == two[1].start), "{ahead:?}");
        assert!(ahead.iter().all(|range| range.end - range.start <= WINDOW));
        let reach = ahead.last().unwrap().end;
        assert!((4000 * KIB + WINDOW / 2..=4000 * KIB + WINDOW).contains(&reach), "{reach}");
    }

    #[test]
    fn readers_of_one_volume_and_of_others_do_not_disturb_each_other() {
        let mut streams = Streams::default();
        let mut ahead = [0; 3];
        for at in 0..100 {
            for (reader, (volume, base)) in [(1, 0), (1, 1 << 30), (2, 0)].into_iter().enumerate() {
                let starts = [base + at * 16 * KIB].into_iter();
                ahead[reader] += reads(&mut streams, volume, starts, 16 * KIB).len();
            }
        }
        assert!(ahead.iter().all(|count| *count > 3), "{ahead:?}");
    }

    #[test]
    fn reads_that_overtake_each_other_are_one_stream_still() {
        let mut streams = Streams::default();
        // Two in flight change places now and then; the late one begins a stream of its own.
        let starts = (0..200).map(|at| if at % 10 == 4 { at + 1 } else { at });
        let ahead = reads(&mut streams, 1, starts.map(|at| at * 32 * KIB), 32 * KIB);
        assert!(ahead.len() > 10, "{ahead:?}");
    }

    #[test]
    fn who_jumps_about_gets_nothing_ahead() {
        let mut streams = Streams::default();
        let starts = (0..10_000_u64).map(|at| at.wrapping_mul(2_654_435_761) % 65_536 * 4 * KIB);
        assert_eq!(reads(&mut streams, 1, starts, 4 * KIB), []);
        // Nor who reads the same again, or backwards.
        assert_eq!(reads(&mut streams, 2, (0..100).map(|_| 0), 64 * KIB), []);
        assert_eq!(reads(&mut streams, 3, (0..100).rev().map(|at| at * 64 * KIB), 64 * KIB), []);
    }
}
