//! The classic commands, each with its outcomes. Facts: memcached's protocol and its own tests.

use crate::talk::{Client, NOW_S, check, talk};

#[test]
fn values_are_stored_and_read() {
    check(&[
        ("set a 7 0 2|hi|get a|", "STORED|VALUE a 7 2|hi|END|"),
        ("set a 4294967295 0 0||get a|", "STORED|VALUE a 4294967295 0||END|"),
        ("set a 0 0 4|\r\n\r\n|get a|", "STORED|VALUE a 0 4||||END|"),
        ("set a 0 0 1|x|set a 1 0 1|y|get a|", "STORED|STORED|VALUE a 1 1|y|END|"),
        ("get a|", "END|"),
        ("bget a|", "END|"),
        (
            "set a 0 0 1|1|set b 0 0 1|2|get a c b a|",
            "STORED|STORED|VALUE a 0 1|1|VALUE b 0 1|2|VALUE a 0 1|1|END|",
        ),
        ("set a 0 0 1|1|  get   a  b  |", "STORED|VALUE a 0 1|1|END|"),
        ("set a 0 0 1\n1|get a\n", "STORED|VALUE a 0 1|1|END|"),
        ("set a 0 0 1 noreply|1|get a|", "VALUE a 0 1|1|END|"),
    ]);
}

#[test]
fn stores_have_conditions() {
    check(&[
        ("add a 0 0 1|1|add a 0 0 1|2|get a|", "STORED|NOT_STORED|VALUE a 0 1|1|END|"),
        (
            "replace a 0 0 1|1|set a 0 0 1|1|replace a 3 0 1|2|get a|",
            "NOT_STORED|STORED|STORED|VALUE a 3 1|2|END|",
        ),
        ("append a 0 0 1|1|prepend a 0 0 1|1|", "NOT_STORED|NOT_STORED|"),
        (
            "set a 5 0 1|b|append a 9 0 1|c|prepend a 9 0 1|a|get a|",
            "STORED|STORED|STORED|VALUE a 5 3|abc|END|",
        ),
        (
            "set a 0 0 1|1|gets a|cas a 0 0 1 1|2|cas a 0 0 1 1|3|gets a|",
            "STORED|VALUE a 0 1 1|1|END|STORED|EXISTS|VALUE a 0 1 2|2|END|",
        ),
        ("cas a 0 0 1 1|1|", "NOT_FOUND|"),
        ("set a 0 0 1|1|cas a 0 0 1 0|2|", "STORED|EXISTS|"),
        ("set a 0 0 1|1|cas a 0 0 1 1 noreply|2|get a|", "STORED|VALUE a 0 1|2|END|"),
    ]);
}

#[test]
fn every_change_has_a_version_of_its_own() {
    let answers = talk(
        "set a 0 0 1\r\n1\r\nset b 0 0 1\r\n1\r\nincr a 1\r\nappend b 0 0 1\r\n1\r\ngets a b\r\n\
         touch a 100\r\ngets a\r\n",
    );
    assert!(answers.ends_with(
        "VALUE a 0 1 3\r\n2\r\nVALUE b 0 2 4\r\n11\r\nEND\r\nTOUCHED\r\n\
         VALUE a 0 1 3\r\n2\r\nEND\r\n"
    ));
}

#[test]
fn items_are_deleted() {
    check(&[
        ("delete a|set a 0 0 1|1|delete a|get a|", "NOT_FOUND|STORED|DELETED|END|"),
        ("set a 0 0 1|1|delete a 0|delete a 0|", "STORED|DELETED|NOT_FOUND|"),
        ("set a 0 0 1|1|delete a noreply|delete a 0 noreply|get a|", "STORED|END|"),
        ("delete a 5|", "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]|"),
        ("delete a 0 5|", "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]|"),
        ("delete|delete a 0 noreply x|", "ERROR|ERROR|"),
    ]);
}

#[test]
fn counters_count() {
    check(&[
        ("incr a 1|decr a 1|", "NOT_FOUND|NOT_FOUND|"),
        ("set a 0 0 1|5|incr a 3|decr a 100|", "STORED|8|0|"),
        (
            "set a 0 0 2|10|decr a 1|get a|incr a 1|get a|",
            "STORED|9|VALUE a 0 2|9 |END|10|VALUE a 0 2|10|END|",
        ),
        ("set a 0 0 1|9|incr a 91|get a|", "STORED|100|VALUE a 0 3|100|END|"),
        ("set a 0 0 20|18446744073709551615|incr a 1|", "STORED|0|"),
        ("set a 0 0 19|9223372036854775807|incr a 1|", "STORED|9223372036854775808|"),
        (
            "set a 0 0 2|hi|incr a 1|",
            "STORED|CLIENT_ERROR cannot increment or decrement non-numeric value|",
        ),
        (
            "set a 0 0 0||incr a 1|",
            "STORED|CLIENT_ERROR cannot increment or decrement non-numeric value|",
        ),
        ("set a 0 0 3| 7 |incr a 1|", "STORED|8|"),
        (
            "set a 0 0 21|184467440737095516150|incr a 1|",
            "STORED|CLIENT_ERROR cannot increment or decrement non-numeric value|",
        ),
        ("set a 0 0 1|1|incr a x|", "STORED|CLIENT_ERROR invalid numeric delta argument|"),
        ("set a 0 0 1|1|incr a 1 noreply|get a|", "STORED|VALUE a 0 1|2|END|"),
        ("incr a|incr a 1 2 3|", "ERROR|ERROR|"),
    ]);
}

