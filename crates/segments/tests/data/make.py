"""Writes the files of this folder, and beside each where its parts begin, as their writers say.

python3 -m venv v && v/bin/pip install pyarrow safetensors numpy && v/bin/python make.py
"""

import io
import json
import tarfile
import zipfile
from pathlib import Path

import numpy
import pyarrow
import pyarrow.parquet as parquet
from safetensors.numpy import save

HERE = Path(__file__).parent


def keep(name, data, starts):
    (HERE / name).write_bytes(data)
    (HERE / f"{name}.starts").write_text(
        " ".join(str(start) for start in sorted(set(starts))) + "\n"
    )


def table(rows):
    numbers = numpy.arange(rows, dtype=numpy.int64)
    return pyarrow.table(
        {
            "number": numbers * numbers,
            "word": [f"word {number % 37}" for number in range(rows)],
            "list": [[number, number + 1] if number % 3 else None for number in range(rows)],
            "pair": [{"a": number, "b": str(number)} for number in range(rows)],
        }
    )


def parquet_file(name, rows, **options):
    out = io.BytesIO()
    parquet.write_table(table(rows), out, **options)
    data, starts = out.getvalue(), []
    footer = parquet.ParquetFile(io.BytesIO(data)).metadata
    for group in range(footer.num_row_groups):
        for number in range(footer.num_columns):
            column = footer.row_group(group).column(number)
            if column.total_compressed_size > 0:
                offsets = [column.dictionary_page_offset, column.data_page_offset]
                starts += [offset for offset in offsets if offset]
    keep(name, data, starts)


def buffers_in(data, arrays):
    return [data.index(array.tobytes()) for array in arrays]


parquet_file("default.parquet", 1000)
parquet_file("pages.parquet", 1200, data_page_size=4096, write_batch_size=64, compression="none")
parquet_file("v2.parquet", 1000, data_page_version="2.0", compression="zstd", row_group_size=300)
parquet_file("checksums.parquet", 500, write_page_checksum=True, write_page_index=True)
parquet_file(
    "dedup.parquet",
    2000,
    use_dictionary=False,
    use_content_defined_chunking={"min_chunk_size": 4096, "max_chunk_size": 16384},
    compression="none",
)
parquet_file("empty.parquet", 0)

random = numpy.random.default_rng(7)
first = random.integers(0, 1 << 16, 3200, dtype=numpy.uint16).astype(numpy.int64)
second = random.integers(0, 9, 2600, dtype=numpy.int64)
batch = pyarrow.record_batch({"first": first[:2600], "second": second})
for name, writer in [
    ("file.arrow", pyarrow.ipc.new_file),
    ("stream.arrow", pyarrow.ipc.new_stream),
]:
    out = io.BytesIO()
    with writer(out, batch.schema) as sink:
        sink.write_batch(batch)
    keep(name, out.getvalue(), buffers_in(out.getvalue(), [first[:2600], second]))

out = io.BytesIO()
numpy.save(out, first)
keep("array.npy", out.getvalue(), buffers_in(out.getvalue(), [first]))

data = save({"first": first, "second": second, "short": second[:3], "none": second[:0]})
keep("tensors.safetensors", data, buffers_in(data, [first, second]))

for name, form in [("gnu.tar", tarfile.GNU_FORMAT), ("pax.tar", tarfile.PAX_FORMAT)]:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as sink:
        for member, array in [("a" * 150, first), ("short", second[:9]), ("ü/second", second)]:
            entry = tarfile.TarInfo(member)
            entry.size = array.nbytes
            sink.addfile(entry, io.BytesIO(array.tobytes()))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "short"
        sink.addfile(link)
        entry = tarfile.TarInfo("third")
        entry.size = first[::-1].nbytes
        sink.addfile(entry, io.BytesIO(first[::-1].tobytes()))
    keep(name, out.getvalue(), buffers_in(out.getvalue(), [first, second, first[::-1]]))

out = io.BytesIO()
with zipfile.ZipFile(out, "w") as sink:
    sink.writestr("first", first.tobytes())
    sink.writestr("short", second[:9].tobytes(), zipfile.ZIP_DEFLATED)
    with sink.open(zipfile.ZipInfo("second"), "w", force_zip64=True) as member:
        member.write(second.tobytes())
keep("members.zip", out.getvalue(), buffers_in(out.getvalue(), [first, second]))
