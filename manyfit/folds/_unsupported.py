"""The one way to say that something is not shared."""


class Unsupported(Exception):
    """A family or summary does not serve this case; the text is the reason that plan and report print.

    Never an error for the user: what is not shared is fitted one by one by scikit-learn.
    """
