"""The differential fuzzer: manyfit's searches against scikit-learn's on random and awkward problems.

How to register a family is told in ``_register.py``; how answers are judged in ``_compare.py``.
"""
