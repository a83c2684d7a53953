"""Addresses of lists: what they select, and the addresses beside them."""

from __future__ import annotations

from hitherto.gateway.page.list_query import parse_query


def test_the_order_of_a_search_is_in_the_address() -> None:
    newest, best = parse_query(b"q=how+often&tag=x"), parse_query(b"q=how+often&tag=x&order=best")
    assert (newest.order, newest.search) == ("newest", "how often*")
    assert (best.order, best.search) == ("best", "how often")
    assert newest.address_with(best=True) == best.address()
    assert best.address_with(best=False) == newest.address()
    assert ("order", "best") in best.filter_fields
    assert not parse_query(b"q=how+often&order=best").is_faceted
