//! The connection between the two servers: messages that take their time, cuts, and deaths in the
//! middle of an operation that waits.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use replication::{LinkState, Message, Mirrored, ReplyWait, Secondary};

use crate::dice::Dice;
use crate::objects::step_volume::lock;

/// Messages carried before an operation that waits looks again.
const CARRIED_MAX: u64 = 4;
/// One wait of this number is interrupted.
const STRIKES_ONE_IN: u64 = 60;
/// Waits in which nothing moves until the time limit.
const STILL_MAX: u32 = 3;

/// What has happened while an operation waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strike {
    PrimaryDied,
    SecondaryDied,
}

struct WireState {
    dice: Dice,
    primary: Weak<Mirrored>,
    secondary: Option<Secondary>,
    /// What the secondary said and the primary has not heard.
    answers: VecDeque<Message>,
    is_there: bool,
    strikes: bool,
    struck: Option<Strike>,
    still: u32,
    /// Why the connection was ended by one of them.
    ended: Option<String>,
}

/// The connection.
pub(super) struct Wire {
    state: Mutex<WireState>,
    mark: AtomicU64,
}

impl Wire {
    pub(super) fn new(seed: u64) -> Arc<Self> {
        let state = WireState {
            dice: Dice::new(seed),
            primary: Weak::new(),
            secondary: None,
            answers: VecDeque::new(),
            is_there: false,
            strikes: false,
            struck: None,
            still: 0,
            ended: None,
        };
        Arc::new(Self { state: Mutex::new(state), mark: AtomicU64::new(0) })
    }

    pub(super) fn set_primary(&self, primary: &Arc<Mirrored>) {
        lock(&self.state).primary = Arc::downgrade(primary);
    }

    pub(super) fn set_secondary(&self, secondary: Option<Secondary>) {
        lock(&self.state).secondary = secondary;
    }

    /// Takes the secondary's side away from the connection.
    pub(super) fn take_secondary(&self) -> Option<Secondary> {
        self.cut();
        lock(&self.state).secondary.take()
    }

    /// Whether operations may be interrupted.
    pub(super) fn set_strikes(&self, strikes: bool) {
        lock(&self.state).strikes = strikes;
    }

    pub(super) fn take_strike(&self) -> Option<Strike> {
        lock(&self.state).struck.take()
    }

    pub(super) fn is_there(&self) -> bool {
        lock(&self.state).is_there
    }

    /// What is on its way is lost.
    pub(super) fn cut(&self) {
        let mut state = lock(&self.state);
        state.is_there = false;
        state.answers.clear();
        if let Some(primary) = state.primary.upgrade() {
            primary.primary().cut(0);
        }
    }

    /// Connects the two anew.
    pub(super) fn mend(&self) {
        lock(&self.state).mend();
    }

    /// Why one of them ended the last connection, if one did.
    pub(super) fn ended(&self) -> Option<String> {
        lock(&self.state).ended.clone()
    }

    /// Carries up to `most` messages, one way or the other; false when there was none.
    pub(super) fn carry(&self, most: u64) -> bool {
        let mut state = lock(&self.state);
        let mut has_moved = false;
        for _ in 0..most {
            if !state.is_there {
                return has_moved;
            }
            has_moved |= state.carry_one();
        }
        has_moved
    }

    /// Carries until nothing moves.
    pub(super) fn settle(&self) {
        while self.carry(16) {}
    }
}

impl WireState {
    fn mend(&mut self) {
        self.answers.clear();
        self.ended = None;
        if let Some(primary) = self.primary.upgrade().filter(|_| self.secondary.is_some()) {
            primary.primary().connected(0);
            self.is_there = true;
            self.still = 0;
        }
    }

    /// Something happens while an operation waits; true: it may go on waiting.
    fn strike(&mut self) -> bool {
        self.end("a strike".to_owned());
        match self.dice.below(4) {
            0 => self.struck = Some(Strike::PrimaryDied),
            1 => self.struck = Some(Strike::SecondaryDied),
            2 => {}
            _ => {
                self.mend();
                return true;
            }
        }
        false
    }

    fn carry_one(&mut self) -> bool {
        let Some(primary) = self.primary.upgrade() else { return false };
        if primary.primary().link() == LinkState::Away {
            self.is_there = false;
            return false;
        }
        let hears = self.dice.once_in(2) && !self.answers.is_empty();
        if !hears {
            let compares = self.dice.once_in(3) && primary.compare_some().unwrap_or(false);
            let message = primary.primary().next_message();
            if let Some(message) = message {
                self.tell(message);
                return true;
            }
            if compares || primary.compare_some().unwrap_or(false) {
                return true;
            }
        }
        let Some(answer) = self.answers.pop_front() else {
            // A comparison may have come to its end only now.
            return primary.compare_some().unwrap_or(false) || primary.primary().has_more();
        };
        if let Err(error) = primary.take(answer) {
            self.end(error.to_string());
        }
        true
    }

    fn tell(&mut self, message: Message) {
        let Some(secondary) = self.secondary.as_mut() else {
            return self.end("nobody is there".to_owned());
        };
        match message {
            Message::Hello { version, set, position, .. } => {
                self.answers.push_back(secondary.welcome(version, set, &position));
            }
            message => match secondary.take(message) {
                Ok(answers) => self.answers.extend(answers),
                Err(error) => self.end(error.to_string()),
            },
        }
    }

    fn end(&mut self, why: String) {
        self.is_there = false;
        self.answers.clear();
        self.ended = Some(why);
        if let Some(primary) = self.primary.upgrade() {
            primary.primary().cut(0);
        }
    }
}

impl ReplyWait for Wire {
    fn mark(&self) -> u64 {
        self.mark.load(Ordering::Relaxed)
    }

    fn now(&self) -> u64 {
        0
    }

    fn wait(&self, _mark: u64, _since: u64) -> bool {
        let most = {
            let mut state = lock(&self.state);
            if !state.is_there || state.struck.is_some() {
                return false;
            }
            if state.strikes && state.dice.once_in(STRIKES_ONE_IN) {
                return state.strike();
            }
            1 + state.dice.below(CARRIED_MAX)
        };
        let has_moved = self.carry(most);
        let mut state = lock(&self.state);
        state.still = if has_moved { 0 } else { state.still + 1 };
        state.still < STILL_MAX
    }

    fn wake(&self) {
        self.mark.fetch_add(1, Ordering::Relaxed);
    }
}
