"""Command lines as a command's function gets them: options in any order and form, and what is wrong with them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge.cli.app import COMMANDS, command, parser_of, summary
from landbridge.cli.options import CliArgument, CliOption, UsageError
from landbridge.cli.parameters import parameters_of
from landbridge.cli.parser import CommandParser
from tests.cli.command_line import invoke
from tests.selection.installed import missing, program


def sample(
    model: Annotated[str, CliArgument(metavar="MODEL", help="A model.")],
    other: Annotated[Path | None, CliArgument(metavar="OTHER", help="Another one.")] = None,
    target: Annotated[str | None, CliOption("--target", "-t", help="100 % of it.")] = None,
    place: Annotated[list[str] | None, CliOption("--place", "-p", help="Places.")] = None,
    count: Annotated[int, CliOption("--count", "-c", minimum=1, maximum=9, help="How many.")] = 3,
    share: Annotated[float, CliOption(minimum=0, help="A share.")] = 0.5,
    quick: Annotated[bool, CliOption("--quick", "-q", help="Be quick.")] = False,
    verbose: Annotated[bool, CliOption("--verbose", "-v", help="Say more.")] = False,
    output_dir: Annotated[Path | None, CliOption(folder=True, help="A folder.")] = None,
) -> None:
    """Do `something` with MODEL.

    It is done.
    """


ABSENT = {"other": None, "target": None, "place": None, "count": 3, "share": 0.5, "quick": False, "verbose": False,
          "output_dir": None}  # fmt: skip


def values(*words: str) -> dict[str, object] | None:
    return CommandParser("landbridge sample", sample).values(words)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["m"], {}),
        (["-"], {"model": "-"}),
        (["m", "o"], {"other": Path("o")}),
        (["m", "--quick", "o"], {"other": Path("o"), "quick": True}),
        (["--quick", "m", "-c", "2", "o"], {"other": Path("o"), "quick": True, "count": 2}),
        (["--quick", "--", "m"], {"quick": True}),
        (["--", "-m", "--quick"], {"model": "-m", "other": Path("--quick")}),
        (["m", "-t", "llvm -mcpu=generic"], {"target": "llvm -mcpu=generic"}),
        (["m", "--target", "-mcpu"], {"target": "-mcpu"}),
        (["m", "--target", "--quick"], {"target": "--quick"}),
        (["m", "--target", "--"], {"target": "--"}),
        (["--", "m", "--"], {"other": Path("--")}),
        (["m", "--target=--help"], {"target": "--help"}),
        (["m", "--target="], {"target": ""}),
        (["m", "--target", ""], {"target": ""}),
        (["m", "-tx"], {"target": "x"}),
        (["m", "-t=x=y"], {"target": "x=y"}),
        (["m", "-t", "x", "-t", "y"], {"target": "y"}),
        (["-p", "a=b", "m", "--place", "c", "-pd", "o"], {"place": ["a=b", "c", "d"], "other": Path("o")}),
        (["m", "-qv"], {"quick": True, "verbose": True}),
        (["m", "-qc4"], {"quick": True, "count": 4}),
        (["m", "-vqt", "-x y"], {"verbose": True, "quick": True, "target": "-x y"}),
        (["m", "--share", "inf", "--count=9"], {"share": float("inf"), "count": 9}),
        (["m", "--output-dir", "/"], {"output_dir": Path("/")}),
        (["m", "--output-dir", "/none/such"], {"output_dir": Path("/none/such")}),
    ],
)
def test_lines(line: list[str], expected: dict[str, object]) -> None:
    assert values(*line) == {"model": "m", **ABSENT, **expected}


@pytest.mark.parametrize("line", [["-h"], ["--help"], ["m", "-qh"], ["--count", "0", "--help"]])
def test_help_comes_first(line: list[str]) -> None:
    assert values(*line) is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ([], "Missing argument: MODEL"),
        (["m", "o", "x"], "Unexpected argument: x"),
        (["m", "--targe", "x"], "No such option: --targe (did you mean '--target'"),
        (["m", "--ver"], "No such option: --ver"),
        (["m", "-x"], "No such option: -x"),
        (["m", "-1"], "No such option: -1"),
        (["m", "-qx"], "No such option: -x in -qx"),
        (["m", "-mcpu=generic"], "No such option: -m in -mcpu=generic"),
        (["m", "--target"], "Option --target needs a value: --target TARGET"),
        (["m", "-qt"], "Option -t needs a value: -t TARGET"),
        (["m", "--quick=yes"], "Option --quick takes no value"),
        (["m", "--count", "0"], "Invalid value for --count: 0 is not a whole number of at least 1 and at most 9"),
        (["m", "-c", "10"], "Invalid value for --count: 10"),
        (["m", "--count", "1.5"], "Invalid value for --count: '1.5' is not a whole number"),
        (["m", "--count", ""], "Invalid value for --count: '' is not a whole number"),
        (["m", "--share", "nan"], "Invalid value for --share: nan is not a number of at least 0"),
        (["m", "--share", "-1"], "Invalid value for --share: -1"),
        (["m", "--output-dir", __file__], "is a file"),
    ],
)
def test_wrong_lines(line: list[str], says: str) -> None:
    with pytest.raises(UsageError) as reported:
        values(*line)
    assert says in str(reported.value)


WORDS = st.text(st.sampled_from("-=a q/%@"), max_size=6)


WORDS = st.text(st.sampled_from("-=a q/%@"), max_size=6)


@given(WORDS, WORDS, st.lists(WORDS, max_size=3), st.booleans())
def test_any_value_arrives_as_it_was_given(model: str, target: str, places: list[str], separate: bool) -> None:
    options = [("--target", target), *(("--place", place) for place in places)]
    line = [word for option in options for word in (option if separate else ["=".join(option)])]
    for words in (["--quick", *line, "--", model], [*line, "--quick", "--", model]):
        found = values(*words)
        assert found == {**ABSENT, "model": model, "target": target, "place": places or None, "quick": True}


@pytest.mark.parametrize(
    ("kind", "make", "says"),
    [
        ("file", lambda path: None, "does not exist"),
        ("file", lambda path: path.mkdir(), "is a directory"),
        ("folder", lambda path: path.touch(), "is a file"),
    ],
)
def test_paths_that_have_to_be_there(kind: str, make, says: str, tmp_path: Path) -> None:
    make(tmp_path / "it")
    argument = CliArgument(metavar="IT", exists=True, file=kind == "file", folder=kind == "folder")
    (parameter, *_) = parameters_of(sample)
    with pytest.raises(UsageError, match=f"Invalid value for IT: {kind} '.*' {says}"):
        type(parameter)("it", Path, False, True, None, argument).value([str(tmp_path / "it")])


def test_a_file_that_is_not_there_names_the_one_that_is(tmp_path: Path) -> None:
    (tmp_path / "det.onnx").touch()
    argument = CliArgument(metavar="MODEL", exists=True, file=True)
    (parameter, *_) = parameters_of(sample)
    with pytest.raises(UsageError, match=r"det.onx' does not exist \(did you mean 'det.onnx'\?\)"):
        type(parameter)("it", Path, False, True, None, argument).value([str(tmp_path / "det.onx")])


def test_options_stand_behind_the_command() -> None:
    reported = invoke(["--json", "run", "a.onnx"])
    assert (reported.exit_code, reported.stderr.splitlines()[1]) == (
        2,
        "error: No such option: --json; options of a command stand behind its name: landbridge run --json",
    )
    assert "did you mean '--version'" in invoke(["--versoin"]).stderr
    assert "did you mean 'run'" in invoke(["rnu"]).stderr


def test_help_says_all() -> None:
    reported = CommandParser("landbridge sample", sample).help
    assert reported.startswith(
        "usage: landbridge sample [OPTIONS] MODEL [OTHER]\n\nDo something with MODEL.\n\nIt is done.\n"
    )
    for line in (
        "  MODEL  A model.",
        "  -t, --target TARGET   100 % of it.",
        "  -c, --count N         How many. (at least 1, at most 9, default: 3)",
        "      --share NUMBER    A share. (at least 0, default: 0.5)",
        "  -q, --quick           Be quick.",
        "      --output-dir DIR  A folder.",
        "  -h, --help            Show this message and exit.",
    ):
        assert line in reported.splitlines(), reported


def listing(
    first: Annotated[str, CliArgument(metavar="FIRST", help="One.")],
    files: Annotated[list[Path], CliArgument(metavar="FILE", help="Several.")],
    quick: Annotated[bool, CliOption("--quick", help="Be quick.")] = False,
) -> None:
    """List FILEs."""


def optional(files: Annotated[list[Path] | None, CliArgument(metavar="FILE", help="Any number.")] = None) -> None:
    """List FILEs."""


def test_the_last_argument_may_repeat() -> None:
    parser = CommandParser("list", listing)
    assert parser.values(["a", "b", "--quick", "c", "--", "-d"]) == {
        "first": "a",
        "files": [Path("b"), Path("c"), Path("-d")],
        "quick": True,
    }
    assert parser.usage == "list [OPTIONS] FIRST FILE [FILE ...]"
    with pytest.raises(UsageError, match="Missing argument: FILE"):
        parser.values(["a"])
    parser = CommandParser("list", optional)
    assert parser.values([]) == {"files": None} and parser.values(["a", "b"]) == {"files": [Path("a"), Path("b")]}
    assert parser.usage == "list [OPTIONS] [FILE [FILE ...]]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    reported = invoke([name, "--help"])
    assert (reported.exit_code, reported.stderr) == (0, "")
    assert reported.stdout == parser_of(name).help
    for parameter in parameters_of(command(name)):
        assert parameter.argument.help and parameter.shown in reported.stdout


def test_the_list_of_commands_is_whole() -> None:
    listed = " ".join(invoke(["--help"], env={"COLUMNS": "100"}).stdout.split())
    for name in COMMANDS:
        assert f"{name} {summary(name)}" in listed
    folder = Path(sys.modules["landbridge.cli.app"].__file__ or "").parent
    argument = {file.stem.replace("_", "-"): file.read_text().splitlines()[0] for file in folder.glob("*.py")}
    assert {name for name, line in argument.items() if line.startswith(f'"""``landbridge {name}``:')} == set(COMMANDS)


