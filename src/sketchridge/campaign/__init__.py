"""Campaigns over tables in files: what the command line, and any page, does with them.

`operations.Campaign` has a method for each thing that can be done; `overview` answers at once.
"""

__all__ = ["operations", "overview"]
