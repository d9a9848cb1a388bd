from __future__ import annotations

from itertools import permutations, product

import numba
import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats as reference

from seatrial.errors import MissingExtra, UsageError
from seatrial.stats import (
    RandomisationTest,
    cluster_permutation,
    hypergeometric_draws,
    null_variance,
    row_permutation,
    table_draws,
)

ENGINES = ("numba", "numpy")
LEVELS = np.array([0.0, 0.3, 1.0])


def sessions(seed: int = 1, n: int = 400, strata: int = 3, arms: int = 3, users: int = 60) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "s": rng.integers(0, strata, n),
        "k": rng.integers(0, arms, n),
        "level": rng.integers(0, 3, n),
        "g": rng.integers(0, users, n),
    }


def by_definition(
    s: np.ndarray, k: np.ndarray, y: np.ndarray, g: np.ndarray, q: np.ndarray, mix: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """METHODS 3.3 and 3.4, literally: post-stratified effects and CR1 variances from psi, row by row."""
    strata, arms, n = s.max() + 1, q.size, s.size
    w, c = np.bincount(s) / n, np.eye(arms) - q
    size = np.array([[((s == a) & (k == m)).sum() for m in range(arms)] for a in range(strata)])
    mean = np.array([[y[(s == a) & (k == m)].mean() for m in range(arms)] for a in range(strata)])
    by_stratum = mean @ c.T
    tau = w @ by_stratum
    psi = np.zeros((g.max() + 1, arms))
    for i in range(n):
        psi[g[i]] += w[s[i]] * c[:, k[i]] * (y[i] - mean[s[i], k[i]]) / size[s[i], k[i]]
        psi[g[i]] += mix * (by_stratum[s[i]] - tau) / n
    groups = np.unique(g).size
    return tau, groups / (groups - 1) * (psi**2).sum(axis=0)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("q", [[1 / 3] * 3, [0.6, 0.3, 0.1]])
def test_observed_effects_and_errors_by_definition(frozen: bool, q: list[float]) -> None:
    d = sessions()
    y = LEVELS[d["level"]]
    rows = np.arange(y.size)
    clustered = row_permutation(d["s"], d["k"], y, d["g"], baseline=q, draws=999, frozen_mix=frozen)
    single = row_permutation(d["s"], d["k"], y, baseline=q, draws=999, frozen_mix=frozen)
    table = hypergeometric_draws(d["s"], d["k"], d["level"], LEVELS, baseline=q, draws=999, frozen_mix=frozen)
    for result, group in ((clustered, d["g"]), (single, rows), (table, rows)):
        tau, variance = by_definition(d["s"], d["k"], y, group, np.array(q), not frozen)
        assert result.observed == pytest.approx(tau, abs=1e-12)
        assert result.observed_se**2 == pytest.approx(variance, rel=1e-10)
        assert result.observed_t == pytest.approx(tau / np.sqrt(variance), rel=1e-9)


def test_frozen_mix_error_is_that_of_an_interacted_regression() -> None:
    d = sessions()
    y, q = LEVELS[d["level"]], np.full(3, 1 / 3)
    cell = np.eye(9)[d["s"] * 3 + d["k"]]
    fit = sm.OLS(y, cell).fit(cov_type="cluster", cov_kwds={"groups": d["g"], "use_correction": False})
    w = np.bincount(d["s"]) / y.size
    contrast = np.array([(w[:, None] * (np.eye(3)[m] - q)).ravel() for m in range(3)])
    users = np.unique(d["g"]).size
    result = row_permutation(d["s"], d["k"], y, d["g"], baseline=q, draws=999, frozen_mix=True)
    assert result.observed == pytest.approx(contrast @ fit.params, abs=1e-12)
    variance = np.diag(contrast @ fit.cov_params() @ contrast.T) * users / (users - 1)
    assert result.observed_se == pytest.approx(np.sqrt(variance), rel=1e-9)


def relabellings(k: np.ndarray, block: np.ndarray) -> list[np.ndarray]:
    parts = [sorted(set(permutations(k[block == b].tolist()))) for b in range(block.max() + 1)]
    out = []
    for choice in product(*parts):
        labels = np.empty_like(k)
        for b, part in enumerate(choice):
            labels[block == b] = part
        out.append(labels)
    return out


def test_enumeration_by_brute_force() -> None:
    s = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
    k = np.array([0, 0, 1, 1, 0, 1, 2, 2, 0])
    y = np.array([0.0, 1.0, 1.0, 0.0, 0.2, 0.9, 0.4, 1.0, 0.0])
    k[s == 0] = [0, 1, 2, 0]
    g = np.array([0, 1, 2, 3, 0, 1, 2, 4, 4])
    q = np.full(3, 1 / 3)
    result = row_permutation(s, k, y, g, baseline=q)
    every = [by_definition(s, labels, y, g, q) for labels in relabellings(k, s)]
    assert result.exact
    assert result.draws == len(every) == 12 * 30
    t = np.array([tau / np.sqrt(v) for tau, v in every])
    assert np.sort(result.effects, axis=0) == pytest.approx(np.sort(np.array([e[0] for e in every]), axis=0), abs=1e-12)
    expect = (np.abs(t) >= np.abs(result.observed_t) - 1e-9).mean(axis=0)
    assert result.p_values == pytest.approx(expect, abs=1e-12)
    assert result.null_mean == pytest.approx(np.zeros(3), abs=1e-12)


def test_tables_and_rows_enumerate_alike() -> None:
    s, k = np.array([0] * 5 + [1] * 4), np.array([0, 1, 0, 1, 1, 0, 0, 1, 1])
    level = np.array([0, 1, 2, 1, 2, 0, 2, 1, 1])
    a = hypergeometric_draws(s, k, level, LEVELS, baseline=[0.5, 0.5])
    b = row_permutation(s, k, LEVELS[level], baseline=[0.5, 0.5])
    assert a.exact
    assert a.draws == b.draws == 60
    assert a.p_values == pytest.approx(b.p_values, abs=1e-12)


def test_cluster_enumeration_by_brute_force() -> None:
    """Stratum 1 lives in two clusters only, so in some draws it lacks an arm and is left out of them."""
    g = np.repeat(np.arange(6), [3, 1, 4, 2, 3, 2])
    arm, half = np.array([0, 1, 0, 1, 0, 1]), np.array([0, 0, 0, 0, 1, 1])
    s = np.array([0, 1, 0, 1] + [0] * 11)
    y = np.round(np.random.default_rng(0).random(15), 2)
    q = np.array([0.5, 0.5])
    result = cluster_permutation(s, arm[g], y, g, baseline=q, assignment_strata=half[g])
    effects, lacking = [], 0
    for labels in relabellings(arm, half):
        whole = len(set(labels[g][s == 1].tolist())) == 2
        kept = np.ones(s.size, bool) if whole else s == 0
        effects.append(by_definition(s[kept], labels[g][kept], y[kept], g[kept], q)[0])
        lacking += not whole
    assert result.draws == len(effects) == 12
    assert 0 < result.incomplete == lacking < 12
    assert np.sort(result.effects, axis=0) == pytest.approx(np.sort(np.array(effects), axis=0), abs=1e-12)
    _, variance = by_definition(s, arm[g], y, g, q)
    assert result.observed_se**2 == pytest.approx(variance, rel=1e-10)


@pytest.mark.parametrize("draws", [6000, pytest.param(20_000, marks=pytest.mark.full)])
@pytest.mark.parametrize("levels", [2, 3])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("good", "bad", "sample"),
    [(7, 30, 20), (40, 60, 5), (60, 40, 30), (300, 5, 200), (250, 750, 400), (750, 250, 700), (90, 80, 160)],
)
def test_drawn_counts_are_hypergeometric(
    levels: int, engine: str, good: int, bad: int, sample: int, draws: int
) -> None:
    """One stratum, two arms, binary outcome: the effect reveals how many of arm 0's sessions succeeded.

    A third level that nobody has sends the same numbers through the kernel for many levels.
    """
    successes = sample
    table = np.array([[[good - min(good, successes), min(good, successes)], [0, 0]]])
    rest = successes - table[0, 0, 1]
    table[0, 1] = [bad - rest, rest]
    table = np.concatenate([table, np.zeros((1, 2, levels - 2), int)], axis=2)
    values = np.arange(levels)
    r = table_draws(table, values, baseline=[0.5, 0.5], draws=draws, seed=11, engine=engine)  # type: ignore[arg-type]
    # tau_0 = (h/good - (sample - h)/bad)/2, solved for h.
    hits = np.rint((2 * r.effects[:, 0] + sample / bad) / (1 / good + 1 / bad)).astype(int)
    law = reference.hypergeom(good + bad, good, sample)
    support = np.arange(max(0, sample - bad), min(good, sample) + 1)
    assert hits.min() >= support[0]
    assert hits.max() <= support[-1]
    expect, seen = law.pmf(support) * draws, np.bincount(hits - support[0], minlength=support.size)
    order = np.argsort(expect)
    pooled = np.cumsum(expect[order]) < 10
    e = np.append(expect[order][~pooled], expect[order][pooled].sum() + 1e-9)
    o = np.append(seen[order][~pooled], seen[order][pooled].sum())
    assert reference.chi2.sf(((o - e) ** 2 / np.maximum(e, 1)).sum(), (~pooled).sum()) > 1e-4


