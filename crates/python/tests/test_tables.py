"""Tables and arrays."""

import random

import pytest

from tamis import errors

pyarrow = pytest.importorskip("pyarrow")
numpy = pytest.importorskip("numpy")
import pyarrow.parquet  # noqa: E402


def table_of(rows, seed=1):
    chance = numpy.random.default_rng(seed)
    return pyarrow.table(
        {
            "day": numpy.arange(rows) // 1000,
            "price": chance.normal(size=rows),
            "name": [f"name {number}" for number in chance.integers(0, 1000, rows)],
            "nested": [[number, number + 1] for number in range(rows)],
        }
    )


@pytest.mark.parametrize("profile", ["dedup", "default"])
def test_a_table_comes_back(any_bucket, profile):
    table = table_of(20_000)
    stored = any_bucket.write_table("t.parquet", table, profile=profile)
    assert stored.size == any_bucket.head("t.parquet").size
    assert any_bucket.read_columns("t.parquet").equals(table)
    some = any_bucket.read_columns("t.parquet", ["price", "nested"])
    assert some.equals(table.select(["price", "nested"]))


def test_a_version_of_a_table_costs_what_changed(bucket):
    table = table_of(100_000)
    first = bucket.write_table("t1", table)
    before = bucket.put("nothing", b"", measure=True)
    parts = [table.slice(0, 50_000), table.slice(0, 1), table.slice(50_000)]
    inserted = pyarrow.concat_tables(parts)
    stats = bucket.store.stats()["stored_bytes"]
    second = bucket.write_table("t2", inserted)
    new_bytes = bucket.store.stats()["stored_bytes"] - stats
    assert second.size > first.size and before.new_bytes is not None
    assert new_bytes < first.size / 20, new_bytes


@pytest.mark.parametrize("is_far", [True, False])
def test_only_the_bytes_of_the_columns_are_read(bucket, is_far):
    table = table_of(300_000)
    stored = bucket.write_table("t", table)
    moved = []

    class Counted:
        name = "counted"

        def reading(self, key):
            reading = bucket.reading(key)
            read, read_ranges = reading.read, reading.read_ranges

            def counted_read(offset=0, length=None):
                found = read(offset, length)
                moved.append(("read", len(found)))
                return found

            def counted_ranges(ranges):
                found = read_ranges(ranges)
                moved.append(("ranges", sum(map(len, found))))
                return found

            reading.read, reading.read_ranges = counted_read, counted_ranges
            reading.is_far = is_far
            return reading

        def reading_columns(self, key, columns, alternatives):
            return self.reading(key), []

    from tamis.tables import read_columns

    price = read_columns(Counted(), "t", ["price"])
    assert price.equals(table.select(["price"]))
    # Far away all of it is one call; here each of the three row groups is read by itself.
    calls = ["read", "ranges"] if is_far else ["read"] * 4
    assert [kind for kind, _ in moved] == calls
    assert sum(length for _, length in moved) < stored.size / 3
    moved.clear()
    filters = [("day", ">=", 290)]
    found = read_columns(Counted(), "t", ["price"], filters)
    assert found.equals(table.filter(pyarrow.compute.field("day") >= 290).select(["price"]))
    assert sum(length for _, length in moved) < stored.size / 8


def test_filters_are_those_of_pyarrow(bucket):
    table = table_of(200_000)
    bucket.write_table("t", table)
    pyarrow.parquet.write_table(table, "/dev/null")
    for filters in [
        [("day", "=", 7)],
        [("day", "<", 3), ("price", ">", 0.5)],
        [[("day", "in", {1, 150})], [("name", "==", "name 5")]],
        [("day", "!=", 5)],
        [("day", "not in", [5])],
        [("day", ">", 10_000)],
        pyarrow.compute.field("day") == 199,
    ]:
        expression = (
            filters
            if isinstance(filters, pyarrow.compute.Expression)
            else pyarrow.parquet.filters_to_expression(filters)
        )
        wanted = table.filter(expression).select(["name"])
        assert bucket.read_columns("t", ["name"], filters).equals(wanted), filters


def test_what_is_no_table_is_told(any_bucket):
    bucket = any_bucket
    bucket.put("none", b"")
    bucket.put("short", b"PAR1")
    bucket.put("other", b"x" * 1000)
    for key in ["none", "short", "other"]:
        with pytest.raises(errors.Damaged):
            bucket.read_columns(key)
    bucket.write_table("t", table_of(10))
    with pytest.raises(errors.BadArgument, match="nobody"):
        bucket.read_columns("t", ["nobody"])
    with pytest.raises(errors.BadArgument, match="nobody"):
        bucket.read_columns("t", ["day"], [("nobody", "=", 1)])
    with pytest.raises(errors.BadArgument):
        bucket.write_table("t", table_of(10), profile="what")
    assert bucket.read_columns("t").num_rows == 10


def test_a_long_footer_is_read(any_bucket):
    wide = pyarrow.table({f"column {number}": [number] for number in range(2000)})
    any_bucket.write_table("t", wide)
    assert any_bucket.read_columns("t", ["column 1999"]).equals(wide.select(["column 1999"]))


@pytest.mark.parametrize("shape", [(), (0,), (1000,), (100, 30), (7, 5, 3), (0, 4)])
@pytest.mark.parametrize("kind", ["f8", "i4", "u1", "M8[s]", "S5", [("a", "i4"), ("b", "f8")]])
def test_an_array_comes_back(any_bucket, shape, kind):
    size = int(numpy.prod(shape)) * numpy.dtype(kind).itemsize
    array = numpy.frombuffer(random.Random(1).randbytes(size), kind).reshape(shape)
    any_bucket.put_array("a.npy", array)
    with any_bucket.array("a.npy") as stored:
        assert (stored.shape, stored.dtype) == (array.shape, array.dtype)
        assert numpy.asarray(stored).tobytes() == array.tobytes()
    with any_bucket.open("a.npy") as file:
        assert numpy.load(file).tobytes() == array.tobytes()


def test_a_slice_is_that_of_numpy(bucket):
    array = numpy.arange(1000 * 6).reshape(1000, 2, 3)
    bucket.put_array("a", array)
    stored = bucket.array("a")
    for index in [
        0, -1, 999, slice(10, 20), slice(None, None, 7), slice(20, 10, -3), slice(5, 5),
        (5, 1), (slice(3, 9), 0, slice(None, None, 2)), slice(-5, None), ..., [1, 5],
    ]:
        assert numpy.array_equal(stored[index], array[index]), index
    for index in [1000, -1001]:
        with pytest.raises(IndexError):
            stored[index]


def test_a_fortran_array_and_what_is_none(bucket):
    array = numpy.asfortranarray(numpy.arange(12).reshape(3, 4))
    with bucket.open("f", "wb") as file:
        numpy.save(file, array)
    assert numpy.array_equal(bucket.array("f")[1:, 2], array[1:, 2])
    bucket.put_array("c", array)
    assert numpy.array_equal(bucket.array("c")[:], array)
    bucket.put("none", b"\x93NUMPY\x01\x00\xff\xff" + b"x" * 100)
    bucket.put("short", b"")
    for key in ["none", "short"]:
        with pytest.raises(errors.Damaged):
            bucket.array(key)
    with pytest.raises(errors.BadArgument):
        bucket.put_array("o", numpy.array([object()]))
