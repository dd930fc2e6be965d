"""The commands, one module for each group of them; loaded when they are called."""
