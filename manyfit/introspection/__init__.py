"""Facts about an estimator without a fit: its parts, keys, digests, randomness and GPU support.

Other rooms import the modules themselves. `class_names` and `late_names` let them import less.
"""
