"""What a store of any kind does."""

import random

import pytest

from tamis import errors


def test_an_object_is_put_read_and_deleted(any_bucket):
    stored = any_bucket.put("a/key", b"hello", content_type="text/plain", metadata={"who": "me"})
    assert (stored.size, stored.etag) == (5, "5d41402abc4b2a76b9719d911017c592")
    info = any_bucket.head("a/key")
    assert (info.key, info.size, info.etag) == ("a/key", 5, stored.etag)
    assert (info.content_type, info.metadata) == ("text/plain", {"who": "me"})
    assert any_bucket.get("a/key") == b"hello"
    assert any_bucket.exists("a/key") and not any_bucket.exists("a")
    assert any_bucket.delete("a/key") == 1
    with pytest.raises(errors.NotFound, match="bucket"):
        any_bucket.get("a/key")
    with pytest.raises(FileNotFoundError):
        any_bucket.head("a/key")


def test_ranges_are_clipped_at_the_end(any_bucket):
    data = random.Random(1).randbytes(300_000)
    any_bucket.put("k", data)
    assert any_bucket.get("k", 299_990, 100) == data[-10:]
    assert any_bucket.get("k", 5) == data[5:]
    assert any_bucket.get("k", 300_000, 5) == b""
    assert any_bucket.get("k", 400_000, 5) == b""
    assert any_bucket.get("k", 7, 0) == b""
    ranges = [(10, 20), (0, 5), (299_999, 9), (100_000, 65_537)]
    assert any_bucket.get_ranges("k", ranges) == [data[at : at + n] for at, n in ranges]


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 100_000, 3_000_001])
def test_any_buffer_is_stored(any_bucket, size):
    data = random.Random(size).randbytes(size)
    for number, kind in enumerate([bytes, bytearray, memoryview]):
        assert any_bucket.put(f"k{number}", kind(data)).size == size
        assert any_bucket.get(f"k{number}") == data


def test_conditions_are_judged(any_bucket):
    first = any_bucket.put("k", b"1", if_absent=True)
    before = any_bucket.head("k")
    with pytest.raises(errors.Exists):
        any_bucket.put("k", b"2", if_absent=True)
    any_bucket.put("k", b"2", if_match=before)
    with pytest.raises(errors.ConditionFailed):
        any_bucket.put("k", b"3", if_match=before)
    assert any_bucket.get("k") == b"2" and first.size == 1


def test_keys_are_listed_page_by_page(any_bucket, request):
    # A page has a thousand; a server's are its own tests'.
    count = 70 if "server" in request.node.name else 2100
    keys = sorted(f"{number % 7}/{number:04}" for number in range(count))
    for key in keys:
        any_bucket.put(key, b"")
    any_bucket.put("7", b"x")
    assert [info.key for info in any_bucket.list()] == [*keys, "7"]
    assert [info.key for info in any_bucket.list("3/")] == [k for k in keys if k[0] == "3"]
    behind = [info.key for info in any_bucket.list("", after=keys[50])]
    assert behind == [*keys[51:], "7"]
    level = any_bucket.listing()
    assert level.prefixes == [f"{number}/" for number in range(7)]
    assert [info.key for info in level.objects] == ["7"]


def test_objects_are_copied_inside_and_between_buckets(any_store, any_bucket):
    data = random.Random(2).randbytes(2_000_000)
    any_bucket.put("k", data)
    other = any_store.create_bucket("other")
    for target, bucket in [("k2", any_bucket), ("k3", other)]:
        copied = any_bucket.copy("k", target, to=bucket)
        assert copied.size == len(data) and bucket.get(target) == data
    with pytest.raises(errors.Exists):
        any_bucket.copy("k", "k2", if_absent=True)
    with pytest.raises(errors.NotFound):
        any_bucket.copy("nothing", "k4")


def test_tags_are_changed(any_bucket):
    any_bucket.put("k", b"", tags={"a": "1"})
    assert any_bucket.tags("k") == {"a": "1"}
    any_bucket.set_tags("k", {"b": "2"})
    assert any_bucket.tags("k") == {"b": "2"}


