"""What runs on a worker: fetch data, run items, watch memory, send heartbeats."""
