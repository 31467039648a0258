"""Operators that run as numpy functions on the host, because they have no kernel.

    @lb.host_operator("my.domain", "Rank")
    def rank(x, *, axis=-1):
        return np.argsort(np.argsort(x, axis), axis)

A function gets the node's inputs as arrays, None for those that the node leaves out, and its attributes by name. It
returns an array for each output. Programs call it by name: an ``.lbx`` says which it needs. The functions are in the
registry of ``landbridge.operators``.
"""

from landbridge.operators import HostOperator, HostValue, host_operator

__all__ = ["HostOperator", "HostValue", "host_operator"]
