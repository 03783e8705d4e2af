//! The verbs that are spoken over the control socket, and those who answer and ask them.
//!
//! Verbs and their answers are the engine's ([`engine::control`]), and five of the process that
//! serves the store. Each is listed once, below. The caller holds a [`Control`] and does not know
//! whether the store is open in this process ([`Local`]) or in another ([`crate::Client`]).

use buckets::Buckets;
use engine::control::{
    CloneVolume, DeleteRequest, Explain, GetCompression, GetStats, ListOpens, ListVolumes,
    NewVolume, RenameVolume, ResizeVolume, Rollback, SetCompression, SetDedup, SetQuota,
    SetReservation, SetVolumeCompression, SnapshotRequest, TakeCopied,
};
use engine::{
    Ask, CollectRequest, DifferenceRequest, EvacuateZone, KeepZone, ListZones, OpenInfo,
    ScrubRequest, VolumeInfo, WeightRequest,
};
use serde_json::Value;

use crate::caches::{CacheShown, ListCaches};
use crate::error::ControlError;
use crate::json::{FromJson, ToJson};
use crate::local::{DataDoor, Local};
use crate::objects::carry_out::{self, begin_put, open_object, shown};
use crate::objects::{
    BucketListed, BucketShown, CloseBucket, CopyObject, CreateBucket, DeleteBucket, DeleteObjects,
    GetObject, HeadObject, ListBuckets, ListObjects, ObjectPage, ObjectPut, ObjectShown, PutBegun,
    PutObject, ReplicateBucket, SetBucket, ShowBucket,
};
use crate::outcome::Outcome;
use crate::protocol::{
    DataOpened, DataRemoved, Disconnect, GetIdentity, GetStatus, Grown, GrowthWish, Identity,
    OpenData, Refusal, RefusalKind, RemoveData, RequestLine, Status,
};
use crate::tenants::{ListTenants, TenantShown, list_tenants};

/// Volumes that are listed in one go: whatever they are called, a line holds them.
pub(crate) const LISTED_AT_ONCE: usize = 4096;

/// A verb that is spoken, with what it is answered with.
pub trait Spoken: ToJson + FromJson {
    /// What it comes back with when it is carried out.
    type Answer: ToJson + FromJson;
    /// Its name on the wire.
    const NAME: &'static str;
    /// Whether a server that is well has the answer at hand. All else waits for what goes on in the
    /// store, which may take any time while its machine is busy.
    const IS_ANSWERED_SOON: bool;

    /// Carries it out on a store that is open in this process.
    ///
    /// # Errors
    /// [`ControlError`] of the verb.
    fn carry_out(self, store: &Local) -> Result<Self::Answer, ControlError>;
}

/// Who is asked: a store in this process, or the server of one.
pub trait Control {
    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// [`ControlError`] when it was not done, or nobody knows whether it was.
    fn ask<V: Spoken>(&mut self, verb: V) -> Result<V::Answer, ControlError>;

    /// All volumes and snapshots, by name.
    ///
    /// # Errors
    /// As [`Control::ask`].
    fn volumes(&mut self) -> Result<Vec<VolumeInfo>, ControlError> {
        let mut all: Vec<VolumeInfo> = Vec::new();
        loop {
            let after = all.last().map(|last| last.name.clone());
            let some = self.ask(ListVolumes { after, most: LISTED_AT_ONCE })?;
            let is_last = some.len() < LISTED_AT_ONCE;
            all.extend(some);
            if is_last {
                return Ok(all);
            }
        }
    }
}

/// Who answers.
pub trait Service: Send + Sync + 'static {
    /// Carries out one verb; called from many threads.
    ///
    /// # Errors
    /// [`ControlError`] of the verb.
    fn answer<V: Spoken>(&self, verb: V) -> Result<V::Answer, ControlError>;

    /// Where connections go over which bytes of volumes are to go; None: nowhere, and [`OpenData`]
    /// is refused.
    fn data_door(&self) -> Option<&DataDoor> {
        None
    }

    /// Where bytes of objects go to and come from; None: nowhere, and [`PutObject`] and
    /// [`GetObject`] are verbs like the others.
    fn buckets(&self) -> Option<Result<Buckets, ControlError>> {
        None
    }
}

