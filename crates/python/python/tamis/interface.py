"""One interface over every kind of store: `Store` and `Bucket`.

```text
tamis.open("./store")  ──> EmbeddedStore ─┐
                                           ├── Store ──bucket("sales")──> Bucket
tamis.connect(url, ..) ──> S3Store ───────┘            bucket("sales@monday"): only read
```

A handle of a bucket holds nothing open: it is a name with its store, and may be kept for ever.
What a kind of store cannot do raises `NotSupported`.
"""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from datetime import timedelta
from types import TracebackType
from typing import (
    IO,
    TYPE_CHECKING,
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Type,
    Union,
)

from . import arrays, tables
from .errors import BadArgument, NotFound
from .files import ObjectFile, PutFile
from .types import Buffer, BucketInfo, Change, Listing, ObjectInfo, SnapshotInfo, Stored, Usage

if TYPE_CHECKING:
    import numpy
    import pyarrow

PIECE_BYTES = 4 << 20
"""Bytes of a file that are moved at a time."""

PathLike = Union[str, "os.PathLike[str]"]


class Reading(ABC):
    """An object that is read, as it was when it was opened, whatever happens to its key."""

    info: ObjectInfo
    is_far = True
    """Whether each read is a trip to a server, so that many ranges are worth one call."""

    @abstractmethod
    def read(self, offset: int = 0, length: Optional[int] = None) -> bytes:
        """Bytes from `offset` on, fewer than `length` at the object's end only."""

    @abstractmethod
    def read_ranges(self, ranges: Sequence[Tuple[int, int]]) -> List[bytes]:
        """Bytes of many ranges `(offset, length)`, in their order."""

    def close(self) -> None:
        """Closes the object."""


class Writing(ABC):
    """An object that is being put. What is neither finished nor discarded leaves nothing."""

    @abstractmethod
    def write(self, data: Buffer) -> None:
        """Appends bytes."""

    @abstractmethod
    def finish(self) -> Stored:
        """Ends the object, which is visible when this returns."""

    @abstractmethod
    def discard(self) -> None:
        """Gives up: nothing was put."""


