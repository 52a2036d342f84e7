"""Methods of drop-in estimators for an X that is read in chunks."""
