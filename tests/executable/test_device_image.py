from dataclasses import replace

import pytest

from landbridge.errors import ExecutableError
from landbridge.executable.device_image import DeviceImage, Launch, LaunchSequence, check_device_image

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
