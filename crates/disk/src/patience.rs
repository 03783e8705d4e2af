//! Looking again and again before falling asleep.
//!
//! To be woken takes a thread 20 to 50 us, in a virtual machine most of all: as long as a flash
//! device takes for a write. A thread that expects something sooner than that does better to look
//! for it a little while before it sleeps. What that costs is the processor meanwhile; so it is
//! done only where it has paid: each wait is remembered as *short* (over within the patience,
//! asleep or not) or long, and a thread looks again only if enough of its last waits were short.
//! One whose next request comes seldom sleeps at once; so does one without any patience.
//!
//! While it looks it gives the processor to whoever else wants it (`sched_yield`). When that took
//! long, others have work for this processor: the thread *rests* then, sleeping at once for some
//! waits, and for twice as many each time that it happens again soon. A thread that looks uses up
//! its share of a busy processor and has to wait for the next; one that sleeps is let in when it
//! wakes.
//!
//! Of many threads that wait alike, as the readers of connections do, one looks only while few
//! others are at work ([`Crowd`]): the processors are for those who work, and whoever sleeps finds
//! several requests together when it wakes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Waits that are remembered.
const REMEMBERED: u32 = 16;
/// So many of them have to be short.
const SHORT_MIN: u32 = 4;
/// Looks between two that yield the processor and read the clock.
const LOOKS_PER_YIELD: u32 = 8;
/// Whoever gets the processor back later than this was in the way of somebody else's work: longer
/// than a client takes for its next request, shorter than the kernel's shares of a processor.
const DISPLACED_MIN: Duration = Duration::from_micros(200);
/// Waits without a look after that, the first time and at most.
const REST_WAITS: u32 = 32;
const REST_WAITS_MAX: u32 = 2048;
/// Whoever is in nobody's way for so long begins with the first again.
const RESTED: Duration = Duration::from_millis(250);

/// Waits of a thread in which those of all are counted; and how many it adds to them at once, for
/// what all write to is slow.
const COUNTED_WAITS: u64 = 64;
const ADDED_WAITS: u64 = 8;
const _: () = assert!(COUNTED_WAITS.is_multiple_of(ADDED_WAITS));

/// Threads that wait alike, by how often they do. One of them looks while all together wait no more
/// often than so many as it is would: those who wait seldom are in nobody's way.
#[derive(Debug)]
pub struct Crowd {
    looking_max: u64,
    /// Of all of them.
    waits: AtomicU64,
}

impl Crowd {
    /// So many that are at work look.
    #[must_use]
    pub fn new(looking_max: usize) -> Self {
        Self { looking_max: looking_max as u64, waits: AtomicU64::new(0) }
    }
}

/// One of a [`Crowd`].
#[derive(Clone, Debug)]
struct Member {
    crowd: Arc<Crowd>,
    /// Its waits since it last began to count, and those of all then.
    own_waits: u64,
    waits_then: u64,
    may_look: bool,
}

impl Member {
    /// It waits once more; whether it may look.
    fn waits(&mut self) -> bool {
        if self.own_waits == 0 {
            self.waits_then = self.crowd.waits.load(Ordering::Relaxed);
        }
        self.own_waits += 1;
        if self.own_waits.is_multiple_of(ADDED_WAITS) {
            self.crowd.waits.fetch_add(ADDED_WAITS, Ordering::Relaxed);
        }
        if self.own_waits == COUNTED_WAITS {
            let waits = self.crowd.waits.load(Ordering::Relaxed);
            // Half of one more, for those who wait seldom.
            let waits_max = COUNTED_WAITS * self.crowd.looking_max * 3 / 2;
            self.may_look = waits.wrapping_sub(self.waits_then) <= waits_max;
            self.own_waits = 0;
        }
        self.may_look
    }
}

/// How long one thread looks before it sleeps, and how that went.
#[derive(Clone, Debug)]
pub struct Patience {
    at_most: Duration,
    /// None: it looks whoever else does.
    member: Option<Member>,
    /// A bit for each of the last waits: it was short.
    short: u16,
    /// Waits that are left of a rest.
    resting: u32,
    /// The waits of the last rest, and when it began.
    rest: Option<(u32, Instant)>,
}

/// One wait; it is over when dropped.
pub struct Wait<'a> {
    patience: &'a mut Patience,
    /// None where there is no patience at all.
    begun: Option<Instant>,
    /// When the clock was last read.
    read: Option<Instant>,
    looks: bool,
    count: u32,
}

impl Patience {
    /// Of so many microseconds at most; 0: never looks, and reads no clock.
    #[must_use]
    pub fn of_us(at_most_us: u32) -> Self {
        let at_most = Duration::from_micros(at_most_us.into());
        Self { at_most, member: None, short: 0, resting: 0, rest: None }
    }

    /// The same for one of several threads that wait alike.
    #[must_use]
    pub fn among(self, crowd: Arc<Crowd>) -> Self {
        let member = Member { crowd, own_waits: 0, waits_then: 0, may_look: true };
        Self { member: Some(member), ..self }
    }

    /// Something is waited for from now on.
    pub fn wait(&mut self) -> Wait<'_> {
        let begun = (!self.at_most.is_zero()).then(Instant::now);
        let may_look = begun.is_some() && self.member.as_mut().is_none_or(Member::waits);
        let looks = may_look && self.resting == 0 && self.short.count_ones() >= SHORT_MIN;
        self.resting = self.resting.saturating_sub(1);
        Wait { patience: self, begun, read: begun, looks, count: 0 }
    }

    fn rest(&mut self, now: Instant) {
        self.resting = match self.rest {
            Some((waits, begun)) if now - begun < RESTED => (waits * 2).min(REST_WAITS_MAX),
            _ => REST_WAITS,
        };
        self.rest = Some((self.resting, now));
    }

    fn remember(&mut self, took: Duration) {
        const _: () = assert!(REMEMBERED == u16::BITS);
        self.short = self.short << 1 | u16::from(took <= self.at_most);
    }
}

