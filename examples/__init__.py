"""Short programs that show the main jobs. `python -m examples` runs them all."""
