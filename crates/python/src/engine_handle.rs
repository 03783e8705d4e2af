//! A store that this process has open: the verbs of buckets, snapshots and objects.

use std::path::PathBuf;
use std::process;

use buckets::{Buckets, BucketsOptions, NewBucket, OpenBucket, now_unix_ms};
use engine::control::{
    CloneVolume, DeleteRequest, GetStats, ListVolumes, Rollback, SnapshotRequest,
};
use objects::bucket::{Condition, CopyOptions, DeleteOptions, Put, TagOptions};
use pyo3::Bound;
use pyo3::prelude::{PyResult, Python, pyclass, pymethods};
use pyo3::types::{PyDict, PyDictMethods};
use segments::SegmentPolicy;
use store::{Client, Compression, CreateOptions, Options, Store};

use crate::errors::{Kind, Refused};
use crate::here::Here;
use crate::listing::{
    BucketTuple, ObjectTuple, PageTuple, bucket_tuple, list_options, object_tuple, page_tuple, tags,
};
use crate::putting::{PutWish, durability};
use crate::reader::Reader;
use crate::weighing::{WeightTuple, changed_bytes, weigh};
use crate::writer::{PutTuple, Writer};

struct Running {
    store: Store,
    buckets: Buckets,
}

/// An open store.
#[pyclass(frozen, module = "tamis._tamis")]
pub(crate) struct Engine {
    running: Here<Running>,
}

impl Engine {
    fn buckets(&self) -> Result<Buckets, Refused> {
        self.running.with(|running| Ok(running.buckets.clone()))
    }

    fn client(&self) -> Result<Client, Refused> {
        self.running.with(|running| Ok(running.store.client().clone()))
    }

    fn open_bucket(&self, name: &str) -> Result<OpenBucket, Refused> {
        Ok(self.buckets()?.open(name)?)
    }

    /// A bucket that takes changes.
    fn writable(&self, name: &str) -> Result<OpenBucket, Refused> {
        let bucket = self.open_bucket(name)?;
        if !bucket.is_read_only() {
            return Ok(bucket);
        }
        let why = match name.contains('@') {
            true => "is a snapshot, which does not change: make a branch of it",
            false => "is open read-only",
        };
        Err(Refused::new(Kind::ReadOnly, format!("bucket {name} {why}")))
    }
}

#[pymethods]
impl Engine {
    /// Makes a store; nothing that exists is overwritten.
    #[staticmethod]
    fn create(
        py: Python<'_>,
        path: PathBuf,
        capacity_bytes: u64,
        compression: &str,
    ) -> PyResult<()> {
        let compression = compression.parse::<Compression>().map_err(|error| {
            Refused::bad_argument(format!("{compression} is no compression: {error}"))
        })?;
        let options =
            CreateOptions { compression, preallocate: false, ..CreateOptions::new(capacity_bytes) };
        Ok(py.detach(|| store::create(&path, &options).map(drop).map_err(Refused::from))?)
    }

