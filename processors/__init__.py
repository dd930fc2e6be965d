"""Pure rules: values in, values out. No I/O, clock, randomness, environment or framework."""
