"""Ways to break the code on purpose, each with the test that must notice."""

from __future__ import annotations

from tests.mutants import in_programs, in_server, in_service, in_stores
from tests.mutants.definitions import DOORS, Change, Mutant
from tests.mutants.runner import NOTICED, apply_changes, copy_sources, verdicts
from tests.support.paths import ROOT

MUTANTS = (*in_stores.MUTANTS, *in_service.MUTANTS, *in_server.MUTANTS, *in_programs.MUTANTS)

__all__ = [
    "DOORS",
    "MUTANTS",
    "NOTICED",
    "ROOT",
    "Change",
    "Mutant",
    "apply_changes",
    "copy_sources",
    "verdicts",
]
