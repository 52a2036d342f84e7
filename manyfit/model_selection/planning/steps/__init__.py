"""Steps of a pipeline: which columns they read and give, their order, and which of them draw."""
