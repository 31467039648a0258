"""Weights bound by reference to memory that kernels of Vulkan use: as on every device that runs kernels."""

from __future__ import annotations

from tests.devices.opencl.test_parameters import (
    replaceable,
    test_a_tensor_of_another_device_is_refused,
    test_a_tensor_of_the_device_is_the_weight,
    test_memory_of_the_host_is_the_weight_where_the_device_uses_it,
)

__all__ = [
    "replaceable",
    "test_a_tensor_of_another_device_is_refused",
    "test_a_tensor_of_the_device_is_the_weight",
    "test_memory_of_the_host_is_the_weight_where_the_device_uses_it",
]
