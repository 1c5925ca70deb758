"""Kafka Connect: registering Debezium connectors and watching them."""
