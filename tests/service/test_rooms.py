"""The service as a whole: it is put together of parts, each of which has names of its own."""

from __future__ import annotations

from collections import defaultdict

from hitherto.service import Sessions


def test_no_two_parts_of_the_service_have_the_same_name_for_two_things() -> None:
    homes = defaultdict(set)
    for part in Sessions.__mro__[1:-1]:
        for name in vars(part):
            if not name.startswith("__"):
                homes[name].add(part.__name__)
    assert {name: parts for name, parts in homes.items() if len(parts) > 1} == {}
