"""A table that is edited every day: what 60 files cost, what Tamis stores, and what it gives.

    python table_of_days.py --out docs/examples --data DIR   # a folder of daily CSV files
    python table_of_days.py --out /tmp/page --days 8 --rows 5000  # a made table, for a first look

Each day the whole table is written again, as most pipelines do, and a snapshot is taken. The page
`table-of-days.md` says what that cost beside ordinary Parquet files, reads the table as it was, and
reads a single column.
"""

from __future__ import annotations

import argparse
import io
import pathlib
import random
import tempfile
import time
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Tuple

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
import pyarrow  # noqa: E402
import pyarrow.csv  # noqa: E402
import pyarrow.parquet  # noqa: E402

import tamis  # noqa: E402

KEY = "table.parquet"
MB = 1e6
FILES = {"Parquet, snappy (default)": "snappy", "Parquet, zstd": "zstd"}


@dataclass
class Figures:
    """What was seen, day by day; bytes of all days up to it."""

    days: List[str] = field(default_factory=list)
    rows: List[int] = field(default_factory=list)
    files: Dict[str, List[int]] = field(default_factory=lambda: {name: [] for name in FILES})
    stored: List[int] = field(default_factory=list)
    table_bytes: int = 0
    """The store's own tables, when it has been closed and opened."""
    columns: List[Tuple[str, int, float]] = field(default_factory=list)


def tables_of(folder: pathlib.Path) -> Iterator[Tuple[str, pyarrow.Table]]:
    """The table of each CSV file of a folder, all columns as text."""
    for path in sorted(folder.rglob("*.csv")):
        names = pyarrow.csv.open_csv(path).schema.names
        text = {name: pyarrow.string() for name in names}
        options = pyarrow.csv.ConvertOptions(column_types=text)
        yield path.stem, pyarrow.csv.read_csv(path, convert_options=options)


def made_tables(days: int, rows: int) -> Iterator[Tuple[str, pyarrow.Table]]:
    """A table of which each day some rows are changed, some go and some come."""
    chance = random.Random(1)

    def row(number: int) -> Tuple[int, str, float, str]:
        kind = chance.choice(["asphalt", "concrete", "grass", "gravel", "water"])
        return number, f"runway {chance.randrange(10**6)}", chance.gauss(1500, 600), kind

    table = [row(number) for number in range(rows)]
    for day in range(days):
        columns = [list(column) for column in zip(*table)]
        yield f"day {day + 1:02}", pyarrow.table(columns, ["id", "name", "length", "surface"])
        for _ in range(rows // 500 + 1):
            table[chance.randrange(len(table))] = row(chance.randrange(10**6))
        del table[chance.randrange(len(table))]
        table.insert(chance.randrange(len(table)), row(chance.randrange(10**6)))


def size_as_file(table: pyarrow.Table, compression: str) -> int:
    """Bytes of an ordinary Parquet file."""
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file, compression=compression)
    return file.tell()


def write_days(
    store: tamis.EmbeddedStore, tables: Iterator[Tuple[str, pyarrow.Table]], days: int
) -> Figures:
    """Writes each day's table over that of the day before, and takes a snapshot."""
    figures = Figures()
    bucket = store.create_bucket("days")
    for number, (day, table) in enumerate(tables):
        if number == days:
            break
        for name, compression in FILES.items():
            before = figures.files[name][-1] if number else 0
            figures.files[name].append(before + size_as_file(table, compression))
        bucket.write_table(KEY, table, durable=True)
        bucket.snapshot(f"d{number:02}")
        figures.days.append(day)
        figures.rows.append(table.num_rows)
        figures.stored.append(store.stats()["stored_bytes"])
    return figures


def read_columns(store: tamis.EmbeddedStore, figures: Figures) -> None:
    """Reads one column, three and all of the last day."""
    bucket = store.bucket("days")
    names = bucket.read_columns(KEY).column_names
    for wanted in (names[1:2], names[1:4], names):
        begun = time.perf_counter()
        found = bucket.read_columns(KEY, wanted)
        elapsed = time.perf_counter() - begun
        label = "all" if wanted == names else str(len(wanted))
        figures.columns.append((label, found.nbytes, elapsed))


