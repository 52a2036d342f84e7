"""Facts about an estimator without a fit: its parts, keys, digests, randomness and GPU support.

Other rooms import the modules themselves, since each of these loads many modules of scikit-learn.
"""
