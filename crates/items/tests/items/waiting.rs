//! What would wait is said before it is begun, so that a door has it done elsewhere.

use crate::rig::{Rig, client};

/// More than the write buffer: who asks for it gets all there is.
const ALL_BYTES: usize = 64 << 20;

#[test]
fn a_change_that_finds_the_write_buffer_full_would_wait() {
    let rig = Rig::new();
    let items = rig.items(4 << 20);
    let (mut one, mut other) = (client(&items), client(&items));
    let stored = Some(b"STORED\r\n".to_vec());
    assert_eq!(one.say_without_waiting("set a 0 0 1\r\n1\r\n"), stored);
    let all = rig.store().client().buffer(0, ALL_BYTES);
    for said in ["set a 0 0 1\r\n2\r\n", "delete a\r\n", "incr a 1\r\n", "touch a 100\r\n"] {
        let mut asks = client(&items);
        assert_eq!(asks.say_without_waiting(said), None, "{said}");
    }
    // What is in memory waits for nothing.
    let read = other.say_without_waiting("get a\r\n");
    assert_eq!(read.unwrap(), b"VALUE a 0 1\r\n1\r\nEND\r\n");
    assert_eq!(one.say_without_waiting("set a 0 0 1\r\n3\r\n"), None);
    drop(all);
    assert_eq!(one.wait(), b"STORED\r\n");
    assert_eq!(other.say_without_waiting("set a 0 0 1\r\n4\r\n"), stored);
}
