//! The meta commands and each of their flags. Facts: memcached's protocol and its own tests.

use crate::talk::{Client, check, talk};

#[test]
fn a_meta_set_stores_and_a_meta_get_reads() {
    check(&[
        ("ms a 2|hi|mg a v|mg a|mg b v|mg b|", "HD|VA 2|hi|HD|EN|EN|"),
        ("ms a 2 F7 T90|hi|mg a t f s v k|", "HD|VA 2 t90 f7 s2 ka|hi|"),
        ("ms a 0|| mg a s v t|", "HD|VA 0 s0 t-1||"),
        ("ms a 2 Oabc k c s|hi|", "HD Oabc ka c1 s2|"),
        ("ms a 2 c|hi|mg a c|set a 0 0 1|1|mg a c|", "HD c1|HD c1|STORED|HD c2|"),
        ("mg a Oxyz k v|", "EN Oxyz ka|"),
        ("ms a 1 O|x|", "HD O|"),
        ("mg a P/path Lx v|ms a 1 Px L|x|", "EN|HD|"),
    ]);
}

#[test]
fn answers_have_the_order_of_the_flags() {
    let answers = talk("ms a 2 F3\r\nhi\r\nmg a v s f t\r\nmg a t f s v\r\nmg a k c Oq\r\n");
    assert_eq!(answers, "HD\r\nVA 2 s2 f3 t-1\r\nhi\r\nVA 2 t-1 f3 s2\r\nhi\r\nHD ka c1 Oq\r\n");
}

#[test]
fn quiet_commands_say_only_what_matters() {
    check(&[
        ("ms a 1 q|x|mg a v q|mg b v q|md a q|md a q|mn|", "VA 1|x|NF|MN|"),
        ("ms a 1 q C5|x|", "NF|"),
        ("ms a 1|x|ms a 1 q ME|y|ms a 1 q C9|y|md a q C9|", "HD|NS|EX|EX|"),
        ("ms a 1 q|xy|mn|", "CLIENT_ERROR bad data chunk|ERROR|MN|"),
        ("ma a q|ma a q N0|ma a q|ma a v q|mg a v|", "NF|HD|VA 1|2|"),
        ("mg a q N30 s|", "HD s0 W|"),
        ("mg a q v v|", "CLIENT_ERROR duplicate flag|"),
    ]);
}

#[test]
fn a_meta_set_has_modes() {
    check(&[
        ("ms a 1 ME|x|ms a 1 ME|y|mg a v|", "HD|NS|VA 1|x|"),
        ("ms a 1 MR|x|ms a 1 MS|x|ms a 1 MR|y|mg a v|", "NS|HD|HD|VA 1|y|"),
        ("ms a 1 MA|x|ms a 1 MP|x|", "NS|NS|"),
        ("ms a 1 T90|b|ms a 1 MA s|c|ms a 1 MP s|a|mg a v t|", "HD|HD s2|HD s3|VA 3 t90|abc|"),
        ("ms a 1 MA N30 s|b|ms a 1 MA N90 s|c|mg a v t|", "HD s1|HD s2|VA 2 t30|bc|"),
        ("ms a 1 MP N0 F7|b|mg a v f|", "HD|VA 1 f7|b|"),
        ("ms a 1|x|ms a 1 MA C9|y|ms a 1 MA C1|y|mg a v|", "HD|EX|HD|VA 2|xy|"),
        ("ms a 1 MZ|x|mn|", "CLIENT_ERROR invalid mode for ms M token|MN|"),
        ("ms a 1 MSS|x|mn|", "CLIENT_ERROR incorrect length for M token|MN|"),
    ]);
}

#[test]
fn a_meta_set_compares_versions() {
    check(&[
        ("ms a 1 C1|x|", "NF|"),
        ("ms a 1|x|ms a 1 c C9|y|ms a 1 c C1|y|mg a v|", "HD|EX c0|HD c2|VA 1|y|"),
        ("ms a 1 E973|x|mg a c|ms a 1 c C973 E4000|y|", "HD|HD c973|HD c4000|"),
        ("ms a 1 C0|x|ms a 1|x|ms a 1 C0|y|", "NF|HD|EX|"),
        ("ms a 1|x|ms a 1 MR C9|y|ms a 1 MR C1|y|", "HD|EX|HD|"),
    ]);
}

