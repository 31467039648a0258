"""Reports to whoever waits for long work: its stages, and warnings that a cached result repeats."""
