"""The only package that names private parts of other projects, a module for each subject.

They were read in scikit-learn 1.7, 1.8 and 1.9 (``TESTED``). If another version has all of these names, every
search is fitted one by one; its plan and one warning say so. `nested` is imported by its name, since it
imports transformers that few searches need.
"""

# ruff: noqa: F403
from manyfit._compat import (
    _array_api,
    _boosting,
    _callbacks,
    _dask,
    _estimators,
    _joblib,
    _neighbors,
    _scorers,
    _search,
    _text,
)
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

__all__ = []
__all__ += _array_api.__all__
__all__ += _boosting.__all__
__all__ += _callbacks.__all__
__all__ += _dask.__all__
__all__ += _estimators.__all__
__all__ += _joblib.__all__
__all__ += _neighbors.__all__
__all__ += _scorers.__all__
__all__ += _search.__all__
__all__ += _text.__all__