#[test]
fn keys_may_be_in_base64() {
    check(&[
        (
            "ms 44OG44K544OI 2 b k|hi|mg 44OG44K544OI v|mg 44OG44K544OI b v k|",
            "HD k44OG44K544OI b|EN|VA 2 k44OG44K544OI b|hi|",
        ),
        ("ms YWJj 2 b|hi|mg abc v k|mg YWJj b v k|", "HD|VA 2 kabc|hi|VA 2 kYWJj b|hi|"),
        (
            "ms YSBi 1 b|x|mg YSBi b v|me YSBi b|md YSBi b k|",
            "HD|VA 1|x|ME YSBi exp=-1 la=0 cas=1 fetch=yes cls=1 size=44|HD kYSBi b|",
        ),
        (
            "ms ab 1 b|x|md ab b|mn|",
            "CLIENT_ERROR error decoding key|CLIENT_ERROR invalid or duplicate flag|MN|",
        ),
        ("ma a MX|", "CLIENT_ERROR invalid mode for ma M token|"),
        ("mg ab b|", "CLIENT_ERROR error decoding key|"),
        ("me ab b|", "CLIENT_ERROR bad command line format|"),
        ("ma Zg== b N0 k|incr f 1|", "HD kZg== b|1|"),
    ]);
}

#[test]
fn one_client_wins_an_item_that_is_missing() {
    check(&[
        ("mg a s c v N30 t|mg a s c v N30 t|", "VA 0 s0 c1 t30 W||VA 0 s0 c1 t30 Z||"),
        ("mg a c N30 E77|mg a c E5|", "HD c77 W|HD c77 Z|"),
        ("mg a N30|ms a 2 C1 T120|mu|mg a v t N30|", "HD W|HD|VA 2 t120|mu|"),
        ("mg a N30|ms a 2 C9 T120|mu|mg a v|", "HD W|EX|VA 0 Z||"),
        ("mg a t N30 t|mg a N30 t|", "CLIENT_ERROR duplicate flag|HD t30 W|"),
        ("mg a t N30|", "HD t-1 W|"),
    ]);
}

#[test]
fn one_client_wins_an_item_that_ends_soon() {
    check(&[
        ("ms a 1 T100|x|mg a R30|mg a R130|mg a R130|", "HD|HD|HD W|HD Z|"),
        ("ms a 1|x|mg a R130|", "HD|HD|"),
        ("ms a 1 T100|x|mg a R130 T300|mg a T300 R130|", "HD|HD W|HD Z|"),
        ("ms a 1 T100|x|mg a T300 R130|", "HD|HD|"),
    ]);
}

#[test]
fn a_stale_item_is_served_while_one_client_renews_it() {
    check(&[
        (
            "ms a 3|moo|md a I T30|mg a s v t|mg a v|ms a 1 C3|g|",
            "HD|HD|VA 3 s3 t30 X W|moo|VA 3 Z X|moo|EX|",
        ),
        (
            "ms a 3|moo|md a I|mg a c|mg a|ms a 1 C2 T90|g|mg a v t|",
            "HD|HD|HD c2 X W|HD Z X|HD|VA 1 t90|g|",
        ),
        (
            "ms a 3 T50|moo|md a I|mg a|ms a 1 I T90 C1|f|mg a v t|",
            "HD|HD|HD X W|HD|VA 1 t50 Z X|f|",
        ),
        ("ms a 1|x|ms a 1 I C9|y|", "HD|EX|"),
        (
            "ms a 1|x|md a I E900|mg a c|ms a 1 I C5 E901|z|mg a c v|",
            "HD|HD|HD c900 X W|HD|VA 1 c901 Z X|z|",
        ),
        ("ms a 1|x|md a I|mg a|md a I|mg a|", "HD|HD|HD X W|HD|HD X W|"),
    ]);
}

#[test]
fn a_meta_delete_removes_empties_or_marks() {
    check(&[
        ("md a|ms a 1|x|md a|mg a|", "NF|HD|HD|EN|"),
        ("md a Oq k|ms a 1|x|md a Oq k|", "NF Oq ka|HD|HD Oq ka|"),
        ("ms a 1|x|md a C9|md a C1|mg a|", "HD|EX|HD|EN|"),
        ("ms a 2 T50 F7|mx|md a x|mg a t v f c|", "HD|HD|VA 0 t-1 f0 c1||"),
        ("ms a 2 T50 F7|mx|md a x T30 F9|mg a t v f|", "HD|HD|VA 0 t30 f9||"),
        ("ms a 2 T50|mx|md a x I|mg a v|", "HD|HD|VA 0 X W||"),
        ("ms a 1 E1234|x|md a C1234 E5678 I|mg a c|", "HD|HD|HD c5678 X W|"),
    ]);
}

