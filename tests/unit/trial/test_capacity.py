"""Guards how many trials run at the same time: never more than memory holds, and what is refused says why."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.core.errors import ConfigError
from deskfork.trial.capacity import Capacity, choose_slots, measure_capacity, sandbox_mib


@pytest.mark.parametrize(
    ("parallel", "capacity", "count", "warns"),
    [
        ("auto", Capacity(cores=2, free_mib=20_000), 2, False),
        ("auto", Capacity(cores=16, free_mib=6_000), 2, False),
        ("auto", Capacity(cores=500, free_mib=10**9), 64, False),
        (1, Capacity(cores=1, free_mib=3_000), 1, False),
        (4, Capacity(cores=2, free_mib=12_000), 4, True),
    ],
)
def test_what_fits_is_taken(parallel: int, capacity: Capacity, count: int, warns: bool) -> None:
    slots = choose_slots(parallel, 3_000, capacity)
    assert (slots.count, bool(slots.warning)) == (count, warns)


@pytest.mark.parametrize("parallel", [5, "auto"])
def test_what_does_not_fit_is_refused_with_the_figures(parallel: int) -> None:
    with pytest.raises(ConfigError) as raised:
        choose_slots(parallel, 3_000, Capacity(cores=8, free_mib=2_900))
    assert all(figure in str(raised.value) for figure in ("3000 MiB", "2900 MiB"))


def test_the_largest_number_that_fits_is_told() -> None:
    with pytest.raises(ConfigError, match="at most 3 fit"):
        choose_slots(4, 1_000, Capacity(cores=8, free_mib=3_999))


@given(
    st.one_of(st.just("auto"), st.integers(1, 64)), st.integers(1, 10_000), st.integers(1, 256), st.integers(1, 10**6)
)
def test_memory_is_never_promised_twice(parallel: int, need: int, cores: int, free: int) -> None:
    try:
        slots = choose_slots(parallel, need, Capacity(cores, free))
    except ConfigError:
        return
    assert slots.count * need <= free
    assert parallel == "auto" or slots.count == parallel


def test_this_machine_is_measured() -> None:
    capacity = measure_capacity()
    assert capacity.cores >= 1
    assert capacity.free_mib > 0


def test_an_emulated_machine_needs_room_for_translated_code() -> None:
    assert sandbox_mib("qemu", "tcg") > sandbox_mib("docker", "kvm") > sandbox_mib("fake")
