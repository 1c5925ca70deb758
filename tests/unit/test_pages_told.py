"""Pages that messages of the product send their readers to."""

from __future__ import annotations

import re

from tests import messages
from tests.readme import ROOT, headings


def test_a_message_names_pages_that_its_reader_has() -> None:
    """A page is named by its path in the project, with a heading that it has."""
    named = {
        (module, page, anchor)
        for module, text in messages.texts()
        for page, anchor in re.findall(r"([\w/.-]+\.md)\b(?:#([\w-]+))?", text)
    }
    assert named
    assert not {each for each in named if not (ROOT / each[1]).is_file()}
    assert not {each for each in named if each[2] and each[2] not in headings(ROOT / each[1])}
