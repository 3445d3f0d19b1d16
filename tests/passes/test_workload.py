"""Prompt sets as keys of results, generated prompts, and the agentic set."""

from pathlib import Path

import pytest

from ddconsole.core.boots import same_work
from ddconsole.core.errors import UsageError
from ddconsole.core.profile import Profile, SharedPrefix
from ddconsole.demo.decode import autoregressive
from ddconsole.demo.language import load_language
from ddconsole.passes import workload
from ddconsole.passes.prompts import CODING_SUITES, PROMPT_SETS, load_prompts
from ddconsole.passes.shared_prefix import shared_prefix_prompts
from ddconsole.passes.workload import prompts_key, prompts_of, shipped_key, suite_key, workload_of


def profile(**section: object) -> Profile:
    engine = {"command": ["x"], "model": "m"}
    return Profile.model_validate({"schema": "1", "host": "h", "engine": engine, "workload": section})


def test_a_shipped_set_is_its_name() -> None:
    """As results of older versions have it."""
    assert workload_of(profile(prompts="code", temperature="0.5", thinking="true")).to_json() == {
        "prompts": "code",
        "temperature": 0.5,
        "thinking": True,
    }


def test_an_edited_shipped_set_is_another_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results that name no hash are of the first content: they pair with it, and not with what was made of it."""
    first = workload_of(profile(prompts="code"))
    monkeypatch.setitem(workload.FIRST_CONTENT, "code", "0" * 12)
    monkeypatch.setitem(workload.FIRST_CONTENT, "small", "0" * 12)
    edited = workload_of(profile(prompts="code"))
    assert first.prompts == "code"
    assert edited.prompts.startswith("code#")
    assert same_work({"workload": first.to_json()}) != same_work({"workload": edited.to_json()})
    assert suite_key("small").startswith("small#")


@pytest.mark.parametrize("name", [*PROMPT_SETS, *CODING_SUITES])
def test_every_shipped_file_has_its_first_content_on_record(name: str) -> None:
    """A set that ships without one would be keyed by a hash that older results lack."""
    assert len(workload.FIRST_CONTENT[name]) == workload.DIGEST_DIGITS
    assert shipped_key(name).partition("#")[0] == name


def test_a_file_is_its_content(tmp_path: Path) -> None:
    """A changed line makes another workload; a copy of the same content under the same name does not."""
    file = tmp_path / "mine.jsonl"
    file.write_text('{"id": "a", "text": "one"}\n')
    first = workload_of(profile(prompts=str(file)))
    file.write_text('{"id": "a", "text": "another"}\n')
    second = workload_of(profile(prompts=str(file)))
    file.write_text('{"id": "a", "text": "one"}\n')
    assert first.prompts.startswith(f"{file}#")
    assert first != second
    assert workload_of(profile(prompts=str(file))) == first


def test_a_missing_file_is_told_by_who_loads_it(tmp_path: Path) -> None:
    """The key is only a name then."""
    section = profile(prompts=str(tmp_path / "no.jsonl")).workload
    assert prompts_key(section) == section.prompts
    with pytest.raises(UsageError, match="neither shipped nor a file"):
        prompts_of(section, 16)


def test_shared_prefixes() -> None:
    """Groups share exactly their prefix, differ from each other at the first words, and come in turns."""
    section = SharedPrefix(groups=3, questions=2, prefix_words=50, question_words=10, seed=7)
    prompts = shared_prefix_prompts(section, 99)
    assert [prompt.id for prompt in prompts] == [f"prefix-{g}-question-{q}" for q in (1, 2) for g in (1, 2, 3)]
    by_id = {prompt.id: prompt.text for prompt in prompts}
    for group in (1, 2, 3):
        first, second = by_id[f"prefix-{group}-question-1"], by_id[f"prefix-{group}-question-2"]
        prefix = first.partition("\n\nQuestion")[0]
        assert len(prefix.split()) == 50
        assert second.startswith(prefix + "\n\nQuestion 2.")
        assert first != second
    assert len({text[:20] for text in by_id.values()}) == 3
    assert {prompt.max_tokens for prompt in prompts} == {99}


def test_generated_prompts_are_seeded_and_keyed_by_what_made_them() -> None:
    """The same section says the same; another size or seed is another workload."""
    section = {"groups": "2", "questions": "3", "prefix_words": "20", "question_words": "5"}
    one = profile(prompts="shared-prefix", shared_prefix=section)
    other = profile(prompts="shared-prefix", shared_prefix=section | {"seed": "2"})
    assert workload_of(one).prompts == "shared-prefix(2×3, 20+5 words, seed 1)"
    assert prompts_of(one.workload, 9) == prompts_of(one.workload, 9)
    assert prompts_of(one.workload, 9) != prompts_of(other.workload, 9)
    assert workload_of(one) != workload_of(other)


def test_the_agentic_set_is_long_and_answered_by_the_demo() -> None:
    """Each is a transcript of tool calls with a question that the toy engine knows the answer to."""
    language = load_language()
    answers = {doc.prompt: doc.answer for doc in language.documents}
    for prompt in load_prompts("agentic", 512):
        assert len(prompt.text.split()) > 600
        assert prompt.text.count("[tool]") >= 4
        said = language.tokenizer.decode(autoregressive(language.recall(prompt.text), max_new_tokens=1000))
        (question,) = (known for known in answers if known and prompt.text.rstrip().endswith(known))
        assert said == answers[question]
