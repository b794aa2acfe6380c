"""Benchmarks: what a call and a token cost, against the frameworks alone, plain httpx, the SDK and other packages."""
