"""A whole program as steps over fixed addresses of one linear memory, for hosts of WebAssembly other than Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from landbridge.errors import ExecutableError
from landbridge.executable import instructions as ins
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.executable import Executable
from landbridge.executable.parts import TensorSpec, parameter_constant
from landbridge.executable.segments import segments_of
from landbridge.executable.wasm_binary import ALIGNMENT, PAGE_BYTES, STACK_BYTES, WASM_FORMAT, data_bytes
from landbridge.records import record

#: A call: the kernel's number, that of its first argument among the words, and of its tasks.
Step = tuple[int, int, int]

_WORD_BYTES = 8
_MOST_BYTES = 1 << 32


@record
class WasmProgram:
    """A program: ``kernels`` are the names of the module's functions that it calls.

    Addresses are in bytes: of the module's data, of the end of its stack, of arguments, of each weight by name, and of
    inputs and outputs in the order of the program. ``words`` are the arguments of all calls, addresses themselves.
    ``prepared`` are the steps of the preparation, and ``run`` those of a run. ``nbytes`` of memory are used.
    """

    data: int
    stack_end: int = 0
    arguments: int = 0
    nbytes: int = 0
    kernels: list[str] = field(default_factory=list)
    words: list[int] = field(default_factory=list)
    weights: dict[str, int] = field(default_factory=dict)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    prepared: list[Step] = field(default_factory=list)
    run: list[Step] = field(default_factory=list)

    @property
    def pages(self) -> int:
        """Returns the pages of memory that it uses."""
        return -(-self.nbytes // PAGE_BYTES)


def wasm_program(executable: Executable) -> tuple[WasmProgram, DeviceImage]:
    """Returns the program of ``executable``, and the image with its kernels.

    Raises ExecutableError for what its kernels alone cannot do: open dimensions, sizes that data decide, steps on
    other devices, steps that Python does; and for more memory than 32-bit addresses reach.
    """
    image = _image(executable)
    if executable.is_open:
        inputs = ", ".join(f"{spec.name}: {', '.join(map(str, spec.shape))}" for spec in executable.main.inputs)
        raise ExecutableError(
            f"the program is for many sizes ({inputs}), and one in WebAssembly is for one: give each dimension a "
            "number, by shapes= or dims= (--shape, --dim)"
        )
    if segments_of(executable):
        raise ExecutableError(
            "data decide sizes, and Python runs the program in segments by them; cut the model there "
            "(onnx.utils.extract_model) and export the parts"
        )
    return _Builder(executable, image).build(), image


def _image(executable: Executable) -> DeviceImage:
    images = [module.image for module in executable.modules]
    found = [each for each in images if isinstance(each, DeviceImage) and each.format == WASM_FORMAT]
    if not found:
        raise ExecutableError(
            f"the program has kernels in {', '.join(map(repr, images))}, and none in WebAssembly; compile it for "
            "target 'wasm'"
        )
    if len(images) == 1:
        return found[0]
    raise ExecutableError(
        f"the program has {len(images)} modules ({', '.join(map(repr, images))}); for WebAssembly it has one, of "
        "kernels in wasm: compile it for target 'wasm', and fix by constants= (--constant) what If and Loop depend on, "
        "as these run on a CPU"
    )


class _Builder:
    def __init__(self, executable: Executable, image: DeviceImage) -> None:
        self._executable, self._image = executable, image
        self._created = WasmProgram(ALIGNMENT)
        self._end = ALIGNMENT + data_bytes(image.code)
        self._created.stack_end = self._take(STACK_BYTES) + STACK_BYTES
        self._places: dict[int, int] = {}
        self._kernels: dict[str, int] = {}
        self._scratch: list[int] = []  # of words, the numbers of those that are scratch
        self._scratch_bytes = 0

    def build(self) -> WasmProgram:
        created, main = self._created, self._executable.main
        created.inputs = [self._take(_nbytes(spec)) for spec in main.inputs]
        created.outputs = [self._take(_nbytes(spec)) for spec in main.outputs]
        self._places.update(enumerate((*created.inputs, *created.outputs)))
        for number, spec in enumerate(main.parameters, start=len(self._places)):
            self._places[number] = self._weight(parameter_constant(spec.name))
        instructions = main.instructions
        end = next((n for n, each in enumerate(instructions, 1) if isinstance(each, ins.Prepared)), 0)
        created.prepared = self._steps(instructions[:end])
        created.run = self._steps(instructions[end:])
        scratch = self._take(self._scratch_bytes)
        for number in self._scratch:
            created.words[number] = scratch
        created.arguments = self._take(_WORD_BYTES * len(created.words))
        created.kernels = list(self._kernels)
        created.nbytes = self._end
        return created

    def _steps(self, instructions: Sequence[ins.Instruction]) -> list[Step]:
        steps: list[Step] = []
        for instruction in instructions:
            match instruction:
                case ins.AllocStorage(dst, nbytes, _, _, shape) if not shape:
                    self._places[dst] = self._take(nbytes)
                case ins.AllocTensor(dst, source, offset) | ins.View(dst, source, offset):
                    self._places[dst] = self._places[source] + offset
                case ins.LoadConstant(dst, name):
                    self._places[dst] = self._weight(name)
                case ins.Call():
                    steps += self._call(instruction)
                case ins.Prepared():
                    pass
                case _:
                    raise ExecutableError(_other_step(instruction))
        return steps

    def _call(self, call: ins.Call) -> list[Step]:
        sequence = self._image.functions[call.function]
        words = self._created.words
        steps: list[Step] = []
        for launch in sequence.launches:
            steps.append((self._kernels.setdefault(launch.kernel, len(self._kernels)), len(words), launch.grid[0]))
            for argument in launch.args:
                if argument >= sequence.operands:
                    self._scratch.append(len(words))
                    self._scratch_bytes = max(self._scratch_bytes, sequence.scratch[argument - sequence.operands])
                words.append(0 if argument >= sequence.operands else self._places[call.args[argument]])
        return steps

    def _weight(self, name: str) -> int:
        weights = self._created.weights
        if name not in weights:
            weights[name] = self._take(self._executable.constants[name].nbytes)
        return weights[name]

    def _take(self, nbytes: int) -> int:
        begin = -(-self._end // ALIGNMENT) * ALIGNMENT
        self._end = begin + nbytes
        if self._end > _MOST_BYTES:
            raise ExecutableError(
                f"the program uses {self._end:,} bytes of memory, and 32-bit addresses reach {_MOST_BYTES:,}"
            )
        return begin


def _nbytes(spec: TensorSpec) -> int:
    if spec.axis_separators or spec.strides:
        raise ExecutableError(
            f"{spec.name!r} is not dense, row-major memory, which a program in WebAssembly takes; leave out layouts "
            "and scopes of inputs and outputs"
        )
    return spec.nbytes


def _other_step(instruction: ins.Instruction) -> str:
    if isinstance(instruction, ins.HostCall):
        return (
            f"the program has a step that Python does ({instruction.builtin}); one in WebAssembly has none: take that "
            "operator out of the model"
        )
    return "the program has memory in rows or of several devices; compile it for target 'wasm' alone, in flat memory"
