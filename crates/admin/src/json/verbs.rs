//! Verbs about volumes and settings, and volumes as they are listed.

use engine::control::{
    CloneVolume, DeleteRequest, Explain, GetCompression, GetStats, ListOpens, ListVolumes,
    NewVolume, RenameVolume, ResizeVolume, Rollback, SetCompression, SetDedup, SetQuota,
    SetReservation, SetVolumeCompression, SnapshotRequest, TakeCopied,
};
use engine::{Compression, Dedup, Origin, VolumeInfo, VolumeKind};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::json::{FromJson, ToJson, mirror, record};

record! {
    ListOpens { name }
    ListVolumes { after, most }
    NewVolume { name, size_bytes, read_only, domain, kind }
    ResizeVolume { name, size_bytes, may_shrink, even_if_open }
    RenameVolume { name, new_name }
    SetQuota { name, quota_bytes }
    SetDedup { name, dedup }
    SetVolumeCompression { name, compression }
    SetReservation { name, reservation_bytes }
    DeleteRequest { name, with_snapshots, id, newest, even_if_open }
    SnapshotRequest { volumes, name, taken_unix_s }
    TakeCopied { snapshots, origin }
    CloneVolume { snapshot, name }
    Rollback { snapshot, volume, id }
    SetCompression { compression }
    Explain { volume, address }
    VolumeInfo {
        name, id, size_bytes, mapped_bytes, read_only, quota_bytes if some,
        reservation_bytes if some, kind, dedup,
        compression if some, dedup_active, unindexed_chunks, domain if some, taken_unix_s if some,
        parent if some, origin if some
    }
}

mirror!(
    Dedup as DedupForm,
    VolumeKind as VolumeKindForm,
    GetCompression as GetCompressionForm,
    GetStats as GetStatsForm,
);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Dedup", rename_all = "lowercase")]
enum DedupForm {
    Off,
    On,
    Auto,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "VolumeKind", rename_all = "lowercase")]
enum VolumeKindForm {
    Block,
    Bucket,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "GetCompression")]
struct GetCompressionForm {}

#[derive(Serialize, Deserialize)]
#[serde(remote = "GetStats")]
struct GetStatsForm {}

/// The store as 32 hexadecimal digits.
#[derive(Serialize, Deserialize)]
struct OriginForm {
    store: String,
    number: u32,
}

impl ToJson for Origin {
    fn to_json<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let store = format!("{:032x}", u128::from_be_bytes(self.uuid));
        OriginForm { store, number: self.number }.serialize(to)
    }
}

impl FromJson for Origin {
    fn from_json<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let OriginForm { store, number } = OriginForm::deserialize(from)?;
        let is_whole = store.len() == 32 && store.bytes().all(|digit| digit.is_ascii_hexdigit());
        let uuid = u128::from_str_radix(&store, 16).ok().filter(|_| is_whole);
        let uuid = uuid.ok_or_else(|| de::Error::custom("a store has 32 hexadecimal digits"))?;
        Ok(Self { uuid: uuid.to_be_bytes(), number })
    }
}

/// As people write it: `none`, `lz4`, `zstd:3`.
impl ToJson for Compression {
    fn to_json<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl FromJson for Compression {
    fn from_json<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}
