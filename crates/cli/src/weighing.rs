//! What volumes weigh: the steps of the engine, with a progress bar.

use engine::{VolumeWeight, Weighing};

use crate::control::Store;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::progress::{Progress, Unit};

/// Goes through the map of a volume, and says what of it is its own.
pub(crate) fn weigh(
    store: &Store,
    name: &str,
    interrupt: &Interrupt,
) -> Result<VolumeWeight, CliError> {
    let mut weighing = Weighing::of(name);
    let mut progress: Option<Progress> = None;
    while let Some(request) = weighing.request() {
        interrupt.check()?;
        if !weighing.add(store.ask(request)?) {
            return Err(CliError::VolumeReplaced { name: name.to_owned() });
        }
        let (done, total) = weighing.progress();
        progress
            .get_or_insert_with(|| Progress::new("weighing", Unit::Steps, Some(total)))
            .set_done(done);
    }
    Ok(weighing.weight())
}
