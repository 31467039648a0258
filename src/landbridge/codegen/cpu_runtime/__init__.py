"""The runtime that every CPU image carries, whichever generator printed its kernels."""
