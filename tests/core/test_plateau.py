"""Who is fastest, or that nobody is."""

from fakes.results import measured

from ddconsole.core.boots import is_ranked
from ddconsole.core.plateau import Candidates, confirm_candidates, standings


def ids(chosen: Candidates) -> tuple[list[str], str | None]:
    return [item["id"] for item in chosen.best], None if chosen.control is None else chosen.control["id"]


WOBBLE = (0.02, -0.02, 0.01, -0.01, 0.015, -0.015)
OTHER = (-0.02, 0.02, -0.015, 0.015, -0.01, 0.01)


def test_neighbours_within_their_noise_are_a_plateau() -> None:
    """141 and 140 tok/s with 2 % of noise have no winner; 100 is told apart."""
    rows = [
        measured("E1", 140, budget=12, noise=WOBBLE),
        measured("E2", 141, budget=16, noise=OTHER),
        measured("E3", 100, budget=32, noise=WOBBLE),
    ]
    (standing,) = standings(rows)
    assert [item["id"] for item in standing.order] == ["E2", "E1", "E3"]
    assert [item["id"] for item in standing.plateau] == ["E2", "E1"]
    assert standing.text.startswith(
        "plateau, no winner: E2, E1 are not distinguishable (best measured E2, tree b 8 B 16"
    )
    assert "1 boot)" in standing.text
    found = standing.to_json()
    assert (found["best"], found["plateau"]) == ("E2", ["E2", "E1"])
    assert [(one["id"], one["of"], one["word"]) for one in found["behind"]] == [
        ("E1", "E2", "not distinguishable"), ("E3", "E2", "slower"),
    ]  # fmt: skip


def test_a_fastest_that_is_told_from_all_stands_alone() -> None:
    """And the nearest behind it is named with its interval."""
    (standing,) = standings([measured("E1", 140), measured("E2", 100, budget=16), measured("E3", 120, budget=8)])
    assert len(standing.plateau) == 1
    assert standing.text.startswith("fastest: E1 (tree b 8 B 12 K 6 W 2048)")
    assert standing.text.endswith("E3 is 14.3 % ± 0.0 behind")


def test_each_kind_of_work_has_its_own_standing() -> None:
    """Other suites, workloads and hosts are not ranked together; failed results not at all."""
    rows = [
        measured("E1", 140),
        measured("E2", 130, suite="confirm"),
        measured("E3", 120, workload={"prompts": "long"}),
        measured("E4", 110, measured_on="other"),
        measured("E5", 200, outcome="wrong"),
        measured("E6", 200, tok_s_e2e=None),
    ]
    assert [standing.best["id"] for standing in standings(rows)] == ["E1", "E2", "E3", "E4"]
    assert [is_ranked(item) for item in rows[-2:]] == [False, False]


def test_a_config_stands_once_by_its_newest_result() -> None:
    """Its older boots are in its comparison, not beside it."""
    rows = [measured("E1", 140), measured("E2", 138, hour=1), measured("E3", 100, budget=16)]
    (standing,) = standings(rows)
    assert [item["id"] for item in standing.order] == ["E2", "E3"]
    assert standing.against_best[0].boots == (1, 2)


def test_the_best_three_and_their_control_are_to_be_confirmed() -> None:
    """In the quick suite; those that the longer suite has measured are left out."""
    rows = [measured(f"E{n}", 100 + n, budget=8 + n) for n in range(5)] + [measured("E9", 90, budget=None)]
    (standing,) = standings(rows)
    assert ids(confirm_candidates(standing, rows, 8)) == (["E4", "E3", "E2"], "E9")
    done = [*rows, measured("E20", 104, budget=12, suite="confirm"), measured("E21", 90, budget=None, suite="confirm")]
    quick, confirm = standings(done)
    assert ids(confirm_candidates(quick, done, 8)) == (["E3", "E2"], None)
    assert confirm_candidates(confirm, done, 8) == Candidates()
