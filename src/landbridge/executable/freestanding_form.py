"""The form of kernels for processors without an operating system."""

#: The format of a DeviceImage whose code is C without a C library.
FORMAT = "freestanding-c"
