"""XGBoost and LightGBM: the first iterations of the largest fit are the fits with fewer of them."""
