"""A plan in a notebook: the picture, as an image of its own."""

from __future__ import annotations

import pickle
from base64 import b64decode

from landbridge.plan_chart import MemoryPlan, arenas_of_executable
from landbridge.plan_chart.svg import render_svg
from tests.plan_chart.programs import program

NASTY = '"><script>alert(1)</script>'


def test_it_shows_the_picture_of_the_command() -> None:
    plan = arenas_of_executable(program())
    picture = plan._repr_html_().partition("base64,")[2].partition('"')[0]
    assert b64decode(picture).decode() == render_svg(plan, plan.title)


def test_names_of_strangers_do_not_leave_the_text() -> None:
    page = MemoryPlan(arenas_of_executable(program()), NASTY)._repr_html_()
    assert "<script" not in page and page.count("<") == 3  # div, img, /div


def test_it_is_the_list_of_its_arenas() -> None:
    plan = arenas_of_executable(program())
    assert plan == list(plan)
    again = pickle.loads(pickle.dumps(plan))
    assert (again, again.title) == (plan, plan.title)
