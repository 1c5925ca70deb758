"""What helps a table that lost a file, by the words of Spark and Hadoop."""

from __future__ import annotations

import pytest

from replicator import damage


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_the_folder_to_remove_is_a_path_however_the_failure_spells_it(scheme: str) -> None:
    """Spark 3.5 has `file:/lake`, 4.1 also `file:///lake`."""
    file = f"{scheme}/lake/gold/dim_customers/part-00000-c000.zstd.parquet"
    hint = damage.repair_hint(f"java.io.FileNotFoundException: File {file} does not exist")
    assert hint is not None
    assert "remove the folder /lake/gold/dim_customers: the next run" in hint
