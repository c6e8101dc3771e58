"""The processor time of importing gamelens, beside that of Python alone, and of `gamelens --help`."""

from __future__ import annotations

import resource

from support.fresh_python import run_python

IMPORT_S = 0.15
HELP_S = 0.2


def seconds(*arguments: str) -> float:
    """Return the least processor seconds that Python takes with *arguments*, of nine runs. The first one compiles."""

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def once() -> float:
        before = used()
        run_python(*arguments)
        return used() - before

    return min(once() for _ in range(9))


def test_importing_gamelens_and_its_help_are_quick() -> None:
    """`import gamelens` takes at most 0.15 s more than Python alone, `gamelens --help` at most 0.2 s in all."""
    bare, imported, helped = (
        seconds("-c", "pass"),
        seconds("-c", "import gamelens"),
        seconds("-m", "gamelens", "--help"),
    )
    print(f"\nPython alone {bare:.3f} s, import gamelens {imported:.3f} s, gamelens --help {helped:.3f} s")
    assert imported - bare <= IMPORT_S
    assert helped <= HELP_S
