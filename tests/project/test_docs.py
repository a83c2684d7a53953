"""What users can say to Hitherto, and what it can answer, is documented."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Iterator

import click
import pytest

from hitherto import errors, settings
from hitherto.cli import COMMANDS, app
from hitherto.cli.terminal.exit_codes import OWN_CODES, exit_code
from hitherto.values.scopes import MEANINGS
from tests.support.paths import ROOT

DOCS = ROOT / "docs"
SHARED_OPTIONS = ("--json", "--store")


def command(name: str) -> click.Command:
    found = app.get_command(click.Context(app), name)
    assert found is not None
    return found


def parts(name: str) -> dict[str, click.Command]:
    """A command by its name, or those of which it is made."""
    made = command(name)
    if isinstance(made, click.Group):
        return {f"{name} {part}": found for part, found in made.commands.items()}
    return {name: made}


def options(name: str) -> list[click.Option]:
    params = [each for part in parts(name).values() for each in part.params]
    return [each for each in params if isinstance(each, click.Option)]


def sections() -> dict[str, str]:
    """The parts of the command line's page, by their heading."""
    parts = re.split(r"^## (.+)$", (DOCS / "cli.md").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def tree(error: type[errors.HithertoError]) -> Iterator[type[errors.HithertoError]]:
    yield error
    for child in error.__subclasses__():
        yield from tree(child)


def error_rows() -> dict[str, list[str]]:
    """The rows of the errors' page, by code."""
    rows = re.findall(r"^\| `(\w+)` \|(.+)\|$", (DOCS / "errors.md").read_text(), flags=re.MULTILINE)
    return {code: [cell.strip() for cell in rest.split("|")] for code, rest in rows}


def test_the_page_has_a_section_for_every_command_and_no_other() -> None:
    assert [name for name in sections() if name in COMMANDS] == list(COMMANDS)
    assert set(sections()) - set(COMMANDS) == {"For every command", "Exit codes"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_in_its_section(name: str) -> None:
    section = sections()[name]
    assert f"`hitherto {name} " in section
    for option in options(name):
        if option.opts[0] not in SHARED_OPTIONS and not option.hidden:
            for spelling in option.opts:
                assert re.search(rf"`{re.escape(spelling)}[ `]", section), (name, spelling)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_section_names_no_option_that_the_command_lacks(name: str) -> None:
    known = {spelling for option in options(name) for spelling in option.opts} | {"--help", "--store"}
    table = "\n".join(line for line in sections()[name].splitlines() if line.startswith("| `"))
    cells = re.findall(r"^\| (`.+?) \| ", table, flags=re.MULTILINE)
    assert set(re.findall(r"`(--?[a-z-]+)", "\n".join(cells))) <= known


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_and_a_documented_one(name: str) -> None:
    assert COMMANDS[name].help.endswith(".")
    for part, made in {**parts(name), name: command(name)}.items():
        assert inspect.cleandoc(made.help or "")
        assert f"hitherto {part}" in (made.epilog or "").partition("Examples:")[2]
        assert re.search(rf"^\$ .*hitherto {part}\b", sections()[name], flags=re.MULTILINE)
    for option in options(name):
        assert option.help, (name, option.opts)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_speaks_json_and_takes_a_store(name: str) -> None:
    for part in parts(name).values():
        known = {spelling for option in part.params for spelling in option.opts}
        assert "--json" in known
        assert "--store" in known or name in ("completion", "recover")


def test_every_scope_is_documented_with_what_it_is_for() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", (DOCS / "access.md").read_text(), flags=re.MULTILINE)
    assert dict(rows) == MEANINGS


def test_every_setting_is_documented() -> None:
    page = (DOCS / "settings.md").read_text()
    names = {value for name, value in vars(settings).items() if name.isupper() and isinstance(value, str)}
    assert names >= {"HITHERTO_STORE", "HITHERTO_DATA_DIR"}
    for name in (*names, "NO_COLOR"):
        assert f"| `{name}` |" in page


def test_every_error_is_documented_with_its_exit_code() -> None:
    rows = error_rows()
    codes = {error.code: exit_code(error) for error in tree(errors.HithertoError)}
    assert set(rows) == set(codes) | set(OWN_CODES)
    for code, expected in codes.items():
        assert int(rows[code][-1]) == expected
        assert all(rows[code]), code


def pages() -> dict[str, str]:
    """Every page of the project, by its path."""
    found = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    return {str(path.relative_to(ROOT)): path.read_text() for path in found}


def anchors(text: str) -> set[str]:
    """The places of a page that a link can name."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE
    )
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", pages())
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    known = pages()
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)]+))?\)", known[page]):
        path = (ROOT / page).parent / target if target else ROOT / page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path.read_text()), (target, anchor)


def shown_commands() -> Iterator[tuple[str, str]]:
    """The commands that the README, the quickstart and the guides show, with their pages."""
    for page in ("README.md", "docs/quickstart.md", *(name for name in pages() if "/guides/" in name)):
        for line in re.findall(r"^\$ (?:.*\| )?hitherto (\w.+)$", (ROOT / page).read_text(), re.MULTILINE):
            yield page, line


@pytest.mark.parametrize(("page", "line"), list(shown_commands()))
def test_a_command_that_a_guide_shows_exists_with_its_options(page: str, line: str) -> None:
    words = shlex.split(line, comments=True)
    name = words[0]
    known = {option for part in parts(name).values() for each in part.params for option in each.opts}
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known, page


def test_every_page_can_be_reached_from_the_index() -> None:
    index = (DOCS / "index.md").read_text()
    named = {
        str(path.relative_to(DOCS))
        for path in DOCS.rglob("*.md")
        if path.parent.name not in ("decisions", "scorecard")
    }
    assert named - {"index.md"} == set(re.findall(r"\]\(([\w./-]+\.md)\)", index))
