"""What can be told of an estimator without fitting it: keys, digests, randomness, GPU support.

Other rooms import its modules, which are public to them: each loads many of scikit-learn's.
"""
