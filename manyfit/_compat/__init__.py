"""The only package that names private parts of other projects, a module for each subject.

They were read in scikit-learn 1.7, 1.8 and 1.9 (``TESTED``). If another version has all of these names, every
search is fitted one by one; its plan and one warning say so. `nested` is imported by its name, since it
imports transformers that few searches need.
"""

# ruff: noqa: F403
from manyfit._compat._array_api import *
from manyfit._compat._boosting import *
from manyfit._compat._callbacks import *
from manyfit._compat._dask import *
from manyfit._compat._estimators import *
from manyfit._compat._joblib import *
from manyfit._compat._neighbors import *
from manyfit._compat._scorers import *
from manyfit._compat._search import *
from manyfit._compat._text import *
