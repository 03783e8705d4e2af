"""Arrays in the layout of `.npy`: any program reads them, and a slice reads only its rows."""

from __future__ import annotations

import ast
import math
import struct
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional, Tuple, Type

from .errors import BadArgument, Damaged

if TYPE_CHECKING:
    import numpy

    from .interface import Bucket, Reading
    from .types import Stored

MAGIC = b"\x93NUMPY"
HEADER_BYTES_LIKELY = 4096


def put_array(bucket: "Bucket", key: str, array: Any, **options: Any) -> "Stored":
    """Puts an array; options are those of `Bucket.writing`."""
    import io

    import numpy

    array = numpy.asarray(array)
    if array.dtype.hasobject:
        raise BadArgument("an array of Python objects has no layout: give it a type of numpy")
    # Not `ascontiguousarray`, which makes an array of one dimension of a scalar.
    array = numpy.asarray(array, order="C")
    header = io.BytesIO()
    layout = numpy.lib.format.header_data_from_array_1_0(array)
    layout["fortran_order"] = False
    numpy.lib.format.write_array_header_1_0(header, layout)
    writing = bucket.writing(key, **options)
    try:
        writing.write(header.getvalue())
        if array.size:
            writing.write(array.reshape(-1).view(numpy.uint8).data)
        return writing.finish()
    except BaseException:
        writing.discard()
        raise


class StoredArray:
    """An array that is stored, as it was when it was opened.

    `array[3]`, `array[10:20]` and `array[10:20, ::2]` read the rows of the first index and no
    others; `array[:]` reads all. Fortran-ordered arrays are read whole.
    """

    def __init__(self, reading: "Reading") -> None:
        import numpy

        self._reading = reading
        head = reading.read(0, HEADER_BYTES_LIKELY)
        start, layout = _layout(head, reading)
        self.dtype: "numpy.dtype[Any]" = numpy.dtype(layout["descr"])
        self.shape: Tuple[int, ...] = tuple(layout["shape"])
        self._is_fortran = bool(layout["fortran_order"])
        self._start = start
        if reading.info.size != start + self.nbytes or self.dtype.hasobject:
            raise Damaged(f"{reading.info.key} is no array of the layout that it says")

    @property
    def ndim(self) -> int:
        """How many dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        indexes = index if isinstance(index, tuple) else (index,)
        first = indexes[0] if indexes else slice(None)
        if self._is_fortran or not self.shape or not isinstance(first, (int, slice)):
            return self._rows(0, len(self) if self.shape else 1)[index]
        if isinstance(first, int):
            row = first + len(self) if first < 0 else first
            if not 0 <= row < len(self):
                raise IndexError(f"index {first} of an array of {len(self)} rows")
            return self._rows(row, row + 1)[0][indexes[1:]]
        start, stop, step = first.indices(len(self))
        if step == 1:
            return self._rows(start, max(start, stop))[(slice(None),) + indexes[1:]]
        rows = range(start, stop, step)
        low, high = (min(rows), max(rows) + 1) if rows else (0, 0)
        # From the first row that was read, or backwards from the last.
        stepped = slice(None, None, step)
        return self._rows(low, high)[(stepped,) + indexes[1:]]

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        whole = self[...] if not self.shape else self[:]
        return whole if dtype is None else whole.astype(dtype)

    def close(self) -> None:
        """Closes the object."""
        self._reading.close()

    def __enter__(self) -> "StoredArray":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def _rows(self, start: int, stop: int) -> Any:
        import numpy

        if self._is_fortran or not self.shape:
            found = self._reading.read(self._start, self.nbytes)
            order: Any = "F" if self._is_fortran else "C"
            return numpy.frombuffer(found, self.dtype).reshape(self.shape, order=order)
        row_bytes = math.prod(self.shape[1:]) * self.dtype.itemsize
        found = self._reading.read(self._start + start * row_bytes, (stop - start) * row_bytes)
        return numpy.frombuffer(found, self.dtype).reshape((stop - start, *self.shape[1:]))


def _layout(head: bytes, reading: "Reading") -> Tuple[int, Any]:
    """Where the elements begin, and what the header says of them."""
    not_npy = Damaged(f"{reading.info.key} has no header of .npy")
    if len(head) < 12 or not head.startswith(MAGIC):
        raise not_npy
    is_short = head[6] == 1
    length = struct.unpack("<H", head[8:10])[0] if is_short else struct.unpack("<I", head[8:12])[0]
    start = 10 if is_short else 12
    if start + length > len(head):
        head = reading.read(0, start + length)
    try:
        layout = ast.literal_eval(head[start : start + length].decode("latin1"))
        if set(layout) != {"descr", "fortran_order", "shape"}:
            raise not_npy
    except (ValueError, SyntaxError, TypeError) as error:
        raise not_npy from error
    return start + length, layout
