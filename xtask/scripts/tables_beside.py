"""Daily versions of a table in Parquet: what borg, restic and chunks of 64 KiB keep of them.

    python tables_beside.py DAYS WORK    # a folder of daily CSV files; WORK is made anew

Needs pyarrow, fastcdc and lz4 (PyPI), the package tamis for its profile, borg and restic. The last
rival stands for Xet: content-defined chunks of 8 to 128 KiB, 64 on average, each with LZ4.
`docs/measurements/053-python.md` has Tamis' figures of the same files.
"""

import argparse
import hashlib
import pathlib
import shutil

import lz4.frame
import pyarrow
import pyarrow.csv
import pyarrow.parquet
from fastcdc import fastcdc
from tamis.tables import parquet_options

from reduction_beside import borg, bytes_below, restic

PROFILES = {
    "snappy": {"compression": "snappy"},
    "zstd": {"compression": "zstd"},
    "snappy, pages cut by content": {
        "compression": "snappy",
        "use_content_defined_chunking": True,
    },
    "dedup": parquet_options("dedup"),
}


def chunks(files):
    kept = {}
    for file in files:
        data = file.read_bytes()
        for chunk in fastcdc(data, 8 << 10, 64 << 10, 128 << 10):
            part = data[chunk.offset : chunk.offset + chunk.length]
            name = hashlib.sha256(part).digest()
            if name not in kept:
                kept[name] = min(len(part), len(lz4.frame.compress(part)))
    return sum(kept.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("days", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    print("| written as | logical | borg | restic | chunks of 64 KiB |")
    print("|---|---|---|---|---|")
    for number, (profile, how) in enumerate(PROFILES.items()):
        folder = options.work / f"files{number}"
        folder.mkdir(parents=True)
        for day, path in enumerate(sorted(options.days.rglob("*.csv"))):
            names = pyarrow.csv.open_csv(path).schema.names
            text = {name: pyarrow.string() for name in names}
            read = pyarrow.csv.ConvertOptions(column_types=text)
            table = pyarrow.csv.read_csv(path, convert_options=read)
            pyarrow.parquet.write_table(table, folder / f"{day:02}.parquet", **how)
        files = sorted(folder.iterdir())
        versions = [str(file) for file in files]
        repository = str(options.work / "repository")
        figures = [
            bytes_below(folder),
            borg(repository, versions, "zstd,3"),
            restic(repository, versions),
            chunks(files),
        ]
        print(f"| {profile} | " + " | ".join(f"{figure / 1e6:.1f}" for figure in figures) + " |")


if __name__ == "__main__":
    main()
