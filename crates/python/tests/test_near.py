"""Columns near their data: what a server sends in one answer, and what is done without one."""

import datetime
import decimal
import io
import random

import pytest

import tamis
from tamis import errors, near

pyarrow = pytest.importorskip("pyarrow")
numpy = pytest.importorskip("numpy")
import pyarrow.parquet  # noqa: E402

FIRST = datetime.datetime(2026, 1, 1)
UTC = datetime.timezone.utc


class Trips:
    """Counts what goes to a server, and the bytes of bodies that come back."""

    def __init__(self, store):
        self.count = self.bytes = 0
        store._client.meta.events.register("before-send.s3", self._send)
        store._client.meta.events.register("after-call.s3.GetObject", self._come)

    def _send(self, **_):
        self.count += 1

    def _come(self, http_response, **_):
        self.bytes += int(http_response.headers["content-length"])

    def of(self, call):
        self.count = self.bytes = 0
        return call(), (self.count, self.bytes)


@pytest.fixture
def other(server):
    """A handle that does not say what it wants: to it the server is one like others."""
    with tamis.connect(server.url, server.key, server.secret) as store:
        store._client.meta.events.unregister("before-sign.s3.GetObject", near._add)
        yield store


def table_of(rows):
    chance = numpy.random.default_rng(1)
    return pyarrow.table(
        {
            "day": numpy.arange(rows) // 1000,
            "price": chance.normal(size=rows),
            "name": [f"name {number}" for number in chance.integers(0, 1000, rows)],
            "nested": [{"a": number, "b": [number]} for number in range(rows)],
        }
    )


def test_one_trip_brings_the_footer_and_what_can_match(remote, other):
    bucket = remote.create_bucket("bucket")
    table = table_of(500_000)
    options = {"compression": "none", "use_dictionary": False, "row_group_size": 20_000}
    stored = bucket.write_table("t", table, profile="default", parquet=options)
    trips, without = Trips(remote), Trips(other)
    for columns, filters, share in [
        (["price"], [("day", "==", 250)], 0.04),
        (["price", "nested"], [("day", ">=", 480)], 0.08),
        (["price"], None, 0.25),
        (["name"], [[("day", "<", 1)], [("day", "in", [100, 499])]], 0.1),
        (None, [("day", ">", 1_000_000)], 0.02),
        (None, None, 1.01),
    ]:
        found, (count, moved) = trips.of(lambda: bucket.read_columns("t", columns, filters))
        read = lambda: other.bucket("bucket").read_columns("t", columns, filters)  # noqa: E731
        same, (count_without, moved_without) = without.of(read)
        wanted = table
        if filters is not None:
            wanted = table.filter(pyarrow.parquet.filters_to_expression(filters))
        assert found.equals(wanted.select(columns or table.column_names))
        assert same.equals(found)
        assert count == 1 and moved <= share * stored.size, (columns, filters, count, moved)
        assert moved_without > moved - 1000 and count_without >= 1
        assert count_without > 1 or found.num_rows == 0


def test_a_table_without_rows_takes_one_trip(remote):
    bucket = remote.create_bucket("bucket")
    table = pyarrow.table({"a": pyarrow.array([], pyarrow.int64()), "b": pyarrow.array([], "str")})
    trips = Trips(remote)
    for profile in ["default", "dedup"]:
        bucket.write_table("t", table, profile=profile)
        found, (count, _) = trips.of(lambda: bucket.read_columns("t", None, [("b", "=", "x")]))
        assert found.equals(table) and count == 1


