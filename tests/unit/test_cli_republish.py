"""``replicator republish``: what is asked for is checked before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicator.cli import verify
from replicator.errors import ConfigError
from replicator.operate.verify.verdict import Verdict
from tests.cli import said


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("fact_order", "model 'fact_order' does not exist; did you mean 'fact_orders'"),
        ("fact_orders", "model fact_orders has no target"),
    ],
)
def test_a_model_without_a_target_is_refused(tmp_path: Path, name: str, told: str) -> None:
    """Exit code 2, before a lease is taken and a JVM is there."""
    for folder in ("models", "sources"):
        (tmp_path / folder).mkdir()
    (tmp_path / "sources" / "shop.yaml").write_text("name: shop\n")
    (tmp_path / "base.yaml").write_text(f"lake: {{root: {tmp_path}}}\n")
    (tmp_path / "models" / "fact_orders.sql").write_text("SELECT id FROM {orders}\n")
    (tmp_path / "models" / "fact_orders.yaml").write_text(
        "inputs: {orders: shop/sales.orders}\nkey: [id]\ncolumns: {id: {type: integer}}\n"
    )
    with pytest.raises(ConfigError, match=told):
        said("republish", name, "--conf", str(tmp_path), "--env", "base")


def test_verify_names_the_command_where_a_target_differs(capsys: pytest.CaptureFixture[str]) -> None:
    """Not where gold differs, which would only be sent once more."""
    told = [Verdict("gold", "dim", "silver", extra=1), Verdict("target", "dim", "warehouse")]
    verify._advise(told)
    assert capsys.readouterr().err == ""
    verify._advise([*told, Verdict("target", "fact_orders", "warehouse", missing=2)])
    assert "`replicator republish fact_orders`" in capsys.readouterr().err
