"""Words of the terminal that the page replaces are words that the library still uses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from webpage import start, table

import sketchridge
from sketchridge.campaign.operations import Campaign
from sketchridge.web import maps, sentences

HOUSE = Path(sketchridge.__file__).parent


def said() -> Iterator[str]:
    """All texts of the library, with X in the place of what is filled in."""
    for path in HOUSE.rglob("*.py"):
        if path.name == "sentences.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [v.value if isinstance(v, ast.Constant) else "X" for v in node.values]
                yield "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


EVERY = list(said())


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in sentences._WORDS])
def test_each_is_in_a_sentence_that_can_be_said(pattern):
    assert any(re.search(pattern, text) for text in EVERY)


@pytest.mark.parametrize("target", ["yield", "low yield", "predicted"])
def test_predictions_are_known_by_their_names(address, tmp_path, target):
    """Whatever the columns of the table and the target are called."""
    text = table().replace("temperature", "predicted" if target == "yield" else "high temp")
    start(address, tmp_path, text, target=target, unit="")
    campaign = Campaign.open(address)
    (tmp_path / "l.csv").write_text(f"id,{target}\n" + "".join(f"S{i:03d},{i}\n" for i in range(9)))
    campaign.tell(tmp_path / "l.csv")
    frame = campaign.predict()
    found = maps.Predicted(frame, campaign.encoding)
    assert found.mean.tolist() == frame[frame.columns[-7]].to_list()
    assert found.low.tolist() == frame[frame.columns[-6]].to_list()
    assert found.high.tolist() == frame[frame.columns[-5]].to_list()
    assert (found.label == found.label).sum() == 9
