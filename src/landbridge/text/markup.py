"""Escapes text for markup: names come from files of others and may hold any character."""

from __future__ import annotations

import re
from html import escape

#: All but the characters that XML 1.0 allows (section 2.2, production 2), the controls among those, and what changes
#: the direction of text, by which it could be read as another.
_ILLEGAL = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u200d\u2010-\u2029\u202f-\u2065\u206a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)


def markup(text: str) -> str:
    """Returns ``text`` as the content of an element or a quoted attribute of XML or HTML; illegal characters become
    U+FFFD.
    """
    return escape(_ILLEGAL.sub("\ufffd", text))