def every_way(d: dict[str, np.ndarray], engine: str, draws: int) -> dict[str, RandomisationTest]:
    y, q = LEVELS[d["level"]], [0.5, 0.3, 0.2]
    common = {"baseline": q, "draws": draws, "engine": engine, "seed": 5}
    arm = np.random.default_rng(0).integers(0, 3, 60)
    return {
        "table": hypergeometric_draws(d["s"], d["k"], d["level"], LEVELS, **common),  # type: ignore[arg-type]
        "rows": row_permutation(d["s"], d["k"], y, **common),  # type: ignore[arg-type]
        "clustered rows": row_permutation(d["s"], d["k"], y, d["g"], **common),  # type: ignore[arg-type]
        "clusters": cluster_permutation(
            d["s"], arm[d["g"]], y, d["g"], assignment_strata=d["g"] % 2, **common  # type: ignore[arg-type]
        ),
    }  # fmt: skip


@pytest.mark.parametrize("draws", [2500, pytest.param(12_000, marks=pytest.mark.full)])
def test_engines_draw_from_one_distribution(draws: int) -> None:
    """Two laws that differ by .063 somewhere (.029 with --full) are told apart; the draws are the same in every run."""
    d = sessions()
    compiled, plain = (every_way(d, engine, draws) for engine in ENGINES)
    for name, a in compiled.items():
        b = plain[name]
        assert (a.engine, b.engine) == ENGINES
        assert a.observed == pytest.approx(b.observed, abs=1e-15)
        assert a.p_values == pytest.approx(b.p_values, abs=0.03 if draws > 5000 else 0.045)  # 3 errors at p = 1/2
        for m in range(3):
            assert reference.ks_2samp(a.effects[:, m], b.effects[:, m]).pvalue > 1e-4, name
            assert reference.ks_2samp(a.t[:, m], b.t[:, m]).pvalue > 1e-4, name


