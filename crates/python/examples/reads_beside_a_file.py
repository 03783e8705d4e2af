"""Reads of a table's columns from a store in this process, beside pyarrow and a local file.

    python reads_beside_a_file.py --csv TABLE.csv --dir /var/tmp/reads [--rounds 41]

The table, all columns as text, is kept by the profile `dedup` in a store (LZ4) and in a file, and
in a second file as pyarrow writes it by default (snappy). Readers take turns. Each figure is a
median, in milliseconds: what a reader waited, and the processor time of all its threads, which
says more on a machine that is not quiet. A rate is that of pyarrow and the first file, divided.
"""

from __future__ import annotations

import argparse
import pathlib
import shutil
import statistics
import time
from typing import Callable, List, Tuple

import pyarrow.csv
import pyarrow.parquet

import tamis
from tamis.tables import parquet_options

KEY = "table.parquet"


def table_of(path: pathlib.Path) -> pyarrow.Table:
    names = pyarrow.csv.open_csv(path).schema.names
    text = {name: pyarrow.string() for name in names}
    options = pyarrow.csv.ConvertOptions(column_types=text)
    return pyarrow.csv.read_csv(path, convert_options=options)


def timed(read: Callable[[], pyarrow.Table]) -> Tuple[float, float]:
    """Milliseconds waited, and of the processor."""
    waited, worked = time.perf_counter(), time.process_time()
    table = read()
    times = time.perf_counter() - waited, time.process_time() - worked
    del table
    return times[0] * 1000, times[1] * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", type=pathlib.Path, required=True)
    parser.add_argument("--dir", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=41)
    arguments = parser.parse_args()
    shutil.rmtree(arguments.dir, ignore_errors=True)
    arguments.dir.mkdir(parents=True)
    table = table_of(arguments.csv)
    files = {profile: arguments.dir / f"{profile}.parquet" for profile in ("dedup", "default")}
    for profile, path in files.items():
        pyarrow.parquet.write_table(table, path, **parquet_options(profile))
    with tamis.open(arguments.dir / "store", create=True, capacity=1 << 30) as store:
        store.create_bucket("bench").write_table(KEY, table)
    with tamis.open(arguments.dir / "store") as store:
        bucket = store.bucket("bench")
        names = table.column_names
        for what, columns in [("1", names[4:5]), ("3", names[3:6]), ("all", None)]:
            of_file = lambda path: pyarrow.parquet.read_table(path, columns=columns)
            readers = {
                "file": lambda: of_file(files["dedup"]),
                "Tamis": lambda: bucket.read_columns(KEY, columns),
                "file, snappy": lambda: of_file(files["default"]),
            }
            assert all(read().equals(readers["file"]()) for read in readers.values())
            show(what, readers, arguments.rounds)


def show(what: str, readers: dict, rounds: int) -> None:
    seen: List[List[Tuple[float, float]]] = [[] for _ in readers]
    for _ in range(rounds):
        for times, read in zip(seen, readers.values()):
            times.append(timed(read))
    medians = [[statistics.median(figures) for figures in zip(*times)] for times in seen]
    for name, (waited, worked) in zip(readers, medians):
        rates = medians[0][0] / waited, medians[0][1] / worked
        print(
            f"{what:>4} columns, {name:12} {waited:7.2f} ms waited, {worked:6.2f} worked; "
            f"rate {rates[0]:.2f}, {rates[1]:.2f}"
        )


if __name__ == "__main__":
    main()
