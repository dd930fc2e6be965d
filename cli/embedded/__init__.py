"""The embedded runtime: a real Kafka and a real Postgres from pip packages alone, for trying and developing."""
