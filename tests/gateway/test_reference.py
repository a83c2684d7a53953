"""What the gateway says of itself: the page and the OpenRPC document are the table."""

from __future__ import annotations

import msgspec

from hitherto import errors
from hitherto.gateway.dispatch.errors import MEANINGS, OWN, number_of
from hitherto.gateway.dispatch.method import Owns
from hitherto.gateway.methods import METHODS
from hitherto.gateway.reference import PARTS, renewed
from hitherto.rpc.errors import CODES
from hitherto.service import Sessions
from tests.gateway.methods.asker import Asker
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "gateway.md"


def test_the_page_is_in_step_with_the_tables() -> None:
    page = PAGE.read_text()
    for name in PARTS:
        assert page.count(f"<!-- {name} -->\n") == page.count(f"<!-- end of {name} -->") == 1
    assert renewed(page) == page, "renew it: python -m hitherto.gateway.reference docs/gateway.md"


def test_a_part_that_is_out_of_step_is_made_anew() -> None:
    page = PAGE.read_text()
    assert renewed(page.replace("### session.get\n", "### session.got\n")) == page


def test_every_error_of_the_program_has_a_number_and_a_meaning_here() -> None:
    def tree(error: type[errors.HithertoError]) -> set[str]:
        return {error.code}.union(*map(tree, error.__subclasses__()))

    assert set(MEANINGS) == tree(errors.HithertoError) | set(OWN)
    assert not set(OWN) & set(CODES)
    for code in MEANINGS:
        assert -32768 <= number_of(code) <= -32000


async def test_the_document_has_every_method_with_parameters_and_a_result(sessions: Sessions) -> None:
    document = await Asker(sessions).ask("rpc.discover")
    assert document["openrpc"].startswith("1.")
    described = {method["name"]: method for method in document["methods"]}
    assert list(described) == list(METHODS)
    for name, method in described.items():
        fields = msgspec.structs.fields(METHODS[name].params)
        assert [(each["name"], each["required"]) for each in method["params"]] == [
            (field.name, field.required) for field in fields
        ]
        assert (method["x-scope"], method["x-ownership"]) == (METHODS[name].scope, METHODS[name].owns)
        assert method["summary"]
        assert method["paramStructure"] == "by-name"
        assert "schema" in method["result"]
    assert set(document["components"]["errors"]) == set(MEANINGS)


async def test_every_reference_in_the_document_leads_somewhere(sessions: Sessions) -> None:
    document = await Asker(sessions).ask("rpc.discover")

    def references(value: object) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            return own.union(*map(references, value.values()))
        return set().union(*map(references, value)) if isinstance(value, list) else set()

    known = document["components"]
    found = references(document)
    assert found
    assert found <= {f"#/components/{kind}/{name}" for kind, names in known.items() for name in names}


async def test_the_document_says_how_a_session_is_named_and_what_can_go_wrong(sessions: Sessions) -> None:
    document = await Asker(sessions).ask("rpc.discover")
    known = document["components"]["errors"]
    methods = {each["name"]: each for each in document["methods"]}
    for name, method in methods.items():
        codes = {each["$ref"].rpartition("/")[2] for each in method["errors"]}
        assert {"forbidden", "invalid_input"} <= codes <= set(known), name
        needed = METHODS[name].owns in (Owns.SESSION, Owns.SESSION_OR_NEW)
        assert method.get("x-one-of") == ([["session_key", "session_id"]] if needed else None), name
        assert ("idempotency_conflict" in codes) == METHODS[name].writes, name