#[test]
fn items_end_at_their_time() {
    let mut client = Client::new();
    client.say("set a 0 10 1\r\n1\r\nset b 0 -1 1\r\n1\r\nset c 0 0 1\r\n1\r\n");
    client.say(format!("set d 0 {} 1\r\n1\r\n", NOW_S + 5));
    assert_eq!(client.say("get a b c d\r\n").matches("VALUE").count(), 3);
    client.now_s += 5;
    assert_eq!(client.say("get a b c d\r\n").matches("VALUE").count(), 2);
    client.now_s += 5;
    assert_eq!(client.say("get a\r\nadd a 0 0 1\r\n2\r\n"), "END\r\nSTORED\r\n");
    client.now_s += 1 << 40;
    assert_eq!(client.say("get c\r\n"), "VALUE c 0 1\r\n1\r\nEND\r\n");
}

#[test]
fn a_touch_moves_the_end() {
    let mut client = Client::new();
    assert_eq!(client.say("touch a 10\r\ngat 10 a\r\ngat 10\r\n"), "NOT_FOUND\r\nEND\r\nEND\r\n");
    client.say("set a 0 10 1\r\n1\r\nset b 0 10 1\r\n1\r\n");
    assert_eq!(client.say("touch a 100\r\n"), "TOUCHED\r\n");
    assert_eq!(client.say("touch b 100 noreply\r\n"), "");
    client.now_s += 50;
    let answer = client.say("gats 100 a b\r\n");
    assert_eq!(answer, "VALUE a 0 1 1\r\n1\r\nVALUE b 0 1 2\r\n1\r\nEND\r\n");
    client.now_s += 99;
    assert_eq!(client.say("gat 0 a\r\n"), "VALUE a 0 1\r\n1\r\nEND\r\n");
    client.now_s += 1;
    assert_eq!(client.say("get a b\r\n"), "VALUE a 0 1\r\n1\r\nEND\r\n");
    check(&[
        (
            "gat x a|touch a|touch a 1 2 3|gat|",
            "CLIENT_ERROR invalid exptime argument|ERROR|ERROR|ERROR|",
        ),
        ("touch a x|", "CLIENT_ERROR invalid exptime argument|"),
        ("touch a x noreply|set a 0 0 1|1|touch a -1|get a|", "STORED|TOUCHED|END|"),
    ]);
}

#[test]
fn a_flush_removes_what_was_there() {
    check(&[
        (
            "set a 0 0 1|1|flush_all|get a|set a 0 0 1|2|get a|",
            "STORED|OK|END|STORED|VALUE a 0 1|2|END|",
        ),
        ("set a 0 0 1|1|flush_all noreply|get a|", "STORED|END|"),
        ("set a 0 0 1|1|flush_all 0 noreply|get a|", "STORED|END|"),
        ("set a 0 0 1|1|flush_all -1|get a|", "STORED|OK|END|"),
        (
            "flush_all x|flush_all x noreply|flush_all 1 2 3|",
            "CLIENT_ERROR invalid exptime argument|ERROR|",
        ),
    ]);
    let mut client = Client::new();
    assert_eq!(client.say("set a 0 0 1\r\n1\r\nflush_all 10\r\n"), "STORED\r\nOK\r\n");
    client.now_s += 9;
    assert_eq!(client.say("set b 0 0 1\r\n1\r\nget a b\r\n").matches("VALUE").count(), 2);
    client.now_s += 1;
    assert_eq!(client.say("get a b\r\nset c 0 0 1\r\n1\r\n"), "END\r\nSTORED\r\n");
    client.now_s += 100;
    assert_eq!(client.say("get a b c\r\n").matches("VALUE").count(), 1);
}

