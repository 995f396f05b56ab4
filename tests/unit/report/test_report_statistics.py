"""Guards the statistics of a report: against published examples, and against tables so small that they break."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskfork.report.statistics.logistic import fit_logistic
from deskfork.report.statistics.paired import discordance, holm, mean_difference, signed_rank
from deskfork.report.statistics.rates import rate_of
from deskfork.report.statistics.repeats import pass_all, pass_at, passes

# Darwin's cross- and self-fertilised maize, eighths of an inch: Fisher 1935, The Design of Experiments, section 17.
MAIZE = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
# Hollander and Wolfe 1973, table 3.1: Hamilton depression scale before and after tranquilizer.
BEFORE = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
AFTER = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
# Wikipedia, Logistic regression: hours studied and whether the exam was passed.
HOURS = [0.50, 0.75, 1.00, 1.25, 1.50, 1.75, 1.75, 2.00, 2.25, 2.50,
         2.75, 3.00, 3.25, 3.50, 4.00, 4.25, 4.50, 4.75, 5.00, 5.50]  # fmt: skip
PASSED = [0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [  # Newcombe 1998, Statistics in Medicine 17, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_intervals_of_shares_are_wilsons(successes: int, trials: int, low: float, high: float) -> None:
    found = rate_of(successes, trials)
    assert found.rate == successes / trials
    assert found.low == pytest.approx(low, abs=5e-5)
    assert found.high == pytest.approx(high, abs=5e-5)


@pytest.mark.parametrize(("percent", "half_width"), [(85, 7.81), (95, 5.10), (0, 2.29)])
def test_half_widths_are_those_of_ide_benchs_first_table(percent: int, half_width: float) -> None:
    """IDE-Bench, table 1: 80 tasks."""
    found = rate_of(80 * percent // 100, 80)
    assert found.low is not None
    assert found.high is not None
    assert 50 * (found.high - found.low) == pytest.approx(half_width, abs=0.006)


@given(st.integers(0, 400), st.integers(0, 400))
def test_an_interval_holds_its_share_and_lies_in_the_unit(successes: int, others: int) -> None:
    found = rate_of(successes, successes + others)
    if successes + others == 0:
        assert (found.rate, found.low, found.high) == (None, None, None)
        return
    assert found.low is not None
    assert found.rate is not None
    assert found.high is not None
    assert 0 <= found.low <= found.rate <= found.high <= 1
    more = rate_of(successes + 1, successes + others + 1)
    assert more.low is not None
    assert more.high is not None
    assert (more.low, more.high) >= (found.low, found.high)


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_estimator_of_chen_and_others(table: tuple[int, int, int]) -> None:
    """Chen et al. 2021, figure 3: their numerically stable form."""
    n, c, k = table
    published = 1.0 if n - c < k else 1.0 - float(np.prod(1.0 - k / np.arange(n - c + 1, n + 1)))
    assert pass_at(n, c, k) == pytest.approx(published, abs=1e-9)
    assert pass_all(n, c, k) <= c / n + 1e-12 <= pass_at(n, c, k) + 1e-11


def test_passes_are_means_over_tasks_with_enough_trials() -> None:
    """tau-bench 2024: pass^k falls with k where pass@k grows."""
    one, two, three = passes([(3, 3), (3, 1), (2, 1)])
    assert (one.tasks, one.any_of, one.all_of) == (3, pytest.approx(11 / 18), pytest.approx(11 / 18))
    assert (two.tasks, two.any_of, two.all_of) == (3, pytest.approx((1 + 2 / 3 + 1) / 3), pytest.approx(1 / 3))
    assert (three.tasks, three.left_out, three.any_of, three.all_of) == (2, 1, 1.0, 0.5)


@given(st.lists(st.integers(0, 30).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), max_size=8))
def test_passes_are_monotone_and_never_fail(tasks: list[tuple[int, int]]) -> None:
    found = passes(tasks)
    assert bool(found) == any(trials > 1 for trials, _ in tasks)
    assert [each.k for each in found] == sorted({each.k for each in found})
    for each in found:
        assert 0 <= each.all_of <= each.any_of <= 1
        assert each.tasks + each.left_out == len(tasks)
    same = [each for each in found if each.left_out == 0]
    for earlier, later in itertools.pairwise(same):
        assert earlier.any_of <= later.any_of + 1e-12
        assert earlier.all_of >= later.all_of - 1e-12


def test_signed_ranks_of_darwins_maize() -> None:
    """The negative differences have ranks 10 and 14; exact p as in scipy's documentation, of the same plants."""
    found = signed_rank([float(difference) for difference in MAIZE])
    assert (found.tasks, found.nonzero, found.statistic) == (15, 15, 24.0)
    assert found.p == pytest.approx(0.041259765625)
    assert found.rank_biserial == pytest.approx((96 - 24) / 120)


