"""Tools for developing and measuring."""
