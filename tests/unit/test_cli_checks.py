"""``replicator checks`` and ``validate`` where no Spark is needed to answer."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli import ROOT, ended


def test_validate_lists_the_checks_of_the_models() -> None:
    """Each with its model, and with its severity where that is not fail."""
    done = ended("validate", "--conf", str(ROOT / "conf" / "star"), "--env", "local")
    assert done.returncode == 0
    assert "fact_sales: not_null(quantity)" in done.stdout
    assert "dim_customer_versions: one state at a time (warn)" in done.stdout


def test_models_without_checks_are_none_to_look_at(tmp_path: Path) -> None:
    """A sentence, and a good end."""
    (tmp_path / "local.yaml").write_text("", encoding="utf-8")
    done = ended("checks", "--conf", str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "No model declares checks: nothing to check.\n"
    told = ended("checks", "--conf", str(tmp_path), "--json")
    assert (told.returncode, json.loads(told.stdout)) == (0, [])


def test_a_model_that_there_is_not_ends_with_2() -> None:
    """With the nearest spelling."""
    done = ended("checks", "fact_sale", "--conf", str(ROOT / "conf" / "star"))
    assert done.returncode == 2
    assert "model 'fact_sale' does not exist; did you mean 'fact_sales'?" in done.stderr