impl Wait<'_> {
    /// Whether to look once more rather than sleep.
    pub fn looks_again(&mut self) -> bool {
        if !self.looks {
            return false;
        }
        self.count += 1;
        if self.count.is_multiple_of(LOOKS_PER_YIELD) {
            std::thread::yield_now();
            self.note_time(Instant::now());
        } else {
            std::hint::spin_loop();
        }
        self.looks
    }

    /// It is `now`, after a yield: is this still worth it?
    fn note_time(&mut self, now: Instant) {
        let Some((begun, read)) = self.begun.zip(self.read.replace(now)) else { return };
        let was_displaced = now - read > DISPLACED_MIN;
        if was_displaced {
            self.patience.rest(now);
        }
        self.looks = !was_displaced && now - begun <= self.patience.at_most;
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if let Some(begun) = self.begun {
            self.patience.remember(begun.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Arc, COUNTED_WAITS, Crowd, DISPLACED_MIN, Duration, Instant, Patience, REST_WAITS,
        REST_WAITS_MAX, RESTED, SHORT_MIN,
    };

    const LONG_US: u32 = 3_600_000_000;
    const LONGER: Duration = Duration::from_secs(7200);

    #[test]
    fn who_has_none_never_looks() {
        let mut patience = Patience::of_us(0);
        (0..40).for_each(|_| drop(patience.wait()));
        assert!(!patience.wait().looks_again());
    }

    #[test]
    fn one_looks_again_after_short_waits_and_not_after_long_ones() {
        let mut patience = Patience::of_us(LONG_US);
        for short in 0..40 {
            assert_eq!(patience.wait().looks_again(), short >= SHORT_MIN, "after {short}");
        }
        (0..12).for_each(|_| patience.remember(LONGER));
        assert!(patience.wait().looks_again());
        (0..12).for_each(|_| patience.remember(LONGER));
        assert!(!patience.wait().looks_again());
    }

    #[test]
    fn looking_ends() {
        let mut patience = Patience::of_us(1);
        patience.short = u16::MAX;
        let mut wait = patience.wait();
        while wait.looks_again() {}
        assert!(!wait.looks_again());
        drop(wait);
        assert_eq!(patience.short, u16::MAX - 1);
    }

    /// One that would look for an hour.
    fn long() -> Patience {
        Patience { short: u16::MAX, ..Patience::of_us(LONG_US) }
    }

    /// A wait in which the processor is gone until `back`, for longer than it may be.
    fn be_displaced(patience: &mut Patience, back: Instant) {
        patience.resting = 0;
        let mut wait = patience.wait();
        assert!(wait.looks_again());
        wait.note_time(back);
        assert!(!wait.looks_again());
    }

    fn waits_until_it_looks(patience: &mut Patience) -> u32 {
        (0..).find(|_| patience.wait().looks_again()).unwrap()
    }

    #[test]
    fn whoever_is_in_the_way_rests_and_longer_the_next_time() {
        let mut patience = long();
        // Far ahead, so that it does not matter how long the test takes.
        let begun = Instant::now() + LONGER;
        be_displaced(&mut patience, begun);
        assert_eq!(waits_until_it_looks(&mut patience), REST_WAITS);
        be_displaced(&mut patience, begun + DISPLACED_MIN);
        assert_eq!(waits_until_it_looks(&mut patience), 2 * REST_WAITS);
        (0..20).for_each(|_| be_displaced(&mut patience, begun + DISPLACED_MIN));
        assert_eq!(patience.resting, REST_WAITS_MAX);
        be_displaced(&mut patience, begun + DISPLACED_MIN + RESTED);
        assert_eq!(patience.resting, REST_WAITS, "it had been in nobody's way");
    }

    fn looks(one: &mut Patience) -> bool {
        one.wait().looks_again()
    }

    /// How many of them look when all have waited in turn for a while.
    fn how_many_look(all: &mut [Patience]) -> usize {
        for _ in 0..4 * COUNTED_WAITS {
            all.iter_mut().for_each(|one| drop(one.wait()));
        }
        all.iter_mut().filter_map(|one| looks(one).then_some(())).count()
    }

    #[test]
    fn who_waits_among_many_does_not_look() {
        let crowd = Arc::new(Crowd::new(2));
        let mut all = [(); 4].map(|()| long().among(Arc::clone(&crowd)));
        assert_eq!(how_many_look(&mut all), 0, "four are at work");
        assert_eq!(how_many_look(&mut all[..1]), 1, "the others have ceased to wait");
        assert_eq!(how_many_look(&mut all[..2]), 2);
        assert_eq!(how_many_look(&mut all[..3]), 3, "half of one more is let pass");
        assert_eq!(how_many_look(&mut all), 0);
        assert!(looks(&mut long().among(crowd)), "a new one is given the chance");
    }

    #[test]
    fn who_waits_seldom_keeps_nobody_from_looking() {
        let crowd = Arc::new(Crowd::new(1));
        let (mut often, mut seldom) = (long().among(Arc::clone(&crowd)), long().among(crowd));
        for _ in 0..4 * COUNTED_WAITS {
            (0..4).for_each(|_| drop(often.wait()));
            drop(seldom.wait());
        }
        assert!(looks(&mut often) && !looks(&mut seldom));
    }
}
