"""Names and docstrings that can be searched and read alone: what CONTRIBUTING.md asks of them, by the syntax trees of src.

A function has a verb, or a noun that says what comes back; a docstring begins with a noun or a verb.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src/kduel"

# A docstring that begins so needs the name above it to be understood.
FIRST_WORDS = {"of", "what", "whether", "how", "where", "which", "as", "why", "who", "whose", "when", "that"}
FIRST_PHRASES = ("the same",)

# Past participles that do not end in -ed, and words that say nothing of what comes back.
PARTICIPLES = """
told shown begun kept tied beside said made taken given drawn gone left held known seen meant done found lost
sent built brought bought led met paid sold spent spoken stood thrown understood worn hidden
"""
VAGUE = """
plain place of whole one these those all both here there apart above below behind within outside inside about
around alone away since still yet once then again aside upon between beyond
"""
FORBIDDEN = {*PARTICIPLES.split(), *VAGUE.split()}
# Verbs and nouns that end so.
NO_PARTICIPLES = frozenset({"feed", "need", "seed", "speed", "embed", "exceed", "proceed"})

# What may stay, by module: at most 3 names and 20 docstrings.
NAMES_THAT_STAY = {
    # A setting of the [machine] table is called so.
    ("machines/remote/provision.py", "place"),
    ("machines/slurm/trial.py", "place"),
}
DOCSTRINGS_THAT_STAY: set[tuple[str, str]] = set()

RENAME = (
    "does not tell what it does or is: give a function a verb or what it returns (`kept` -> `keep_trial`, `kept_trials`), a "
    "class a noun (`Kept` -> `KeptTrial`)"
)
REWORD = (
    "is no sentence without the name: begin with what is returned or a verb (`What a run is` -> `A run`, `Whether` -> "
    "`True if`, `As judge` -> `Judge`)"
)

Node = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def nodes(tree: ast.Module) -> Iterator[tuple[str, Node]]:
    """Every module, class and function with its name; the module's is empty."""
    yield "", tree
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node


def is_vague(name: str, node: Node) -> bool:
    """True if a name is a single word that is a participle or vague. A property that is true or false may be a participle."""
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)
    if len(words) != 1 or isinstance(node, ast.Module):
        return False
    word = words[0].lower()
    if isinstance(node, ast.FunctionDef) and is_flag(node):
        return False
    return word in FORBIDDEN or (word.endswith("ed") and word not in NO_PARTICIPLES)


def is_flag(node: ast.FunctionDef) -> bool:
    """True if a function is a property of type bool."""
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    return (
        bool(decorators & {"property", "cached_property"})
        and node.returns is not None
        and ast.unparse(node.returns) == "bool"
    )


def begins_badly(node: Node) -> bool:
    """True if a docstring begins with one of the words above."""
    text = (ast.get_docstring(node) or "").lower()
    return (text.split() or [""])[0].rstrip(",:") in FIRST_WORDS or text.startswith(FIRST_PHRASES)


def offences(room: str) -> Iterator[str]:
    """The names and docstrings of a room (or of a module at the top) that the rule forbids."""
    top = SOURCE / room
    for path in sorted(top.rglob("*.py")) if top.is_dir() else [top]:
        module = path.relative_to(SOURCE).as_posix()
        for name, node in nodes(ast.parse(path.read_text("utf-8"))):
            line = getattr(node, "lineno", 1)
            if is_vague(name, node) and (module, name) not in NAMES_THAT_STAY:
                yield f"{module}:{line}: the name {name} alone {RENAME}"
            if begins_badly(node) and (module, name) not in DOCSTRINGS_THAT_STAY:
                first = (ast.get_docstring(node) or "").splitlines()[0]
                yield f"{module}:{line}: {name or 'the module'}: the docstring {first!r} {REWORD}"


ROOMS = sorted(path.name for path in SOURCE.iterdir() if path.is_dir() or path.suffix == ".py")
ROOMS = [room for room in ROOMS if room != "__pycache__"]


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_names_and_docstrings_follow_the_rule(room: str) -> None:
    assert list(offences(room)) == []


def test_few_exceptions_are_left_and_each_is_needed() -> None:
    assert len(NAMES_THAT_STAY) <= 3
    assert len(DOCSTRINGS_THAT_STAY) <= 20
    for module, name in NAMES_THAT_STAY | DOCSTRINGS_THAT_STAY:
        tree = ast.parse((SOURCE / module).read_text("utf-8"))
        assert any(called == name and (is_vague(name, node) or begins_badly(node)) for called, node in nodes(tree)), (
            f"{module}: {name}"
        )


def test_a_message_tells_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "room.py").write_text('"""A module."""\ndef told(): "What is told."')
    monkeypatch.setattr(f"{__name__}.SOURCE", tmp_path)
    name, docstring = offences("room.py")
    assert name.startswith("room.py:2: the name told ") and RENAME in name
    assert docstring.startswith("room.py:2: told: the docstring 'What is told.' ") and REWORD in docstring


@pytest.mark.parametrize(
    ("code", "bad"),
    [
        ('def told(): "Text."', True),
        ('def _counted(): "Number."', True),
        ('class Shown: "Text."', True),
        ('class TrialShown: "Text."', False),
        ('class PCIBound: "Text."', False),
        ('def tell(): "What a run is."', True),
        ('def tell(): "As `judge`."', True),
        ('def tell(): "The same of all."', True),
        ('def need(): "Programs that are needed."', False),
        ('def tell_listed(): "Text."', False),
        ('@property\ndef merged(self) -> bool: "True if it is."', False),
        ('@property\ndef merged(self) -> str: "Text."', True),
    ],
)
def test_what_the_rule_forbids(code: str, bad: bool) -> None:
    [(name, node)] = list(nodes(ast.parse(code)))[1:]
    assert (is_vague(name, node) or begins_badly(node)) is bad
