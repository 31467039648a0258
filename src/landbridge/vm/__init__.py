"""Compiled programs bound to memory and devices, ready to run.

An Executable's vdevices get device bindings (``device_binding``) and its instructions become words (``bind``,
``program``). One Frame of them serves runs, another one calls (``frame``): inputs and outputs are bound there
(``run_arguments``, ``call_arguments``), and its steps run (``interpreter``, ``kernel_step``). ``bound_program`` puts
all together, and ``entry`` is the lock that its users take.
"""
