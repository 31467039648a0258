"""The facts that a compile records of each kernel: its operations, its bytes, and the schedule that was chosen for it.

They are text in the metadata of an Executable, so that loading does not parse them. Facts of a kernel whose code serves
several sizes are those of its calls: their keys name the node too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from landbridge.errors import ExecutableError
from landbridge.executable.executable import Executable
from landbridge.executable.json_form import from_json, to_json
from landbridge.executable.parts import KernelFacts

#: The key in ``Executable.metadata``.
KERNELS = "kernels"


def call_key(function: str, node: str) -> str:
    """Returns the key of the facts of one call of ``function``, where each call has its own."""
    return f"{function} {node}"


def renamed(key: str, names: Mapping[str, str]) -> str:
    """Returns ``key`` where functions are renamed by ``names``."""
    function, *node = key.split(" ", 1)
    return " ".join([names[function], *node])


def facts_of_call(facts: Mapping[str, KernelFacts], function: str, node: str) -> KernelFacts | None:
    """Returns the ``facts`` of a call of ``function`` for ``node``; None where there are none."""
    return facts.get(call_key(function, node), facts.get(function))


def facts_text(facts: Mapping[str, KernelFacts]) -> str:
    """Returns ``facts``, by name of the kernel, as text for the metadata."""
    return json.dumps(to_json(facts), separators=(",", ":"))


def facts_of(executable: Executable) -> dict[str, KernelFacts]:
    """Returns the facts of the kernels of ``executable``, by name; empty where it was made without.

    Raises ExecutableError for text of another form.
    """
    text = executable.metadata.get(KERNELS)
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ExecutableError(f"what the file says of its kernels is no JSON ({error}); save it again") from None
    if not isinstance(found, dict):
        raise ExecutableError("what the file says of its kernels is no JSON object; save it again")
    return {name: from_json(KernelFacts, each) for name, each in found.items()}
