"""Benchmarks of manyfit beside scikit-learn, its specialised classes and dask-ml.

``python -m benchmarks`` lists them, ``python -m benchmarks NAME`` runs one and prints its table,
``python -m benchmarks all --out FILE`` runs them all and keeps everything that was measured as JSON,
``python -m benchmarks --write-docs`` writes the results in ``benchmarks/results`` into the pages.

Each module whose name does not start with an underscore is a group of benchmarks. Importing it registers
them, so a new group is a new file.
"""
