"""Where tasks run: this process, and joblib's workers."""

from manyfit.cluster._local import run_tasks, workers
from manyfit.cluster._progress import Progress

__all__ = ["Progress", "run_tasks", "workers"]