class Bucket(ABC):
    """A bucket of objects, or a snapshot of one."""

    name: str

    # Objects, one at a time.

    @abstractmethod
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
        """Puts an object: readers see the old one or the new one, never a part.

        `durable` waits until no crash can take it back. `if_absent` raises `Exists` where there is
        an object; `if_match` raises `ConditionFailed` where the object is not this one any more.
        `measure` says by how much the store grew (embedded stores).
        """

    @abstractmethod
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
        """Begins to put an object of any length, in bounded memory."""

    @abstractmethod
    def reading(self, key: str) -> Reading:
        """Opens an object to be read, as it is now."""

    @abstractmethod
    def head(self, key: str) -> ObjectInfo:
        """An object without its bytes."""

    def get(self, key: str, offset: int = 0, length: Optional[int] = None) -> bytes:
        """Bytes of an object, all or those of a range."""
        reading = self.reading(key)
        try:
            return reading.read(offset, length)
        finally:
            reading.close()

    def get_ranges(self, key: str, ranges: Sequence[Tuple[int, int]]) -> List[bytes]:
        """Bytes of many ranges `(offset, length)` of an object, at one version."""
        reading = self.reading(key)
        try:
            return reading.read_ranges(ranges)
        finally:
            reading.close()

    def exists(self, key: str) -> bool:
        """Whether there is an object of this key."""
        try:
            self.head(key)
        except NotFound:
            return False
        return True

    @abstractmethod
    def delete(self, keys: Union[str, Iterable[str]], *, durable: bool = False) -> int:
        """Deletes objects; returns how many there were, as far as the store tells."""

    @abstractmethod
    def copy(
        self,
        key: str,
        to_key: str,
        *,
        to: Optional["Bucket"] = None,
        durable: bool = False,
        if_absent: bool = False,
    ) -> Stored:
        """Copies an object, into the bucket `to` if one is given; chunks are shared, not moved."""

    @abstractmethod
    def tags(self, key: str) -> Dict[str, str]:
        """The tags of an object."""

    @abstractmethod
    def set_tags(self, key: str, tags: Mapping[str, str], *, durable: bool = False) -> None:
        """Gives an object these tags instead of those it has."""

    # Many objects.

    @abstractmethod
    def pages(self, prefix: str = "", delimiter: str = "", after: str = "") -> Iterator[Listing]:
        """Objects whose keys begin with `prefix` and are behind `after`, page by page, by key."""

    def list(self, prefix: str = "", after: str = "") -> Iterator[ObjectInfo]:
        """The same, one by one."""
        for page in self.pages(prefix, "", after):
            yield from page.objects

    def listing(self, prefix: str = "", delimiter: str = "/") -> Listing:
        """All of one level: the objects, and the prefixes of those below it."""
        objects: List[ObjectInfo] = []
        prefixes: List[str] = []
        for page in self.pages(prefix, delimiter):
            objects += page.objects
            prefixes += page.prefixes
        return Listing(objects, prefixes)

    def diff(self, other: Union["Bucket", str], prefix: str = "") -> Iterator[Change]:
        """How objects differ from here to `other`, by key: `sales@monday` to `sales`.

        Objects are compared by their ETags and lengths, so nothing is read but listings.
        """
        target = self._other(other)
        before, after = self.list(prefix), target.list(prefix)
        left, right = next(before, None), next(after, None)
        while left is not None or right is not None:
            if right is None or (left is not None and _order(left) < _order(right)):
                assert left is not None
                yield Change(left.key, "removed", left, None)
                left = next(before, None)
            elif left is None or _order(right) < _order(left):
                yield Change(right.key, "added", None, right)
                right = next(after, None)
            else:
                if (left.etag, left.size) != (right.etag, right.size):
                    yield Change(left.key, "changed", left, right)
                left, right = next(before, None), next(after, None)

    # Files.

    def put_file(self, key: str, path: PathLike, **options: Any) -> Stored:
        """Puts what a local file holds; options are those of `writing`."""
        with open(path, "rb") as file:
            writing = self.writing(key, **options)
            try:
                while True:
                    piece = file.read(PIECE_BYTES)
                    if not piece:
                        return writing.finish()
                    writing.write(piece)
            except BaseException:
                writing.discard()
                raise

    def get_file(self, key: str, path: PathLike) -> ObjectInfo:
        """Writes an object into a local file, which takes its name when it is whole."""
        reading = self.reading(key)
        partial = f"{os.fspath(path)}.{os.getpid()}.part"
        try:
            with open(partial, "wb") as file:
                for offset in range(0, reading.info.size, PIECE_BYTES):
                    file.write(reading.read(offset, PIECE_BYTES))
            os.replace(partial, path)
        except BaseException:
            if os.path.exists(partial):
                os.unlink(partial)
            raise
        finally:
            reading.close()
        return reading.info

    def open(self, key: str, mode: str = "rb", **options: Any) -> IO[Any]:
        """A file object: modes `r`, `w` and `x`, text or `b`; options are those of `writing`.

        What is written becomes an object when the file is closed, and nothing when the block of
        `with` ends by an exception.
        """
        kind, is_text = mode.replace("b", "").replace("t", ""), "b" not in mode
        if kind == "r":
            opened: Any = io.BufferedReader(ObjectFile(self.reading(key)), self._read_ahead())
        elif kind in ("w", "x"):
            options.setdefault("if_absent", kind == "x")
            opened = PutFile(self.writing(key, **options))
        else:
            raise BadArgument(f"{mode} is no mode of an object: use r, w or x, with b or t")
        return io.TextIOWrapper(opened, encoding="utf-8") if is_text else opened

    # Tables and arrays.

    def write_table(
        self, key: str, table: "pyarrow.Table", *, profile: str = "dedup", **options: Any
    ) -> Stored:
        """Puts a table as Parquet. The profile `dedup` writes pages that deduplicate between
        versions of the table; `default` is what pyarrow writes (see `tamis.tables`)."""
        return tables.write_table(self, key, table, profile=profile, **options)

    def read_columns(
        self, key: str, columns: Optional[Sequence[str]] = None, filters: Any = None
    ) -> "pyarrow.Table":
        """Reads columns of a Parquet object: its footer, then only the pages that can match, all
        in one call (see `tamis.tables`)."""
        return tables.read_columns(self, key, columns, filters)

    def reading_columns(
        self, key: str, columns: Optional[Sequence[str]], alternatives: Sequence[Sequence[Any]]
    ) -> Tuple[Reading, Sequence[Tuple[int, Buffer]]]:
        """Opens a Parquet object to read columns, all of them without `columns`, of rows for which
        all terms of one of the `alternatives` hold. With it come parts, by their offsets, that the
        store sends at once where a trip to it takes long: maybe all that is needed, maybe none."""
        return self.reading(key), []

    def put_array(self, key: str, array: "numpy.ndarray[Any, Any]", **options: Any) -> Stored:
        """Puts an array in the layout of `.npy`."""
        return arrays.put_array(self, key, array, **options)

    def array(self, key: str) -> "arrays.StoredArray":
        """An array in the layout of `.npy`, of which an index or slice reads only its rows."""
        return arrays.StoredArray(self.reading(key))

    # Versions.

    @abstractmethod
    def snapshot(self, name: str) -> "Bucket":
        """Takes a snapshot, durable when this returns, and returns it: `BUCKET@NAME`."""

    @abstractmethod
    def snapshots(self) -> List[SnapshotInfo]:
        """Its snapshots, oldest first."""

    @abstractmethod
    def at(self, snapshot: str) -> "Bucket":
        """The snapshot of this name."""

    @abstractmethod
    def delete_snapshot(self, name: str) -> None:
        """Deletes a snapshot; what only it held comes back in the background."""

    @abstractmethod
    def branch(self, name: str) -> "Bucket":
        """Makes a bucket that begins as this snapshot, or as this bucket is now, and shares its
        chunks."""

    @abstractmethod
    def roll_back(self, snapshot: str) -> None:
        """Lets the bucket hold what its snapshot holds, and nothing else."""

    @abstractmethod
    def du(self) -> List[Usage]:
        """What it and each of its snapshots really cost. What was deleted or replaced counts as
        the bucket's until it has been freed, a moment later, in the background."""

    @abstractmethod
    def _other(self, other: Union["Bucket", str]) -> "Bucket":
        """A bucket of the same store by its name."""

    def _read_ahead(self) -> int:
        return 256 << 10

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class Store(ABC):
    """Buckets by name. Usable in `with`; for any number of threads."""

    @abstractmethod
    def create_bucket(
        self,
        name: str,
        *,
        exist_ok: bool = False,
        segments: str = "auto",
        quota: Optional[int] = None,
    ) -> Bucket:
        """Makes a bucket, durable when this returns. `segments` says how objects are cut for
        deduplication: by what they are (`auto`), by length (`fixed`), by content (`cdc`)."""

    @abstractmethod
    def bucket(self, name: str) -> Bucket:
        """The bucket of this name, or `BUCKET@SNAPSHOT`; whether there is one shows at its use."""

    @abstractmethod
    def buckets(self) -> List[BucketInfo]:
        """All buckets, by name, without their snapshots."""

    @abstractmethod
    def delete_bucket(self, name: str, *, with_objects: bool = False) -> None:
        """Deletes a bucket without snapshots; one that holds objects only if that is asked for."""

    @abstractmethod
    def flush(self) -> None:
        """Makes durable what was put before."""

    @abstractmethod
    def close(self) -> None:
        """Closes the store; what was put is durable then."""

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


def _order(info: ObjectInfo) -> bytes:
    return info.key.encode("utf-8", "surrogateescape")
