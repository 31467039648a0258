"""What a compile knows of each kernel: its work, its bytes, and the schedule that was chosen for it.

It stands as text in the metadata of an Executable, so that it costs a load nothing, and is read by who asks for it.
Facts of a kernel whose code serves several sizes are those of its calls: their keys name the node too.
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
    """The key of the facts of one call of ``function``, where each has its own."""
    return f"{function} {node}"


def renamed(key: str, names: Mapping[str, str]) -> str:
    """``key`` where functions are called what ``names`` say."""
    function, *node = key.split(" ", 1)
    return " ".join([names[function], *node])


def facts_of_call(facts: Mapping[str, KernelFacts], function: str, node: str) -> KernelFacts | None:
    """What ``facts`` say of a call of ``function`` for ``node``; None where that is nothing."""
    return facts.get(call_key(function, node), facts.get(function))


def facts_text(facts: Mapping[str, KernelFacts]) -> str:
    """``facts``, by name of the kernel, as the text of the metadata."""
    return json.dumps(to_json(facts), separators=(",", ":"))


def facts_of(executable: Executable) -> dict[str, KernelFacts]:
    """What ``executable`` says of its kernels, by name; none where it was made without.

    Raises ExecutableError for text that says something else.
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
