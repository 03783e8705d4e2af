"""What data users do with a bucket by URL: s3fs, pyarrow, Polars, as far as they are installed.

Usage: s3_data.py ENDPOINT ACCESS_KEY SECRET. Prints what was tried.
"""

import importlib.util
import sys

ENDPOINT, ACCESS_KEY, SECRET = sys.argv[1:4]
tried = []


def has(*modules):
    return all(importlib.util.find_spec(module) for module in modules)


def with_s3fs():
    import s3fs

    files = s3fs.S3FileSystem(
        key=ACCESS_KEY,
        secret=SECRET,
        client_kwargs={"endpoint_url": ENDPOINT},
        use_listings_cache=False,
    )
    files.mkdir("data-s3fs")
    with files.open("data-s3fs/a/b.txt", "wb") as out:
        out.write(b"x" * 6_000_000)
    with files.open("data-s3fs/a/b.txt", "rb") as found:
        found.seek(5_999_990)
        assert found.read() == b"x" * 10
    files.copy("data-s3fs/a/b.txt", "data-s3fs/a/c.txt")
    assert sorted(files.ls("data-s3fs/a", refresh=True)) == [
        "data-s3fs/a/b.txt",
        "data-s3fs/a/c.txt",
    ]
    assert files.info("data-s3fs/a/c.txt")["size"] == 6_000_000
    files.mv("data-s3fs/a/c.txt", "data-s3fs/d.txt")
    assert not files.exists("data-s3fs/a/c.txt") and files.exists("data-s3fs/d.txt")
    files.rm("data-s3fs", recursive=True)
    tried.append(f"s3fs {s3fs.__version__}")


def arrow_files():
    import pyarrow.fs

    return pyarrow.fs.S3FileSystem(
        access_key=ACCESS_KEY,
        secret_key=SECRET,
        endpoint_override=ENDPOINT,
        region="us-east-1",
        allow_bucket_creation=True,
        allow_bucket_deletion=True,
    )


def with_pyarrow():
    import pyarrow as pa
    import pyarrow.dataset as dataset
    import pyarrow.parquet as parquet

    files = arrow_files()
    files.create_dir("data-arrow")
    table = pa.table(
        {"id": list(range(100_000)), "name": [f"n{n % 100}" for n in range(100_000)]}
    )
    parquet.write_table(table, "data-arrow/one.parquet", filesystem=files)
    assert parquet.read_table("data-arrow/one.parquet", filesystem=files) == table
    column = parquet.read_table("data-arrow/one.parquet", columns=["id"], filesystem=files)
    assert column.num_columns == 1
    dataset.write_dataset(
        table, "data-arrow/set", format="parquet", partitioning=["name"], filesystem=files
    )
    assert (
        dataset.dataset("data-arrow/set", filesystem=files, format="parquet").count_rows()
        == 100_000
    )
    files.delete_dir_contents("data-arrow")
    files.delete_dir("data-arrow")
    tried.append(f"pyarrow {pa.__version__}")


def with_polars():
    import polars

    arrow_files().create_dir("data-polars")
    options = {
        "aws_endpoint_url": ENDPOINT,
        "aws_access_key_id": ACCESS_KEY,
        "aws_secret_access_key": SECRET,
        "aws_region": "us-east-1",
        "aws_allow_http": "true",
    }
    frame = polars.DataFrame({"id": range(50_000), "value": [n * 0.5 for n in range(50_000)]})
    frame.write_parquet("s3://data-polars/frame.parquet", storage_options=options)
    found = polars.scan_parquet("s3://data-polars/frame.parquet", storage_options=options)
    assert found.filter(polars.col("id") < 10).collect().height == 10
    assert found.select("value").collect().sum().item() == frame["value"].sum()
    tried.append(f"polars {polars.__version__}")


for modules, part in [
    (["s3fs"], with_s3fs),
    (["pyarrow"], with_pyarrow),
    (["polars", "pyarrow"], with_polars),
]:
    if has(*modules):
        part()
print(", ".join(tried) or "none of s3fs, pyarrow and polars is installed")
