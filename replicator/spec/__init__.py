"""The domain model as frozen dataclasses. It imports only the standard library, so that every module may import it."""

from replicator.spec.connectors import Connector, Login
from replicator.spec.declarations import AGGREGATE_ID, CHANGE, EVENT_ID, Column, Declaration, Outbox, Transform
from replicator.spec.models import FULL, INCREMENTAL, OWN_TABLES, Feed, Model, ModelColumn, Target, blocked_models
from replicator.spec.sources import BY_GTID, BY_POSITION, BY_TIME, Mask, Reading, SourceSpec, sanitize_for_topic
from replicator.spec.tables import (
    Applied,
    Arrival,
    CommittedVersion,
    Evolution,
    Maintained,
    Progress,
    Table,
    TableDetail,
    Token,
)

__all__ = [
    "AGGREGATE_ID",
    "BY_GTID",
    "BY_POSITION",
    "BY_TIME",
    "CHANGE",
    "EVENT_ID",
    "FULL",
    "INCREMENTAL",
    "OWN_TABLES",
    "Applied",
    "Arrival",
    "Column",
    "CommittedVersion",
    "Connector",
    "Declaration",
    "Evolution",
    "Feed",
    "Login",
    "Maintained",
    "Mask",
    "Model",
    "ModelColumn",
    "Outbox",
    "Progress",
    "Reading",
    "SourceSpec",
    "Table",
    "TableDetail",
    "Target",
    "Token",
    "Transform",
    "blocked_models",
    "sanitize_for_topic",
]
