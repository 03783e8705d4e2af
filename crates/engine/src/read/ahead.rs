//! Stretches of containers that were read before anybody asked for their frames.
//!
//! ```text
//! absent --begin--> coming --arrive--> here --the oldest, when there is no room--> absent
//!                      '--failed: who waits reads for itself--> absent
//! ```
//!
//! A stretch is kept as it came, in one buffer, and found by place: nothing is done for a frame
//! that nobody takes. It is a hint. It counts only while its container is in the life it was read
//! in, and what takes a frame looks whether it is the one that is meant; what is not is read
//! anew. So nothing has to be told when chunks move or containers are freed.
//!
//! Who needs a frame of a stretch on its way waits for it rather than read it a second time: a
//! parked read is tried again, a comparison is handed the stretch.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use disk::AlignedBuf;
use format::units::{ContainerId, Pba};

use crate::devices::Place;
use crate::options::ComparingAhead;
use crate::read::reads::SpanPart;

/// Bytes that one reader has ahead of it at most: some milliseconds of a fast device.
const WINDOW_BYTES_MAX: u64 = 2 << 20;

struct Stretch {
    /// The life of its container.
    sequence: u32,
    end_bytes: u32,
    /// None while it is on its way.
    buf: Option<Arc<AlignedBuf>>,
    /// Bytes of frames that were taken from it.
    used_bytes: u64,
    waiting: Vec<(u64, SpanPart)>,
}

/// Where a frame is as far as stretches go.
#[derive(Debug)]
pub(crate) enum Found {
    Absent,
    /// In the stretch on its way that begins here.
    Coming(Place),
    /// In this buffer, from this byte on.
    Here(Arc<AlignedBuf>, u32),
}

/// A stretch that has come.
pub(crate) struct Arrived {
    /// None where the device did not give it.
    pub(crate) buf: Option<Arc<AlignedBuf>>,
    /// Slots of groups that are to be compared with frames of it.
    pub(crate) waiting: Vec<(u64, SpanPart)>,
}

/// The stretches that are here, or on their way.
pub(crate) struct Ahead {
    stretches: BTreeMap<Place, Stretch>,
    /// Those that are here, the oldest first.
    here: VecDeque<Place>,
    bytes: u64,
    bytes_max: u64,
    /// What runs of comparisons ask for.
    pub(crate) of_comparisons: ComparingAhead,
    /// Bytes that were read, and bytes of frames that were taken.
    pub(crate) read_bytes: u64,
    pub(crate) used_bytes: u64,
}

impl Ahead {
    pub(crate) fn new(bytes_max: u64) -> Self {
        let (stretches, here) = (BTreeMap::new(), VecDeque::new());
        let of_comparisons = ComparingAhead::default();
        let (bytes, read_bytes, used_bytes) = (0, 0, 0);
        Self { stretches, here, bytes, bytes_max, of_comparisons, read_bytes, used_bytes }
    }