impl Control for Local {
    fn ask<V: Spoken>(&mut self, verb: V) -> Result<V::Answer, ControlError> {
        verb.carry_out(self)
    }
}

impl Service for Local {
    fn answer<V: Spoken>(&self, verb: V) -> Result<V::Answer, ControlError> {
        verb.carry_out(self)
    }

    fn data_door(&self) -> Option<&DataDoor> {
        Local::data_door(self)
    }

    fn buckets(&self) -> Option<Result<Buckets, ControlError>> {
        Some(Local::buckets(self))
    }
}

/// The verbs of the engine, by their names on the wire; `soon` marks those that are answered at
/// once.
macro_rules! spoken {
    ($($name:literal: $verb:ident -> $answer:ty, $soon:literal, $carry_out:expr;)*) => {
        $(impl Spoken for $verb {
            type Answer = $answer;
            const NAME: &'static str = $name;
            const IS_ANSWERED_SOON: bool = $soon;

            fn carry_out(self, store: &Local) -> Result<Self::Answer, ControlError> {
                let carry_out: fn(&Local, Self) -> Result<Self::Answer, ControlError> = $carry_out;
                carry_out(store, self)
            }
        })*

        /// The names of all verbs.
        pub const VERBS: &[&str] = &[$($name),*];

        /// The line that answers a line.
        pub(crate) fn answer_line(
            service: &impl Service,
            line: RequestLine,
        ) -> Result<Vec<u8>, serde_json::Error> {
            match line.verb.as_str() {
                $($name => answer::<$verb>(service, line.request),)*
                other => refuse(format!("there is no verb {other:?}")),
            }
        }
    };
}

/// A verb that the buckets carry out.
fn of_buckets<V, A>(
    store: &Local,
    verb: V,
    carry_out: fn(&Buckets, V) -> Result<A, ControlError>,
) -> Result<A, ControlError> {
    carry_out(&store.buckets()?, verb)
}

fn of_engine<A: Ask>(store: &Local, verb: A) -> Result<A::Answer, ControlError> {
    Ok(store.client().ask(verb)?)
}

