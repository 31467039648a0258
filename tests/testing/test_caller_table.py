"""The table of callers is that of the code, and finds a caller that is gone."""

from __future__ import annotations

from landbridge.device import protocols
from tests.testing.caller_table import PROTOCOLS, WHEN, caller_table, callers, methods
from tests.testing.contract_table import DOCUMENT


def test_the_document_has_the_table_of_the_code() -> None:
    assert caller_table() in DOCUMENT.read_text(encoding="utf-8"), (
        "docs/device-contract.md: run python -m tests.testing.contract_table"
    )


def test_it_says_when_of_every_method_and_of_no_other() -> None:
    named = {f"{protocol.__name__}.{method}" for protocol in PROTOCOLS for method in methods(protocol)}
    assert named == WHEN.keys()
    assert {"DeviceAPI.alloc_data_space", "Lifecycle.open", "PeerCopy.can_copy"} <= named
    public = {value for value in vars(protocols).values() if getattr(value, "_is_protocol", False)}
    assert public - {protocols.Protocol} <= {*PROTOCOLS}


def test_what_has_a_moment_has_a_caller_and_nothing_else() -> None:
    found = callers()
    assert found["load_module"] == ["vm/device_kernels.py"]
    alone = {key for key in WHEN if key.partition(".")[2] not in found}
    assert alone == {key for key, when in WHEN.items() if not when}
