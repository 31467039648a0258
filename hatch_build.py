"""What a build adds to pyproject.toml: the text that a package index shows, README with links that work there.

A path in README is one of the repository, which an index does not have. `Repository` of `[project.urls]` is the one
place that says where it is; links and pictures then lead there, at the tag of the version. As long as there is none,
a link is its text and a picture what it shows in words.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")


class ReadmeOfIndex(MetadataHookInterface):
    """The field `readme`; hatchling finds the class by its base."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Adds it to ``metadata``, the table `project` of pyproject.toml."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository", "")
        linked = with_links(text, repository, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": linked}


def with_links(text: str, repository: str, version: str) -> str:
    """Returns ``text`` with its paths as links into ``repository``, at the tag of ``version`` or, for one between two
    releases, at the newest commit; without ``repository`` with no links to paths.
    """
    place = "HEAD" if "dev" in version or "+" in version else f"v{version}"

    def linked(match: re.Match[str]) -> str:
        picture, words, path = match.groups()
        if not repository:
            return f"*{words}*" if picture else words
        return f"{picture}[{words}]({repository.rstrip('/')}/{'raw' if picture else 'blob'}/{place}/{path})"

    fences = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else _LINK.sub(linked, part) for part in fences)