def test_files_go_in_and_out(any_bucket, tmp_path):
    data = random.Random(3).randbytes(20_000_000)
    (tmp_path / "in").write_bytes(data)
    assert any_bucket.put_file("k", tmp_path / "in").size == len(data)
    any_bucket.get_file("k", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == data
    with pytest.raises(errors.NotFound):
        any_bucket.get_file("nothing", tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["in", "out"]


def test_a_file_object_reads_and_writes(any_bucket):
    with any_bucket.open("k", "w") as file:
        for number in range(1000):
            file.write(f"line {number}\n")
    with any_bucket.open("k", "r") as file:
        assert file.readlines()[999] == "line 999\n"
    with any_bucket.open("k") as file:
        file.seek(-4, 2)
        assert file.read() == b"999\n"
        assert file.seek(5) == 5 and file.read(2) == b"0\n"
    with pytest.raises(errors.Exists):
        any_bucket.open("k", "xb").close()


def test_a_file_that_fails_leaves_nothing(any_bucket):
    with pytest.raises(ZeroDivisionError), any_bucket.open("k", "wb") as file:
        file.write(b"x" * 20_000_000)
        1 / 0
    assert not any_bucket.exists("k")
    file = any_bucket.open("k", "wb")
    file.write(b"x")
    file.close()
    file.close()
    assert file.stored.size == 1 and any_bucket.get("k") == b"x"


def test_buckets_are_made_listed_and_deleted(any_store):
    any_store.create_bucket("one")
    with pytest.raises(errors.Exists):
        any_store.create_bucket("one")
    bucket = any_store.create_bucket("one", exist_ok=True)
    bucket.put("k", b"")
    assert [info.name for info in any_store.buckets()] == ["one"]
    with pytest.raises(errors.NotEmpty):
        any_store.delete_bucket("one")
    any_store.delete_bucket("one", with_objects=True)
    with pytest.raises(errors.NotFound):
        any_store.bucket("one").put("k", b"")
    with pytest.raises(errors.BadArgument):
        any_store.create_bucket("No")


def test_differences_are_told_by_key(any_store, any_bucket):
    other = any_store.create_bucket("other")
    for key, data in [("a", b"1"), ("b", b"1"), ("c", b"1")]:
        any_bucket.put(key, data)
    for key, data in [("b", b"1"), ("c", b"2"), ("d", b"1")]:
        other.put(key, data)
    changes = [(change.key, change.kind) for change in any_bucket.diff("other")]
    assert changes == [("a", "removed"), ("c", "changed"), ("d", "added")]
    assert list(any_bucket.diff(any_bucket)) == []


def test_a_server_says_what_it_cannot(remote):
    bucket = remote.create_bucket("bucket")
    for refused in [
        lambda: bucket.snapshot("a"),
        lambda: bucket.branch("a"),
        lambda: bucket.du(),
        lambda: bucket.put("k", b"", measure=True),
        lambda: remote.create_bucket("fixed", segments="fixed"),
    ]:
        with pytest.raises(errors.NotSupported, match="tamis"):
            refused()


def test_a_servers_snapshot_is_read(server, remote):
    bucket = remote.create_bucket("daily")
    bucket.put("k", b"monday")
    server.run("bucket", "snapshot", server.store, "daily@monday")
    try:
        bucket.put("k", b"tuesday")
        assert bucket.at("monday").get("k") == b"monday"
        assert bucket.at("monday").copy("k", "old", to=bucket).size == 6
        with pytest.raises(errors.AccessDenied):
            bucket.at("monday").put("k", b"")
    finally:
        server.run("snapshot", "delete", server.store, "daily@monday", "--yes")


def test_a_wrong_secret_is_refused(server):
    import tamis

    store = tamis.connect(server.url, server.key, "wrong")
    with pytest.raises(errors.AccessDenied):
        store.buckets()
