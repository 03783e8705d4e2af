//! Any conversation, byte by byte that of the plain model: all commands, pipelined, over time.

use memcached::model::ModelCache;
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use proptest::sample::select;
use proptest::test_runner::Config;

use crate::rig::{Client, NOW_S, Rig, client, noise};

/// What a client sends at once, and the seconds that pass behind it.
#[derive(Clone, Debug)]
struct Turn {
    commands: Vec<Vec<u8>>,
    pass_s: u64,
}

fn ttl() -> impl Strategy<Value = i64> {
    select(vec![0, 0, 0, 1, 5, 50, -1, NOW_S as i64 + 20])
}

fn key() -> impl Strategy<Value = String> {
    select(vec!["a", "b", "c", "key-of-some-length"]).prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    let length = select(vec![0, 1, 511, 512, 513, 4096, 5000, 30_000, 65_536, 65_537, 200_000]);
    prop_oneof![
        2 => "[0-9]{1,3}".prop_map(String::into_bytes),
        2 => "[a-z \r\n]{0,12}".prop_map(String::into_bytes),
        1 => select(vec![b"18446744073709551615".to_vec()]),
        3 => (length, any::<u64>()).prop_map(|(length, seed)| noise(length, seed)),
    ]
}

fn classic_store() -> impl Strategy<Value = Vec<u8>> {
    let verb = select(vec!["set", "set", "add", "replace", "append", "prepend", "cas"]);
    let parts = (verb, key(), any::<u32>(), ttl(), value(), 0_u64..12, any::<bool>());
    parts.prop_map(|(verb, key, flags, ttl, value, cas, is_quiet)| {
        let cas = if verb == "cas" { format!(" {cas}") } else { String::new() };
        let quiet = if is_quiet { " noreply" } else { "" };
        let flags = flags % 3;
        let line = format!("{verb} {key} {flags} {ttl} {}{cas}{quiet}\r\n", value.len());
        [line.as_bytes(), &value, b"\r\n"].concat()
    })
}

fn meta_store() -> impl Strategy<Value = Vec<u8>> {
    let flags = vec![
        "",
        "T0",
        "T5",
        "c",
        "F7",
        "C3",
        "C9",
        "I C2",
        "MA",
        "MP",
        "MR",
        "ME",
        "MS",
        "E7",
        "E900",
        "MA N30",
        "MP N0",
        "b k O9",
        "q",
        "s",
        "I C1 c T30",
        "r0",
        "r3 N5",
        "a2",
        "a*",
        "e1",
        "a4 F3",
    ];
    let parts = (key(), select(flags.clone()), select(flags), value());
    parts.prop_map(|(key, a, b, value)| {
        // One mode and one of each flag: others are refused by the parser, which has its own tests.
        let b =
            if a.split(' ').any(|word| b.contains(&word[..word.len().min(1)])) { "" } else { b };
        let is_base64 = a.contains('b') || b.contains('b');
        let key = if is_base64 { "YWI=" } else { &key };
        let line = format!("ms {key} {} {a} {b}\r\n", value.len());
        [line.as_bytes(), &value, b"\r\n"].concat()
    })
}

fn meta_line() -> impl Strategy<Value = Vec<u8>> {
    let get = select(vec![
        "v",
        "s v",
        "f c t s k v O1",
        "h l t",
        "v N30 c t",
        "v R30 c",
        "v R3 T60",
        "T9 t",
        "v u h",
        "v N30 T8 R20 c",
        "q v",
        "E77 N5 v c",
        "v r1:3 s",
        "v r100:70000",
        "v e1 n",
        "v e0:2 a n T9",
        "n a",
        "",
    ]);
    let delete = select(vec!["", "I", "I T30", "C4", "x", "x I T5", "x F3", "E99 I", "q", "I c"]);
    let count = select(vec![
        "",
        "v",
        "MD D3 v",
        "N30 J7 v c t",
        "T9 v t",
        "C3 v",
        "D18446744073709551615 v",
        "E55 c",
    ]);
    let line = |verb: &'static str| {
        move |(key, flags): (String, &'static str)| format!("{verb} {key} {flags}\r\n").into_bytes()
    };
    prop_oneof![
        3 => (key(), get).prop_map(line("mg")),
        2 => (key(), delete).prop_map(line("md")),
        2 => (key(), count).prop_map(line("ma")),
        1 => key().prop_map(|key| format!("me {key}\r\n").into_bytes()),
    ]
}

