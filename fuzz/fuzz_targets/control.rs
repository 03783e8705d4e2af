//! The control socket, both ends: whatever a client sends is answered line by line with what our
//! client understands, and whatever a server sends, our client ends with a result.
//!
//! The first byte chooses the end, the size of the pieces in which the bytes arrive, and whether
//! the first line is about as long as lines may be.
#![no_main]

use std::io::{BufReader, sink};
use std::sync::Mutex;

use admin::json::{FromJson, Json};
use admin::{CallError, Client, Control, ControlError, GetStatus, Service, Spoken, answer_all};
use engine::control::{
    GetCompression, GetStats, NewVolume, RenameVolume, ResizeVolume, SetCompression,
};
use engine::{Codec, Compression, DeleteRequest, RequestError, ScrubRequest};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

/// Spaces in front, which mean nothing in JSON; requests have at most 4 MiB.
const MARGIN_BYTES: usize = (64 << 10) - 100;

/// Answers what it can with an empty list or nothing, and remembers what it was asked.
#[derive(Default)]
struct Echo(Mutex<Vec<Value>>);

impl Service for Echo {
    fn answer<V: Spoken>(&self, verb: V) -> Result<V::Answer, ControlError> {
        let request = serde_json::to_value(Json(&verb)).expect("what was read can be written");
        if let Ok(mut asked) = self.0.lock() {
            asked.push(json!({ "verb": V::NAME, "request": request }));
        }
        let empty = [Value::Null, json!([])].into_iter();
        let mut answers = empty.filter_map(|answer| V::Answer::from_json(answer).ok());
        answers.next().ok_or_else(|| RequestError::Closing.into())
    }
}

/// The server's side: what it answers, and what it was asked.
fn serve(sent: &[u8], piece: usize) -> (Vec<u8>, Vec<Value>) {
    let (mut answers, echo) = (Vec::new(), Echo::default());
    let ended = answer_all(BufReader::with_capacity(piece, sent), &mut answers, &echo);
    let _ = ended.map_err(|error| error.to_string());
    (answers, echo.0.into_inner().unwrap_or_default())
}

fn server(sent: &[u8], piece: usize) {
    let (answers, asked) = serve(sent, piece);
    assert!(serve(sent, 1 << 20) == (answers.clone(), asked.clone()));
    let lines = sent.iter().filter(|&&byte| byte == b'\n').count();
    let answered = answers.iter().filter(|&&byte| byte == b'\n').count() - 1;
    let outcomes = answers.split(|byte| *byte == b'\n').skip(1).filter(|line| !line.is_empty());
    for outcome in outcomes {
        serde_json::from_slice::<Value>(outcome).expect("an answer is a line of JSON");
    }
    assert!(asked.len() <= answered && answered <= lines + 1);
    for request in asked {
        let mut again = serde_json::to_vec(&request).expect("what was read can be written");
        again.push(b'\n');
        assert_eq!(serve(&again, 1 << 20).1, [request]);
    }
}

fn client(sent: &[u8], piece: usize) {
    let reader = BufReader::with_capacity(piece, sent);
    let mut client = match Client::over(reader, sink()) {
        Ok(client) => client,
        Err(error) => return drop(error.to_string()),
    };
    let compression = Compression { codec: Codec::Zstd, level: 3 };
    let (name, new_name) = (|| "a".to_owned(), "b".to_owned());
    let (size_bytes, may_shrink, even_if_open) = (1, true, false);
    let new = NewVolume { name: name(), size_bytes, ..NewVolume::default() };
    let outcomes = [
        client.ask(GetStatus {}).map(drop),
        client.volumes().map(drop),
        client.ask(new).map(drop),
        client.ask(ResizeVolume { name: name(), size_bytes, may_shrink, even_if_open }).map(drop),
        client.ask(RenameVolume { name: name(), new_name }).map(drop),
        client.ask(DeleteRequest::of("a")),
        client.ask(GetCompression {}).map(drop),
        client.ask(SetCompression { compression }),
        client.ask(ScrubRequest::default()).map(drop),
        client.ask(GetStats {}).map(drop),
    ];
    for outcome in outcomes {
        match outcome {
            Err(ControlError::Call(CallError::Closed)) => return,
            other => drop(other.map_err(|error| error.to_string())),
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((shape, sent)) = input.split_first() else { return };
    let piece = 1 + usize::from(shape & 0x3f);
    let margin = if shape & 0x40 != 0 { MARGIN_BYTES } else { 0 };
    let mut line = vec![b' '; margin];
    line.extend_from_slice(sent);
    if shape & 0x80 == 0 { server(&line, piece) } else { client(&line, piece) }
});
