"""The runtime that every CPU image contains, whichever generator printed its kernels.

It is written in LLVM IR alone: LLVM is there wherever the package is, a C compiler is not.
"""
