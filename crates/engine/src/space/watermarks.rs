//! Watermarks of a store that fills: which are reached, and what is told of it.

use crate::notice::{Notice, Room};

/// Watermarks of a server that is told of no others, in percent.
pub const WARN_PERCENT_DEFAULT: [u8; 2] = [80, 95];

/// So far below a watermark room must be before it counts as left, in percent.
const SLACK_PERCENT: u64 = 2;

/// The watermarks, and which are reached.
pub(crate) struct Watermarks {
    percents: Vec<u8>,
    /// Of data and of tables: how many watermarks were reached, lowest first.
    reached: [usize; 2],
    /// Whether a write has failed and there has been no room since.
    pub(crate) refused: bool,
}

impl Default for Watermarks {
    fn default() -> Self {
        Self::at(WARN_PERCENT_DEFAULT.into())
    }
}

impl Watermarks {
    /// Watermarks at these percentages, lowest first.
    pub(crate) fn at(percents: Vec<u8>) -> Self {
        Self { percents, reached: [0; 2], refused: false }
    }

    /// The highest watermark that either kind of room has reached.
    pub(crate) fn highest(&self) -> Option<u8> {
        let reached = self.reached.iter().copied().max().unwrap_or(0);
        self.percents.get(reached.checked_sub(1)?).copied()
    }

    /// Takes note of how full a kind of room is, in percent; each watermark passed is told.
    pub(crate) fn note(&mut self, room: Room, percent: u64, mut tell: impl FnMut(Notice)) {
        let reached = &mut self.reached[room as usize];
        while let Some(&mark) = self.percents.get(*reached)
            && percent >= u64::from(mark)
        {
            *reached += 1;
            tell(Notice::RoomRunsOut { room, percent: mark });
        }
        while let Some(&mark) = reached.checked_sub(1).and_then(|below| self.percents.get(below))
            && percent + SLACK_PERCENT <= u64::from(mark)
        {
            *reached -= 1;
            tell(Notice::RoomCameBack { room, percent: mark });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told on the way through these percentages.
    fn told(percents: &[u64]) -> Vec<Notice> {
        let mut marks = Watermarks::default();
        let mut notices = Vec::new();
        for &percent in percents {
            marks.note(Room::Data, percent, |notice| notices.push(notice));
        }
        notices
    }

    #[test]
    fn each_watermark_is_told_once_up_and_once_down() {
        let room = Room::Data;
        let up = |percent| Notice::RoomRunsOut { room, percent };
        let down = |percent| Notice::RoomCameBack { room, percent };
        assert_eq!(told(&[0, 79]), []);
        assert_eq!(told(&[79, 80, 79, 80, 79]), [up(80)]);
        assert_eq!(told(&[80, 78, 79, 80]), [up(80), down(80), up(80)]);
        assert_eq!(told(&[96, 100, 50]), [up(80), up(95), down(95), down(80)]);
    }

    #[test]
    fn either_kind_of_room_reaches_a_watermark() {
        let mut marks = Watermarks::default();
        assert_eq!(marks.highest(), None);
        marks.note(Room::Tables, 97, |_| ());
        assert_eq!(marks.highest(), Some(95));
        marks.note(Room::Data, 81, |_| ());
        marks.note(Room::Tables, 10, |_| ());
        assert_eq!(marks.highest(), Some(80));
    }
}
