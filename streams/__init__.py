"""Kafka wiring: topics, delivery, handlers, stages, and the worker that runs them."""
