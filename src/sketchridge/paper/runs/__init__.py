"""What makes the rows of the tables: cells, run in any order, of fixed settings and seeds.

Results are kept by a hash of this code and of what it imports. Nothing here judges or draws.
"""

__all__ = [
    "campaign",
    "formulas",
    "gaps",
    "mixture",
    "other_sketches",
    "real",
    "synthetic",
    "times",
]
