"""What every process has: settings, logs, the operations endpoint."""
