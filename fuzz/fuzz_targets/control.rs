//! The control socket, both ends: whatever a client sends is answered line by line with what our
//! client understands, and whatever a server sends, our client ends with a result.
//!
//! The first byte chooses the end, the size of the pieces in which the bytes arrive, and whether
//! the first line is about as long as lines may be.
#![no_main]

use std::io::{BufReader, sink};
use std::sync::Mutex;

use admin::{
    CallError, Client, CompressionSetting, Grown, GrowthWish, Refusal, RefusalKind, Request,
    Response, Service, Status, answer_all,
};
use engine::{
    CollectStep, Dedup, DeleteRequest, DifferenceStep, NewVolume, ScrubRequest, ScrubStep,
    VolumeInfo, VolumeKind, WeightStep,
};
use format::units::{Codec, Compression};
use libfuzzer_sys::fuzz_target;

/// Spaces in front, which mean nothing in JSON; requests have at most 64 KiB.
const MARGIN_BYTES: usize = (64 << 10) - 100;

fn volume(name: String, size_bytes: u64, read_only: bool) -> VolumeInfo {
    VolumeInfo {
        name,
        id: 1,
        size_bytes,
        mapped_bytes: 0,
        read_only,
        quota_bytes: None,
        kind: VolumeKind::Block,
        dedup: Dedup::On,
        looks_up: true,
        unsought_chunks: 0,
        domain: None,
        taken_unix_s: None,
        origin: None,
        parent: None,
    }
}

fn difference(lba: u64) -> DifferenceStep {
    let next_lba = Some(lba);
    DifferenceStep {
        numbers: [0; 2],
        sizes_bytes: [0; 2],
        chunk_bytes: 0,
        ranges: vec![],
        next_lba,
    }
}

/// Answers with what was asked, and remembers it.
#[derive(Default)]
struct Echo(Mutex<Vec<Request>>);

impl Service for Echo {
    fn answer(&self, request: Request) -> Response {
        if let Ok(mut asked) = self.0.lock() {
            asked.push(request.clone());
        }
        match request {
            Request::Status => Response::Status(Status::default()),
            Request::ListVolumes { .. } => Response::Volumes { volumes: Vec::new(), more: false },
            Request::CreateVolume { name, size_bytes, read_only }
            | Request::CreateVolumeIn { name, size_bytes, read_only, .. }
            | Request::CreateVolumeOfKind { name, size_bytes, read_only, .. } => {
                Response::Volume { volume: volume(name, size_bytes, read_only) }
            }
            Request::EnlargeVolume { name, size_bytes }
            | Request::ResizeVolume { name, size_bytes, .. } => {
                Response::Volume { volume: volume(name, size_bytes, false) }
            }
            Request::SetDedup { name, .. }
            | Request::SetQuota { name, .. }
            | Request::CloneVolume { name, .. }
            | Request::RenameVolume { new_name: name, .. } => {
                Response::Volume { volume: volume(name, 0, false) }
            }
            Request::DeleteThis(DeleteRequest { name, .. })
            | Request::DeleteVolume(DeleteRequest { name, .. })
            | Request::Explain { volume: name, .. } => {
                Response::Refused(Refusal { kind: RefusalKind::NoSuchVolume, sentence: name })
            }
            Request::TakeSnapshots(_) => Response::Done,
            Request::RollBackToThis { snapshot, .. } | Request::Rollback { snapshot, .. } => {
                Response::Refused(Refusal { kind: RefusalKind::InUse, sentence: snapshot })
            }
            Request::Compression => Response::Done,
            Request::SetCompression { compression } => match compression.to_compression() {
                Some(known) => Response::Compression { compression: known.into() },
                None => Response::Refused(Refusal {
                    kind: RefusalKind::BadRequest,
                    sentence: "unknown".to_owned(),
                }),
            },
            Request::Stats => Response::Stats { stats: Box::default() },
            Request::Grow(GrowthWish { capacity_bytes, data }) => Response::Grown(Grown {
                capacity_bytes: capacity_bytes.unwrap_or(0),
                data_zones: data.len(),
                ..Grown::default()
            }),
            Request::Difference { step } => {
                Response::Difference { step: Box::new(difference(step.lba)) }
            }
            Request::Weigh { step } => Response::Weight {
                step: Box::new(WeightStep { next_leaf: Some(step.leaf), ..WeightStep::default() }),
            },
            Request::Scrub { step: ScrubRequest { position, .. } } => Response::Scrub {
                step: Box::new(ScrubStep { next: Some(position), ..ScrubStep::default() }),
            },
            Request::Collect { position: next, .. } => Response::Collected {
                step: Box::new(CollectStep { next, ..CollectStep::default() }),
            },
        }
    }
}

/// The server's side: what it answers, and what it was asked.
fn serve(sent: &[u8], piece: usize) -> (Vec<u8>, Vec<Request>) {
    let (mut answers, echo) = (Vec::new(), Echo::default());
    let ended = answer_all(BufReader::with_capacity(piece, sent), &mut answers, &echo);
    let _ = ended.map_err(|error| error.to_string());
    (answers, echo.0.into_inner().unwrap_or_default())
}

fn server(sent: &[u8], piece: usize) {
    let (answers, asked) = serve(sent, piece);
    assert!(serve(sent, 1 << 20) == (answers.clone(), asked.clone()));
    let lines = sent.iter().filter(|&&byte| byte == b'\n').count();
    let mut client = Client::over(answers.as_slice(), sink()).expect("a server greets its like");
    let mut answered = 0;
    loop {
        match client.call(&Request::Status) {
            Ok(_) | Err(CallError::Refused(_)) => answered += 1,
            Err(CallError::Closed) => break,
            Err(error) => panic!("our client does not understand our server: {error}"),
        }
    }
    assert!(asked.len() <= answered && answered <= lines + 1);
    for request in asked {
        let mut again = serde_json::to_vec(&request).expect("what was read can be written");
        again.push(b'\n');
        assert_eq!(serve(&again, 1 << 20).1, [request]);
    }
}

/// Whether a codec that is known is said by its own number.
fn is_sound(setting: CompressionSetting) -> bool {
    setting.to_compression().is_none_or(|known| CompressionSetting::from(known) == setting)
}

fn new_volume(domain: Option<&str>) -> NewVolume {
    let (name, domain) = ("a".to_owned(), domain.map(str::to_owned));
    NewVolume { name, size_bytes: 1, read_only: false, domain, ..NewVolume::default() }
}

fn client(sent: &[u8], piece: usize) {
    let reader = BufReader::with_capacity(piece, sent);
    let mut client = match Client::over(reader, sink()) {
        Ok(client) => client,
        Err(error) => return drop(error.to_string()),
    };
    let setting = Compression { codec: Codec::Zstd, level: 3 };
    // Each takes a line at most, so this comes to an end.
    loop {
        let outcomes = [
            client.status().map(drop),
            client.volumes().map(drop),
            client.create_volume(new_volume(None)).map(drop),
            client.create_volume(new_volume(Some("b"))).map(drop),
            client.resize_volume("a", 1, true).map(drop),
            client.rename_volume("a", "b").map(drop),
            client.delete_volume(DeleteRequest::of("a")),
            client.compression().map(|setting| assert!(is_sound(setting))),
            client.set_compression(setting),
            client.scrub(ScrubRequest::default()).map(drop),
            client.stats().map(drop),
        ];
        for outcome in outcomes {
            match outcome {
                Err(CallError::Closed) => return,
                other => drop(other.map_err(|error| error.to_string())),
            }
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
