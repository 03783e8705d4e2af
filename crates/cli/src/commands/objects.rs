//! `tamis put`, `get`, `ls`, `rm`, `cp`: objects of buckets, in a store that is closed and in one
//! that is being served alike. What is put, deleted or copied is durable when the command ends.

pub(super) mod cp;
pub(super) mod get;
pub(super) mod ls;
pub(super) mod put;
pub(super) mod rm;

use admin::{ListObjects, OBJECTS_LISTED_MAX, ObjectKey, ObjectPage};

use crate::control::Store;
use crate::error::CliError;
use crate::object_path::ObjectPath;

/// Calls `page` with the objects whose keys begin with `prefix`, a page at a time.
fn each_page(
    store: &Store,
    at: &ObjectPath,
    prefix: &ObjectKey,
    delimiter: &str,
    mut page: impl FnMut(ObjectPage) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut from = ObjectKey::default();
    loop {
        let mut listed = store.ask(ListObjects {
            bucket: at.bucket.clone(),
            prefix: prefix.clone(),
            delimiter: delimiter.to_owned(),
            from,
            most: OBJECTS_LISTED_MAX,
        })?;
        let next = listed.next.take();
        page(listed)?;
        match next {
            Some(next) => from = next,
            None => return Ok(()),
        }
    }
}
