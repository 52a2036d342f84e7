"""Where a search works: on the host, on a device, on the cluster, and what the plan says of it."""
