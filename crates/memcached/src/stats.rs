//! `stats`: what a cache tells of itself, from figures that it gives.
//!
//! The names are memcached's, so that what watches a memcached watches this. What is about slabs
//! and their lists has no meaning here: there is one class, 1, which holds all items.

use std::fmt::Display;
use std::io::Write;

use crate::answer::{Answer, Fault};
use crate::limits::KEY_BYTES_MAX;
use crate::operation::{Get, Operation};
use crate::words::Words;

/// Makes the struct of counts, and what goes over all of them.
macro_rules! counts {
    ($($name:ident)*) => {
        /// What connections count.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the names are memcached's, whose protocol says them")]
        pub struct Counts {
            $( pub $name: u64, )*
        }

        impl Counts {
            /// Adds what another connection has counted.
            pub fn add(&mut self, other: &Counts) {
                $( self.$name += other.$name; )*
            }

            fn each(&self, mut visit: impl FnMut(&'static str, u64)) {
                $( visit(stringify!($name), self.$name); )*
            }
        }
    };
}

counts! {
    cmd_get cmd_set cmd_flush cmd_touch cmd_meta get_hits get_misses delete_misses delete_hits
    incr_misses incr_hits decr_misses decr_hits cas_misses cas_hits cas_badval touch_hits
    touch_misses store_too_large store_no_memory auth_cmds auth_errors bytes_read bytes_written
}

impl Counts {
    /// How many operations on items were asked for.
    #[must_use]
    pub fn operations(&self) -> u64 {
        let deletes = self.delete_hits + self.delete_misses;
        let sums = self.incr_hits + self.incr_misses + self.decr_hits + self.decr_misses;
        self.cmd_get
            + self.cmd_set
            + self.cmd_touch
            + self.cmd_flush
            + self.cmd_meta
            + deletes
            + sums
    }

    pub(crate) fn count_hit(&mut self, get: &Get<'_>) {
        if get.touch.is_some() {
            self.cmd_touch += 1;
            self.touch_hits += 1;
        } else {
            self.cmd_get += 1;
            self.get_hits += 1;
        }
    }

    pub(crate) fn count_fault(&mut self, fault: &Fault) {
        match fault {
            Fault::NoRoom => self.store_no_memory += 1,
            Fault::TooLarge => self.store_too_large += 1,
            Fault::Other(_) => {}
        }
    }

    pub(crate) fn count(&mut self, operation: &Operation<'_>, answer: &Answer) {
        let is_miss = *answer == Answer::NotFound;
        match operation {
            Operation::Get(get) if get.touch.is_some() => {
                self.cmd_touch += 1;
                self.touch_misses += 1;
            }
            Operation::Get(_) => {
                self.cmd_get += 1;
                self.get_misses += 1;
            }
            Operation::Store(store) => {
                self.cmd_set += 1;
                if store.compare.is_some() {
                    match answer {
                        Answer::Stored { .. } => self.cas_hits += 1,
                        Answer::NotFound => self.cas_misses += 1,
                        Answer::Exists => self.cas_badval += 1,
                        _ => {}
                    }
                }
            }
            Operation::Delete(_) if *answer == Answer::Deleted => self.delete_hits += 1,
            Operation::Delete(_) => self.delete_misses += 1,
            Operation::Arithmetic(sum) => {
                let is_hit = matches!(answer, Answer::Number { .. });
                self.decr_hits += u64::from(sum.is_down && is_hit);
                self.decr_misses += u64::from(sum.is_down && is_miss);
                self.incr_hits += u64::from(!sum.is_down && is_hit);
                self.incr_misses += u64::from(!sum.is_down && is_miss);
            }
            Operation::Touch(_) => {
                self.cmd_touch += 1;
                self.touch_hits += u64::from(!is_miss);
                self.touch_misses += u64::from(is_miss);
            }
            Operation::Flush { .. } => self.cmd_flush += 1,
            Operation::Inspect { .. } => self.cmd_meta += 1,
        }
    }
}

/// What a cache gives for `stats`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The process.
    pub pid: u32,
    /// How long it has run, in seconds.
    pub uptime_s: u64,
    /// What `version` answers too.
    pub version: String,
    /// What all connections have counted.
    pub counts: Counts,
    /// Connections now.
    pub connections: u64,
    /// Connections since the start.
    pub connections_total: u64,
    /// Connections that were refused.
    pub connections_rejected: u64,
    /// How many connections there may be.
    pub connections_max: u64,
    /// Threads that serve connections.
    pub threads: u64,
    /// Items now.
    pub items: u64,
    /// Items that were stored since the start.
    pub items_total: u64,
    /// What the items take, in bytes.
    pub bytes: u64,
    /// What they may take, in bytes; 0 is no bound.
    pub bytes_max: u64,
    /// Items that went to make room.
    pub evictions: u64,
    /// Reads of items that had ended.
    pub get_expired: u64,
    /// Reads of items that a flush had removed.
    pub get_flushed: u64,
    /// Items that ended and were removed.
    pub expired: u64,
    /// How many items have each length: the upper bound in bytes, and the count.
    pub sizes: Vec<(u64, u64)>,
    /// The address that is listened at, if it is TCP.
    pub tcp_port: u16,
    /// Whether clients must say who they are.
    pub is_authenticated: bool,
    /// The longest value, in bytes.
    pub value_bytes_max: u64,
}

/// Which figures a client wants, by the words behind `stats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    General,
    Items,
    Slabs,
    Settings,
    Sizes,
    Connections,
    /// Counts are to begin at 0.
    Reset,
    /// Nothing; this line is the answer.
    Refused(&'static [u8]),
}

