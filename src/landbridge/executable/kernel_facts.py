"""What a compile knows of each kernel: its work, its bytes, and the schedule that was chosen for it.

It stands as text in the metadata of an Executable, so that it costs a load nothing, and is read by who asks for it.
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
