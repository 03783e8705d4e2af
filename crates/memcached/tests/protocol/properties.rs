//! Any conversation: the same answers in any pieces, those of a plain model, and never a panic.

use std::collections::HashMap;

use crate::talk::{Client, NOW_S};
use memcached::Limits;
use proptest::prelude::{Strategy, any, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;

/// One command of a client, and what time passes behind it.
#[derive(Clone, Debug)]
enum Step {
    Store { verb: &'static str, key: u8, flags: u32, ttl: i64, value: String, quiet: bool },
    Cas { key: u8, offset: u64, value: String },
    Get { keys: Vec<u8>, has_cas: bool },
    GetTouch { keys: Vec<u8>, ttl: i64 },
    Count { is_down: bool, key: u8, delta: u64 },
    Touch { key: u8, ttl: i64 },
    Delete { key: u8 },
    Flush { delay: u64 },
    Pass { seconds: u64 },
}

fn ttl() -> impl Strategy<Value = i64> {
    select(vec![0, 0, 0, 1, 5, 50, -1, NOW_S as i64 + 20])
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof!["[0-9]{1,3}", "[a-z \r\n]{0,12}", select(vec!["18446744073709551615".to_owned()])]
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0_u8..4;
    let keys = || proptest::collection::vec(0_u8..4, 1..5);
    let verb = select(vec!["set", "set", "add", "replace", "append", "prepend"]);
    let store = (verb, key(), any::<u32>(), ttl(), value(), any::<bool>());
    let store = store.prop_map(|(verb, key, flags, ttl, value, quiet)| Step::Store {
        verb,
        key,
        flags,
        ttl,
        value,
        quiet,
    });
    let cas = (key(), 0_u64..2, value());
    let count = (any::<bool>(), key(), 0_u64..2000);
    prop_oneof![
        4 => store,
        1 => cas.prop_map(|(key, offset, value)| Step::Cas { key, offset, value }),
        3 => (keys(), any::<bool>()).prop_map(|(keys, has_cas)| Step::Get { keys, has_cas }),
        1 => (keys(), ttl()).prop_map(|(keys, ttl)| Step::GetTouch { keys, ttl }),
        2 => count.prop_map(|(is_down, key, delta)| Step::Count { is_down, key, delta }),
        1 => (key(), ttl()).prop_map(|(key, ttl)| Step::Touch { key, ttl }),
        1 => key().prop_map(|key| Step::Delete { key }),
        1 => (0_u64..8).prop_map(|delay| Step::Flush { delay }),
        1 => (1_u64..6).prop_map(|seconds| Step::Pass { seconds }),
    ]
}

#[derive(Clone, Debug)]
struct Entry {
    flags: u32,
    value: String,
    /// 0 is never.
    end_s: i64,
    cas: u64,
}

/// What memcached does, as plainly as it can be said; nothing of it is from the room.
#[derive(Debug, Default)]
struct Plain {
    entries: HashMap<u8, Entry>,
    cas: u64,
    now_s: i64,
    flush_at_s: Option<i64>,
}

impl Plain {
    fn end_s(&self, ttl: i64) -> i64 {
        match ttl {
            0 => 0,
            ttl if ttl < 0 => 1,
            ttl if ttl <= 2_592_000 => self.now_s + ttl,
            ttl => ttl,
        }
    }

    fn expire(&mut self) {
        let now_s = self.now_s;
        if self.flush_at_s.is_some_and(|at_s| at_s <= now_s) {
            self.flush_at_s = None;
            self.entries.clear();
        }
        self.entries.retain(|_, entry| entry.end_s == 0 || entry.end_s > now_s);
    }

    fn put(&mut self, key: u8, flags: u32, value: String, end_s: i64) {
        self.cas += 1;
        let entry = Entry { flags, value, end_s, cas: self.cas };
        self.entries.insert(key, entry);
    }

    fn values(&self, keys: &[u8], has_cas: bool) -> String {
        let mut told = String::new();
        for key in keys {
            if let Some(Entry { flags, value, cas, .. }) = self.entries.get(key) {
                let cas = if has_cas { format!(" {cas}") } else { String::new() };
                told += &format!("VALUE k{key} {flags} {}{cas}\r\n{value}\r\n", value.len());
            }
        }
        told + "END\r\n"
    }

    /// What is sent for a step, and what is answered.
    fn step(&mut self, step: &Step) -> (String, String) {
        self.expire();
        let words = |keys: &[u8]| keys.iter().map(|key| format!(" k{key}")).collect::<String>();
        match step {
            Step::Store { verb, key, flags, ttl, value, quiet } => {
                let noreply = if *quiet { " noreply" } else { "" };
                let said =
                    format!("{verb} k{key} {flags} {ttl} {}{noreply}\r\n{value}\r\n", value.len());
                let told = self.store(verb, *key, *flags, *ttl, value);
                (said, if *quiet { String::new() } else { told.to_owned() })
            }
            Step::Cas { key, offset, value } => {
                let known = self.entries.get(key).map_or(1, |entry| entry.cas);
                let cas = known + offset;
                let said = format!("cas k{key} 0 0 {} {cas}\r\n{value}\r\n", value.len());
                let told = match self.entries.get(key) {
                    None => "NOT_FOUND\r\n",
                    Some(_) if *offset > 0 => "EXISTS\r\n",
                    Some(_) => {
                        self.put(*key, 0, value.clone(), 0);
                        "STORED\r\n"
                    }
                };
                (said, told.to_owned())
            }
            Step::Get { keys, has_cas } => {
                let verb = if *has_cas { "gets" } else { "get" };
                (format!("{verb}{}\r\n", words(keys)), self.values(keys, *has_cas))
            }
            Step::GetTouch { keys, ttl } => {
                let mut told = String::new();
                for key in keys {
                    let one = self.values(&[*key], false);
                    told += one.strip_suffix("END\r\n").unwrap();
                    self.touch(*key, *ttl);
                }
                (format!("gat {ttl}{}\r\n", words(keys)), told + "END\r\n")
            }
            Step::Count { is_down, key, delta } => {
                let verb = if *is_down { "decr" } else { "incr" };
                (format!("{verb} k{key} {delta}\r\n"), self.count(*is_down, *key, *delta))
            }
            Step::Touch { key, ttl } => {
                let told = if self.touch(*key, *ttl) { "TOUCHED\r\n" } else { "NOT_FOUND\r\n" };
                (format!("touch k{key} {ttl}\r\n"), told.to_owned())
            }
            Step::Delete { key } => {
                let is_there = self.entries.remove(key).is_some();
                let told = if is_there { "DELETED\r\n" } else { "NOT_FOUND\r\n" };
                (format!("delete k{key}\r\n"), told.to_owned())
            }
            Step::Flush { delay } => {
                self.flush_at_s = (*delay > 0).then_some(self.now_s + *delay as i64);
                if *delay == 0 {
                    self.entries.clear();
                }
                (format!("flush_all {delay}\r\n"), "OK\r\n".to_owned())
            }
            Step::Pass { seconds } => {
                self.now_s += *seconds as i64;
                (String::new(), String::new())
            }
        }
    }

    fn store(&mut self, verb: &str, key: u8, flags: u32, ttl: i64, value: &str) -> &'static str {
        let old = self.entries.get(&key).cloned();
        match (verb, old) {
            ("add", Some(_)) | ("replace" | "append" | "prepend", None) => return "NOT_STORED\r\n",
            ("append", Some(old)) => self.put(key, old.flags, old.value + value, old.end_s),
            ("prepend", Some(old)) => {
                self.put(key, old.flags, value.to_owned() + &old.value, old.end_s);
            }
            _ => self.put(key, flags, value.to_owned(), self.end_s(ttl)),
        }
        "STORED\r\n"
    }

    fn touch(&mut self, key: u8, ttl: i64) -> bool {
        let end_s = self.end_s(ttl);
        let Some(entry) = self.entries.get_mut(&key) else { return false };
        entry.end_s = end_s;
        self.expire();
        true
    }

    fn count(&mut self, is_down: bool, key: u8, delta: u64) -> String {
        let Some(old) = self.entries.get(&key).cloned() else { return "NOT_FOUND\r\n".to_owned() };
        let text = old.value.trim_start();
        let text = text.split_ascii_whitespace().next().unwrap_or("");
        let number = text.parse::<u64>().ok().filter(|_| old.value.len() <= 64);
        let Some(number) = number else {
            return "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n".to_owned();
        };
        let number =
            if is_down { number.saturating_sub(delta) } else { number.wrapping_add(delta) };
        let value = format!("{number:<width$}", width = old.value.len());
        self.put(key, old.flags, value, old.end_s);
        format!("{number}\r\n")
    }
}

proptest! {
    #[test]
    fn conversations_go_as_in_a_plain_model(steps in proptest::collection::vec(step(), 1..60)) {
        let mut plain = Plain { now_s: NOW_S as i64, ..Plain::default() };
        let mut client = Client::new();
        for step in &steps {
            let (said, told) = plain.step(step);
            client.now_s = plain.now_s as u64;
            prop_assert_eq!(client.say(said), told, "{:?}", step);
        }
    }

    #[test]
    fn pieces_make_no_difference(
        steps in proptest::collection::vec(step(), 1..20),
        piece_bytes in 1_usize..40,
        whole_value_bytes_max in 0_usize..12,
        batch_operations_max in 1_usize..5,
    ) {
        let mut plain = Plain { now_s: NOW_S as i64, ..Plain::default() };
        let mut said = String::new();
        let mut told = String::new();
        for step in steps.iter().filter(|step| !matches!(step, Step::Pass { .. })) {
            let (more_said, more_told) = plain.step(step);
            said += &more_said;
            told += &more_told;
        }
        let limits = Limits { whole_value_bytes_max, batch_operations_max, ..Limits::default() };
        let answers = Client::with(limits).exchange(said.as_bytes(), piece_bytes);
        prop_assert_eq!(String::from_utf8(answers).unwrap(), told);
    }

    #[test]
    fn any_bytes_are_answered_alike_in_any_pieces(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        piece_bytes in 1_usize..9,
    ) {
        let whole = Client::new().exchange(&bytes, usize::MAX);
        prop_assert_eq!(Client::new().exchange(&bytes, piece_bytes), whole);
    }

    #[test]
    fn any_words_are_answered_alike_in_any_pieces(
        words in proptest::collection::vec(word(), 0..60),
        piece_bytes in 1_usize..9,
    ) {
        let said = words.concat();
        let whole = Client::new().exchange(said.as_bytes(), usize::MAX);
        let limits = Limits { whole_value_bytes_max: 1, ..Limits::default() };
        let limits = Limits { batch_operations_max: 2, ..limits };
        prop_assert_eq!(Client::with(limits).exchange(said.as_bytes(), piece_bytes), whole);
    }
}

/// Pieces of lines, right and wrong; but for `stats`, which counts what has been received.
fn word() -> impl Strategy<Value = &'static str> {
    select(vec![
        "\r\n",
        "\r\n",
        "\r\n",
        "\n",
        " ",
        "  ",
        "\r",
        "get ",
        "gets ",
        "gat 10 ",
        "set a 0 0 2",
        "set ",
        "mg a",
        "ms a 2",
        "ms YWJj 2 b",
        "md a",
        "ma a",
        "me a",
        "mn",
        "cas a 0 0 2 1",
        "hi",
        "1",
        " a",
        " b",
        " YWJj b",
        " v",
        " k",
        " q",
        " N30",
        " I",
        " C1",
        " T-1",
        " MA",
        " x",
        " noreply",
        "incr a 1",
        "touch a 1",
        "delete a",
        "flush_all",
        "version",
        "stats settings",
        " 0 0 1",
        "append a 0 0 1",
        "verbosity 1",
        " Oq",
        " E7",
        " s",
        " t",
        " c",
        " f",
        " h",
        " l",
    ])
}