@pytest.mark.parametrize("engine", ENGINES)
def test_three_ways_to_draw_sessions_have_the_closed_form_variance(engine: str) -> None:
    d = sessions()
    closed = null_variance(d["s"], d["k"], LEVELS[d["level"]], baseline=[0.5, 0.3, 0.2])
    for name, result in every_way(d, engine, 8000).items():
        if name != "clusters":
            assert result.effects.var(axis=0) == pytest.approx(closed, rel=0.08), name
            assert np.abs(result.null_mean) == pytest.approx(np.zeros(3), abs=4 * np.sqrt(closed.max() / 8000))


@pytest.mark.parametrize("frozen", [False, True])
def test_clusters_of_one_session_give_the_same_t_by_either_route(frozen: bool) -> None:
    """The closed form over cells and the sum over clusters are one statistic: same labels drawn, same answer."""
    d = sessions()
    y = LEVELS[d["level"]]
    for engine in ENGINES:
        kwargs = {"baseline": [1 / 3] * 3, "draws": 999, "engine": engine, "frozen_mix": frozen}
        a = row_permutation(d["s"], d["k"], y, **kwargs)  # type: ignore[arg-type]
        b = row_permutation(d["s"], d["k"], y, np.arange(y.size), **kwargs)  # type: ignore[arg-type]
        assert a.t == pytest.approx(b.t, abs=1e-9)


def test_laws_too_wide_to_tabulate_are_drawn_all_the_same() -> None:
    table = np.array([[[210_000, 90_000], [150_000, 150_000], [200_000, 200_000]]])
    a, b = (table_draws(table, [0, 1], baseline=[1 / 3] * 3, draws=4000, engine=e) for e in ENGINES)  # type: ignore[arg-type]
    for m in range(3):
        assert reference.ks_2samp(a.effects[:, m], b.effects[:, m]).pvalue > 1e-4
    assert a.effects.std(axis=0) == pytest.approx(b.effects.std(axis=0), rel=0.06)


def test_blocks_of_draws_do_not_change_a_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    table = rng.integers(3, 400, (6, 4, 2))
    found = []
    for processors in (1, 2, 7):
        monkeypatch.setattr("os.cpu_count", lambda n=processors: n)
        found.append(table_draws(table, [0, 1], baseline=[0.25] * 4, draws=4001, engine="numba"))
    for other in found[1:]:
        assert np.array_equal(found[0].effects, other.effects)
        assert np.array_equal(found[0].t, other.t)


def test_threads_and_number_of_draws_do_not_change_a_draw() -> None:
    d = sessions()
    most = numba.get_num_threads()
    long = every_way(d, "numba", 2000)
    try:
        numba.set_num_threads(1)
        short = every_way(d, "numba", 1000)
    finally:
        numba.set_num_threads(most)
    for name, result in long.items():
        assert np.array_equal(result.effects[:1000], short[name].effects), name
        assert np.array_equal(result.t[:1000], short[name].t), name


