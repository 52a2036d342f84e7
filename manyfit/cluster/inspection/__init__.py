"""Read what a scheduler says of its cluster: workers, GPUs, versions."""
