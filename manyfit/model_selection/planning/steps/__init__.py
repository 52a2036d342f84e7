"""Steps of a pipeline: how often they are fitted, in which order, and which of them draw."""