@pytest.mark.parametrize("engine", ENGINES)
def test_one_seed_one_answer(engine: str) -> None:
    d = sessions()
    once, again = every_way(d, engine, 999), every_way(d, engine, 999)
    for name, result in once.items():
        assert result.effects.tobytes() == again[name].effects.tobytes()
        assert result.p_values.tobytes() == again[name].p_values.tobytes()


def test_a_real_effect_is_found_and_monte_carlo_p_counts_the_identity() -> None:
    d = sessions(n=600)
    y = LEVELS[d["level"]] + 0.5 * (d["k"] == 2)
    r = row_permutation(d["s"], d["k"], y, d["g"], baseline=[1 / 3] * 3, draws=999)
    assert r.p_values[2] == r.p_any == 1 / 1000
    expect = (1 + (np.abs(r.t) >= np.abs(r.observed_t)).sum(axis=0)) / 1000
    assert r.p_values == pytest.approx(expect, abs=1e-12)


def test_stratum_of_weight_zero_is_as_if_absent() -> None:
    d = sessions()
    y, keep = LEVELS[d["level"]], d["s"] < 2
    share = np.bincount(d["s"][keep]) / keep.sum()
    a = row_permutation(
        d["s"], d["k"], y, d["g"], baseline=[1 / 3] * 3, weights=np.append(share, 0.0), draws=999, engine="numpy"
    )
    b = row_permutation(
        d["s"][keep], d["k"][keep], y[keep], d["g"][keep], baseline=[1 / 3] * 3, draws=999, engine="numpy"
    )
    assert a.observed_se == pytest.approx(b.observed_se, rel=1e-12)
    assert np.array_equal(a.effects, b.effects)


def test_blocks_are_never_crossed() -> None:
    """With blocks that fix every label, only one assignment exists."""
    s, k, y = np.zeros(6, int), np.array([0, 0, 0, 1, 1, 1]), np.arange(6.0)
    r = row_permutation(s, k, y, baseline=[0.5, 0.5], blocks=["a", "a", "a", "b", "b", "b"])
    assert (r.exact, r.draws, r.p_values.tolist()) == (True, 1, [1.0, 1.0])


def test_outcomes_without_variation_prove_nothing() -> None:
    r = row_permutation(np.zeros(40, int), np.arange(40) % 2, np.ones(40), baseline=[0.5, 0.5], draws=999)
    assert r.p_values.tolist() == [1.0, 1.0]
    assert np.isfinite(r.t).all()


def test_fewer_than_999_draws_are_refused() -> None:
    d = sessions()
    y = LEVELS[d["level"]]
    for call in (
        lambda: row_permutation(d["s"], d["k"], y, d["g"], baseline=[1 / 3] * 3, draws=998),
        lambda: hypergeometric_draws(d["s"], d["k"], d["level"], LEVELS, baseline=[1 / 3] * 3, draws=500),
    ):
        with pytest.raises(UsageError, match="999"):
            call()


def test_what_cannot_be_tested_is_refused_by_name() -> None:
    s, k, y = np.zeros(8, int), np.arange(8) % 2, np.arange(8.0)
    with pytest.raises(UsageError, match="sum to 1"):
        row_permutation(s, k, y, baseline=[0.5, 0.6])
    with pytest.raises(UsageError, match="no session of some arm"):
        row_permutation(s, k, y, baseline=[0.3, 0.3, 0.4])
    with pytest.raises(UsageError, match="two arms"):
        cluster_permutation(s, k, y, np.zeros(8), baseline=[0.5, 0.5])
    with pytest.raises(UsageError, match="at least two"):
        row_permutation(s, k, y, np.zeros(8), baseline=[0.5, 0.5])
    with pytest.raises(UsageError, match="integer codes"):
        row_permutation(["a"] * 8, k, y, baseline=[0.5, 0.5])
    with pytest.raises(UsageError, match="different length"):
        row_permutation(s, k, y[:5], baseline=[0.5, 0.5])
    with pytest.raises(UsageError, match="counts of shape"):
        table_draws([[1, 2], [3, 4]], [0, 1], baseline=[0.5, 0.5])
    with pytest.raises(UsageError, match="weights"):
        row_permutation(s, k, y, baseline=[0.5, 0.5], weights=[0.5, 0.5])


def test_without_numba_the_answer_comes_from_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    d = sessions(n=2000)
    auto = hypergeometric_draws(d["s"], d["k"], d["level"], LEVELS, baseline=[1 / 3] * 3, draws=999)
    assert auto.engine == "numpy"
    with pytest.raises(MissingExtra, match=r"\[fast\]"):
        hypergeometric_draws(d["s"], d["k"], d["level"], LEVELS, baseline=[1 / 3] * 3, engine="numba")
