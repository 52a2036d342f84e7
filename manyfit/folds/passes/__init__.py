"""One pass over X for the gradients of all settings and folds."""
