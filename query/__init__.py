"""The query service: one proto, served as JSON, Connect, gRPC-Web and gRPC."""
