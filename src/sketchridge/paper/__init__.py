"""The paper, reproduced: its data, its experiments with their claims as checks, and the report.

Nothing but the command line imports it. `runs/` makes rows, `readings/` judges and draws them.
Every setting is written out, so that a changed default of the library never changes a published
number.
"""

__all__ = ["command", "datasets", "experiments", "readings", "report", "runner", "runs"]