    /// Opens the store at `path` and starts its engine.
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        memory_bytes: u64,
        threads: usize,
        read_only: bool,
    ) -> PyResult<Self> {
        let open = || {
            let mut options = Options::default();
            options.engine.memory_bytes = memory_bytes;
            options.engine.worker_threads = threads;
            options.engine.read_only = read_only;
            let store = Store::open(&path, options)?;
            let of_buckets = BucketsOptions {
                memory_bytes: memory_bytes / 2,
                is_read_only: read_only,
                opened_by: format!("Python, process {}", process::id()),
                ..BucketsOptions::default()
            };
            let buckets = Buckets::start(store.client().clone(), of_buckets)?;
            Ok::<_, Refused>(Self { running: Here::new(Running { store, buckets }) })
        };
        Ok(py.detach(open)?)
    }

    /// Closes buckets and store, so that the next opening replays nothing. Once closed, it does
    /// nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let close = || {
            let Some(Running { store, buckets }) = self.running.take()? else { return Ok(()) };
            let closed = buckets.close();
            store.close()?;
            Ok::<_, Refused>(closed?)
        };
        Ok(py.detach(close)?)
    }

    /// Makes durable what was acknowledged before.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| Ok::<_, Refused>(self.client()?.flush_blocking()?))?)
    }

    /// Makes a bucket.
    fn create_bucket(
        &self,
        py: Python<'_>,
        name: &str,
        segments: &str,
        quota_bytes: Option<u64>,
    ) -> PyResult<()> {
        let segments = match segments {
            "auto" => SegmentPolicy::Auto,
            "fixed" => SegmentPolicy::Fixed,
            "cdc" => SegmentPolicy::Cdc,
            other => {
                let sentence = format!("{other} is no way to cut values: auto, fixed and cdc are");
                return Err(Refused::bad_argument(sentence).into());
            }
        };
        let new = NewBucket { segments, quota_bytes, ..NewBucket::default() };
        Ok(py.detach(|| Ok::<_, Refused>(self.buckets()?.create(name, &new)?))?)
    }

    /// All buckets and snapshots.
    fn list_buckets(&self, py: Python<'_>) -> PyResult<Vec<BucketTuple>> {
        let list = || {
            let all = self.buckets()?.list()?;
            Ok::<_, Refused>(all.into_iter().map(bucket_tuple).collect())
        };
        Ok(py.detach(list)?)
    }

    /// Objects of a bucket, and their bytes.
    fn bucket_figures(&self, py: Python<'_>, name: &str) -> PyResult<(u64, u64)> {
        let look = || {
            let figures = self.open_bucket(name)?.figures();
            Ok::<_, Refused>((figures.objects, figures.object_bytes))
        };
        Ok(py.detach(look)?)
    }

    /// Deletes a bucket without snapshots.
    fn delete_bucket(&self, py: Python<'_>, name: &str, with_objects: bool) -> PyResult<()> {
        Ok(py.detach(|| Ok::<_, Refused>(self.buckets()?.delete(name, with_objects)?))?)
    }

    /// Puts an object of which all bytes are here.
    fn put(
        &self,
        py: Python<'_>,
        bucket: &str,
        key: Vec<u8>,
        bytes: &[u8],
        wish: PutWish,
    ) -> PyResult<PutTuple> {
        let writer = self.writer(py, bucket, key, wish)?;
        writer.write(py, bytes)?;
        writer.finish(py)
    }

    /// Begins to put an object.
    fn writer(
        &self,
        py: Python<'_>,
        bucket: &str,
        key: Vec<u8>,
        wish: PutWish,
    ) -> PyResult<Writer> {
        let if_absent = wish.if_absent;
        let begin = || {
            let options = wish.into_options()?;
            let begun = self.writable(bucket)?.put_hashed(&key, options).map_err(Refused::from);
            begun.map_err(|refused| refused.of_put(if_absent, bucket, &key))
        };
        let writer = py.detach(begin)?;
        Ok(Writer::new(bucket, key, if_absent, writer))
    }

    /// Opens an object to be read.
    fn reader(&self, py: Python<'_>, bucket: &str, key: Vec<u8>) -> PyResult<Reader> {
        let open = || {
            let open = self.open_bucket(bucket)?;
            let found = open.get(&key, &Condition::None, now_unix_ms())?;
            let reader = found.ok_or_else(|| Refused::no_object(bucket, &key))?;
            Ok::<_, Refused>(Reader::new(open, key, reader))
        };
        Ok(py.detach(open)?)
    }

    /// An object without its bytes; none: there is no object.
    fn head(&self, py: Python<'_>, bucket: &str, key: Vec<u8>) -> PyResult<Option<ObjectTuple>> {
        let look = || {
            let found = self.open_bucket(bucket)?.head(&key, &Condition::None, now_unix_ms())?;
            Ok::<_, Refused>(found.map(|info| object_tuple(key, &info)))
        };
        Ok(py.detach(look)?)
    }

    /// A page of objects, by key.
    fn list(
        &self,
        py: Python<'_>,
        bucket: &str,
        prefix: Vec<u8>,
        delimiter: Vec<u8>,
        from: Vec<u8>,
        limit: usize,
    ) -> PyResult<PageTuple> {
        let list = || {
            let options = list_options(prefix, delimiter, from, limit);
            Ok::<_, Refused>(page_tuple(self.open_bucket(bucket)?.list(&options)?))
        };
        Ok(py.detach(list)?)
    }

    /// Deletes objects; says of each whether there was one.
    fn delete(
        &self,
        py: Python<'_>,
        bucket: &str,
        keys: Vec<Vec<u8>>,
        durable: bool,
    ) -> PyResult<Vec<bool>> {
        let delete = || {
            let options = DeleteOptions { durability: durability(durable), now_ms: now_unix_ms() };
            let all: Vec<_> = keys.iter().map(|key| (key.as_slice(), Condition::None)).collect();
            let answers = self.writable(bucket)?.delete_many(&all, options)?.into_iter();
            let answers = answers.zip(&keys).map(|(answer, key)| match answer {
                Ok(version) => Ok(version.is_some()),
                Err(error) => Err(Refused::from(error).of(bucket, key)),
            });
            answers.collect::<Result<_, Refused>>()
        };
        Ok(py.detach(delete)?)
    }

    /// Copies an object; no bytes move inside a bucket, and none of a long object between buckets.
    fn copy(
        &self,
        py: Python<'_>,
        source: (String, Vec<u8>),
        target: (String, Vec<u8>),
        durable: bool,
        if_absent: bool,
    ) -> PyResult<PutTuple> {
        let condition = if if_absent { Condition::Absent } else { Condition::None };
        let ((from_bucket, from), (to_bucket, to)) = (source, target);
        let copy = || {
            let target = self.writable(&to_bucket)?;
            let copied = match from_bucket == to_bucket {
                true => {
                    let options = CopyOptions {
                        condition,
                        durability: durability(durable),
                        ..CopyOptions::new(now_unix_ms())
                    };
                    target.copy(&from, &to, options).map_err(Refused::from)
                }
                false => {
                    let source = self.open_bucket(&from_bucket)?;
                    let found = source.get(&from, &Condition::None, now_unix_ms())?;
                    let mut reader =
                        found.ok_or_else(|| Refused::no_object(&from_bucket, &from))?;
                    let durability = durability(durable);
                    target
                        .copy_object(&source, &mut reader, &to, condition, durability)
                        .map_err(Refused::from)
                }
            };
            copied.map_err(|refused| match refused.kind() {
                Kind::NotFound => Refused::no_object(&from_bucket, &from),
                _ => refused.of_put(if_absent, &to_bucket, &to),
            })
        };
        let Put { version, etag, size_bytes } = py.detach(copy)?;
        Ok((version, etag.to_string(), size_bytes))
    }

    /// Gives an object these tags instead of those it has.
    fn set_tags(
        &self,
        py: Python<'_>,
        bucket: &str,
        key: Vec<u8>,
        pairs: Vec<(String, String)>,
        durable: bool,
    ) -> PyResult<u64> {
        let set = || {
            let options = TagOptions {
                condition: Condition::None,
                durability: durability(durable),
                now_ms: now_unix_ms(),
            };
            let set = self.writable(bucket)?.set_tags(&key, tags(pairs)?, &options);
            set.map_err(|error| Refused::from(error).of(bucket, &key))
        };
        Ok(py.detach(set)?)
    }

    /// Takes a snapshot of each bucket, all of one moment.
    fn snapshot(&self, py: Python<'_>, names: Vec<String>, name: String) -> PyResult<()> {
        let take = || {
            names.iter().try_for_each(|name| self.open_bucket(name).map(drop))?;
            let taken_unix_s = now_unix_ms() / 1000;
            let request = SnapshotRequest { volumes: names, name, taken_unix_s };
            self.client()?.ask(request)?;
            Ok::<_, Refused>(())
        };
        Ok(py.detach(take)?)
    }

    /// Makes a bucket that begins as a snapshot, `BUCKET@SNAPSHOT`.
    fn branch(&self, py: Python<'_>, snapshot: String, name: String) -> PyResult<()> {
        let branch = || {
            buckets::check_bucket_name(&name)?;
            drop(self.open_bucket(&snapshot)?);
            self.client()?.ask(CloneVolume { snapshot, name })?;
            Ok::<_, Refused>(())
        };
        Ok(py.detach(branch)?)
    }

    /// Deletes a snapshot.
    fn delete_snapshot(&self, py: Python<'_>, snapshot: &str) -> PyResult<()> {
        let delete = || {
            let buckets = self.buckets()?;
            drop(buckets.open(snapshot)?);
            buckets.close_bucket(snapshot)?;
            self.client()?.ask(DeleteRequest::of(snapshot))?;
            Ok::<_, Refused>(())
        };
        Ok(py.detach(delete)?)
    }

    /// Lets a bucket hold what its snapshot holds.
    fn roll_back(&self, py: Python<'_>, bucket: &str, snapshot: String) -> PyResult<()> {
        let roll_back = || {
            let buckets = self.buckets()?;
            drop(buckets.open(&snapshot)?);
            buckets.close_bucket(bucket)?;
            self.client()?.ask(Rollback { snapshot, volume: None, id: None })?;
            Ok::<_, Refused>(())
        };
        Ok(py.detach(roll_back)?)
    }

    /// What a bucket or snapshot weighs.
    fn weigh(&self, py: Python<'_>, name: &str) -> PyResult<WeightTuple> {
        weigh(py, &self.client()?, name)
    }

    /// Bytes that differ between two buckets or snapshots: written, and unmapped.
    fn changed_bytes(&self, py: Python<'_>, from: &str, to: &str) -> PyResult<(u64, u64)> {
        changed_bytes(py, &self.client()?, from, to)
    }

    /// Figures of the store.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ask = || {
            let client = self.client()?;
            client.flush_blocking()?;
            let volumes = client.ask(ListVolumes::all())?;
            Ok::<_, Refused>((client.ask(GetStats {})?, volumes.len()))
        };
        let (stats, volumes) = py.detach(ask)?;
        let dict = PyDict::new(py);
        for (name, bytes) in [
            ("stored_bytes", stats.stored_bytes),
            ("table_bytes", stats.table_bytes),
            ("journal_bytes", stats.journal_bytes),
            ("unique_bytes", stats.unique_bytes),
            ("unique_chunks", stats.unique_chunks),
            ("logical_bytes", stats.logical_bytes),
            ("snapshot_bytes", stats.snapshot_bytes),
            ("allocated_bytes", stats.allocated_bytes),
            ("free_bytes", stats.free_bytes),
            ("capacity_bytes", stats.capacity_bytes),
            ("memory_bytes", stats.memory_bytes),
            ("buckets_and_snapshots", volumes as u64),
        ] {
            dict.set_item(name, bytes)?;
        }
        Ok(dict)
    }
}
