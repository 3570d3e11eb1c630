"""What is read from the rows: claims with their verdicts, and pictures. Nothing here is random."""

__all__ = [
    "drawing",
    "formulas",
    "gaps",
    "growing",
    "mixture",
    "other_sketches",
    "quotes",
    "real",
    "synthetic",
    "times",
]