    /// Memory that they take.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.bytes
    }

    /// Memory that they take at most.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Bytes that one reader may have ahead of it: several can.
    pub(crate) fn window_bytes(&self) -> u64 {
        (self.bytes_max / 4).min(WINDOW_BYTES_MAX)
    }

    /// Where a frame is; `sequence` is the life that its container is in.
    pub(crate) fn find(&self, pba: Pba, sequence: u32) -> Found {
        match self.covering(pba.container, pba.offset_bytes, sequence) {
            Some((place, stretch)) if pba.offset_bytes + pba.length_bytes <= stretch.end_bytes => {
                match &stretch.buf {
                    Some(buf) => Found::Here(Arc::clone(buf), pba.offset_bytes - place.1),
                    None => Found::Coming(place),
                }
            }
            _ => Found::Absent,
        }
    }

    fn covering(
        &self,
        container: ContainerId,
        at: u32,
        sequence: u32,
    ) -> Option<(Place, &Stretch)> {
        let (place, stretch) = self.stretches.range(..=(container, at)).next_back()?;
        let is_meant = place.0 == container && stretch.sequence == sequence;
        (is_meant && at < stretch.end_bytes).then_some((*place, stretch))
    }

    /// The first byte from `at` on that no stretch has.
    pub(crate) fn covered_to(&self, container: ContainerId, mut at: u32, sequence: u32) -> u32 {
        while let Some((_, stretch)) = self.covering(container, at, sequence) {
            at = stretch.end_bytes;
        }
        at
    }

    /// A frame of the stretch that covers this place was taken.
    pub(crate) fn used(&mut self, pba: Pba) {
        let at = (pba.container, pba.offset_bytes);
        if let Some((place, stretch)) = self.stretches.range_mut(..=at).next_back() {
            let length_bytes = u64::from(stretch.end_bytes - place.1);
            let used_bytes = (stretch.used_bytes + u64::from(pba.length_bytes)).min(length_bytes);
            self.used_bytes += used_bytes - stretch.used_bytes;
            stretch.used_bytes = used_bytes;
        }
    }

    /// Whether this stretch is to be read: from now on it is on its way. Not if there is no room,
    /// or if one begins there already.
    pub(crate) fn begin(&mut self, place: Place, end_bytes: u32, sequence: u32) -> bool {
        let length_bytes = end_bytes - place.1;
        if let Some(earlier) = self.stretches.get(&place) {
            if earlier.sequence == sequence || earlier.buf.is_none() {
                return false;
            }
            self.let_go(place);
        }
        while self.bytes + cost_bytes(length_bytes) > self.bytes_max {
            let Some(&oldest) = self.here.front() else { return false };
            self.let_go(oldest);
        }
        self.bytes += cost_bytes(length_bytes);
        self.read_bytes += u64::from(length_bytes);
        let waiting = Vec::new();
        let stretch = Stretch { sequence, end_bytes, buf: None, used_bytes: 0, waiting };
        self.stretches.insert(place, stretch);
        true
    }

    /// This slot of a group is to be compared with a frame of a stretch on its way.
    pub(crate) fn wait(&mut self, place: Place, group: u64, part: SpanPart) {
        if let Some(stretch) = self.stretches.get_mut(&place) {
            stretch.waiting.push((group, part));
        }
    }

    /// A stretch has come, or could not be read.
    pub(crate) fn arrive(&mut self, place: Place, buf: Option<AlignedBuf>) -> Arrived {
        let buf = buf.map(Arc::new);
        let Some(stretch) = self.stretches.get_mut(&place) else {
            return Arrived { buf, waiting: Vec::new() };
        };
        let waiting = std::mem::take(&mut stretch.waiting);
        stretch.buf = buf.clone();
        match buf {
            Some(_) => self.here.push_back(place),
            None => self.let_go(place),
        }
        Arrived { buf, waiting }
    }

    fn let_go(&mut self, place: Place) {
        if let Some(stretch) = self.stretches.remove(&place) {
            self.bytes -= cost_bytes(stretch.end_bytes - place.1);
        }
        if self.here.front() == Some(&place) {
            self.here.pop_front();
        } else {
            self.here.retain(|here| *here != place);
        }
    }
}

