"""Models that read and embed text, behind the ports of `memory.ports` and `processors.extraction`."""
