"""What a store in this process does beside: versions, what they cost, its life."""

import random
import threading
import time
from datetime import timedelta

import pytest

import tamis
from tamis import errors


def test_a_put_says_what_it_stored(bucket):
    data = random.Random(1).randbytes(1_000_000)
    first = bucket.put("a", data, measure=True)
    again = bucket.put("b", data, measure=True)
    assert first.new_bytes >= len(data) and first.durable
    assert again.new_bytes < 50_000 and again.version > first.version
    assert not bucket.put("c", data).durable and bucket.put("c", data, durable=True).durable


def test_a_snapshot_stays_and_a_branch_changes(store, bucket):
    bucket.put("k", b"monday")
    monday = bucket.snapshot("monday")
    bucket.put("k", b"tuesday")
    assert monday.name == "bucket@monday"
    assert (monday.get("k"), bucket.get("k")) == (b"monday", b"tuesday")
    with pytest.raises(errors.ReadOnly, match="branch"):
        monday.put("k", b"")
    branch = monday.branch("trial")
    branch.put("k", b"trial")
    assert bucket.at("monday").get("k") == b"monday" and branch.get("k") == b"trial"
    assert [snapshot.name for snapshot in bucket.snapshots()] == ["bucket@monday"]
    assert [change.key for change in monday.diff("trial")] == ["k"]
    bucket.roll_back("monday")
    assert bucket.get("k") == b"monday"
    with pytest.raises(errors.NotEmpty):
        store.delete_bucket("bucket", with_objects=True)
    bucket.delete_snapshot("monday")
    with pytest.raises(errors.NotFound):
        bucket.delete_snapshot("monday")
    store.delete_bucket("bucket", with_objects=True)
    assert [info.name for info in store.buckets()] == ["trial"]


def test_a_branch_of_now_leaves_no_snapshot(bucket):
    bucket.put("k", b"v")
    branch = bucket.branch("trial")
    bucket.put("k", b"w")
    assert branch.get("k") == b"v" and bucket.snapshots() == []
    with pytest.raises(errors.Exists):
        bucket.branch("trial")
    assert bucket.snapshots() == []


def test_buckets_have_a_snapshot_of_one_moment(store, bucket):
    store.create_bucket("other")
    store.snapshot(["bucket", "other"], "both")
    assert store.bucket("other").snapshots()[0].name == "other@both"
    with pytest.raises(errors.NotFound):
        store.snapshot(["bucket", "nobody"], "more")
    with pytest.raises(errors.Exists):
        bucket.snapshot("both")


def test_usage_says_what_a_version_really_costs(bucket):
    noise = random.Random(2).randbytes
    bucket.put("same", noise(2_000_000))
    bucket.put("old", noise(1_000_000))
    bucket.snapshot("first")
    bucket.delete("old")
    bucket.put("new", noise(3_000_000))
    now, first = bucket.du()
    # What was deleted is freed in the background.
    while first.own_bytes < 1_000_000:
        time.sleep(0.05)
        now, first = bucket.du()
    assert (now.name, first.name) == ("bucket", "bucket@first")
    assert (now.objects, now.object_bytes) == (2, 5_000_000)
    assert 3_000_000 <= now.own_bytes < 3_500_000
    assert 1_000_000 <= first.own_bytes < 1_500_000 and first.freed_bytes == first.own_bytes
    assert now.stored_bytes >= 5_000_000
    assert bucket.at("first").changed_bytes(bucket) >= 3_000_000


def test_a_quota_is_kept(store):
    bucket = store.create_bucket("small", quota=10)
    bucket.put("k", b"x" * 10)
    with pytest.raises(errors.QuotaExceeded):
        bucket.put("l", b"x")


def test_a_full_store_says_so_and_is_emptied(tmp_path):
    with tamis.open(tmp_path / "s", create=True, capacity=64 << 20, memory=64 << 20) as store:
        bucket = store.create_bucket("full")
        noise = random.Random(3).randbytes
        with pytest.raises(errors.NoSpace):
            for number in range(100):
                bucket.put(str(number), noise(1 << 20), durable=True)
        bucket.delete([info.key for info in bucket.list()])
        # The room comes back in the background.
        while not bucket.exists("again"):
            try:
                bucket.put("again", b"x")
            except errors.NoSpace:
                time.sleep(0.05)


