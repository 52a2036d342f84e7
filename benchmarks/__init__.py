"""Benchmarks of manyfit beside scikit-learn, its specialised classes and dask-ml.

``python -m benchmarks`` lists them, ``python -m benchmarks NAME`` runs one and prints its table,
``python -m benchmarks all --out FILE`` runs them all and keeps everything that was measured as JSON,
``python -m benchmarks --write-docs`` writes the results in ``benchmarks/results`` into the pages.

A module of this package whose name does not start with an underscore is a group of benchmarks: importing
it registers them. To add some, add such a file.
"""