#[test]
fn meta_arithmetic_counts() {
    check(&[
        ("ma a|ma a D1|set a 0 0 1|1|ma a|mg a v|", "NF|NF|STORED|HD|VA 1|2|"),
        (
            "ma a N90 J13 v t|ma a N0 v t D30|ma a MD D3 v|ma a M- v|ma a MI v|ma a M+ v|",
            "VA 2 t90|13|VA 2 t90|43|VA 2|40|VA 2|39|VA 2|40|VA 2|41|",
        ),
        ("ma a t N90 v|", "VA 1 t-1|0|"),
        ("ma a N0 J5|ma a MD D9000 v|", "HD|VA 1|0|"),
        (
            "ma a N90 t v|ma a T300 v t|ma a t T30 v|ma a t|",
            "VA 1 t90|0|VA 1 t300|1|VA 1 t300|2|HD t30|",
        ),
        ("ma a N0 c v|ma a C9 v|ma a C1 c v|ma a E77 c|", "VA 1 c1|0|EX|VA 1 c2|1|HD c77|"),
        ("ma a N0 E4321 c J5 v|", "VA 1 c4321|5|"),
        (
            "set a 0 0 1|q|ma a|",
            "STORED|CLIENT_ERROR cannot increment or decrement non-numeric value|",
        ),
        ("ma a D|ma a Ox k|", "CLIENT_ERROR invalid or duplicate flag|NF Ox ka|"),
    ]);
}

#[test]
fn reads_tell_of_reads_before() {
    let mut client = Client::new();
    client.say("ms a 1\r\nx\r\n");
    client.now_s += 7;
    assert_eq!(client.say("mg a h l u\r\n"), "HD h0 l7\r\n");
    assert_eq!(client.say("mg a h l\r\n"), "HD h0 l7\r\n");
    client.now_s += 2;
    assert_eq!(
        client.say("me a\r\nmg a h l\r\n"),
        "ME a exp=-1 la=2 cas=1 fetch=yes cls=1 size=42\r\nHD h1 l2\r\n"
    );
    assert_eq!(
        client.say("me b\r\nme\r\nme b c d\r\n"),
        "EN\r\nCLIENT_ERROR bad command line format\r\nEN\r\n"
    );
}

#[test]
fn a_get_and_touch_by_flags() {
    let mut client = Client::new();
    client.say("ms a 4 T100\r\nooom\r\n");
    assert_eq!(client.say("mg a t T300\r\nmg a T400 t\r\n"), "HD t100\r\nHD t400\r\n");
    client.now_s += 399;
    assert_eq!(client.say("mg a t\r\n"), "HD t1\r\n");
    client.now_s += 1;
    assert_eq!(client.say("mg a t\r\n"), "EN\r\n");
    client.say("ms a 1\r\nx\r\n");
    assert_eq!(client.say("mg a T-1 v\r\nmg a v\r\n"), "VA 1\r\nx\r\nEN\r\n");
}

#[test]
fn lines_that_are_wrong_are_told_what_is() {
    let opaque = |length: usize| "o".repeat(length);
    let long = "k".repeat(251);
    check(&[
        ("mg|ms|md|ma|me|", "ERROR|ERROR|ERROR|ERROR|CLIENT_ERROR bad command line format|"),
        ("ms a|ms a x|ms a -1|ms a S2|", &"CLIENT_ERROR bad command line format|".repeat(4)),
        (
            "mg a m|mg a v v|mg a \u{7f}|",
            "CLIENT_ERROR invalid flag|CLIENT_ERROR duplicate flag|CLIENT_ERROR duplicate flag|",
        ),
        ("mg a \u{e9}|", "CLIENT_ERROR duplicate flag|"),
        (
            "mg a Tx|mg a Nx|mg a Rx|mg a Ex|ms a 1 Cx|y|",
            &"CLIENT_ERROR bad token in command line format|".repeat(5),
        ),
        ("ms a 1 Fx|y|mn|", "CLIENT_ERROR bad command line format|MN|"),
        ("md a v v|md a m|ma a m|", &"CLIENT_ERROR invalid or duplicate flag|".repeat(3)),
        (&format!("mg a O{}|", opaque(31)), &format!("EN O{}|", opaque(31))),
        (
            &format!("mg a O{}|md a O{}|mn|", opaque(32), opaque(32)),
            "CLIENT_ERROR opaque token too long|CLIENT_ERROR opaque token too long|MN|",
        ),
        (&format!("ms a 1 O{}|x|mn|", opaque(32)), "CLIENT_ERROR opaque token too long|MN|"),
        (
            &format!("mg {long}|md {long}|ma {long}|ms {long} 1|"),
            &"CLIENT_ERROR bad command line format|".repeat(4),
        ),
        (&format!("mg a{}|", " v".repeat(18)), "CLIENT_ERROR options flags are too long|"),
    ]);
}
