"""Code that runs on workers: fetch data, run items, watch memory."""