def test_signed_ranks_of_hollander_and_wolfe() -> None:
    """R, `wilcox.test`, gives V = 40 and 0.01953 one-sided for their table 3.1."""
    found = signed_rank([before - after for before, after in zip(BEFORE, AFTER, strict=True)])
    assert found.statistic == 45 - 40
    assert found.p == pytest.approx(2 * 0.01953, abs=1e-4)


def test_tasks_without_a_difference_are_dropped_and_counted() -> None:
    found = signed_rank([0.0, 0.0, 1.0, 0.5, 0.1 + 0.2 - 0.3])
    assert (found.tasks, found.nonzero, found.rank_biserial) == (5, 2, 1.0)
    nothing = signed_rank([0.0, 0.0])
    assert (nothing.nonzero, nothing.statistic, nothing.p, nothing.rank_biserial) == (0, None, None, None)


@given(st.lists(st.sampled_from([-1.0, -0.5, -1 / 3, 0.0, 1 / 3, 0.5, 1.0]), max_size=60))
def test_signed_ranks_of_any_table(differences: list[float]) -> None:
    found = signed_rank(differences)
    turned = signed_rank([-difference for difference in differences])
    assert found.p == turned.p
    if found.p is not None:
        assert 0 <= found.p <= 1
        assert found.rank_biserial is not None
        assert -1 <= found.rank_biserial <= 1
        assert turned.rank_biserial == pytest.approx(-found.rank_biserial)


def test_mcnemar_is_exact() -> None:
    """Fay 2010, vignette of R's exact2x2: the table 21, 9, 2, 12 has p = 0.06543."""
    pairs = [(True, True)] * 21 + [(True, False)] * 9 + [(False, True)] * 2 + [(False, False)] * 12
    found = discordance(pairs)
    assert (found.trials, found.both, found.only_first, found.only_second, found.neither) == (44, 21, 9, 2, 12)
    assert found.p == pytest.approx(0.06543, abs=5e-6)


def test_h_is_cohens() -> None:
    """Cohen 1988, table 6.2.2: phi of .50 is 1.571, of .25 1.047."""
    pairs = [(True, True), (True, False), (False, False), (False, False)]
    assert discordance(pairs).cohens_h == pytest.approx(1.571 - 1.047, abs=1e-3)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=50))
def test_mcnemar_of_any_table(pairs: list[tuple[bool, bool]]) -> None:
    found = discordance(pairs)
    assert found.both + found.only_first + found.only_second + found.neither == len(pairs) == found.trials
    assert (found.p is None) == (not pairs)
    assert found.p is None or 0 <= found.p <= 1


def test_p_values_are_corrected_by_holm() -> None:
    """Wikipedia, Holm-Bonferroni method: 0.01, 0.04, 0.03 and 0.005."""
    assert holm([0.01, 0.04, None, 0.03, 0.005]) == [*map(pytest.approx, [0.03, 0.06]), None, *map(
        pytest.approx, [0.06, 0.02]
    )]  # fmt: skip
    assert holm([None]) == [None]
    assert holm([]) == []


