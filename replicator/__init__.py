"""Keep a lakehouse and a serving Postgres equal to the database that Debezium watches.

MySQL · MariaDB · PostgreSQL · SQL Server · Oracle
        │ Debezium (Kafka Connect)
        ▼
Kafka ──────── bronze ────────▶ BRONZE   raw Debezium JSON + Kafka coordinates, append only
BRONZE ─────── silver ────────▶ SILVER   one row per key
SILVER ─────── gold ──────────▶ GOLD     star schema
GOLD ───────── publish ───────▶ Postgres the same star, whole batches only
"""

__version__ = "0.1.0"
