"""A program as C statements that call its kernels, for processors without an operating system.

The memory of tensors is one array, ``memory``; weights are constants of the C files; ``io`` holds the addresses of
inputs and then outputs. A Loop and an If are C's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from landbridge.errors import ExecutableError
from landbridge.executable import instructions as ins
from landbridge.executable.c_program import check_whole, python_step, up
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.executable import Executable
from landbridge.executable.freestanding_form import FORMAT
from landbridge.executable.parts import parameter_constant
from landbridge.records import record
from landbridge.sizes.size import Size

#: The alignment of the memory, in bytes: more than any load or store of a 32-bit processor needs.
ALIGNMENT = 16
#: Offsets in the memory are multiples of it, as the dtype with the longest elements wants.
_WITHIN = 8


@record(frozen=True)
class TensorAddress:
    """Where a tensor is: ``base``, a C expression of a pointer to bytes, and ``offset``, bytes behind it."""

    base: str
    offset: int = 0

    @property
    def text(self) -> str:
        """Returns the address as C."""
        return f"{self.base} + {self.offset}" if self.offset else self.base


@record
class FreestandingProgram:
    """The statements of a program, and what they need.

    ``prepared`` are executed by init and ``run`` by each run. ``weights`` are the names of constants in the order of
    their numbers in C; ``words`` the sizes that kernels read, by the number of their array. ``tensor_bytes`` are those
    of planned memory, behind which come ``workspace_bytes`` for temporaries of kernels.
    """

    prepared: list[str] = field(default_factory=list)
    run: list[str] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)
    words: list[tuple[int, ...]] = field(default_factory=list)
    tensor_bytes: int = 0
    workspace_bytes: int = 0

    @property
    def workspace_at(self) -> int:
        """Returns the offset of the workspace in the memory."""
        return int(up(self.tensor_bytes, ALIGNMENT))

    @property
    def memory_bytes(self) -> int:
        """Returns the bytes of the whole memory; an array in C has one at least."""
        return max(self.workspace_at + self.workspace_bytes, 1)


def freestanding_image(executable: Executable) -> DeviceImage | None:
    """Returns the kernels of ``executable`` where it was compiled for processors without an operating system."""
    for module in executable.modules:
        if isinstance(module.image, DeviceImage) and module.image.format == FORMAT:
            return module.image
    return None


def freestanding_program(executable: Executable, name: str) -> FreestandingProgram:
    """Returns the program of ``executable``; its C names begin with ``name``.

    Raises ExecutableError for what such a processor cannot run: open dimensions, several devices, a program that is cut
    where data decide sizes, steps that Python does.
    """
    check_whole(executable)
    image = freestanding_image(executable)
    if image is None or len(executable.modules) != 1:
        raise ExecutableError(
            f"the program has {len(executable.modules)} modules; a microcontroller runs one: compile for "
            "'freestanding' alone"
        )
    if executable.is_open or len(executable.programs) > 1:
        names = ", ".join(dict.fromkeys(str(d) for s in executable.main.inputs for d in s.shape if isinstance(d, Size)))
        raise ExecutableError(
            f"the program is open in {names or 'its sizes'}, and the memory of a microcontroller is planned for fixed "
            "ones: fix each dimension with --dim or --shape (in Python dims= or shapes=)"
        )
    return _Builder(executable, image, name).build()


class _Builder:
    def __init__(self, executable: Executable, image: DeviceImage, name: str) -> None:
        self._executable, self._image, self._name = executable, image, name
        self._created = FreestandingProgram()
        main = executable.main
        self._places = {
            number: TensorAddress(f"io[{number}]") for number in range(len(main.inputs) + len(main.outputs))
        }
        for number, spec in enumerate(main.parameters, start=len(self._places)):
            self._places[number] = self._weight(parameter_constant(spec.name))
        self._loops = 0

    def build(self) -> FreestandingProgram:
        instructions = self._executable.main.instructions
        kinds = [type(instruction) for instruction in instructions]
        end = kinds.index(ins.Prepared) + 1 if ins.Prepared in kinds else 0
        self._steps(instructions[:end], self._created.prepared, "  ")
        self._steps(instructions[end:], self._created.run, "  ")
        called = {each.function for each in ins.flattened(instructions) if isinstance(each, ins.Call)}
        self._created.workspace_bytes = max(
            (nbytes for function in called for nbytes in self._image.functions[function].scratch), default=0
        )
        return self._created

    def _steps(self, instructions: Sequence[ins.Instruction], lines: list[str], indent: str) -> None:
        for instruction in instructions:
            match instruction:
                case ins.AllocStorage(dst, nbytes, _, alignment, shape):
                    if shape:
                        raise ExecutableError(
                            "the program has memory in rows, which C programs do not support; place it in a flat scope"
                        )
                    begin = int(up(self._created.tensor_bytes, max(_WITHIN, min(alignment, ALIGNMENT))))
                    self._places[dst] = TensorAddress("memory", begin)
                    self._created.tensor_bytes = begin + nbytes
                case ins.AllocTensor(dst, storage, offset) | ins.View(dst, storage, offset):
                    place = self._places[storage]
                    self._places[dst] = replace(place, offset=place.offset + offset)
                case ins.LoadConstant(dst, name):
                    self._places[dst] = self._weight(name)
                case ins.Call():
                    lines.append(indent + self._call(instruction))
                case ins.If(condition, then, orelse):
                    lines.append(f"{indent}if (*({self._places[condition].text})) {{")
                    self._steps(then, lines, indent + "  ")
                    lines.append(f"{indent}}} else {{")
                    self._steps(orelse, lines, indent + "  ")
                    lines.append(f"{indent}}}")
                case ins.Loop():
                    self._loop(instruction, lines, indent)
                case ins.Prepared():
                    pass
                case _:
                    raise ExecutableError(python_step(instruction))

    def _call(self, call: ins.Call) -> str:
        sequence = self._image.functions[call.function]
        launch = sequence.launches[0]
        args = [f"(void *)({self._places[register].text})" for register in call.args]
        if call.sizes:
            if call.sizes not in self._created.words:
                self._created.words.append(call.sizes)
            args.append(f"(void *){self._name}_words_{self._created.words.index(call.sizes)}")
        comment = f"/* {call.name.replace('*/', '* /')} */ " if call.name.isprintable() and call.name else ""
        return (
            f"{{ {comment}void *args[] = {{{', '.join(args) or '0'}}}; "
            f"{launch.kernel}(args, 0, {call.tasks}, workspace); }}"
        )

    def _loop(self, loop: ins.Loop, lines: list[str], indent: str) -> None:
        """Appends a ``for`` with the body; places of its slices depend on its counter."""
        counter = f"i{self._loops}"
        self._loops += 1
        fewer = "".join(f" && {counter} < *(const lb_count_at *)({self._places[each].text})" for each in loop.count)
        lines.append(f"{indent}for (int32_t {counter} = 0; {counter} < {loop.trips}{fewer}; ++{counter}) {{")
        for condition in loop.condition:
            lines.append(f"{indent}  if (!*({self._places[condition].text})) break;")
        for each in loop.slices:
            place = self._places[each.src]
            sign = "-" if each.back else "+"
            moved = f"{place.base} + {place.offset + each.first} {sign} {counter} * {each.stride}"
            self._places[each.dst] = TensorAddress(f"({moved})")
        self._steps(loop.body, lines, indent + "  ")
        lines.append(f"{indent}}}")

    def _weight(self, name: str) -> TensorAddress:
        weights = self._created.weights
        if name not in weights:
            weights.append(name)
        return TensorAddress(f"(const unsigned char *){self._name}_weight_{weights.index(name)}")