def test_a_command_imports_no_other() -> None:
    for line, wanted in ((["--version"], set()), (["cache", "--help"], {"cache"}), (["targets"], {"targets"})):
        code = f"import sys; from landbridge.cli.app import app; app({line}); print(*sys.modules, file=sys.stderr)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
        found = {name for name in COMMANDS if f"landbridge.cli.{name.replace('-', '_')}" in done.stderr.split()}
        assert found == wanted


EVERY_PYTHON = """
import sys
sys.path[:0] = sys.argv[1:]
from landbridge.cli.app import COMMANDS, parser_of
from landbridge.cli.options import UsageError
for name in COMMANDS:
    parser = parser_of(name)
    print(parser.help)
    for line in ([], ["/", "y", "z"], ["--", "-x"], ["--json", "--", "/"], ["-t", "-x", "/"], ["/", "--no-such"]):
        try:
            print(parser.values(line))
        except UsageError as wrong:
            print(wrong)
"""


@pytest.mark.parametrize("version", ["3.10", "3.12", "3.13", "3.14"])
def test_on_every_python(version: str) -> None:
    python = program(f"python{version}", "pythons")
    if subprocess.run([python, "-c", "import ctypes, ssl"], capture_output=True).returncode:
        missing(f"a Python {version} that works", "pythons")
    source = str(Path(__file__).parents[2] / "src")
    here, there = (
        subprocess.run([each, "-I", "-S", "-c", EVERY_PYTHON, source], capture_output=True, text=True, timeout=60)
        for each in (sys.executable, python)
    )
    assert (there.returncode, there.stderr, there.stdout) == (0, "", here.stdout)
