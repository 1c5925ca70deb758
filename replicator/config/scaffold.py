"""The files of a new project: a valid configuration, and the jobs for spark-submit."""

from __future__ import annotations

import re
from collections.abc import Mapping

import yaml

from replicator.config.connectorkeys import PORTS

STAGES = ("bronze", "silver", "gold", "publish", "canonical")

_BASE = """\
# Settings of every environment. A file next to this one, such as local.yaml, overrides them, and `--env NAME` selects
# it. ${VAR} is an environment variable, ${VAR:-x} the same with a default. `replicator config show` prints every
# key with its value and where it came from.

lake:
  root: ${REPLICATOR_LAKE:-./lake} # or s3a://bucket/prefix, with a block `s3` if it is not AWS's own

kafka:
  bootstrap_servers: ${KAFKA_BOOTSTRAP:-localhost:9092} # host:port,host:port
  options: {} # of its client, such as {security.protocol: SASL_SSL}

connect:
  url: ${CONNECT_URL:-http://localhost:8083} # Kafka Connect, for `replicator connect`

targets: {}
# warehouse: # by this name models in models/ say `publish: {target: warehouse, schema: ..., table: ...}`
#   kind: postgres
#   host: localhost
#   database: warehouse
#   user: replicator
#   password: ${WAREHOUSE_PASSWORD}
#   sslmode: verify-full
"""

_LOCAL = """\
# This machine: the default environment, without --env.

spark:
  spark.master: local[2]
  spark.driver.memory: 2g
"""

_SOURCE = """\
# The Debezium connector whose topic.prefix is {name}: every topic with that prefix, one table each.

name: {name}
# include: [sales.orders] # narrows it to some tables
# consistency: transaction # shows transactions of several tables completely or not at all
"""

_CONNECTOR = """
connector: # what `replicator connect apply` registers
  kind: {kind}
  host: ${{{variable}_HOST:-localhost}} # as Kafka Connect reaches it
  port: ${{{variable}_PORT:-{port}}}
  user: ${{{variable}_USER:-debezium}}
  password: ${{env:{variable}_PASSWORD}} # resolved by Kafka Connect: it is stored in no file and no topic
{own}
database: # the same, as reached from here: for `replicator connect check` (is it ready?) and `replicator verify`
  kind: {kind}
  host: ${{{variable}_HOST:-localhost}}
  port: ${{{variable}_PORT:-{port}}}
{dbname}  user: ${{{variable}_USER:-debezium}}
  password: ${{{variable}_PASSWORD:-}}
  sslmode: ${{{variable}_SSLMODE:-verify-full}} # or require, or disable where it has no TLS
"""

_TABLES = """
tables: {}
# sales.orders: # <database or schema>.<table>: what its events do not contain
#   columns: {id: int, placed: date, total: "decimal(10,2)"} # where records have no types: `schema infer TOPIC`
#   keys: [id] # where they have no key
#   stored_as_scd_type: 2 # keeps every state of every row in a history table
"""

_OF_KIND: Mapping[str, str] = {
    "postgresql": "  database: postgres\n",
    "oracle": "  database: ORCLCDB\n",
    "sqlserver": "  databases: [master]\n",
    "mysql": "  server_id: 184054 # no other client of the binlog may have it\n",
    "mariadb": "  server_id: 184054 # no other client of the binlog may have it\n",
}

_DBNAME: Mapping[str, str] = {"postgresql": "  dbname: postgres\n", "oracle": "  dbname: ORCLCDB\n"}

_JOB = '''\
"""The stage {stage}: spark-submit --jars "$(replicator jars)" jobs/{stage}.py --env local"""

from replicator.cli.job import submit

if __name__ == "__main__":
    submit("{stage}")
'''

_UNTRACKED = "/lake/\n/metastore_db/\n/spark-warehouse/\nderby.log\n__pycache__/\n"


def render_project(source: str, kind: str | None) -> dict[str, str]:
    """Return the texts of a new project by path: settings, one source, a job per stage. With a ``kind`` of database,
    the file of the source has a ``connector`` and a ``database``. The name of the source is valid in topics: letters,
    digits, dots, hyphens and underscores.
    """
    return {
        ".gitignore": _UNTRACKED,
        "conf/base.yaml": _BASE,
        "conf/local.yaml": _LOCAL,
        f"conf/sources/{source}.yaml": _source(source, kind),
        "conf/models/.gitkeep": "",
        **{f"jobs/{stage}.py": _JOB.format(stage=stage) for stage in STAGES},
    }


def _source(source: str, kind: str | None) -> str:
    name = yaml.safe_dump(source, allow_unicode=True).removesuffix("...\n").strip()
    text = _SOURCE.format(name=name)
    if kind is not None:
        variable = re.sub(r"\W", "_", source if source[0].isalpha() else f"SOURCE_{source}").upper()
        own, dbname = _OF_KIND[kind], _DBNAME.get(kind, "")
        text += _CONNECTOR.format(kind=kind, variable=variable, port=PORTS[kind], own=own, dbname=dbname)
    return text + _TABLES
