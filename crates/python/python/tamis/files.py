"""Objects as file objects of Python."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Optional

from .errors import Closed

if TYPE_CHECKING:
    from .interface import Reading, Writing
    from .types import Stored

GATHERED_BYTES = 1 << 20
"""Short writes are gathered to this length."""


class ObjectFile(io.RawIOBase):
    """An object that is read, as it was when it was opened. `Bucket.open` buffers it."""

    def __init__(self, reading: "Reading") -> None:
        self._reading = reading
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        found = self._reading.read(self._at, len(view))
        view[: len(found)] = found
        self._at += len(found)
        return len(found)

    def readall(self) -> bytes:
        found = self._reading.read(self._at)
        self._at += len(found)
        return found

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._reading.info.size}
        at = base[whence] + offset
        if at < 0:
            raise ValueError(f"byte {at} is before the object")
        self._at = at
        return at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        if not self.closed:
            self._reading.close()
        super().close()


class PutFile(io.BufferedIOBase):
    """An object that is written: it is put when the file is closed, and `stored` says what.

    An exception inside `with` leaves nothing, and neither does a file that nobody closes.
    """

    stored: Optional["Stored"] = None

    def __init__(self, writing: "Writing") -> None:
        self._writing: Optional["Writing"] = writing
        self._gathered = bytearray()
        self._length = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self._gathered += view
        self._length += len(view)
        if len(self._gathered) >= GATHERED_BYTES:
            self._send()
        return len(view)

    def tell(self) -> int:
        return self._length

    def flush(self) -> None:
        """Nothing: the object is put as a whole, by `close`."""

    def discard(self) -> None:
        """Closes the file, and puts nothing."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.discard()
        super().close()

    def close(self) -> None:
        if self.closed or self._writing is None:
            super().close()
            return
        try:
            self._send()
            self.stored = self._writing.finish()
        except BaseException:
            self.discard()
            raise
        self._writing = None
        super().close()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        # Nobody said that it is whole.
        writing = self.__dict__.get("_writing")
        if writing is not None:
            self.discard()

    def _send(self) -> None:
        if self._writing is None:
            raise Closed("the file is closed")
        if self._gathered:
            self._writing.write(bytes(self._gathered))
            self._gathered.clear()
