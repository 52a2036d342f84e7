"""Information about a cluster: workers, GPUs, versions."""
