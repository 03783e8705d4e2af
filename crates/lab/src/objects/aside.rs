//! What a crash at one write would leave of buckets.

use disk::Loss;
use engine::control;

use crate::failure::Broken;
use crate::objects::history::History;
use crate::objects::store::Store;
use crate::script::Shape;
use crate::simulation::aside::{Points, check_crashed, look_with};
use crate::simulation::tap::{Ear, Point};

/// One point in this many is checked whole, closed and checked again.
const THOROUGHLY_ONE_IN: u64 = 5;

/// Looks at what a crash would leave, and at a crash of the opening after it.
pub(crate) fn look(
    point: &Point,
    history: &History,
    shape: &Shape,
    now_ms: u64,
    points: &mut Points,
) -> Result<(), (String, Broken)> {
    look_with(point, shape.seed, points, |point, ear, points| {
        recover(point, history, (shape, now_ms), ear, points)
    })
}

fn recover(
    point: &Point,
    history: &History,
    (shape, now_ms): (&Shape, u64),
    ear: &Ear,
    points: &mut Points,
) -> Result<(), Broken> {
    let is_thorough = point.write.is_multiple_of(THOROUGHLY_ONE_IN);
    // The machine was mended before it started again.
    point.disk.heal();
    if is_thorough {
        check_crashed(&point.disk)?;
    }
    let store = Store::open(&point.disk, shape, ear.clone(), now_ms)?;
    ear.heard().stop();
    {
        let opening = store.stepped.opening();
        points.cuts += u64::from(opening.report.cut);
        points.older_roots += u64::from(opening.report.older_root);
    }
    let found = store.find()?;
    history.explain(point.flushed, &found, now_ms)?;
    store.check_buckets(is_thorough)?;
    if is_thorough {
        History::of(found).explain(0, &store.find()?, now_ms)?;
        store.stepped.administer(control::Close {}).map_err(Broken::Request)?;
        check_crashed(&point.disk.left_by_power_loss(0, Loss::All))?;
    }
    Ok(())
}
