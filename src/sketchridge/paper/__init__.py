"""The paper, reproduced: its data, its experiments with their claims as checks, and the report.

Nothing but the command line imports it. Every setting is written out in `settings.py`, so that a
changed default of the library never changes a published number.
"""

__all__ = ["datasets", "experiments", "report", "runner"]
