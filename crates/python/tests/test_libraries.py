"""Libraries by URL: each writes and reads a table or an array, also as it was."""

import pytest

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def options(store):
    store.create_bucket("bucket")
    return {"store": store.path}


def test_pandas(store, options):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": range(1000), "b": [str(number) for number in range(1000)]})
    url = "tamis://bucket/frame.parquet"
    frame.to_parquet(url, storage_options=options)
    store.bucket("bucket").snapshot("first")
    (frame * 2).to_parquet(url, storage_options=options)
    old = pandas.read_parquet("tamis://bucket@first/frame.parquet", storage_options=options)
    assert old.equals(frame)
    frame.to_csv("tamis://bucket/frame.csv", index=False, storage_options=options)
    found = pandas.read_csv("tamis://bucket/frame.csv", dtype={"b": str}, storage_options=options)
    assert found["a"].tolist() == frame["a"].tolist()


def test_polars(options):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": range(1000), "b": [str(number) for number in range(1000)]})
    fs = fsspec.filesystem("tamis", **options)
    with fs.open("tamis://bucket/frame.parquet", "wb") as file:
        frame.write_parquet(file)
    with fs.open("tamis://bucket/frame.parquet") as file:
        assert polars.read_parquet(file, columns=["b"]).equals(frame.select("b"))


def test_duckdb(options):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register_filesystem(fsspec.filesystem("tamis", **options))
    connection.execute(
        "copy (select range as a, range * 2 as b from range(10000)) "
        "to 'tamis://bucket/t.parquet' (format parquet)"
    )
    found = connection.execute("select sum(b) from 'tamis://bucket/t.parquet' where a < 10")
    assert found.fetchone() == (90,)
    connection.close()


def test_dask(options):
    dataframe = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": range(1000)})
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="threads"):
        parts = dataframe.from_pandas(frame, npartitions=4)
        parts.to_parquet("tamis://bucket/parts", storage_options=options)
        found = dataframe.read_parquet("tamis://bucket/parts", storage_options=options)
        assert int(found["a"].sum().compute()) == 499_500


def test_pyarrow(options):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.dataset
    import pyarrow.fs

    handler = pyarrow.fs.FSSpecHandler(fsspec.filesystem("tamis", **options))
    filesystem = pyarrow.fs.PyFileSystem(handler)
    table = pyarrow.table({"day": [1, 1, 2], "a": [1, 2, 3]})
    where = {"base_dir": "bucket/set", "format": "parquet", "filesystem": filesystem}
    partitions = pyarrow.dataset.partitioning(pyarrow.schema([("day", "int64")]))
    pyarrow.dataset.write_dataset(table, partitioning=partitions, **where)
    found = pyarrow.dataset.dataset(
        "bucket/set", filesystem=filesystem, partitioning=partitions, format="parquet"
    )
    assert found.to_table(filter=pyarrow.dataset.field("day") == 2)["a"].to_pylist() == [3]


def test_zarr(options):
    zarr = pytest.importorskip("zarr")
    numpy = pytest.importorskip("numpy")
    from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper

    fs = AsyncFileSystemWrapper(fsspec.filesystem("tamis", **options), asynchronous=True)
    where = zarr.storage.FsspecStore(fs, path="bucket/array.zarr")
    data = numpy.arange(10_000).reshape(100, 100)
    array = zarr.create_array(store=where, shape=data.shape, chunks=(10, 10), dtype=data.dtype)
    array[:] = data
    again = zarr.open_array(store=where, mode="r")
    assert numpy.array_equal(again[15:25, 7], data[15:25, 7])