impl Wanted {
    pub(crate) fn of(arguments: &[u8]) -> Self {
        let mut words = Words(arguments);
        match words.next() {
            None => Wanted::General,
            Some(b"items") => Wanted::Items,
            Some(b"slabs") => Wanted::Slabs,
            Some(b"settings") => Wanted::Settings,
            Some(b"sizes") => Wanted::Sizes,
            Some(b"conns") => Wanted::Connections,
            Some(b"reset") => Wanted::Reset,
            Some(b"detail") => Wanted::Refused(b"CLIENT_ERROR stats detail not allowed\r\n"),
            // There are no slabs whose items could be listed.
            Some(b"cachedump") => Wanted::Refused(match words.count() {
                0 | 1 => b"CLIENT_ERROR bad command line\r\n",
                _ => b"END\r\n",
            }),
            Some(_) => Wanted::Refused(b"ERROR\r\n"),
        }
    }
}

/// Writes lines of figures.
struct Lines<'a>(&'a mut Vec<u8>);

impl Lines<'_> {
    fn say(&mut self, name: impl Display, value: impl Display) {
        // Writing into memory does not fail.
        let _ = write!(self.0, "STAT {name} {value}\r\n");
    }
}

/// Writes the figures that are wanted, and the end.
pub(crate) fn write(wanted: Wanted, figures: &Figures, now_s: u64, out: &mut Vec<u8>) {
    let mut lines = Lines(out);
    match wanted {
        Wanted::General => general(figures, now_s, &mut lines),
        Wanted::Items => items(figures, &mut lines),
        Wanted::Slabs => slabs(figures, &mut lines),
        Wanted::Settings => settings(figures, &mut lines),
        Wanted::Sizes if figures.sizes.is_empty() => lines.say("sizes_status", "disabled"),
        Wanted::Sizes => figures.sizes.iter().for_each(|(size, count)| lines.say(size, count)),
        Wanted::Connections => lines.say("curr_connections", figures.connections),
        Wanted::Reset => return out.extend_from_slice(b"RESET\r\n"),
        Wanted::Refused(line) => return out.extend_from_slice(line),
    }
    out.extend_from_slice(b"END\r\n");
}

fn general(figures: &Figures, now_s: u64, lines: &mut Lines<'_>) {
    lines.say("pid", figures.pid);
    lines.say("uptime", figures.uptime_s);
    lines.say("time", now_s);
    lines.say("version", &figures.version);
    lines.say("pointer_size", usize::BITS);
    lines.say("max_connections", figures.connections_max);
    lines.say("curr_connections", figures.connections);
    lines.say("total_connections", figures.connections_total);
    lines.say("rejected_connections", figures.connections_rejected);
    figures.counts.each(|name, count| lines.say(name, count));
    lines.say("get_expired", figures.get_expired);
    lines.say("get_flushed", figures.get_flushed);
    lines.say("limit_maxbytes", figures.bytes_max);
    lines.say("accepting_conns", 1);
    lines.say("threads", figures.threads);
    lines.say("bytes", figures.bytes);
    lines.say("curr_items", figures.items);
    lines.say("total_items", figures.items_total);
    lines.say("evictions", figures.evictions);
    lines.say("reclaimed", figures.expired);
}

fn items(figures: &Figures, lines: &mut Lines<'_>) {
    if figures.items == 0 {
        return;
    }
    lines.say("items:1:number", figures.items);
    lines.say("items:1:mem_requested", figures.bytes);
    lines.say("items:1:evicted", figures.evictions);
    lines.say("items:1:reclaimed", figures.expired);
}

fn slabs(figures: &Figures, lines: &mut Lines<'_>) {
    let counts = &figures.counts;
    if figures.items > 0 {
        lines.say("1:used_chunks", figures.items);
        lines.say("1:mem_requested", figures.bytes);
        lines.say("1:get_hits", counts.get_hits);
        lines.say("1:cmd_set", counts.cmd_set);
        lines.say("1:delete_hits", counts.delete_hits);
        lines.say("1:incr_hits", counts.incr_hits);
        lines.say("1:decr_hits", counts.decr_hits);
        lines.say("1:cas_hits", counts.cas_hits);
        lines.say("1:cas_badval", counts.cas_badval);
        lines.say("1:touch_hits", counts.touch_hits);
    }
    lines.say("active_slabs", u8::from(figures.items > 0));
    lines.say("total_malloced", figures.bytes);
}

fn settings(figures: &Figures, lines: &mut Lines<'_>) {
    let yes_no = |is_so| if is_so { "yes" } else { "no" };
    lines.say("maxbytes", figures.bytes_max);
    lines.say("maxconns", figures.connections_max);
    lines.say("tcpport", figures.tcp_port);
    lines.say("udpport", 0);
    lines.say("evictions", if figures.bytes_max > 0 { "on" } else { "off" });
    lines.say("num_threads", figures.threads);
    lines.say("cas_enabled", "yes");
    lines.say("auth_enabled_ascii", yes_no(figures.is_authenticated));
    lines.say("binding_protocol", "ascii");
    lines.say("item_size_max", figures.value_bytes_max);
    lines.say("key_bytes_max", KEY_BYTES_MAX);
    lines.say("client_flags_size", size_of::<u32>());
    lines.say("flush_enabled", "yes");
    lines.say("dump_enabled", "no");
    lines.say("watch_enabled", "no");
    lines.say("shutdown_command", "no");
}