def test_an_object_expires(bucket):
    bucket.put("k", b"", expires_in=timedelta(milliseconds=-1))
    assert not bucket.exists("k")
    bucket.put("k", b"", expires_in=timedelta(hours=1))
    assert bucket.head("k").expires is not None


def test_a_reading_stays_at_its_version(bucket):
    bucket.put("k", b"1" * 100_000)
    reading = bucket.reading("k")
    bucket.put("k", b"2" * 100_000)
    assert reading.read(50_000, 5) == b"11111"
    reading.close()
    with pytest.raises(errors.Closed):
        reading.read(0, 5)


def test_bad_arguments_are_refused(store, bucket, tmp_path):
    with pytest.raises(errors.BadArgument):
        bucket.put("", b"")
    with pytest.raises(errors.BadArgument):
        bucket.put("k" * 1025, b"")
    with pytest.raises(errors.BadArgument, match="brotli"):
        tamis.open(tmp_path / "b", create=True, compression="brotli")
    with pytest.raises(errors.BadArgument):
        store.create_bucket("what", segments="what")
    with pytest.raises(errors.BadArgument, match="64 MiB|64M"):
        tamis.open(tmp_path / "small", create=True, capacity=CAPACITY, memory=1)
    with pytest.raises(errors.NotFound):
        tamis.open(tmp_path / "nothing")


CAPACITY = 64 << 20


def test_what_was_closed_opens_again(tmp_path):
    path = tmp_path / "store"
    with tamis.open(path, create=True, capacity=CAPACITY) as store:
        store.create_bucket("bucket").put("k", b"v")
        with pytest.raises(errors.InUse):
            tamis.open(path)
    with pytest.raises(errors.Closed):
        store.bucket("bucket").get("k")
    store.close()
    with tamis.open(path, create=True, read_only=True) as store:
        assert store.bucket("bucket").get("k") == b"v"
        with pytest.raises(errors.ReadOnly):
            store.bucket("bucket").put("k", b"")
    del store
    with tamis.open(path) as store:
        assert store.stats()["capacity_bytes"] >= CAPACITY


def test_threads_share_a_store(bucket):
    """Each thread has keys of its own and reads what it wrote."""
    failures = []

    def work(thread):
        noise = random.Random(thread).randbytes
        try:
            for number in range(30):
                data = noise(random.Random(number).randrange(200_000))
                bucket.put(f"{thread}/{number}", data)
                assert bucket.get(f"{thread}/{number}") == data
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and sum(1 for _ in bucket.list()) == 240


def test_random_steps_agree_with_a_dict(bucket):
    """Puts, deletes, copies and reads against a plain dict, with snapshots that stay."""
    chance = random.Random(7)
    model, snapshots = {}, {}
    for step in range(400):
        key = f"{chance.randrange(20):02}"
        what = chance.randrange(10)
        if what < 4:
            model[key] = chance.randbytes(chance.choice([0, 10, 5000, 150_000]))
            bucket.put(key, model[key])
        elif what < 6:
            assert bucket.delete(key) == (model.pop(key, None) is not None)
        elif what < 8 and key in model:
            target = f"{chance.randrange(20):02}"
            bucket.copy(key, target)
            model[target] = model[key]
        elif key in model:
            at, length = chance.randrange(200_000), chance.randrange(200_000)
            assert bucket.get(key, at, length) == model[key][at : at + length]
        if step % 100 == 99:
            snapshots[bucket.snapshot(f"s{step}").name] = dict(model)
    snapshots[bucket.name] = model
    for name, objects in snapshots.items():
        of_name = bucket.store.bucket(name)
        assert {info.key: of_name.get(info.key) for info in of_name.list()} == objects


def test_keys_need_not_be_text(bucket):
    odd = b"\xff\x00k".decode("utf-8", "surrogateescape")
    bucket.put(odd, b"v")
    assert [info.key for info in bucket.list()] == [odd] and bucket.get(odd) == b"v"
