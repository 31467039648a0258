from dataclasses import replace

import pytest

from landbridge.codegen.launch_sizes import as_word
from landbridge.errors import ExecutableError
from landbridge.executable.device_image import DeviceImage, Launch, LaunchSequence, check_device_image
from landbridge.executable.json_form import from_json, to_json
from landbridge.sizes.size import dimension

LAUNCH = Launch("k", (0, 1, 2), (4, 1, 1), (64, 1, 1))


def image(launch: Launch, format: str = "spirv") -> DeviceImage:
    return DeviceImage(format, b"", {"f": LaunchSequence(2, (16,), (launch,))})


def test_a_well_formed_image_passes() -> None:
    check_device_image(image(LAUNCH))


@pytest.mark.parametrize(
    "launch",
    [
        replace(LAUNCH, args=(0, 3)),
        replace(LAUNCH, args=(-1,)),
        replace(LAUNCH, grid=(4, 1)),
        replace(LAUNCH, grid=(0, 1, 1)),
        replace(LAUNCH, block=(64, 1, -1)),
    ],
)
def test_launches_are_checked(launch: Launch) -> None:
    with pytest.raises(ExecutableError, match="kernel 'k' of 'f'"):
        check_device_image(image(launch))


def test_a_format_is_any_text_but_none() -> None:
    check_device_image(image(LAUNCH, "a vendor's own, v2"))
    with pytest.raises(ExecutableError, match="without a format; its code generator must name one"):
        check_device_image(image(LAUNCH, ""))


OPEN = LaunchSequence(3, (16, as_word(2)), (LAUNCH, replace(LAUNCH, grid=(as_word(1), as_word(0), 1))))


def test_words_of_a_call_are_numbers_of_workgroups_and_bytes() -> None:
    check_device_image(DeviceImage("spirv", b"", {"f": OPEN}))
    assert OPEN.is_open and not OPEN.at((2, 7, 4096)).is_open
    assert OPEN.at((2, 7, 4096)).launches == (LAUNCH, replace(LAUNCH, grid=(7, 2, 1)))
    assert OPEN.at((2, 7, 4096)).scratch == (16, 4096)


def test_a_generator_may_compute_with_words() -> None:
    grid = (-(-as_word(0) // 4), as_word(1) * as_word(2), 1)
    sequence = LaunchSequence(3, (), (replace(LAUNCH, grid=grid),))
    assert sequence.at((9, 2, 5)).launches[0].grid == (3, 10, 1)


def test_a_launch_of_no_workgroups_is_left_out() -> None:
    assert OPEN.at((2, 0, 0)).launches == (LAUNCH,)


def test_known_numbers_stay_as_they_are() -> None:
    known = LaunchSequence(2, (16,), (LAUNCH,))
    assert known.at(()) is known


@pytest.mark.parametrize("number", [as_word(3), dimension("W"), as_word(1) * as_word(10**9), 7 // dimension("w0")])
def test_what_is_no_word_of_the_call_is_refused(number: int) -> None:
    wrong = LaunchSequence(3, (), (replace(LAUNCH, grid=(number, 1, 1)),))
    with pytest.raises(ExecutableError, match=r"a launch takes '.*' of a Call with 3 words; compile the model again"):
        wrong.at((0, 2, 3))


def test_files_hold_words_as_sizes() -> None:
    assert from_json(LaunchSequence, to_json(OPEN)) == OPEN
