//! What a bucket or snapshot weighs, and what differs between two: steps of the engine, with a
//! look for signals between them.

use engine::{DifferenceRequest, VolumeWeight, Weighing};
use pyo3::prelude::{PyResult, Python};
use store::Client;

use crate::errors::{Kind, Refused};

/// Mapped bytes; bytes of the frames of its chunks; of those that no other version has; of those
/// that come back when it is deleted.
pub(crate) type WeightTuple = (u64, u64, u64, u64);

pub(crate) fn weigh(py: Python<'_>, client: &Client, name: &str) -> PyResult<WeightTuple> {
    let mut weighing = Weighing::of(name);
    while let Some(request) = weighing.request() {
        py.check_signals()?;
        let step = py.detach(|| client.ask(request)).map_err(Refused::from)?;
        if !weighing.add(step) {
            return Err(replaced(name).into());
        }
    }
    let VolumeWeight { mapped_bytes, chunks, unique, given_back, .. } = weighing.weight();
    Ok((mapped_bytes, chunks.frame_bytes, unique.frame_bytes, given_back.frame_bytes))
}

/// Bytes that the second holds where the first holds others, and that it holds no more.
pub(crate) fn changed_bytes(
    py: Python<'_>,
    client: &Client,
    from: &str,
    to: &str,
) -> PyResult<(u64, u64)> {
    let (mut written_bytes, mut unmapped_bytes) = (0, 0);
    let mut numbers = None;
    let mut next = Some(0);
    while let Some(lba) = next {
        py.check_signals()?;
        let request = DifferenceRequest { from: from.to_owned(), to: to.to_owned(), lba };
        let step = py.detach(|| client.ask(request)).map_err(Refused::from)?;
        if *numbers.get_or_insert(step.numbers) != step.numbers {
            return Err(replaced(to).into());
        }
        for range in step.ranges {
            match range.unmapped {
                true => unmapped_bytes += range.length_bytes,
                false => written_bytes += range.length_bytes,
            }
        }
        next = step.next_lba;
    }
    Ok((written_bytes, unmapped_bytes))
}

fn replaced(name: &str) -> Refused {
    let sentence = format!("{name} was deleted and made again meanwhile: ask again");
    Refused::new(Kind::InUse, sentence)
}
