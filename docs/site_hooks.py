"""What MkDocs is told of links that leave this folder: they become the path in the repository."""

from __future__ import annotations

import re
from typing import Any

_LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+)([^)#]+)[^)]*\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The text of ``page`` with what it links to outside of docs/ named, as the site has pages of docs/ alone."""
    depth = page.file.src_uri.count("/")

    def named(match: re.Match[str]) -> str:
        text, ups, path = match.groups()
        if ups.count("../") <= depth:
            return match[0]
        return text if path in text else f"{text} (`{path}`)"

    return _LINK.sub(named, markdown)