#[test]
fn what_is_no_command_is_an_error_and_the_next_is_served() {
    let long = "k".repeat(251);
    let fits = "k".repeat(250);
    check(&[
        ("|", "ERROR|"),
        (" |x|nonsense|GET a|getx a|mz a|", "ERROR|ERROR|ERROR|ERROR|ERROR|ERROR|"),
        ("get|gets|gat|gats 1|", "ERROR|ERROR|ERROR|END|"),
        ("set a 0 0|set a|set a 0 0 1 2 3|", "ERROR|ERROR|ERROR|"),
        ("cas a 0 0 1|cas a 0 0 1 x|", "ERROR|CLIENT_ERROR bad command line format|"),
        (
            "set a x 0 1|set a 0 x 1|set a 0 0 x|set a 0 0 -1|",
            &"CLIENT_ERROR bad command line format|".repeat(4),
        ),
        ("set a 0 0 2147483646|", "CLIENT_ERROR bad command line format|"),
        ("set a 0 0 2147483647|", "CLIENT_ERROR bad command line format|"),
        ("set a 4294967296 0 1|", "CLIENT_ERROR bad command line format|"),
        (
            "set a -1 0 1|set a 0 0 x noreply|version x|",
            "CLIENT_ERROR bad command line format|VERSION 1.6.38-tamis|",
        ),
        (
            &format!("get {long}|get a {long} a|delete {long}|incr {long} 1|touch {long} 1|"),
            &"CLIENT_ERROR bad command line format|".repeat(5),
        ),
        (&format!("set {fits} 0 0 1|1|get {fits}|"), &format!("STORED|VALUE {fits} 0 1|1|END|")),
        (&format!("set {long} 0 0 1|"), "CLIENT_ERROR bad command line format|"),
        ("set a 0 0 2|hi!|version|", "CLIENT_ERROR bad data chunk|ERROR|VERSION 1.6.38-tamis|"),
        ("set a 0 0 1 noreply|hi|version|", "ERROR|VERSION 1.6.38-tamis|"),
        (
            "set a 0 0 1|1|set a 0 0 1|234\r\nget a|",
            "STORED|CLIENT_ERROR bad data chunk|ERROR|VALUE a 0 1|1|END|",
        ),
    ]);
}

#[test]
fn other_commands_are_answered() {
    check(&[
        ("version|mn|mn x|", "VERSION 1.6.38-tamis|MN|MN|"),
        (
            "verbosity 1|verbosity 1 noreply|verbosity x|verbosity|",
            "OK|CLIENT_ERROR bad command line format|ERROR|",
        ),
        ("shutdown|shutdown graceful|", "ERROR: shutdown not enabled|ERROR: shutdown not enabled|"),
        (
            "cache_memlimit 7|cache_memlimit 64|cache_memlimit x|cache_memlimit|",
            "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m|OK|ERROR|ERROR|",
        ),
        (
            "watch|lru_crawler crawl all|",
            "CLIENT_ERROR watch commands not allowed|CLIENT_ERROR lru crawler disabled|",
        ),
        (
            "slabs reassign 1 2|slabs automove x|",
            "CLIENT_ERROR slab reassignment disabled|CLIENT_ERROR bad command line format|",
        ),
        ("slabs automove 0|slabs|lru tune|", "OK|ERROR|ERROR|"),
    ]);
}

#[test]
fn a_connection_ends_when_it_is_asked_to() {
    for (said, answered) in [
        ("version\r\nquit\r\nversion\r\n", "VERSION 1.6.38-tamis\r\n"),
        ("quit\r\n", ""),
        ("GET / HTTP/1.0\r\n\r\n", ""),
        ("DELETE HTTP/1.1\r\n", ""),
    ] {
        let mut client = Client::new();
        assert_eq!(client.say(said), answered, "{said}");
        assert!(client.is_closed, "{said}");
    }
}

#[test]
fn requests_that_come_together_are_answered_in_order() {
    let mut said = String::new();
    let mut answered = String::new();
    for number in 0..300 {
        said.push_str(&format!("set k{number} 0 0 3\r\n{:03}\r\nget k{number} none\r\n", number));
        answered.push_str(&format!("STORED\r\nVALUE k{number} 0 3\r\n{:03}\r\nEND\r\n", number));
        if number % 50 == 0 {
            said.push_str("bogus\r\n");
            answered.push_str("ERROR\r\n");
        }
    }
    assert_eq!(talk(said), answered);
}

#[test]
fn one_get_reads_many_keys() {
    let keys: Vec<String> = (0..1000).map(|number| format!("{number:0>250}")).collect();
    let mut said = String::new();
    let mut answered = String::new();
    for key in keys.iter().step_by(2) {
        said.push_str(&format!("set {key} 0 0 1 noreply\r\nx\r\n"));
        answered.push_str(&format!("VALUE {key} 0 1\r\nx\r\n"));
    }
    said.push_str(&format!("get {}\r\nmn\r\n", keys.join(" ")));
    answered.push_str("END\r\nMN\r\n");
    let mut client = Client::new();
    assert_eq!(client.say(said), answered);
}
