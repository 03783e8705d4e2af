#!/usr/bin/env python3
"""Makes a table's Parquet file and two variants of it, for `models parquet-pair`.

    parquet_pair.py DIR

The paper's table is San Francisco's police incidents. This one is made, with columns of the same
kinds. `original.parquet` has all of it; in `rows.parquet` the older half of the rows is filtered
out, and `column.parquet` lacks the column `address`. All three have pages of 512 rows, 1 to 8 KiB,
neither compressed nor dictionary encoded, so that a page is the same bytes wherever it is kept.
"""

import pathlib
import sys

import numpy
import pyarrow
import pyarrow.parquet as parquet

ROWS = 1 << 17
PAGE_ROWS = 512


def made_table():
    chance = numpy.random.default_rng(1)

    def one_of(count, form):
        return [form.format(number) for number in chance.integers(0, count, ROWS)]

    return pyarrow.table(
        {
            "incident": numpy.arange(10**7, 10**7 + ROWS) + chance.integers(0, 9, ROWS),
            "minute": numpy.sort(chance.integers(0, 5 * 365 * 1440, ROWS)).astype("int32"),
            "category": one_of(40, "category {:02}"),
            "district": one_of(10, "D{}"),
            "address": one_of(9000, "{} block of a street"),
            "x": (chance.normal(-122.4, 0.03, ROWS)).astype("float32"),
            "y": (chance.normal(37.7, 0.03, ROWS)).astype("float32"),
        }
    )


def write(table, path):
    parquet.write_table(
        table,
        path,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
        row_group_size=ROWS,
        write_batch_size=PAGE_ROWS,
        data_page_size=1,
        store_schema=False,
    )


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    table = made_table()
    write(table, folder / "original.parquet")
    write(table.slice(ROWS // 2), folder / "rows.parquet")
    write(table.drop_columns(["address"]), folder / "column.parquet")


if __name__ == "__main__":
    main()
