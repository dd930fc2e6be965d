"""Use cases over ports: what both the stream and the query service do to an owner."""
