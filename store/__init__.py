"""Postgres: the schema and its migrations, and the repositories that read and write it."""
