"""A store in this process: the engine of Tamis, without a server.

One process has a store open, and any number of its threads use it. A process that is forked from
it raises `Forked` (for `multiprocessing`, use the start method `spawn` and let one process have
the store, or a server). What is not closed at the end of the program is closed then; a program
that is killed leaves a store that the next opening recovers, with all that was durable.
"""

from __future__ import annotations

import atexit
import os
import shutil
import threading
import weakref
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _tamis
from .errors import BadArgument, Exists, InUse, NotEmpty, NotFound
from .interface import Bucket, PathLike, Reading, Store, Writing
from .types import Buffer, BucketInfo, Listing, ObjectInfo, SnapshotInfo, Stored, Usage

CAPACITY_BYTES_MAX_DEFAULT = 100 << 30
CAPACITY_BYTES_MIN = 64 << 20
MEMORY_BYTES_DEFAULT = 512 << 20
PAGE_OBJECTS = 1000
SLICE_BYTES = 1 << 20
"""A buffer that is no `bytes` is copied in slices of this length."""

_open_stores: "weakref.WeakValueDictionary[str, EmbeddedStore]" = weakref.WeakValueDictionary()
_open_stores_lock = threading.RLock()


class EmbeddedStore(Store):
    """A store that this process has open; `tamis.open` makes one."""

    _pid: int

    def __init__(
        self,
        path: PathLike,
        *,
        create: bool = False,
        capacity: Optional[int] = None,
        compression: str = "lz4",
        memory: int = MEMORY_BYTES_DEFAULT,
        threads: int = 2,
        read_only: bool = False,
    ) -> None:
        self.path = os.path.realpath(path)
        if create and not os.path.exists(os.path.join(self.path, "superblock")):
            _tamis.Engine.create(self.path, capacity or _capacity(self.path), compression)
        with _open_stores_lock:
            held = _open_stores.get(self.path)
            if held is not None and held._pid == os.getpid():
                raise InUse(f"the store at {self.path} is open in this process already: use that")
            self._pid = os.getpid()
            self._engine = _tamis.Engine(self.path, memory, threads, read_only)
            _open_stores[self.path] = self

    def create_bucket(
        self,
        name: str,
        *,
        exist_ok: bool = False,
        segments: str = "auto",
        quota: Optional[int] = None,
    ) -> "EmbeddedBucket":
        try:
            self._engine.create_bucket(name, segments, quota)
        except Exists:
            if not exist_ok:
                raise
        return self.bucket(name)

    def bucket(self, name: str) -> "EmbeddedBucket":
        return EmbeddedBucket(self, name)

    def buckets(self) -> List[BucketInfo]:
        listed = self._engine.list_buckets()
        return [BucketInfo(name, mapped) for name, mapped, _, taken in listed if taken is None]

    def delete_bucket(self, name: str, *, with_objects: bool = False) -> None:
        snapshots = self.bucket(name).snapshots()
        if snapshots:
            raise NotEmpty(f"bucket {name} has {len(snapshots)} snapshots: delete them first")
        self._engine.delete_bucket(name, with_objects)

    def snapshot(self, buckets: Sequence[str], name: str) -> None:
        """Takes a snapshot of each bucket, all of one moment."""
        self._engine.snapshot(list(buckets), name)

    def stats(self) -> Dict[str, int]:
        """Figures of the store, in bytes: what it stores, what it maps, what is free."""
        return self._engine.stats()

    def flush(self) -> None:
        self._engine.flush()

    def close(self) -> None:
        """Closes the store, so that the next opening replays nothing."""
        with _open_stores_lock:
            if _open_stores.get(self.path) is self:
                del _open_stores[self.path]
        self._engine.close()

    def __enter__(self) -> "EmbeddedStore":
        return self

    def __del__(self) -> None:
        # Nobody can use it any more. Of a store that was forked the parent is the owner.
        engine = self.__dict__.get("_engine")
        if engine is not None and self._pid == os.getpid():
            engine.close()

    def __repr__(self) -> str:
        return f"<EmbeddedStore {self.path}>"


