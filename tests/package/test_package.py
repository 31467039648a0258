import subprocess
import sys

import pytest

import landbridge as lb
from landbridge import errors
from tests.package.public_api import FILE, described


def test_public_names():
    names = set(dir(lb))
    assert {"compile", "load", "Session", "ledger", "no_copies", "empty", "asarray", "from_dlpack"} <= names
    assert {"device", "Target", "Tensor", "Executable", "Module", "ZeroCopyError", "__version__"} <= names
    for name in names - {"compile"}:
        assert getattr(lb, name) is not None


def test_public_names_and_signatures_are_those_written_down():
    """A change of them belongs into CHANGELOG.md; then ``python -m tests.package.public_api``."""
    assert described() == FILE.read_text()


def test_errors_are_attributes():
    assert lb.ZeroCopyError is errors.ZeroCopyError
    assert lb.SessionBusyError is errors.SessionBusyError


@pytest.mark.parametrize("name", ["sesion", "annotations_", "np"])
def test_unknown_attribute(name):
    with pytest.raises(AttributeError, match=name):
        getattr(lb, name)


def test_device_is_callable_before_and_after_its_package_is_imported():
    code = """
import landbridge as lb
print(lb.device("cpu:0"))
import landbridge.device.registry
print(lb.device("cpu", 0) is lb.device("cpu:0"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["cpu:0", "True"], done.stderr


def test_import_is_light():
    code = """
import sys
import landbridge
heavy = {"numpy", "xdsl", "onnx", "llvmlite", "argparse", "tvm_ffi", "ml_dtypes"}
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
