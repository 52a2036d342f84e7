"""Send tasks to workers, and see them through deaths, pauses and stops."""
