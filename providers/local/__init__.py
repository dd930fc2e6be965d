"""Models that run in this process, on the CPU, from installed packages: nothing leaves the machine."""
