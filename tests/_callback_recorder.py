"""Callbacks of scikit-learn 1.9 and later for the tests of callbacks."""


class Deaf:
    """Hears of nothing."""

    __slots__ = ()

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **kwargs):
        pass

    def on_fit_task_end(self, estimator, context, **kwargs):
        pass

    def teardown(self, estimator, context):
        pass


class Recorder(Deaf):
    """Counts the tasks that it hears of, by name."""

    def __init__(self):
        self.begun, self.ended = [], []

    def on_fit_task_begin(self, estimator, context, **kwargs):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context, **kwargs):
        self.ended.append(context.task_name)
