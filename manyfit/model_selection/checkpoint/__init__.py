"""Write results to a file, and go on from it."""
