"""Embeds pictures in a page of another program, such as a notebook."""

from __future__ import annotations

from base64 import b64encode

from landbridge.markup import markup


def embedded(svg: str, alternative: str) -> str:
    """Returns an HTML element that shows the SVG text ``svg``; ``alternative`` is text for those who do not see it.

    The picture is an image of its own, so that its styles do not reach the page around it. Where the page is narrower
    than words in it can be read, it scrolls.
    """
    data = b64encode(svg.encode()).decode()
    return (
        '<div style="overflow-x:auto;max-width:100%">'
        f'<img alt="{markup(alternative)}" style="width:100%;min-width:760px;max-width:1240px" '
        f'src="data:image/svg+xml;base64,{data}"></div>'
    )