class EmbeddedBucket(Bucket):
    """A bucket of a store in this process."""

    def __init__(self, store: EmbeddedStore, name: str) -> None:
        self.store = store
        self.name = name

    @property
    def _engine(self) -> "_tamis.Engine":
        return self.store._engine

    def put(
        self,
        key: str,
        data: Buffer,
        *,
        durable: bool = False,
        if_absent: bool = False,
        if_match: Optional[ObjectInfo] = None,
        content_type: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        tags: Optional[Mapping[str, str]] = None,
        expires_in: Optional[timedelta] = None,
        measure: bool = False,
    ) -> Stored:
        wish = _wish(durable, if_absent, content_type, metadata, tags, expires_in)
        if if_match is not None:
            wish["if_version"] = if_match.version
        before = self._engine.stats()["stored_bytes"] if measure else 0
        if isinstance(data, bytes):
            put = self._engine.put(self.name, _key(key), data, wish)
        else:
            writer = self._engine.writer(self.name, _key(key), wish)
            _write(writer, data)
            put = writer.finish()
        new_bytes = self._engine.stats()["stored_bytes"] - before if measure else None
        # Figures are those behind a flush.
        return _stored(put, durable or measure, new_bytes)

    def writing(
        self,
        key: str,
        *,
        durable: bool = False,
        if_absent: bool = False,
        content_type: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        tags: Optional[Mapping[str, str]] = None,
        expires_in: Optional[timedelta] = None,
    ) -> Writing:
        wish = _wish(durable, if_absent, content_type, metadata, tags, expires_in)
        return _EmbeddedWriting(self._engine.writer(self.name, _key(key), wish), durable)

    def reading(self, key: str) -> Reading:
        return _EmbeddedReading(self._engine.reader(self.name, _key(key)))

    def head(self, key: str) -> ObjectInfo:
        found = self._engine.head(self.name, _key(key))
        if found is None:
            raise NotFound(f"bucket {self.name} has no object {key}")
        return _info(found)

    def delete(self, keys: Union[str, Iterable[str]], *, durable: bool = False) -> int:
        all_keys = [keys] if isinstance(keys, str) else list(keys)
        return sum(self._engine.delete(self.name, [_key(key) for key in all_keys], durable))

    def copy(
        self,
        key: str,
        to_key: str,
        *,
        to: Optional[Bucket] = None,
        durable: bool = False,
        if_absent: bool = False,
    ) -> Stored:
        target = self if to is None else to
        if not isinstance(target, EmbeddedBucket) or target.store is not self.store:
            raise BadArgument("a copy stays in its store: get the object and put it")
        source = (self.name, _key(key))
        put = self._engine.copy(source, (target.name, _key(to_key)), durable, if_absent)
        return _stored(put, durable)

    def tags(self, key: str) -> Dict[str, str]:
        return self.head(key).tags

    def set_tags(self, key: str, tags: Mapping[str, str], *, durable: bool = False) -> None:
        self._engine.set_tags(self.name, _key(key), list(tags.items()), durable)

    def pages(self, prefix: str = "", delimiter: str = "", after: str = "") -> Iterator[Listing]:
        position: Optional[bytes] = _key(after) + b"\0" if after else b""
        while position is not None:
            objects, prefixes, position = self._engine.list(
                self.name, _key(prefix), _key(delimiter), position, PAGE_OBJECTS
            )
            yield Listing([_info(found) for found in objects], [_text(some) for some in prefixes])

    def snapshot(self, name: str) -> "EmbeddedBucket":
        self._engine.snapshot([self.name], name)
        return self.at(name)

    def snapshots(self) -> List[SnapshotInfo]:
        mine = f"{self.name}@"
        listed = [
            SnapshotInfo(name, datetime.fromtimestamp(taken, timezone.utc))
            for name, _, _, taken in self._engine.list_buckets()
            if name.startswith(mine) and taken is not None
        ]
        return sorted(listed, key=lambda snapshot: snapshot.taken)

    def at(self, snapshot: str) -> "EmbeddedBucket":
        return EmbeddedBucket(self.store, f"{self.name.split('@')[0]}@{snapshot}")

    def delete_snapshot(self, name: str) -> None:
        self._engine.delete_snapshot(self.at(name).name)

    def branch(self, name: str) -> "EmbeddedBucket":
        if "@" in self.name:
            self._engine.branch(self.name, name)
            return EmbeddedBucket(self.store, name)
        now = self.snapshot(f"branch-{name}")
        try:
            return now.branch(name)
        finally:
            self._engine.delete_snapshot(now.name)

    def roll_back(self, snapshot: str) -> None:
        self._engine.roll_back(self.name, self.at(snapshot).name)

    def du(self) -> List[Usage]:
        names = [self.name] + [snapshot.name for snapshot in self.snapshots()]
        return [self._usage(name) for name in names]

    def changed_bytes(self, other: Union[Bucket, str]) -> int:
        """Bytes of chunks that `other` maps and this one does not: what it costs to send what
        changed, before compression."""
        return self._engine.changed_bytes(self.name, self._other(other).name)[0]

    def _usage(self, name: str) -> Usage:
        objects, object_bytes = self._engine.bucket_figures(name)
        mapped, stored, own, freed = self._engine.weigh(name)
        return Usage(name, objects, object_bytes, mapped, stored, own, freed)

    def _other(self, other: Union[Bucket, str]) -> Bucket:
        return EmbeddedBucket(self.store, other) if isinstance(other, str) else other


