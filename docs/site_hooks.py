"""What MkDocs is told: the version, where the repository is, and that links out of this folder become paths in it."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+)([^)#]+)[^)]*\)")


def on_config(config: Any) -> Any:
    """``config`` whose header names the version, and links the repository where pyproject.toml says where that is."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    config["site_name"] += f" {version('landbridge')}"
    repository = project.get("urls", {}).get("Repository", "")
    if repository:
        config["repo_url"], config["repo_name"] = repository, "/".join(repository.rstrip("/").split("/")[-2:])
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The text of ``page`` with what it links to outside of docs/ named, as the site has pages of docs/ alone."""
    depth = page.file.src_uri.count("/")

    def named(match: re.Match[str]) -> str:
        text, ups, path = match.groups()
        if ups.count("../") <= depth:
            return match[0]
        return text if path in text else f"{text} (`{path}`)"

    return _LINK.sub(named, markdown)