def draw(figures: Figures, out: pathlib.Path) -> None:
    """Two plots: what the days cost, and what a column costs."""
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "tamis", "font.size": 10})
    days = range(1, len(figures.days) + 1)
    figure, axes = plt.subplots(figsize=(7, 4))
    for (name, sizes), style in zip(figures.files.items(), ["-", "--"]):
        axes.plot(days, [size / MB for size in sizes], style, color="#0072b2", label=name)
    axes.plot(days, [size / MB for size in figures.stored], color="#d55e00", label="Tamis")
    axes.set_xlabel("days kept")
    axes.set_ylabel("MB, all of them together")
    axes.set_ylim(bottom=0)
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(out / "table-of-days-cost.svg", metadata={"Date": None})
    figure, axes = plt.subplots(figsize=(7, 2.5))
    labels = [f"{label} column{'s' if label != '1' else ''}" for label, _, _ in figures.columns]
    axes.barh(labels, [size / MB for _, size, _ in figures.columns], color="#0072b2")
    axes.invert_yaxis()
    axes.set_xlabel("MB in memory")
    figure.tight_layout()
    figure.savefig(out / "table-of-days-columns.svg", metadata={"Date": None})
    plt.close("all")


def page(figures: Figures, travelled: Tuple[str, int], own: List[int], source: str) -> str:
    """The page, in Markdown."""
    count = len(figures.days)
    stored = figures.stored[-1] + figures.table_bytes
    lines = [
        "# A table of days",
        "",
        f"`crates/python/examples/table_of_days.py` made this page of {source}: {count} versions, "
        f"{figures.rows[0]:,} rows in the first and {figures.rows[-1]:,} in the last.",
        "",
        "## What all versions cost together",
        "",
        "| kept as | MB | Tamis stores |",
        "|---|---|---|",
    ]
    for name, sizes in figures.files.items():
        size = sizes[-1]
        lines.append(f"| {count} files, {name} | {size / MB:.1f} | {size / stored:.1f}x less |")
    lines += [
        f"| {count} snapshots of a bucket, profile `dedup` | {stored / MB:.1f} | |",
        "",
        f"The last figure is all that the store takes: {figures.stored[-1] / MB:.1f} MB of pages "
        f"and the bucket's index, {figures.table_bytes / MB:.1f} MB of its own tables. "
        "The plots show the first of these, day by day.",
        "",
        "![cost](table-of-days-cost.svg)",
        "",
        f"The first version takes {figures.stored[0] / MB:.2f} MB, and a further one "
        f"{(stored - figures.stored[0]) / max(1, count - 1) / MB:.2f} MB on average. "
        f"What a snapshot alone holds is {sum(own) / max(1, len(own)) / MB:.2f} MB on average "
        "(`bucket.du()`).",
        "",
        "## As it was",
        "",
        "```python",
        f'bucket.at("d{count // 2:02}").read_columns("{KEY}")',
        "```",
        "",
        f"gives the table of {travelled[0]} with its {travelled[1]:,} rows.",
        "",
        "## A column",
        "",
        "| columns | MB in memory | ms |",
        "|---|---|---|",
    ]
    for label, size, elapsed in figures.columns:
        lines.append(f"| {label} | {size / MB:.2f} | {elapsed * 1000:.1f} |")
    lines += ["", "![columns](table-of-days-columns.svg)", ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, help="a folder of CSV files, one a day")
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--rows", type=int, default=20_000, help="of a made table")
    parser.add_argument("--compression", default="zstd:3")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    tables = tables_of(options.data) if options.data else made_tables(options.days, options.rows)
    source = f"`{options.data.name}`" if options.data else "a made table"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "store"
        shape = {"create": True, "capacity": 2 << 30, "compression": options.compression}
        with tamis.open(path, **shape) as store:
            figures = write_days(store, tables, options.days)
        with tamis.open(path) as store:
            figures.table_bytes = store.stats()["table_bytes"]
            read_columns(store, figures)
            bucket = store.bucket("days")
            count = len(figures.days)
            middle = bucket.at(f"d{count // 2:02}").read_columns(KEY)
            assert middle.num_rows == figures.rows[count // 2]
            own = [usage.own_bytes for usage in bucket.du()[1:]]
    draw(figures, options.out)
    text = page(figures, (figures.days[count // 2], middle.num_rows), own, source)
    (options.out / "table-of-days.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
