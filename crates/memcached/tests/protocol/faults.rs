//! Caches that fail: what clients hear, and that the next request is served.

use memcached::{
    Answer, Answers, Cache, Connection, Counts, Fault, Figures, Hit, Item, Limits, Next, Operation,
    Request, Store, ValueReader, ValueWriter,
};

/// Answers by the name of the key.
#[derive(Default)]
struct Faulty {
    counts: Counts,
}

/// Fails at a part with an exclamation mark.
struct Writer;

impl ValueWriter for Writer {
    fn write(&mut self, part: &[u8]) -> Result<(), Fault> {
        if part.contains(&b'!') { Err(Fault::NoRoom) } else { Ok(()) }
    }
}

/// Gives so many bytes.
struct Reader(usize);

impl ValueReader for Reader {
    fn read(&mut self, out: &mut [u8]) -> Result<usize, Fault> {
        let length = out.len().min(self.0);
        self.0 -= length;
        out[..length].fill(b'x');
        Ok(length)
    }
}

impl Cache for Faulty {
    type Writer = Writer;
    type Reader = Reader;

    fn run(&mut self, requests: &[Request<'_>], _now_s: u64, answers: &mut Answers<'_, Reader>) {
        let item = Item::default();
        let hit = Hit { before: item, item, won: false, is_new: false };
        for request in requests {
            match (request.operation, request.operation.key()) {
                (Operation::Get(_), Some(b"damaged")) => answers.hit_with(&hit, 5, |place| {
                    place.fill(b'?');
                    Err(Fault::Other("this is\r\nEND".into()))
                }),
                (Operation::Get(_), Some(b"filled")) => answers.hit_with(&hit, 2, |place| {
                    place.fill(b'f');
                    Ok(())
                }),
                (Operation::Get(_), Some(b"long")) => answers.hit_streamed(&hit, 9, Reader(9)),
                (Operation::Get(_), Some(b"short")) => answers.hit_streamed(&hit, 9, Reader(3)),
                (Operation::Get(_), _) => answers.hit(&hit, b"ok"),
                _ => answers.fail(&Fault::NoRoom),
            }
        }
    }

    fn begin_store(&mut self, store: &Store<'_>, _now_s: u64) -> Result<Writer, Fault> {
        if store.key == b"refused" { Err(Fault::TooLarge) } else { Ok(Writer) }
    }

    fn finish_store(&mut self, _: Writer, store: &Store<'_>, _: u64) -> Result<Answer, Fault> {
        if store.key == b"unkept" {
            return Err(Fault::Other("not kept".into()));
        }
        Ok(Answer::Stored { cas: 1, value_bytes: store.value_bytes })
    }

    fn figures(&mut self, _now_s: u64) -> Figures {
        Figures::default()
    }

    fn count(&mut self, counts: &Counts) {
        self.counts.add(counts);
    }
}

/// What is answered, byte by byte and whole; values of more than three bytes come in parts.
fn talk(said: &str) -> String {
    let answered = |piece_bytes: usize| {
        let limits = Limits { whole_value_bytes_max: 3, ..Limits::default() };
        let mut connection = Connection::<Faulty>::new(limits);
        let mut cache = Faulty::default();
        let mut answers = Vec::new();
        for piece in said.as_bytes().chunks(piece_bytes) {
            connection.room()[..piece.len()].copy_from_slice(piece);
            connection.received(piece.len());
            while connection.run(&mut cache, 1000) == Next::Send {
                let chunk = connection.chunk().unwrap().to_vec();
                connection.sent(chunk.len());
                answers.extend(chunk);
            }
        }
        String::from_utf8(answers).unwrap()
    };
    let whole = answered(usize::MAX);
    assert_eq!(answered(1), whole, "to {said}");
    whole
}

#[test]
fn a_value_that_cannot_be_read_ends_its_get_and_no_other() {
    let fault = "SERVER_ERROR this is  END\r\n";
    let good = "VALUE a 0 2\r\nok\r\n";
    assert_eq!(talk("get damaged\r\nget a\r\n"), format!("{fault}{good}END\r\n"));
    assert_eq!(
        talk("get a damaged a damaged a\r\nget a\r\n"),
        format!("{good}{fault}{good}END\r\n")
    );
    assert_eq!(talk("get a damaged\r\nget a\r\n"), format!("{good}{fault}{good}END\r\n"));
    assert_eq!(talk("mg damaged v q\r\nmn\r\n"), format!("{fault}MN\r\n"));
    assert_eq!(talk("get filled\r\n"), "VALUE filled 0 2\r\nff\r\nEND\r\n");
}

#[test]
fn a_store_without_room_is_told_unless_nobody_listens() {
    let fault = "SERVER_ERROR out of memory storing object\r\n";
    assert_eq!(talk("set a 0 0 1\r\nx\r\nmn\r\n"), format!("{fault}MN\r\n"));
    assert_eq!(talk("set a 0 0 1 noreply\r\nx\r\nmn\r\n"), "MN\r\n");
    assert_eq!(talk("ms a 1 q\r\nx\r\nmn\r\n"), format!("{fault}MN\r\n"));
}

#[test]
fn a_value_in_parts_that_fails_is_swallowed() {
    let refused = "SERVER_ERROR object too large for cache\r\n";
    assert_eq!(
        talk("set refused 0 0 5\r\nquit\r\n\r\nmn\r\n"),
        format!("{refused}ERROR\r\nMN\r\n")
    );
    assert_eq!(talk("set refused 0 0 5\r\nhello\r\nmn\r\n"), format!("{refused}MN\r\n"));
    assert_eq!(talk("set unkept 0 0 5\r\nhello\r\nmn\r\n"), "SERVER_ERROR not kept\r\nMN\r\n");
    let limits = Limits { whole_value_bytes_max: 3, ..Limits::default() };
    let mut connection = Connection::<Faulty>::new(limits);
    let mut cache = Faulty::default();
    for part in [&b"set a 0 0 8\r\nab"[..], b"c!", b"ef", b"gh\r\nmn\r\n"] {
        connection.room()[..part.len()].copy_from_slice(part);
        connection.received(part.len());
        connection.run(&mut cache, 1000);
    }
    let expected: &[u8] = b"SERVER_ERROR out of memory storing object\r\nMN\r\n";
    assert_eq!(connection.chunk().unwrap(), expected);
    assert_eq!(cache.counts.store_no_memory, 1);
}

#[test]
fn a_long_value_that_ends_early_closes_the_connection() {
    let mut connection = Connection::<Faulty>::new(Limits::default());
    let said = b"get short\r\n";
    connection.room()[..said.len()].copy_from_slice(said);
    connection.received(said.len());
    connection.run(&mut Faulty::default(), 1000);
    for expected in [&b"VALUE short 0 9\r\n"[..], b"xxx"] {
        assert_eq!(connection.chunk().unwrap(), expected);
        connection.sent(expected.len());
    }
    assert!(connection.chunk().is_err());
}

#[test]
fn no_batch_runs_while_a_long_value_is_unsent() {
    let limits = Limits { batch_operations_max: 1, ..Limits::default() };
    let mut connection = Connection::<Faulty>::new(limits);
    let mut cache = Faulty::default();
    let said = b"get long\r\nget long\r\n";
    connection.room()[..said.len()].copy_from_slice(said);
    connection.received(said.len());
    for reads in [1, 1, 1, 2] {
        assert_eq!(connection.run(&mut cache, 1000), Next::Send);
        assert_eq!(cache.counts.get_hits, reads);
        let sent = connection.chunk().unwrap().len();
        connection.sent(sent);
    }
}
