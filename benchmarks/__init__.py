"""What tuning costs, measured: `python -m benchmarks`."""