def typed_table(rows):
    chance = random.Random(1)
    times = [FIRST + datetime.timedelta(seconds=97 * row) for row in range(rows)]

    def some(values):
        return [None if chance.random() < 0.05 else value for value in values]

    columns = {
        "int8": pyarrow.array(some([row // 20 - 60 for row in range(rows)]), pyarrow.int8()),
        "uint32": pyarrow.array([2**31 - 1000 + row for row in range(rows)], pyarrow.uint32()),
        "uint64": pyarrow.array([2**63 - 1000 + row for row in range(rows)], pyarrow.uint64()),
        "float": pyarrow.array(some([row / 10 for row in range(rows)]), pyarrow.float32()),
        "double": [float("nan") if row % 50 == 0 else row / 10 for row in range(rows)],
        "text": some([f"ä{row:05}" for row in range(rows)]),
        "binary": pyarrow.array([b"%05d" % row for row in range(rows)], pyarrow.binary()),
        "bool": [row > rows // 2 for row in range(rows)],
        "date": some([time.date() for time in times]),
        "decimal": [decimal.Decimal(row) / 100 for row in range(rows)],
        "time": pyarrow.array(times, pyarrow.timestamp("ms")),
        "zoned": pyarrow.array(times, pyarrow.timestamp("ns", "UTC")),
        "null": pyarrow.nulls(rows, pyarrow.int32()),
        "same": [7] * rows,
        "a.b": list(range(rows)),
    }
    return pyarrow.table(columns)


def values_of(name, row):
    time = FIRST + datetime.timedelta(seconds=97 * row)
    return {
        "int8": row // 20 - 60,
        "uint32": 2**31 - 1000 + row,
        "uint64": 2**63 - 1000 + row,
        "float": row / 10,
        "double": row / 10,
        "text": f"ä{row:05}",
        "binary": b"%05d" % row,
        "bool": row % 2 == 0,
        "date": time.date(),
        "decimal": decimal.Decimal(row) / 100,
        "time": time,
        "zoned": time.replace(tzinfo=UTC),
        "null": row,
        "same": row % 9,
        "a.b": row,
    }[name]


@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_filters_of_every_type_are_those_of_pyarrow(remote, store, version):
    rows = 2000
    table = typed_table(rows)
    buckets = [remote.create_bucket("bucket"), store.create_bucket("bucket")]
    options = {"row_group_size": 100, "version": version}
    for bucket in buckets:
        bucket.write_table("t", table, profile="default", parquet=options)
    file = io.BytesIO(buckets[0].get("t"))
    trips = Trips(remote)
    chance = random.Random(2)
    for name in table.column_names:
        for operator in ["==", "!=", "<", "<=", ">", ">=", "in", "not in"]:
            row = chance.randrange(rows)
            value = values_of(name, row)
            if operator.endswith("in"):
                value = [value, values_of(name, chance.randrange(rows))]
            filters = [(name, operator, value)]
            try:
                wanted = pyarrow.parquet.read_table(file, columns=["same"], filters=filters)
            except (pyarrow.ArrowException, OverflowError):
                continue  # It has no such comparison.
            found, (count, _) = trips.of(lambda: buckets[0].read_columns("t", ["same"], filters))
            # What the server sends is what is wanted here: both choose alike.
            assert count == 1 or name in ("binary", "decimal"), (filters, count)
            for one in found, buckets[1].read_columns("t", ["same"], filters):
                assert one.equals(wanted), (filters, one.num_rows, wanted.num_rows)


def test_a_number_of_32_bits_is_found_in_a_list(any_bucket):
    table = pyarrow.table({"f": pyarrow.array([0.1], pyarrow.float32())})
    any_bucket.write_table("t", table)
    for operator, value, rows in [("in", [0.1], 1), ("==", 0.1, 0), (">", 0.1, 1)]:
        filters = [("f", operator, value)]
        wanted = table.filter(pyarrow.parquet.filters_to_expression(filters))
        assert any_bucket.read_columns("t", None, filters).equals(wanted)
        assert wanted.num_rows == rows


def test_what_the_query_cannot_say_is_read_without_it(remote):
    bucket = remote.create_bucket("bucket")
    table = pyarrow.table({"a,b": [1, 2, 3], "c": [decimal.Decimal(1), None, decimal.Decimal(3)]})
    bucket.write_table("t", table)
    trips = Trips(remote)
    for columns, filters in [
        (["a,b"], None),
        (["c"], [("c", "=", decimal.Decimal(3))]),
        (["c"], [("a,b", "in", list(range(10_000)))]),
    ]:
        found, (count, _) = trips.of(lambda: bucket.read_columns("t", columns, filters))
        assert count > 1
        wanted = table
        if filters is not None:
            wanted = table.filter(pyarrow.parquet.filters_to_expression(filters))
        assert found.equals(wanted.select(columns))


def test_a_damaged_footer_is_refused_by_the_server(remote):
    bucket = remote.create_bucket("bucket")
    bucket.write_table("t", typed_table(300), parquet={"row_group_size": 50})
    sound = bucket.get("t")
    length = int.from_bytes(sound[-8:-4], "little")
    chance = random.Random(3)
    refused = 0
    for _ in range(150):
        damaged = bytearray(sound)
        for _ in range(chance.choice([1, 1, 2, 10])):
            damaged[len(sound) - 8 - 1 - chance.randrange(length)] = chance.randrange(256)
        bucket.put("t", damaged)
        query = near.query(["text", "double"], [[("int8", ">", 3)]])
        try:
            answer = remote._client.get_object(Bucket="bucket", Key="t", TamisQuery=query)
        except remote._client.exceptions.ClientError as error:
            assert error.response["Error"]["Code"] in ("ParquetParsingError", "InvalidArgument")
            refused += 1
            continue
        for offset, part in near.parts_of(memoryview(answer["Body"].read())):
            assert part == damaged[offset : offset + len(part)] and len(part) > 0
    assert 20 < refused < 150


def test_a_table_that_is_not_there_is_not_found(remote):
    bucket = remote.create_bucket("bucket")
    with pytest.raises(errors.NotFound):
        bucket.read_columns("none", ["a"])
    with pytest.raises(errors.NotFound):
        remote.bucket("no-bucket").read_columns("none", ["a"])
