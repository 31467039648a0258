"""A program in a notebook: everything that it says, and no markup of strangers."""

from __future__ import annotations

from html.parser import HTMLParser

from onnx import parser

import landbridge as lb
from landbridge.executable.executable import Executable

NASTY = "<img src=x onerror=alert(1)>"


class _Page(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: set[str] = set()
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def _program(name: str = "x", **options: object) -> Executable:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N, 4] x) => (float[N, 4] y) { y = Exp (x) }'
    )
    model.graph.input[0].name = model.graph.node[0].input[0] = name
    model.graph.name = "</strong><script>"
    return lb.compile(model, **options)  # type: ignore[arg-type]


def test_it_says_what_goes_in_and_out() -> None:
    page = _Page(_program(dims={"N": "2..64:2"})._repr_html_())
    assert page.words[1:9] == ["input", "x", "N x 4", "float32", "output", "y", "N x 4", "float32"]
    assert "2 to 64, multiples of 2" in page.words


def test_names_of_strangers_are_text() -> None:
    page = _Page(_program(NASTY, dims={"N": 3})._repr_html_())
    assert NASTY in page.words
    assert set(page.elements) == {"div", "strong", "table", "tr", "td"}
    assert page.attributes == {"style"}


def test_of_many_inputs_it_shows_some() -> None:
    names = [f"x{n}" for n in range(30)]
    inputs = ", ".join(f"float[4] {name}" for name in names)
    text = f'<ir_version: 8, opset_import: ["": 18]> g ({inputs}) => (float[4] y) {{ y = Sum ({", ".join(names)}) }}'
    page = _Page(lb.compile(parser.parse_model(text))._repr_html_())
    assert "x19" in page.words and "x20" not in page.words and "and 11 more" in page.words


def test_a_program_without_functions_is_shown_too() -> None:
    assert "none" in _Page(Executable({}, (), (), {})._repr_html_()).words
