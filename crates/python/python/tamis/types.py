"""What a store says of itself: plain, frozen dataclasses, the same for every kind of store."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Dict, List, Literal, Optional, Union


Buffer = Union[bytes, bytearray, memoryview]
"""Bytes to be stored: anything with a contiguous buffer, such as an array of numpy."""


@dataclass(frozen=True)
class Stored:
    """What a put stored."""

    size: int
    """Bytes of the object."""
    etag: str
    """What S3 calls its content: the MD5 of its bytes, or that of its parts."""
    durable: bool
    """Whether no crash can take it back. If not, `flush` makes it so."""
    version: Optional[int] = None
    """Grows with every put of the bucket; None: the store does not tell."""
    new_bytes: Optional[int] = None
    """Bytes by which the store's data grew, where `measure=True` asked for it. What others write
    at the same time is in it."""


@dataclass(frozen=True)
class ObjectInfo:
    """An object without its bytes."""

    key: str
    size: int
    etag: str
    modified: datetime
    """When it was put."""
    version: Optional[int] = None
    expires: Optional[datetime] = None
    content_type: Optional[str] = None
    metadata: Dict[str, str] = field(default_factory=dict)
    tags: Dict[str, str] = field(default_factory=dict)
    """Only `head` of an embedded store brings them along; `tags` asks any store."""


@dataclass(frozen=True)
class Listing:
    """Objects, and what keys have in common up to the delimiter; each by name."""

    objects: List[ObjectInfo]
    prefixes: List[str]


@dataclass(frozen=True)
class BucketInfo:
    """A bucket."""

    name: str
    mapped_bytes: Optional[int] = None
    """Bytes that it maps, before deduplication; None: the store does not tell."""


@dataclass(frozen=True)
class SnapshotInfo:
    """A snapshot of a bucket."""

    name: str
    """`BUCKET@NAME`, which is the name of a bucket that is only read."""
    taken: datetime


@dataclass(frozen=True)
class Change:
    """How an object differs between two buckets or snapshots."""

    key: str
    kind: Literal["added", "removed", "changed"]
    before: Optional[ObjectInfo]
    after: Optional[ObjectInfo]


@dataclass(frozen=True)
class Usage:
    """What a bucket or snapshot costs."""

    name: str
    objects: int
    object_bytes: int
    """Bytes of its objects, as they were put."""
    mapped_bytes: int
    """Bytes that it maps: objects, padding and index, before deduplication and compression."""
    stored_bytes: int
    """Bytes of all stored chunks that it uses, each counted once, compressed."""
    own_bytes: int
    """Of those, bytes of chunks that no other bucket or snapshot uses."""
    freed_bytes: int
    """Bytes that come back when it is deleted. None come back of a snapshot of which several
    versions were made, until at most one of them is left."""
