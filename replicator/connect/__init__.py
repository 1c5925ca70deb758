"""Kafka Connect: registering Debezium connectors and monitoring them."""
