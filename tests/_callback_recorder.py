"""A callback of scikit-learn 1.9 and later for the tests of callbacks."""


class Recorder:
    """Counts the tasks that it hears of, by name."""

    def __init__(self):
        self.begun, self.ended = [], []

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **kwargs):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context, **kwargs):
        self.ended.append(context.task_name)

    def teardown(self, estimator, context):
        pass
