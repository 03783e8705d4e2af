"""`tamis://` of fsspec: its own abstract tests, over a store of each kind, and what is ours."""

import os

import pytest

fsspec = pytest.importorskip("fsspec")
import fsspec.tests.abstract as abstract  # noqa: E402

from tamis import errors  # noqa: E402
from tamis.filesystem import TamisFileSystem  # noqa: E402


@pytest.fixture(params=["embedded", "server"])
def filesystem(request):
    if request.param == "embedded":
        store = request.getfixturevalue("store")
        fs = TamisFileSystem(store=store.path, skip_instance_cache=True)
    else:
        request.getfixturevalue("remote")
        server = request.getfixturevalue("server")
        options = {"url": server.url, "key": server.key, "secret": server.secret}
        fs = TamisFileSystem(**options)
    fs.store.create_bucket("bucket", exist_ok=True)
    return fs


class Fixtures(abstract.AbstractFixtures):
    @pytest.fixture
    def fs(self, filesystem):
        return filesystem

    @pytest.fixture
    def fs_path(self):
        return "bucket/folder"

    @pytest.fixture
    def fs_join(self):
        return lambda *parts: "/".join(parts)

    @pytest.fixture
    def supports_empty_directories(self):
        return False


class TestCopy(abstract.AbstractCopyTests, Fixtures):
    pass


class TestGet(abstract.AbstractGetTests, Fixtures):
    pass


class TestPut(abstract.AbstractPutTests, Fixtures):
    pass


class TestOpen(abstract.AbstractOpenTests, Fixtures):
    pass


class TestPipe(abstract.AbstractPipeTests, Fixtures):
    pass


def test_the_entry_point_is_known(store):
    fs = fsspec.filesystem("tamis", store=store.path)
    assert isinstance(fs, TamisFileSystem)
    assert fsspec.core.url_to_fs("tamis://b/k", store=store.path)[1] == "b/k"


def test_files_and_directories(filesystem):
    fs = filesystem
    fs.pipe({"bucket/a/1": b"one", "bucket/a/b/2": b"two", "bucket/3": b"three"})
    assert fs.ls("", detail=False) == ["bucket"]
    assert fs.ls("tamis://bucket", detail=False) == ["bucket/3", "bucket/a"]
    assert fs.find("bucket") == ["bucket/3", "bucket/a/1", "bucket/a/b/2"]
    assert fs.isdir("bucket/a") and fs.isfile("bucket/a/1") and not fs.exists("bucket/x")
    assert fs.du("bucket/a") == 6 and fs.glob("bucket/**/2") == ["bucket/a/b/2"]
    assert fs.cat_file("bucket/3", -3) == b"ree" and fs.cat_file("bucket/3", 1, -1) == b"hre"
    paths = ["bucket/3", "bucket/a/1", "bucket/3", "bucket/x"]
    found = fs.cat_ranges(paths, [0, 1, 2, 0], [2, 3, None, 1])
    assert found[:3] == [b"th", b"ne", b"ree"] and isinstance(found[3], FileNotFoundError)
    assert fs.ukey("bucket/3") != fs.ukey("bucket/a/1") and fs.modified("bucket/3")
    fs.mv("bucket/3", "bucket/4")
    assert not fs.exists("bucket/3") and fs.cat("bucket/4") == b"three"
    fs.rm("bucket", recursive=True)
    assert not fs.exists("bucket")
    with pytest.raises(FileNotFoundError):
        fs.ls("bucket")


def test_a_transaction_is_all_or_nothing(filesystem):
    with pytest.raises(ZeroDivisionError), filesystem.transaction:
        with filesystem.open("bucket/k", "wb") as file:
            file.write(b"x")
        1 / 0
    assert not filesystem.exists("bucket/k")
    with filesystem.transaction:
        with filesystem.open("bucket/k", "wb") as file:
            file.write(b"x")
        assert not filesystem.exists("bucket/k")
    assert filesystem.cat("bucket/k") == b"x"


def test_a_file_is_read_at_one_version(filesystem):
    filesystem.pipe("bucket/k", b"1" * 1000)
    with filesystem.open("bucket/k", block_size=10) as file:
        assert file.read(10) == b"1" * 10
        filesystem.pipe("bucket/k", b"2" * 1000)
        try:
            assert file.read(500) == b"1" * 500
        except errors.ConditionFailed:
            assert filesystem.store.url


def test_a_snapshot_is_a_path(store, filesystem):
    if not hasattr(filesystem.store, "path"):
        pytest.skip("snapshots are the server's")
    filesystem.pipe("bucket/k", b"monday")
    store.bucket("bucket").snapshot("monday")
    filesystem.pipe("bucket/k", b"tuesday")
    assert filesystem.cat("bucket@monday/k") == b"monday"
    assert filesystem.ls("bucket@monday", detail=False) == ["bucket@monday/k"]
    with pytest.raises(errors.ReadOnly):
        filesystem.pipe("bucket@monday/k", b"")


def test_where_the_store_is_must_be_said(monkeypatch, store):
    for name in ["TAMIS_STORE", "TAMIS_URL"]:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(errors.BadArgument, match="TAMIS_STORE"):
        TamisFileSystem(skip_instance_cache=True)
    with pytest.raises(errors.BadArgument):
        TamisFileSystem(store="a", url="b", skip_instance_cache=True)
    monkeypatch.setenv("TAMIS_STORE", os.fspath(store.path))
    assert TamisFileSystem(skip_instance_cache=True).store is store