/// What a buffer of this length takes: pools hand out powers of two.
fn cost_bytes(length_bytes: u32) -> u64 {
    u64::from(length_bytes).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::{Ahead, Found};
    use crate::read::reads::SpanPart;
    use disk::AlignedBuf;
    use format::units::{ContainerId, Pba, Pbn};

    const KIB: u32 = 1024;

    fn pba(offset_bytes: u32) -> Pba {
        Pba { container: ContainerId(3), offset_bytes, length_bytes: 100, ..Pba::default() }
    }

    fn place(at: u32) -> (ContainerId, u32) {
        (ContainerId(3), at)
    }

    fn is_here(ahead: &Ahead, offset_bytes: u32, sequence: u32) -> bool {
        matches!(ahead.find(pba(offset_bytes), sequence), Found::Here(..))
    }

    fn read(ahead: &mut Ahead, at: u32, length_bytes: u32) {
        assert!(ahead.begin(place(at), at + length_bytes, 1));
        ahead.arrive(place(at), Some(AlignedBuf::new_zeroed(length_bytes as usize)));
    }

    #[test]
    fn a_frame_is_in_a_stretch_of_its_containers_life_or_not_at_all() {
        let mut ahead = Ahead::new(64 << 10);
        assert!(ahead.begin(place(8 * KIB), 16 * KIB, 1));
        assert!(!ahead.begin(place(8 * KIB), 12 * KIB, 1), "it is on its way");
        assert!(matches!(ahead.find(pba(8 * KIB), 1), Found::Coming(at) if at == place(8 * KIB)));
        let part = SpanPart { at: 5, pba: pba(9 * KIB), pbn: Pbn(1), has_copy: false };
        ahead.wait(place(8 * KIB), 7, part);
        let buf = AlignedBuf::new_zeroed(8 << 10);
        let arrived = ahead.arrive(place(8 * KIB), Some(buf));
        assert!(arrived.waiting.iter().any(|(group, part)| (*group, part.at) == (7, 5)));
        assert!(matches!(ahead.find(pba(9 * KIB), 1), Found::Here(_, at) if at == KIB));
        assert!(!is_here(&ahead, 9 * KIB, 2), "the container was used again");
        assert!(!is_here(&ahead, 8 * KIB - 1, 1) && !is_here(&ahead, 16 * KIB - 99, 1));
        assert!(is_here(&ahead, 16 * KIB - 100, 1));
        assert_eq!(ahead.covered_to(ContainerId(3), 9 * KIB, 1), 16 * KIB);
        assert_eq!(ahead.covered_to(ContainerId(3), 16 * KIB, 1), 16 * KIB);
        // Of the container's next life.
        assert!(ahead.begin(place(8 * KIB), 16 * KIB, 2));
    }

    #[test]
    fn what_did_not_come_is_gone_and_says_who_waited() {
        let mut ahead = Ahead::new(64 << 10);
        assert!(ahead.begin(place(0), 8 * KIB, 1));
        let part = SpanPart { at: 5, pba: pba(0), pbn: Pbn(1), has_copy: false };
        ahead.wait(place(0), 7, part);
        let arrived = ahead.arrive(place(0), None);
        assert!(arrived.buf.is_none() && arrived.waiting.len() == 1);
        assert!(matches!(ahead.find(pba(0), 1), Found::Absent) && ahead.resident_bytes() == 0);
    }

    #[test]
    fn the_oldest_makes_room_and_what_is_on_its_way_does_not() {
        let mut ahead = Ahead::new(32 << 10);
        (0..4).for_each(|number| read(&mut ahead, number * 8 * KIB, 8 * KIB));
        read(&mut ahead, 32 * KIB, 8 * KIB);
        assert!(
            !is_here(&ahead, 0, 1) && is_here(&ahead, 8 * KIB, 1) && is_here(&ahead, 32 * KIB, 1)
        );
        assert!(ahead.begin(place(64 * KIB), 96 * KIB, 1));
        assert_eq!(ahead.resident_bytes(), 32 << 10);
        assert!(!ahead.begin(place(128 * KIB), 132 * KIB, 1), "no room");
    }

    #[test]
    fn what_is_taken_is_counted_once_for_each_byte() {
        let mut ahead = Ahead::new(32 << 10);
        read(&mut ahead, 0, 4 * KIB);
        (0..5).for_each(|_| ahead.used(pba(0)));
        assert_eq!((ahead.read_bytes, ahead.used_bytes), (4096, 500));
        (0..500).for_each(|_| ahead.used(pba(0)));
        assert_eq!(ahead.used_bytes, 4096);
    }
}
