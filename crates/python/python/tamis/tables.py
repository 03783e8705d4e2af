"""Tables as Parquet that deduplicates, and reads of single columns.

How a table is written decides what its versions share (docs/decisions/070). The profile `dedup`:

* pages end where the content says so (4 to 16 KiB), so an inserted row moves no later page;
* no dictionaries, whose numbers change with the order of values;
* no compression: the store compresses each page after it has looked for its duplicates.

A read asks for the end of the object first, which holds the footer of most tables; then a server is
asked for all bytes of the columns and row groups that are needed, in one call. The engine in this
process is asked for each column when pyarrow comes to it: one is decoded while the next is read,
and memory of one serves the next (docs/measurements/053). A server of Tamis chooses row groups
itself and sends both in one answer (`near.py`). What it sends is looked at here as bytes that came
early: which row groups are read is decided here, and what did not come is fetched.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Set, Tuple

from .errors import BadArgument, Damaged

if TYPE_CHECKING:
    import pyarrow

    from .interface import Bucket, Reading
    from .types import Buffer, Stored

PAGE_BYTES_MIN, PAGE_BYTES_MAX = 4 << 10, 16 << 10
GROUP_ROWS = 128 << 10
"""Rows of a group: what a filter passes over as a whole."""
FOOTER_BYTES_LIKELY = 64 << 10
FLOAT_STEP = 2.0**-23
"""How far a number may be from that of 32 bits nearest to it, and more."""
MAGIC = b"PAR1"
TAIL_BYTES = 8
"""Length of the footer, and the magic."""


def parquet_options(profile: str) -> Dict[str, Any]:
    """What the profile has `pyarrow.parquet.write_table` do."""
    if profile == "default":
        return {}
    if profile != "dedup":
        raise BadArgument(f"{profile} is no profile of tables: dedup and default are")
    return {
        "use_dictionary": False,
        "compression": "none",
        "row_group_size": GROUP_ROWS,
        "use_content_defined_chunking": {
            "min_chunk_size": PAGE_BYTES_MIN,
            "max_chunk_size": PAGE_BYTES_MAX,
        },
    }


def write_table(
    bucket: "Bucket",
    key: str,
    table: "pyarrow.Table",
    *,
    profile: str = "dedup",
    parquet: Optional[Dict[str, Any]] = None,
    **options: Any,
) -> "Stored":
    """Puts a table as Parquet. `parquet` has further options of `pyarrow.parquet.write_table`;
    all others are those of `Bucket.writing`."""
    import pyarrow.parquet

    file = bucket.open(key, "wb", **options)
    with file:
        wanted = {**parquet_options(profile), **(parquet or {})}
        pyarrow.parquet.write_table(table, file, **wanted)
    stored: "Stored" = file.stored  # type: ignore[attr-defined]
    return stored


def read_columns(
    bucket: "Bucket", key: str, columns: Optional[Sequence[str]] = None, filters: Any = None
) -> "pyarrow.Table":
    """Reads columns of a Parquet object, all of them without `columns`.

    `filters` is what `pyarrow.parquet.read_table` takes: `[("day", ">=", 3), ("day", "<", 5)]`,
    lists of such for alternatives, or an expression. Row groups whose statistics say that no row
    matches are not read; rows that do not match are left out.
    """
    expression, of_filters, alternatives = _filter(filters)
    needed = None
    if columns is not None and of_filters is not None:
        needed = list(dict.fromkeys([*columns, *of_filters]))
    reading, parts = bucket.reading_columns(key, needed, alternatives)
    try:
        return _read(_SparseFile(reading, parts), columns, expression, of_filters, alternatives)
    finally:
        reading.close()


def _read(
    file: "_SparseFile",
    columns: Optional[Sequence[str]],
    expression: Any,
    of_filters: Optional[List[str]],
    alternatives: List[List[Any]],
) -> "pyarrow.Table":
    import pyarrow
    import pyarrow.parquet

    # Left alone, pyarrow reads 64 KiB for a footer of any length.
    metadata = pyarrow.parquet.read_metadata(pyarrow.BufferReader(file.footer()))
    parquet = pyarrow.parquet.ParquetFile(file, metadata=metadata, pre_buffer=False)
    names = list(parquet.schema_arrow.names)
    wanted = names if columns is None else list(columns)
    filtered = names if of_filters is None else of_filters
    missing = [name for name in [*wanted, *filtered] if name not in names]
    if missing:
        raise BadArgument(f"{file.key} has no column {', '.join(missing)}")
    needed = wanted + [name for name in filtered if name not in wanted]
    groups = [
        group
        for group in range(metadata.num_row_groups)
        if metadata.row_group(group).num_rows
        and _may_match(metadata.row_group(group), alternatives)
    ]
    if file.is_far:
        file.bring(_ranges(metadata, groups, set(needed)))
    table = parquet.read_row_groups(groups, columns=needed)
    if expression is not None:
        table = table.filter(expression)
    return table.select(wanted)


def _ranges(metadata: Any, groups: List[int], needed: Set[str]) -> List[Tuple[int, int]]:
    """Where the chunks of these columns lie, neighbours as one range."""
    ranges: List[Tuple[int, int]] = []
    for group in groups:
        row_group = metadata.row_group(group)
        for number in range(row_group.num_columns):
            chunk = row_group.column(number)
            # A nested column has a chunk for each of its leaves: `name.list.element`.
            if chunk.path_in_schema not in needed:
                top = chunk.path_in_schema.split(".")[0]
                if top not in needed:
                    continue
            # What a chunk does not have may be said to be at 0.
            starts = [chunk.data_page_offset, chunk.dictionary_page_offset]
            start = min((start for start in starts if start), default=0)
            ranges.append((start, chunk.total_compressed_size))
    ranges.sort()
    joined: List[Tuple[int, int]] = []
    for start, length in ranges:
        if joined and sum(joined[-1]) == start:
            joined[-1] = (joined[-1][0], joined[-1][1] + length)
        elif length:
            joined.append((start, length))
    return joined


def _filter(filters: Any) -> Tuple[Any, Optional[List[str]], List[List[Any]]]:
    """The expression, the columns that it names (None: it does not tell), and alternatives of terms
    to judge groups by."""
    import pyarrow.compute
    import pyarrow.parquet

    if filters is None:
        return None, [], []
    if isinstance(filters, pyarrow.compute.Expression):
        return filters, None, []
    terms = list(filters)
    alternatives = [terms] if terms and isinstance(terms[0], tuple) else [list(t) for t in terms]
    of_filters = list(dict.fromkeys(term[0] for terms in alternatives for term in terms))
    return pyarrow.parquet.filters_to_expression(filters), of_filters, alternatives


def _may_match(row_group: Any, alternatives: List[List[Any]]) -> bool:
    """Whether statistics leave open that a row matches; what is not known is left open."""
    if not alternatives:
        return True
    statistics = {}
    for number in range(row_group.num_columns):
        chunk = row_group.column(number)
        if chunk.is_stats_set and chunk.statistics.has_min_max:
            low, high = chunk.statistics.min, chunk.statistics.max
            if chunk.physical_type == "FLOAT":
                # pyarrow looks for values in lists as if they were of 32 bits as well.
                low, high = low - abs(low) * FLOAT_STEP, high + abs(high) * FLOAT_STEP
            statistics[chunk.path_in_schema] = (low, high)
    def all_may(terms: List[Any]) -> bool:
        return all(_term_may_match(statistics.get(name), how, value) for name, how, value in terms)

    return any(all_may(terms) for terms in alternatives)


def _term_may_match(bounds: Optional[Tuple[Any, Any]], operator: str, value: Any) -> bool:
    if bounds is None:
        return True
    low, high = bounds
    try:
        if not low <= high:
            return True  # NaN, which says nothing.
        if operator in ("=", "=="):
            return bool(low <= value <= high)
        if operator == "!=" and not isinstance(low, float):
            return bool(low != value or high != value)
        if operator == "<":
            return bool(low < value)
        if operator == "<=":
            return bool(low <= value)
        if operator == ">":
            return bool(high > value)
        if operator == ">=":
            return bool(high >= value)
        if operator == "in":
            return any(low <= one <= high for one in value)
    except TypeError:
        return True  # Statistics of another type than the value.
    return True


class _SparseFile(io.RawIOBase):
    """The parts of an object that were brought, as a file; other parts are read where needed."""

    def __init__(self, reading: "Reading", parts: Sequence[Tuple[int, Buffer]]) -> None:
        self._reading = reading
        self.key = reading.info.key
        self.is_far = reading.is_far
        self._at = 0
        self._starts: List[int] = []
        self._parts: List[Buffer] = []
        for start, part in parts:
            self._add(start, part)

    def footer(self) -> Buffer:
        """The end of the object with all of the footer: if it is not here, by a read, or two where
        it is long."""
        size = self._reading.info.size
        if not self._parts:
            start = max(0, size - FOOTER_BYTES_LIKELY)
            self._add(start, self._reading.read(start, size - start))
        tail = self._parts[-1]
        if len(tail) < len(MAGIC) + TAIL_BYTES or tail[-4:] != MAGIC:
            raise Damaged(f"{self.key} is no Parquet file: it does not end as one")
        footer = int.from_bytes(tail[-8:-4], "little") + TAIL_BYTES
        if footer > len(tail):
            start = max(0, size - footer)
            tail = self._reading.read(start, size - start)
            self._add(start, tail)
        return tail

    def bring(self, ranges: List[Tuple[int, int]]) -> None:
        """Brings many parts in one call, but for those that are here."""
        lacking = [of for of in ranges if self._place(*of) is None]
        for (start, _), part in zip(lacking, self._reading.read_ranges(lacking)):
            self._add(start, part)

    def _add(self, start: int, part: Buffer) -> None:
        at = bisect_right(self._starts, start)
        self._starts.insert(at, start)
        self._parts.insert(at, part)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._reading.info.size}
        self._at = base[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        return bytes(self.read_buffer(size))

    def read_buffer(self, size: int = -1) -> memoryview:
        """As `read`, without a copy of what is here: pyarrow asks for this where it is."""
        left = max(0, self._reading.info.size - self._at)
        length = left if size is None or size < 0 else min(size, left)
        at = self._place(self._at, length)
        if at is None:
            found = memoryview(self._reading.read(self._at, length))
        else:
            offset = self._at - self._starts[at]
            found = memoryview(self._parts[at])[offset : offset + length]
        self._at += len(found)
        return found

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        found = self.read_buffer(len(view))
        view[: len(found)] = found
        return len(found)

    def _place(self, start: int, length: int) -> Optional[int]:
        """Which part has these bytes."""
        for at in range(bisect_right(self._starts, start) - 1, -1, -1):
            if start + length <= self._starts[at] + len(self._parts[at]):
                return at
        return None
