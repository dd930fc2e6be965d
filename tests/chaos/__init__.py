"""Faults at random on a real system, and a verifier that sees it from outside only: `python -m tests.chaos --help`."""
