"""The one error users see: a sentence that says what was wrong and what to do."""


class EigentimeError(ValueError):
    """Bad input. The command line prints its sentence and exits with code 2."""

    code = 2
    """Of the command line's exit."""


class Unfinished(EigentimeError):
    """Nothing is wrong with the input: the run cannot go on here and now. What is finished is kept, and the same call
    goes on."""


class ProcessLost(Unfinished):
    """Another process of the run has ended, so that this one waits in vain."""

    code = 3
