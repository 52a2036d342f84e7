"""First and second moments of groups of rows, merged into those of folds."""
