"""The one error users see: a sentence that says what was wrong and what to do."""


class EigentimeError(ValueError):
    """Bad input. The command line prints its sentence and exits with code 2."""