fn classic_line() -> impl Strategy<Value = Vec<u8>> {
    let keys = || vec(key(), 1..5).prop_map(|keys| keys.join(" "));
    let verb = select(vec!["get", "gets"]);
    let touch = select(vec!["gat", "gats"]);
    let touched = (touch, ttl(), keys());
    let sum = select(vec!["incr", "decr"]);
    prop_oneof![
        3 => (verb, keys()).prop_map(|(verb, keys)| format!("{verb} {keys}\r\n")),
        1 => touched.prop_map(|(verb, ttl, keys)| format!("{verb} {ttl} {keys}\r\n")),
        2 => (sum, key(), 0_u64..2000).prop_map(|(verb, key, by)| format!("{verb} {key} {by}\r\n")),
        1 => (key(), ttl()).prop_map(|(key, ttl)| format!("touch {key} {ttl}\r\n")),
        1 => key().prop_map(|key| format!("delete {key}\r\n")),
    ]
    .prop_map(String::into_bytes)
}

fn turn() -> impl Strategy<Value = Turn> {
    let flush = (0_u64..8).prop_map(|delay| format!("flush_all {delay}\r\n").into_bytes());
    let command = prop_oneof![
        8 => classic_store(),
        5 => meta_store(),
        9 => classic_line(),
        8 => meta_line(),
        1 => flush,
    ];
    let pass_s = select(vec![0, 0, 0, 1, 2, 6]);
    (vec(command, 1..9), pass_s).prop_map(|(commands, pass_s)| Turn { commands, pass_s })
}

fn talk(rig: &Rig, hot_bytes: u64, turns: &[Turn]) {
    let items = rig.items(hot_bytes);
    let (mut items, mut model) = (client(&items), Client::new(ModelCache::default()));
    for (number, turn) in turns.iter().enumerate() {
        let sent = turn.commands.concat();
        let (answered, expected) = (items.say(&sent), model.say(&sent));
        assert!(
            answered == expected,
            "turn {number}\nis   {}\nwant {}\nafter\n{}",
            shown(&answered),
            shown(&expected),
            turns[..=number].iter().map(shown_turn).collect::<String>(),
        );
        items.now_s += turn.pass_s;
        model.now_s += turn.pass_s;
    }
}

/// Bytes as a reader of a failure wants them: not all of a long value.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", " | ");
    let short = |line: &str| line.chars().take(50).collect::<String>();
    text.split(" | ").map(short).collect::<Vec<_>>().join(" | ")
}

fn shown_turn(turn: &Turn) -> String {
    let commands = turn.commands.iter().map(|command| format!("  {}\n", shown(command)));
    commands.collect::<String>() + &format!("  ({} s)\n", turn.pass_s)
}

proptest! {
    #![proptest_config(Config { cases: 64, ..Config::default() })]

    #[test]
    fn items_answer_as_the_model_does(turns in vec(turn(), 1..25)) {
        talk(&Rig::new(), 64 << 20, &turns);
    }

    /// Without memory nobody knows when an item was read; all else is as it is.
    #[test]
    fn without_memory_they_do_as_well(turns in vec(turn(), 1..15)) {
        let is_told = |command: &Vec<u8>| {
            let line = command.split(|byte| *byte == b'\r').next().unwrap_or_default();
            let line = String::from_utf8_lossy(line);
            line.starts_with("me ") || line.starts_with("mg") && line.contains(['h', 'l'])
        };
        let mut turns = turns;
        turns.iter_mut().for_each(|turn| turn.commands.retain(|command| !is_told(command)));
        talk(&Rig::new(), 0, &turns);
    }
}

#[test]
fn the_conversation_reaches_what_it_is_for() {
    let rig = Rig::new();
    let items = rig.items(64 << 20);
    let mut client = client(&items);
    let long = noise(300_000, 7);
    client.say([b"set a 5 0 300000\r\n".as_slice(), &long, b"\r\n"].concat());
    client.say([b"append a 0 0 300000\r\n".as_slice(), &long, b"\r\n"].concat());
    let told = client.say("gets a\r\n");
    let head = b"VALUE a 5 600000 2\r\n";
    prop_like(&told, head, &[&long[..], &long].concat());
    assert_eq!(
        client.text("set n 0 0 2\r\n10\r\nincr n 5\r\nget n\r\n"),
        "STORED\r\n15\r\nVALUE n 0 2\r\n15\r\nEND\r\n"
    );
    assert_eq!(client.text("flush_all\r\nget n a\r\n"), "OK\r\nEND\r\n");
}

fn prop_like(told: &[u8], head: &[u8], value: &[u8]) {
    assert!(told.starts_with(head) && told.ends_with(b"\r\nEND\r\n"));
    assert!(&told[head.len()..told.len() - 7] == value);
}
