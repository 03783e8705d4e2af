"""Why something was not done, by what the caller can do about it.

Every error of this package is a `TamisError`, and its text is one sentence with the way out. Those
that Python has a class for are of that class as well, so libraries know them.
"""

from __future__ import annotations


class TamisError(Exception):
    """Something was not done."""


class NotFound(TamisError, FileNotFoundError):
    """There is no store, bucket, snapshot or object of this name."""


class Exists(TamisError, FileExistsError):
    """There is one of this name already."""


class NotEmpty(TamisError, OSError):
    """The bucket holds objects or has snapshots: delete them first, or ask for them to go too."""


class NoSpace(TamisError, OSError):
    """The store, or the file system under it, has no room: delete something or enlarge it."""


class QuotaExceeded(NoSpace):
    """The bucket, or all of its tenant, would hold more than the quota."""


class ReadOnly(TamisError, PermissionError):
    """A snapshot, or a store that is open read-only, does not change."""


class AccessDenied(TamisError, PermissionError):
    """The account of this key may not do that."""


class InUse(TamisError, OSError):
    """Somebody has it open: close it there, or try again in a moment."""


class Damaged(TamisError, OSError):
    """Bytes are lost; the sentence says which. All others can be read."""


class ConditionFailed(TamisError):
    """The object is not the one that the caller expected; nothing has changed."""


class BadArgument(TamisError, ValueError):
    """An argument cannot be meant."""


class Closed(TamisError, ValueError):
    """The store, file or writer is closed."""


class Forked(TamisError, RuntimeError):
    """This process was forked from the one that opened the store, and has no engine."""


class NotSupported(TamisError, NotImplementedError):
    """This kind of store cannot do that; the sentence says which can."""


class Failed(TamisError, OSError):
    """A device, the machine or a server failed."""
