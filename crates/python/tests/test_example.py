"""The example, in a small form."""

import pathlib
import subprocess
import sys

import pytest

EXAMPLE = pathlib.Path(__file__).parent.parent / "examples" / "table_of_days.py"


def test_the_table_of_days_makes_its_page(tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("pyarrow")
    program = [sys.executable, EXAMPLE, "--out", tmp_path, "--days", "6", "--rows", "6000"]
    subprocess.run(program, check=True, stdout=subprocess.DEVNULL)
    page = (tmp_path / "table-of-days.md").read_text()
    assert "6 versions" in page and "x less" in page
    for plot in ["cost", "columns"]:
        assert "<svg" in (tmp_path / f"table-of-days-{plot}.svg").read_text()