spoken! {
    "status": GetStatus -> Status, true, |store, _| Ok(store.status());
    "identity": GetIdentity -> Identity, true, |store, _| store.identity();
    "open_data": OpenData -> DataOpened, true, |store, _| store.open_data();
    "grow": GrowthWish -> Grown, false, |store, wish| store.grow(wish);
    "remove_data": RemoveData -> DataRemoved, false, |store, wish| store.remove_data(wish.zone);
    "disconnect": Disconnect -> Vec<OpenInfo>, false, |store, wish| store.disconnect(&wish.name);
    "list_opens": ListOpens -> <ListOpens as Ask>::Answer, true, of_engine;
    "list_volumes": ListVolumes -> <ListVolumes as Ask>::Answer, true, of_engine;
    "create_volume": NewVolume -> <NewVolume as Ask>::Answer, false, of_engine;
    "resize_volume": ResizeVolume -> <ResizeVolume as Ask>::Answer, false, of_engine;
    "rename_volume": RenameVolume -> <RenameVolume as Ask>::Answer, false, of_engine;
    "set_quota": SetQuota -> <SetQuota as Ask>::Answer, false, of_engine;
    "set_dedup": SetDedup -> <SetDedup as Ask>::Answer, false, of_engine;
    "set_volume_compression": SetVolumeCompression -> <SetVolumeCompression as Ask>::Answer, false,
        of_engine;
    "set_reservation": SetReservation -> <SetReservation as Ask>::Answer, false, of_engine;
    "delete_volume": DeleteRequest -> <DeleteRequest as Ask>::Answer, false, of_engine;
    "take_snapshots": SnapshotRequest -> <SnapshotRequest as Ask>::Answer, false, of_engine;
    "take_copied": TakeCopied -> <TakeCopied as Ask>::Answer, false, of_engine;
    "clone_volume": CloneVolume -> <CloneVolume as Ask>::Answer, false, of_engine;
    "roll_back": Rollback -> <Rollback as Ask>::Answer, false, of_engine;
    "compression": GetCompression -> <GetCompression as Ask>::Answer, true, of_engine;
    "set_compression": SetCompression -> <SetCompression as Ask>::Answer, false, of_engine;
    "stats": GetStats -> <GetStats as Ask>::Answer, true, of_engine;
    "explain": Explain -> <Explain as Ask>::Answer, false, of_engine;
    "difference": DifferenceRequest -> <DifferenceRequest as Ask>::Answer, false, of_engine;
    "weigh": WeightRequest -> <WeightRequest as Ask>::Answer, false, of_engine;
    "scrub": ScrubRequest -> <ScrubRequest as Ask>::Answer, false, of_engine;
    "list_zones": ListZones -> <ListZones as Ask>::Answer, true, of_engine;
    "evacuate_zone": EvacuateZone -> <EvacuateZone as Ask>::Answer, false, of_engine;
    "keep_zone": KeepZone -> <KeepZone as Ask>::Answer, false, of_engine;
    "create_bucket": CreateBucket -> BucketShown, false,
        |store, wish| of_buckets(store, wish, carry_out::create_bucket);
    "list_buckets": ListBuckets -> Vec<BucketListed>, true,
        |store, wish| of_buckets(store, wish, carry_out::list_buckets);
    "show_bucket": ShowBucket -> BucketShown, false,
        |store, wish| of_buckets(store, wish, carry_out::show_bucket);
    "set_bucket": SetBucket -> BucketShown, false,
        |store, wish| of_buckets(store, wish, carry_out::set_bucket);
    "replicate_bucket": ReplicateBucket -> BucketShown, false,
        |store, wish| of_buckets(store, wish, carry_out::replicate_bucket);
    "delete_bucket": DeleteBucket -> (), false,
        |store, wish| of_buckets(store, wish, carry_out::delete_bucket);
    "close_bucket": CloseBucket -> (), false,
        |store, wish| of_buckets(store, wish, carry_out::close_bucket);
    "list_objects": ListObjects -> ObjectPage, false,
        |store, wish| of_buckets(store, wish, carry_out::list_objects);
    "head_object": HeadObject -> ObjectShown, false,
        |store, wish| of_buckets(store, wish, carry_out::head_object);
    "delete_objects": DeleteObjects -> Vec<bool>, false,
        |store, wish| of_buckets(store, wish, carry_out::delete_objects);
    "copy_object": CopyObject -> ObjectPut, false,
        |store, wish| of_buckets(store, wish, carry_out::copy_object);
    "put_object": PutObject -> PutBegun, false,
        |store, wish| begin_put(&store.buckets()?, &wish).map(|_| PutBegun {});
    "get_object": GetObject -> ObjectShown, false, |store, wish| {
        let reader = open_object(&store.buckets()?, &wish)?;
        Ok(shown(wish.key, reader.info()))
    };
    "list_tenants": ListTenants -> Vec<TenantShown>, false, list_tenants;
    "list_caches": ListCaches -> Vec<CacheShown>, false, |store, _| Ok(store.caches());
    "collect": CollectRequest -> <CollectRequest as Ask>::Answer, false, of_engine;
}

fn answer<V: Spoken>(service: &impl Service, request: Value) -> Result<Vec<u8>, serde_json::Error> {
    match V::from_json(request) {
        Ok(verb) => serde_json::to_vec(&Outcome::of(service.answer(verb))),
        Err(error) => refuse(format!("the request {} cannot be read: {error}", V::NAME)),
    }
}

/// What a line asks for, if it is for a connection of data and the service has a door for those.
pub(crate) fn wanted_data(service: &impl Service, line: &RequestLine) -> Option<OpenData> {
    service.data_door()?;
    if line.verb != OpenData::NAME {
        return None;
    }
    OpenData::from_json(line.request.clone()).ok()
}

/// The line that answers what is no request.
pub(crate) fn refuse(sentence: String) -> Result<Vec<u8>, serde_json::Error> {
    let refusal = Refusal { kind: RefusalKind::BadRequest, sentence };
    serde_json::to_vec(&Outcome::<()>::Refused(refusal))
}
