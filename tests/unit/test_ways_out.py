"""Ways out that errors name hold in each case in which they are said."""

from __future__ import annotations

import pytest

from replicator.errors import ConfigError, DeadLetterShare, OffsetsLost, TableStopped
from replicator.formats.control import MemoryControl
from replicator.lake import Lake
from replicator.operate.lock import exclusive
from replicator.operate.rebuilding import start_offsets
from replicator.spec import Declaration
from replicator.stages.account import Account
from replicator.stages.table import dead_letters, truncates
from replicator.stages.tick import transaction_cut
from replicator.stages.tick.transaction_cut import CutState


def test_what_waits_for_a_paused_table_is_told_how_it_goes_on() -> None:
    """A run of silver leaves a paused table as it is, however often it is given."""
    control, lake = MemoryControl(), Lake("/nowhere")
    control.put(lake.cut("s"), CutState("bronze", 1, lagging_tables=("shop.orders",)).value())
    with pytest.raises(TableStopped, match=r"shop\.orders stopped, or is paused.*`replicator tables resume`"):
        transaction_cut.load_consistent(control, lake, "s")


def test_a_truncate_of_a_shard_is_followed_by_no_policy() -> None:
    """It would empty the rows of all of them, so that the configuration refuses `apply` there."""
    alone = Declaration("shop.orders", truncate="fail")
    shard = Declaration("shop.orders", truncate="fail", shards="shop[.]orders_.*")
    told = [str(truncates.stop_error(table, "s/shop.orders").fix) for table in (alone, shard)]
    assert ["`truncate: apply`" in fix for fix in told] == [True, False]
    assert all("`truncate: ignore`" in fix for fix in told)


def test_a_log_that_ends_before_what_was_read_is_passed_over_by_no_new_checkpoint() -> None:
    """`rebuild --checkpoint` refuses it: what comes to these offsets is other records. Only dropped ones are a gap."""
    dropped, cut_off = (
        str(OffsetsLost.next("shop.sales.orders", 0, 50, has, "kafka:9092")) for has in ((60, 90), (0, 40))
    )
    assert "`replicator rebuild --checkpoint SOURCE --accept-gap`" in dropped
    assert (
        "--remove-missing" in dropped
    )  # else rows that were deleted in the gap stay, and so does its line in `status`
    assert "--checkpoint" not in cut_off
    with pytest.raises(OffsetsLost) as refused:
        start_offsets.resolve_starts({("shop.sales.orders", 0): 50}, {}, {("shop.sales.orders", 0): (0, 40)}, {})
    assert str(refused.value.fix) in cut_off


def test_a_table_whose_rejects_nobody_can_fix_may_go_on() -> None:
    """R5: a thousand stop it under any share of a batch; a share of 1 is all of it, and no run ever ended otherwise."""
    account = Account("s/shop.orders", read=5_000, dead_lettered=1_000)
    with pytest.raises(DeadLetterShare, match=r"`dead_letter: \{max_share: 1\}`"):
        dead_letters.refuse_too_many(account, 0.99)
    dead_letters.refuse_too_many(account, 1.0)


def test_a_lake_without_leases_wants_a_configuration() -> None:
    """With `--lake` no setting is read, `lake.lease` neither."""
    with pytest.raises(ConfigError, match=r"lake\.lease: off.*--env"), exclusive(Lake("hdfs://n/lake"), ("silver",)):
        pass
