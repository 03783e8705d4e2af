"""`tamis://` for everything that knows fsspec: pandas, Dask, DuckDB, zarr, pyarrow and others.

```python
pandas.read_parquet("tamis://sales/day.parquet", storage_options={"store": "./store"})
pandas.read_parquet("tamis://sales@monday/day.parquet", ...)  # as it was when monday was taken
```

Where the store is, options say: `store` is a directory that this process opens (or has open
already), `url`, `key` and `secret` a server. Without them the environment does: `TAMIS_STORE`, or
`TAMIS_URL`, `TAMIS_KEY` and `TAMIS_SECRET`. A file is durable when it has been closed.

The first part of a path is a bucket, or `BUCKET@SNAPSHOT`, which is only read. As in any object
store, a directory is what keys have in common: it is there as long as it holds something.
"""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any, Dict, List, Optional, Sequence, Tuple

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from . import embedded
from .errors import BadArgument, Exists, NotFound
from .interface import Bucket, Reading, Store, Writing
from .types import ObjectInfo

BLOCK_BYTES = 4 << 20


class TamisFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Buckets and their objects as files."""

    protocol = "tamis"
    root_marker = ""

    def __init__(
        self,
        store: Optional[str] = None,
        url: Optional[str] = None,
        key: Optional[str] = None,
        secret: Optional[str] = None,
        durable: bool = True,
        create: bool = False,
        **options: Any,
    ) -> None:
        fsspec_options = {
            name: options.pop(name)
            for name in ("use_listings_cache", "skip_instance_cache", "asynchronous", "loop")
            if name in options
        }
        super().__init__(**fsspec_options)
        self.durable = durable
        self.store: Store = _store(store, url, key, secret, create, options)

    # Paths.

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        path = os.fspath(path)
        if path.startswith("tamis://"):
            path = path[len("tamis://") :]
        elif path.startswith("tamis:"):
            path = path[len("tamis:") :]
        return path.strip("/")

    def _split(self, path: str) -> Tuple[Bucket, str]:
        name, _, key = self._strip_protocol(path).partition("/")
        if not name:
            raise BadArgument(f"{path} names no bucket: tamis://BUCKET/KEY")
        return self.store.bucket(name), key

    def _split_object(self, path: str) -> Tuple[Bucket, str]:
        bucket, key = self._split(path)
        if not key:
            raise IsADirectoryError(f"{path} is a bucket, and no object")
        return bucket, key

    # What there is.

    def ls(self, path: str, detail: bool = True, **options: Any) -> List[Any]:
        path = self._strip_protocol(path)
        if not path:
            found = [_directory(info.name) for info in self.store.buckets()]
        else:
            bucket, key = self._split(path)
            listed = bucket.listing(f"{key}/" if key else "", "/")
            found = [_directory(f"{bucket.name}/{one.rstrip('/')}") for one in listed.prefixes]
            found += [_file(bucket, info) for info in listed.objects if info.key != f"{key}/"]
            if not found and key:
                found = [_file(bucket, bucket.head(key))]
        return found if detail else sorted(entry["name"] for entry in found)

    def info(self, path: str, **options: Any) -> Dict[str, Any]:
        path = self._strip_protocol(path)
        if not path:
            return _directory("")
        bucket, key = self._split(path)
        if key:
            try:
                return _file(bucket, bucket.head(key))
            except NotFound:
                pass
        page = next(bucket.pages(f"{key}/" if key else ""))
        if key and not page.objects:
            raise NotFound(f"there is nothing at {path}")
        return _directory(path)

    def find(
        self,
        path: str,
        maxdepth: Optional[int] = None,
        withdirs: bool = False,
        detail: bool = False,
        **options: Any,
    ) -> Any:
        path = self._strip_protocol(path)
        if not path or maxdepth is not None or withdirs:
            return super().find(path, maxdepth, withdirs, detail, **options)
        bucket, key = self._split(path)
        objects = bucket.list(f"{key}/" if key else "")
        found = {entry["name"]: entry for entry in (_file(bucket, info) for info in objects)}
        if key and bucket.exists(key):
            found[path] = _file(bucket, bucket.head(key))
        return dict(sorted(found.items())) if detail else sorted(found)

    def created(self, path: str) -> datetime:
        return self.modified(path)

    def modified(self, path: str) -> datetime:
        bucket, key = self._split_object(path)
        return bucket.head(key).modified

    def checksum(self, path: str) -> int:
        return int(self.ukey(path), 16)

    def ukey(self, path: str) -> str:
        """The ETag, which changes when the object does."""
        bucket, key = self._split_object(path)
        return bucket.head(key).etag.replace("-", "")

    # Bytes.

    def cat_file(
        self, path: str, start: Optional[int] = None, end: Optional[int] = None, **options: Any
    ) -> bytes:
        bucket, key = self._split_object(path)
        reading = bucket.reading(key)
        try:
            offset, stop = _range(start, end, reading.info.size)
            return reading.read(offset, stop - offset)
        finally:
            reading.close()

    def cat_ranges(
        self,
        paths: List[str],
        starts: Any,
        ends: Any,
        max_gap: Optional[int] = None,
        on_error: str = "return",
        **options: Any,
    ) -> List[Any]:
        """All ranges of an object are one call."""
        if not isinstance(starts, (list, tuple)):
            starts = [starts] * len(paths)
        if not isinstance(ends, (list, tuple)):
            ends = [ends] * len(paths)
        if not len(paths) == len(starts) == len(ends):
            raise BadArgument("there is a start and an end for each path, or one for all")
        of_path: Dict[str, List[int]] = {}
        for at, path in enumerate(paths):
            of_path.setdefault(path, []).append(at)
        found: List[Any] = [b""] * len(paths)
        for path, places in of_path.items():
            try:
                ranges = [(starts[at], ends[at]) for at in places]
                for at, part in zip(places, self._cat_ranges_of(path, ranges)):
                    found[at] = part
            except Exception as error:
                if on_error != "return":
                    raise
                for at in places:
                    found[at] = error
        return found

    def _cat_ranges_of(
        self, path: str, ranges: Sequence[Tuple[Optional[int], Optional[int]]]
    ) -> List[bytes]:
        bucket, key = self._split_object(path)
        reading = bucket.reading(key)
        try:
            whole = [_range(start, end, reading.info.size) for start, end in ranges]
            return reading.read_ranges([(offset, stop - offset) for offset, stop in whole])
        finally:
            reading.close()

    def pipe_file(self, path: str, value: Any, mode: str = "overwrite", **options: Any) -> None:
        bucket, key = self._split_object(path)
        bucket.put(key, value, durable=self.durable, if_absent=mode == "create")

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: Optional[int] = None,
        autocommit: bool = True,
        cache_options: Optional[Dict[str, Any]] = None,
        **options: Any,
    ) -> "TamisFile":
        if "x" in mode and self.isfile(path):
            raise Exists(f"there is an object at {path} already")
        block_size = block_size or BLOCK_BYTES
        options["cache_options"] = cache_options
        return TamisFile(self, path, mode, block_size, autocommit, **options)

    # Changes.

    def mkdir(self, path: str, create_parents: bool = True, **options: Any) -> None:
        """Makes a bucket; below one there is nothing to make."""
        bucket, key = self._split(path)
        if not key:
            self.store.create_bucket(bucket.name)
        elif create_parents and "@" not in bucket.name:
            self.store.create_bucket(bucket.name, exist_ok=True)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        try:
            self.mkdir(path)
        except Exists:
            if not exist_ok:
                raise

    def rmdir(self, path: str) -> None:
        bucket, key = self._split(path)
        if not key:
            self.store.delete_bucket(bucket.name)

    def rm_file(self, path: str) -> None:
        bucket, key = self._split_object(path)
        if not bucket.exists(key):
            raise NotFound(f"there is no object at {path}")
        bucket.delete(key, durable=self.durable)

    def _rm(self, path: str) -> None:
        self.rm_file(path)

    def rm(self, path: Any, recursive: bool = False, maxdepth: Optional[int] = None) -> None:
        """Deletes objects, many in one step; a bucket goes when it is named itself."""
        whole = [self._strip_protocol(one) for one in ([path] if isinstance(path, str) else path)]
        of_bucket: Dict[str, List[str]] = {}
        for one in self.expand_path(path, recursive=recursive, maxdepth=maxdepth):
            name, _, key = one.partition("/")
            if key:
                of_bucket.setdefault(name, []).append(key)
            else:
                of_bucket.setdefault(name, [])
        for name, keys in of_bucket.items():
            if keys:
                self.store.bucket(name).delete(keys, durable=self.durable)
        for one in whole:
            if recursive and one in of_bucket:
                self.store.delete_bucket(one)

    def cp_file(self, path1: str, path2: str, **options: Any) -> None:
        source, from_key = self._split(path1)
        target, to_key = self._split(path2)
        if not from_key or not to_key or self.isdir(path1):
            return  # A directory is there when it holds something.
        source.copy(from_key, to_key, to=target, durable=self.durable)

    def invalidate_cache(self, path: Optional[str] = None) -> None:
        """Nothing: listings are not cached."""


class TamisFile(AbstractBufferedFile):  # type: ignore[misc]
    """An object as a file: read at one version; written, it is put when it is closed."""

    def __init__(
        self,
        fs: TamisFileSystem,
        path: str,
        mode: str = "rb",
        block_size: int = BLOCK_BYTES,
        autocommit: bool = True,
        cache_type: str = "readahead",
        cache_options: Optional[Dict[str, Any]] = None,
        **options: Any,
    ) -> None:
        self._reading: Optional[Reading] = None
        self._writing: Optional[Writing] = None
        self._bucket, self._key = fs._split_object(path)
        size = None
        if mode == "rb":
            self._reading = self._bucket.reading(self._key)
            size = self._reading.info.size
            self.details = _file(self._bucket, self._reading.info)
        elif mode == "ab":
            raise BadArgument("an object is put as a whole: read it and write it")
        super().__init__(
            fs, path, mode, block_size, autocommit, cache_type, cache_options, size, **options
        )

    def _fetch_range(self, start: int, end: int) -> bytes:
        assert self._reading is not None
        return self._reading.read(start, end - start)

    def _initiate_upload(self) -> None:
        fs: TamisFileSystem = self.fs
        self._writing = self._bucket.writing(
            self._key, durable=fs.durable, if_absent="x" in self.mode
        )

    def _upload_chunk(self, final: bool = False) -> bool:
        assert self._writing is not None
        self._writing.write(self.buffer.getvalue())
        if final and self.autocommit:
            self.commit()
        return True

    def commit(self) -> None:
        """Puts what was written."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.finish()

    def discard(self) -> None:
        """Drops what was written: nothing was put."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.discard()

    def close(self) -> None:
        super().close()
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.close()


def _store(
    store: Optional[str],
    url: Optional[str],
    key: Optional[str],
    secret: Optional[str],
    create: bool,
    options: Dict[str, Any],
) -> Store:
    store, url = store or (None if url else os.environ.get("TAMIS_STORE")), url
    url = url or (None if store else os.environ.get("TAMIS_URL"))
    if store is not None and url is not None:
        raise BadArgument("a store is in this process or on a server: give store or url, not both")
    if store is not None:
        return embedded.shared(store, create=create, **options)
    if url is None:
        raise BadArgument("say where the store is: storage_options={'store': DIR} or TAMIS_STORE")
    from .s3 import S3Store

    key = key or os.environ.get("TAMIS_KEY") or ""
    secret = secret or os.environ.get("TAMIS_SECRET") or ""
    return S3Store(url, key, secret, **options)


def _directory(path: str) -> Dict[str, Any]:
    return {"name": path, "size": 0, "type": "directory"}


def _file(bucket: Bucket, info: ObjectInfo) -> Dict[str, Any]:
    return {
        "name": f"{bucket.name}/{info.key}",
        "size": info.size,
        "type": "file",
        "etag": info.etag,
        "version": info.version,
        "mtime": info.modified,
        "content_type": info.content_type,
    }


def _range(start: Optional[int], end: Optional[int], size: int) -> Tuple[int, int]:
    """A range as fsspec says it, from either end, inside the object."""
    low = 0 if start is None else start + size if start < 0 else start
    high = size if end is None else end + size if end < 0 else end
    low = min(max(low, 0), size)
    return low, min(max(high, low), size)
