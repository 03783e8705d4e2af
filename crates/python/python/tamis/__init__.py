"""Tamis: a store that keeps every piece of data once.

```python
import tamis

with tamis.open("./store", create=True) as store:  # the engine, in this process
    sales = store.create_bucket("sales")
    stored = sales.put("2026/07.csv", b"...", durable=True)
    monday = sales.snapshot("monday")
    sales.write_table("day.parquet", table)  # pages that deduplicate between versions
    monday.read_columns("day.parquet", ["price"])  # reads these pages, of the day of the snapshot
    for version in sales.du():
        print(version.name, version.own_bytes)

store = tamis.connect("http://127.0.0.1:9000", "KEY", "SECRET")  # the same over a server
```

`tamis.filesystem` is the same for what knows `fsspec`: `tamis://sales@monday/day.parquet`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from . import errors
from ._tamis import __version__
from .embedded import MEMORY_BYTES_DEFAULT, EmbeddedBucket, EmbeddedStore
from .errors import TamisError
from .interface import Bucket, PathLike, Reading, Store, Writing
from .types import (
    BucketInfo, Change, Listing, ObjectInfo, SnapshotInfo, Stored, Usage,
)

if TYPE_CHECKING:
    from .s3 import S3Store

__all__ = [
    "Bucket", "BucketInfo", "Change", "EmbeddedBucket", "EmbeddedStore", "Listing", "ObjectInfo",
    "Reading", "SnapshotInfo", "Store", "Stored", "TamisError", "Usage", "Writing", "__version__",
    "connect", "errors", "open",
]


def open(
    path: PathLike,
    *,
    create: bool = False,
    capacity: Optional[int] = None,
    compression: str = "lz4",
    memory: int = MEMORY_BYTES_DEFAULT,
    threads: int = 2,
    read_only: bool = False,
) -> EmbeddedStore:
    """Opens the store in the directory `path` in this process, after a kill as well.

    `create` makes one where there is none: with room for `capacity` bytes after deduplication and
    compression (half of what the file system has, 100 GiB at most; it takes what it needs, as it
    fills), compressed with `lz4`, `zstd:LEVEL` or `none`. `memory` bounds the engine's caches and
    buffers; buckets take half as much again. `threads` fingerprint and compress.

    Raises `NotFound` where there is no store, and `InUse` where another process has it open.
    """
    return EmbeddedStore(
        path,
        create=create,
        capacity=capacity,
        compression=compression,
        memory=memory,
        threads=threads,
        read_only=read_only,
    )


def connect(url: str, key: str, secret: str, **options: Any) -> "S3Store":
    """Reaches a server of Tamis over S3 (`pip install tamis[s3]`).

    `key` and `secret` are those of an account of the server. Options go to the client of boto3.
    """
    from .s3 import S3Store

    return S3Store(url, key, secret, **options)