class _EmbeddedReading(Reading):
    is_far = False

    def __init__(self, reader: "_tamis.Reader") -> None:
        self._reader = reader
        self.info = _info(reader.info)

    def read(self, offset: int = 0, length: Optional[int] = None) -> bytes:
        return self._reader.read_at(offset, self.info.size if length is None else length)

    def read_ranges(self, ranges: Sequence[Tuple[int, int]]) -> List[bytes]:
        return self._reader.read_ranges(list(ranges))

    def close(self) -> None:
        self._reader.close()


class _EmbeddedWriting(Writing):
    def __init__(self, writer: "_tamis.Writer", durable: bool) -> None:
        self._writer = writer
        self._durable = durable

    def write(self, data: Buffer) -> None:
        _write(self._writer, data)

    def finish(self) -> Stored:
        return _stored(self._writer.finish(), self._durable)

    def discard(self) -> None:
        self._writer.discard()


def shared(path: PathLike, **options: Any) -> EmbeddedStore:
    """The store at `path` as this process has it open; else it is opened."""
    with _open_stores_lock:
        held = _open_stores.get(os.path.realpath(path))
        if held is not None and held._pid == os.getpid():
            return held
        return EmbeddedStore(path, **options)


@atexit.register
def _close_all() -> None:
    for store in list(_open_stores.values()):
        if store._pid == os.getpid():
            store.close()


def _capacity(path: str) -> int:
    """Half of what the file system has; tables and journal come beside it."""
    above = path
    while not os.path.exists(above):
        above = os.path.dirname(above)
    free = shutil.disk_usage(above).free
    return max(CAPACITY_BYTES_MIN, min(CAPACITY_BYTES_MAX_DEFAULT, free // 2))


def _key(key: str) -> bytes:
    return key.encode("utf-8", "surrogateescape")


def _text(key: bytes) -> str:
    return key.decode("utf-8", "surrogateescape")


def _time(unix_ms: int) -> datetime:
    return datetime.fromtimestamp(unix_ms / 1000, timezone.utc)


def _info(found: "_tamis.ObjectTuple") -> ObjectInfo:
    key, size, etag, version, created, expires, content_type, metadata, tags = found
    return ObjectInfo(
        key=_text(key),
        size=size,
        etag=etag,
        modified=_time(created),
        version=version,
        expires=None if expires is None else _time(expires),
        content_type=content_type,
        metadata=dict(metadata),
        tags=dict(tags),
    )


def _stored(put: "_tamis.PutTuple", durable: bool, new_bytes: Optional[int] = None) -> Stored:
    version, etag, size = put
    return Stored(size, etag, durable, version, new_bytes)


def _wish(
    durable: bool,
    if_absent: bool,
    content_type: Optional[str],
    metadata: Optional[Mapping[str, str]],
    tags: Optional[Mapping[str, str]],
    expires_in: Optional[timedelta],
) -> Dict[str, Any]:
    expires = None if expires_in is None else datetime.now(timezone.utc) + expires_in
    return {
        "durable": durable,
        "if_absent": if_absent,
        "if_version": None,
        "content_type": content_type,
        "metadata": list((metadata or {}).items()),
        "tags": list((tags or {}).items()),
        "expires_unix_ms": None if expires is None else int(expires.timestamp() * 1000),
    }


def _write(writer: "_tamis.Writer", data: Buffer) -> None:
    if isinstance(data, bytes):
        writer.write(data)
        return
    view = memoryview(data).cast("B")
    for start in range(0, len(view), SLICE_BYTES):
        writer.write(bytes(view[start : start + SLICE_BYTES]))