def test_wordings_of_one_goal_are_no_two_tasks() -> None:
    once = {f"t{n}": value for n, value in enumerate([1.0, 0.0, 0.5, -0.5, 1.0, 0.0])}
    twice = {f"{task}{wording}": value for task, value in once.items() for wording in "av"}
    pairs = {f"{task}{wording}": task for task in once for wording in "av"}
    alone, clustered, independent = mean_difference(once, {}), mean_difference(twice, pairs), mean_difference(twice, {})
    assert (clustered.low, clustered.high, clustered.clusters) == (alone.low, alone.high, 6)
    assert independent.low is not None
    assert independent.high is not None
    assert clustered.low is not None
    assert clustered.high is not None
    assert independent.clusters == 12
    assert independent.high - independent.low < clustered.high - clustered.low


def test_the_bootstrap_comes_near_the_normal_interval() -> None:
    """Of 400 tasks the percentile interval of a mean is its normal one, within resampling."""
    values = {f"t{n}": float(value) for n, value in enumerate(np.random.default_rng(1).normal(0.2, 1.0, 400))}
    found = mean_difference(values, {})
    half = 1.96 * float(np.std(list(values.values()))) / math.sqrt(400)
    assert found.low == pytest.approx(found.difference - half, abs=0.012)
    assert found.high == pytest.approx(found.difference + half, abs=0.012)


@settings(max_examples=25)
@given(st.dictionaries(st.text("abc", max_size=2), st.sampled_from([-1.0, 0.0, 0.5]), min_size=1), st.booleans())
def test_mean_differences_of_any_table(differences: dict[str, float], is_clustered: bool) -> None:
    found = mean_difference(differences, {task: task[:1] for task in differences} if is_clustered else {})
    if found.clusters < 2:
        assert (found.low, found.high) == (None, None)
        return
    assert found.low is not None
    assert found.high is not None
    assert -1 <= found.low <= found.difference <= found.high <= 1
    assert found == mean_difference(differences, {task: task[:1] for task in differences} if is_clustered else {})


def test_the_fit_is_the_published_one() -> None:
    found = fit_logistic(HOURS, [bool(passed) for passed in PASSED])
    assert found.outcome == "fitted"
    assert found.intercept == pytest.approx(-4.0777, abs=1e-3)
    assert found.slope == pytest.approx(1.5046, abs=1e-3)
    assert found.p == pytest.approx(0.0167, abs=1e-4)


@pytest.mark.parametrize(
    ("ratios", "successes", "outcome"),
    [
        ([], [], "too few trials"),
        ([0.1, 0.2], [True, False], "too few trials"),
        ([0.1, 0.2, 0.3], [True, True, True], "same outcome"),
        ([0.2, 0.2, 0.2], [True, False, True], "same ratio"),
        ([0.1, 0.2, 0.3, 0.4], [False, False, True, True], "separated"),
        ([0.1, 0.2, 0.3, 0.4], [True, True, False, False], "separated"),
        ([0.1, 0.2, 0.2, 0.4], [True, True, False, False], "separated"),
        ([0.1, 0.2, 0.3, 0.4], [True, False, True, False], "fitted"),
    ],
)
def test_what_has_no_fit_says_why(ratios: list[float], successes: list[bool], outcome: str) -> None:
    found = fit_logistic(ratios, successes)
    assert found.outcome == outcome
    assert (found.slope is None) == (outcome != "fitted")
    assert found.trials == len(ratios)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.5, 0.51, 1.0]), st.booleans()), max_size=40))
def test_no_table_of_ratios_breaks_the_fit(table: list[tuple[float, bool]]) -> None:
    found = fit_logistic([ratio for ratio, _ in table], [is_success for _, is_success in table])
    assert (found.slope is not None) == (found.outcome == "fitted")
