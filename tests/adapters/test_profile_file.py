"""Profiles as files: what is typed is what is meant, and what cannot be meant is one message that helps to mend it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from ddconsole.adapters import yaml_bytes, yaml_text
from ddconsole.adapters.paths import shipped_profiles
from ddconsole.adapters.profile_file import load_file, load_profile, parse
from ddconsole.core.config import TopkRule
from ddconsole.core.errors import ProfileError
from ddconsole.core.experiment import Workload
from ddconsole.core.profile.schema import profile_schema
from ddconsole.core.queue import Change, Queue, apply
from ddconsole.core.recipe import measuring_recipe
from ddconsole.core.spec import SpecContext, SpecRefusal
from ddconsole.core.spec import parse as parse_spec
from ddconsole.passes.plan import objectives

if TYPE_CHECKING:
    from pathlib import Path

SMALL = """\
schema: 1
host: box
engine:
  command: [serve]
  port: 30000
  model: some/model
  drafter: some/drafter
  args: {}
launcher: {kind: process}
knobs:
  block_size: {flag: --block, default: 8, min: 2, max: 32}
  window: {flag: --window, default: 2048}
workload: {temperature: 0}
passes:
  quick:
    throughput: {concurrency: [1, 4]}
stalls: {graphs: 900}
"""


def refused(text: str | bytes) -> str:
    """The one message with which a profile is refused."""
    raw = text.encode() if isinstance(text, str) else text
    with pytest.raises(ProfileError) as told:
        parse(raw, "x.yaml")
    assert told.value.exit_code == 2
    assert "\n" not in told.value.what
    return told.value.what


def changed(old: str, new: str) -> str:
    """The small profile with one thing changed."""
    assert SMALL.count(old) == 1, old
    return SMALL.replace(old, new)


# --- what is typed is what is meant


@pytest.mark.parametrize("name", ["demo", "ct200"])
def test_the_shipped_profiles_are_valid(name: str) -> None:
    """And known by their file's name and the digest of its bytes."""
    path = shipped_profiles() / f"{name}.yaml"
    loaded = load_file(path)
    assert loaded.name == name
    assert loaded.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert loaded.profile.queue


def test_a_profile_is_loaded_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of the user's own folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DDCONSOLE_HOME", str(tmp_path))
    folder = tmp_path / "config" / "profiles"
    folder.mkdir(parents=True)
    (folder / "mine.yml").write_text(SMALL, encoding="utf-8")
    assert load_profile("mine").profile.host == "box"


def test_ct200_knows_how_its_fork_spells_the_knobs() -> None:
    """topk is derived by the engine and only capped."""
    knobs = load_profile("ct200").profile.knobs
    assert (knobs.topk.cap_env, knobs.topk.rule) == ("SGLANG_DDTREE_MAX_TOPK", TopkRule.PR29907)
    assert (knobs.algorithm.off, knobs.algorithm.tree) == (None, "DDTREE")


@pytest.mark.parametrize("typed", ["no", "on", "012", "1.10", "1e3", "12:30", "2026-01-02", "0x1F", "1_000", "0o12"])
def test_text_stays_as_it_was_typed(typed: str) -> None:
    """YAML's own ideas about booleans, octals, dates and versions are not asked."""
    assert parse(changed("model: some/model", f"model: {typed}").encode(), "x").engine.model == typed
    assert parse(changed("args: {}", f"args: {{a: {typed}}}").encode(), "x").engine.args == {"a": typed}


@pytest.mark.parametrize(("typed", "meant"), [("012", 12), ("1e3", 1000), ("'8'", 8), ("16.0", 16), ("+9", 9)])
def test_whole_numbers_are_decimal_however_they_are_typed(typed: str, meant: int) -> None:
    """`012` is twelve, and quotes do not matter."""
    assert parse(changed("port: 30000", f"port: {typed}").encode(), "x").engine.port == meant


@pytest.mark.parametrize(("typed", "meant"), [("1e-1", 0.1), ("1", 1.0), (".5", 0.5)])
def test_numbers_are_read_as_numbers(typed: str, meant: float) -> None:
    """`1e-1` too, which YAML takes for text."""
    assert parse(changed("temperature: 0", f"temperature: {typed}").encode(), "x").workload.temperature == meant


@pytest.mark.parametrize("typed", ["~", "null", "Null", "NULL", ""])
def test_nothing_is_none_unless_it_is_quoted(typed: str) -> None:
    """A bare flag has no value; the word "null" in quotes is a word."""
    args = parse(changed("args: {}", f"args: {{a: {typed}, b: '{typed}'}}").encode(), "x").engine.args
    assert args == {"a": None, "b": typed}


def test_a_pass_that_is_named_without_a_value_has_its_defaults() -> None:
    """It is not silently dropped."""
    suite = parse(changed("    throughput: {concurrency: [1, 4]}", "    quality:").encode(), "x").passes.quick
    assert suite.names() == ("quality",)


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm() -> None:
    """Some editors write them."""
    raw = b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode()
    assert parse(raw, "x") == parse(SMALL.encode(), "x")


def test_merge_keys_fill_in_what_is_not_written_out() -> None:
    """A key of one's own wins, then the first source; errors point at the line where the value stands."""
    raw = b"base: &b {x: 1, y: {z: 2}}\none:\n  <<: *b\n  x: 3\ntwo:\n  x: 4\n  <<: [*b, {w: 012, y: 9}]\n"
    document = yaml_text.read(raw, "x")
    assert document.data["one"] == {"x": "3", "y": {"z": "2"}}
    assert document.data["two"] == {"x": "4", "y": {"z": "2"}, "w": "012"}
    assert document.place(("one", "x")) == (4, 3)
    assert document.place(("one", "y", "z")) == (1, 21)
    assert document.place(("two", "w")) == (7, 13)


# --- what the schema refuses: file, line, column, key, what was expected, what was read


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("port: 30000", "prot: 1", "x.yaml:5:3: engine.prot: unknown key; did you mean port?"),
        ("stalls:", "Stalls:", "x.yaml:17:1: Stalls: unknown key; did you mean stalls?"),
        ("{graphs: 900}", "{grphs: 900}", "x.yaml:17:10: stalls.grphs: unknown phase; known: launch"),
        ("quick:", "quik:", "x.yaml:15:3: passes.quik: unknown key; did you mean quick?"),
        ("kind: process", "kind: docker", "x.yaml:9:12: launcher.kind: expected 'process' or 'systemd'; read 'docker'"),
        ("port: 30000", "port: 22:22", "x.yaml:5:3: engine.port: expected a whole number or 'auto'; read '22:22'"),
        ("port: 30000", "port: 70000", "x.yaml:5:3: engine.port: expected at most 65535 or 'auto'; read '70000'"),
        ("port: 30000", "port: [1]", "x.yaml:5:3: engine.port: expected a whole number or 'auto'; read a list"),
        ("[1, 4]", "[1, x]", "passes.quick.throughput.concurrency[1]: expected a whole number; read 'x'"),
        ("[1, 4]", "[1, 0]", "passes.quick.throughput.concurrency[1]: expected at least 1; read '0'"),
        ("[1, 4]", "[]", "concurrency: expected a level here or under rate"),
        ("command: [serve]", "command: serve", "command: expected a list, such as [first, second]; read 'serve'"),
        ("temperature: 0", "temperature: .inf", "workload.temperature: expected a number; read '.inf'"),
        ("temperature: 0", "temperature: nan", "workload.temperature: expected a finite number; read 'nan'"),
        ("temperature: 0", "thinking: maybe", "workload.thinking: expected true or false; read 'maybe'"),
        ("schema: 1", "schema: 2", "x.yaml:1:1: schema: expected 1; read '2'"),
        ("host: box", "host:", "x.yaml:2:1: host: expected text; read nothing"),
        ("host: box\n", "", "x.yaml:1:1: host: a needed key is missing (an ssh alias, local, or demo)"),
        ("  model: some/model\n", "", "x.yaml:3:1: engine.model: a needed key is missing (target model: path or name)"),
        ("default: 8", "default: 80", "x.yaml:11:31: knobs.block_size.default: expected 2 to 32; read 80"),
        ("flag: --block,", "flag: --block, env: B,", "x.yaml:11:3: knobs.block_size: expected one of flag, env"),
    ],
)  # fmt: skip
def test_a_wrong_key_or_value_is_one_message_with_its_place(old: str, new: str, message: str) -> None:
    """What was expected and what was read, in the words of the file."""
    assert message in refused(changed(old, new))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("host: box", "host: -oProxyCommand=x", "x.yaml:2:1: host: expected an ssh alias"),
        ("host: box", "host: a b", "x.yaml:2:1: host: expected an ssh alias"),
        ("  drafter: some/drafter\n", "", "x.yaml:3:1: engine.drafter: a needed key is missing"),
        ("args: {}", "args: {--tp-size: 8}", "x.yaml:8:10: engine.args.--tp-size: expected the long flag without"),
        ("args: {}", "args: {speculative_ddtree_budget: 8}", "speculative_ddtree_budget: this flag is a knob"),
        ("args: {}", "env: {A-B: x}", "engine.env.A-B: expected the name of an environment variable"),
        ("args: {}", "secrets: {T: {env: X}}\n  env: {T: x}", "x.yaml:9:9: engine.env.T: this name is a secret too"),
        ("args: {}", "secrets: {T: {env: X, file: y}}", "engine.secrets.T: expected exactly one of env, file, keyring"),
        ("kind: process", "kind: process, unit: a", "x.yaml:9:27: launcher.unit: a unit belongs to kind: systemd"),
        ("min: 2, max: 32", "min: 2, max: 8, tied: x", "knobs.block_size: expected one of"),
        ("flag: --window", "tied: foo - 1", "x.yaml:12:12: knobs.window.tied: expected another knob and a number"),
        ("flag: --window", "flag: w", "x.yaml:12:12: knobs.window.flag: expected the long flag with its dashes: --w"),
        ("default: 2048", "default: 4", "x.yaml:12:28: knobs.window.default: expected at least the block size 8"),
        (", default: 8", "", "x.yaml:11:3: knobs.block_size.default: a needed key is missing: specs start from it"),
        ("    throughput: {concurrency: [1, 4]}", "    {}", "x.yaml:15:3: passes.quick: no pass in it"),
    ],
)  # fmt: skip
def test_keys_that_do_not_fit_together_are_refused(old: str, new: str, message: str) -> None:
    """Rules between keys, and names that would reach a command line."""
    assert message in refused(changed(old, new))


def test_without_a_drafter_only_off_can_be_the_default() -> None:
    """Then nothing drafts."""
    text = changed("  drafter: some/drafter\n", "").replace("knobs:", "knobs:\n  algorithm: {default: off}")
    assert parse(text.encode(), "x").engine.drafter is None


def test_the_first_problem_is_the_message_and_the_others_are_its_evidence() -> None:
    """In the order of the file."""
    text = changed("port: 30000", "port: x").replace("host: box", "hots: box")
    with pytest.raises(ProfileError) as told:
        parse(text.encode(), "x.yaml")
    assert told.value.what.startswith("x.yaml:1:1: host: a needed key is missing")
    places = [line.split(": ")[0] for line in told.value.evidence]
    assert places == ["x.yaml:2:1", "x.yaml:5:3"]
    assert "profiles schema" in told.value.advice


def test_an_unknown_key_that_is_near_to_nothing_lists_what_there_is() -> None:
    """So that nobody has to look it up."""
    assert "launcher.zzz: unknown key; launcher has kind, scope, unit" in refused(changed("kind: process", "zzz: 1"))


# --- what YAML refuses


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("host: a\nhost: b\n", "x.yaml:2:1: the key host is given twice, in lines 1 and 2"),
        ("a: {b: 1, b: 2}", "x.yaml:1:11: the key b is given twice"),
        ("<<: {a: 1}\n<<: {b: 1}", "x.yaml:2:1: the key << is given twice"),
        ("<<: 3", "x.yaml:1:5: `<<` merges a mapping"),
        ("? [a]\n: b", "x.yaml:1:3: a key is a word"),
        ("a:\n\tb: 1", "x.yaml:2:1: a tab where YAML wants spaces"),
        ("a:\n  b: 1\n c: 2\n", "x.yaml:3:2: this line is indented differently"),
        ("a: b: c", "x.yaml:1:5: a second `: ` in one value"),
        ("a: @x", "x.yaml:1:4: a plain value cannot start with @"),
        ("a: `x`", "x.yaml:1:4: a plain value cannot start with `"),
        ("%x", "a line cannot start with % here"),
        ('a: "abc', "a quote is opened and never closed"),
        ("a: [1", "a bracket is opened and not closed by ]"),
        ("a: - b", "x.yaml:1:4: a list item `- ` cannot stand behind a key"),
        (r'a: "C:\new"', "x.yaml:1:4: a backslash in double quotes starts an escape"),
        (r'a: "C:\q"', r"\q in double quotes is no escape"),
        ("a: !x y", "x.yaml:1:4: the tag !x is not used here"),
        ("a: !!python/object/apply:os.system [x]", "python/object/apply:os.system is not used here"),
        ("a: *zz", "x.yaml:1:4: the alias *zz points at nothing"),
        ("a: 1\n---\nb: 2\n", "x.yaml:2:1: a second document starts here"),
        ("", "x.yaml:1:1: the file is empty"),
        ("# only a comment\n", "the file is empty"),
        ("- a\n", "expected keys with values, such as `host: demo`; found a list"),
        ("abc", "found plain text"),
        pytest.param("a: " + "[" * 500 + "]" * 500, "nested deeper than 50 levels", id="nested"),
        pytest.param("a: " + "[" * 100_000, "nested deeper than 50 levels", id="brackets"),
        ("a: &a [*a]", "x.yaml:1:4: an alias inside the value that it points at"),
        ("a:\xa0b", "x.yaml:1:3: the character U+00A0 (no-break space)"),
        ("ho\u200bst: x", "x.yaml:1:3: the character U+200B (zero width space)"),
        ("a: x\x85b: y", "x.yaml:1:5: the character U+0085"),
        ("a: x\u2028b: y", "x.yaml:1:5: the character U+2028 (line separator)"),
        ("a: \x07", "x.yaml:1:4: the character U+0007"),
        ("a: \x1b[31m", "x.yaml:1:4: the character U+001B"),
    ],
)
def test_broken_yaml_is_one_plain_sentence_with_its_place(text: str, message: str) -> None:
    """No PyYAML word, no recursion error, and tagged objects never run."""
    assert message in refused(text)


def test_the_same_key_in_two_mappings_is_legal() -> None:
    """Only twice in one is not."""
    assert yaml_text.read(b"a: {x: 1}\nb: {x: 1}\n", "x").data == {"a": {"x": "1"}, "b": {"x": "1"}}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (SMALL.encode("utf-16"), "x.yaml:1:1: the file is UTF-16 or binary"),
        (SMALL.encode("utf-16-le"), "x.yaml:1:1: the file is UTF-16 or binary"),
        (b"host: x\nmodel: caf\xe9\n", "x.yaml:2:11: the byte 0xe9 is not UTF-8 (Latin-1, perhaps: \xe9)"),
        (b"a: 1\n" * 300_000, "x.yaml:1:1: 1,500,000 bytes; a profile has at most 1,048,576"),
    ],
    ids=["UTF-16", "UTF-16 without a mark", "Latin-1", "huge"],
)
def test_bytes_that_are_no_utf8_text_of_a_page_are_named(raw: bytes, message: str) -> None:
    """Before any parser sees them."""
    assert message in refused(raw)


def test_invisible_characters_do_no_harm_in_a_comment() -> None:
    """A comment means nothing."""
    assert yaml_bytes.decoded("# a\u200bb\xa0c\nx: 1\n".encode(), "x")


BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "aliases repeat more than 10000 values"),
        ("a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 500)), "aliases nest deeper than 50"),
        ("a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: *a{n - 1}}}\n" for n in range(1, 500)), "deeper than 50"),
    ],
    ids=["bomb", "chain of aliases", "chain of merges"],
)  # fmt: skip
def test_aliases_cannot_blow_up(text: str, message: str) -> None:
    """A few hundred bytes never become gigabytes, nor a recursion error."""
    assert message in refused(text)


def test_a_long_file_without_aliases_is_read() -> None:
    """The limit on aliases does not count plain values."""
    many = "a:\n" + "".join(f"  - x{number}\n" for number in range(12_000))
    assert len(yaml_text.read(many.encode(), "x").data["a"]) == 12_000


# --- for editors


def test_the_schema_has_every_key_and_lets_text_be_unquoted() -> None:
    """`tp-size: 8` is text to us; an editor must not underline it."""
    schema = profile_schema()
    assert {"schema", "host", "engine", "knobs", "queue"} <= schema["properties"].keys()
    assert schema["additionalProperties"] is False
    arguments = schema["$defs"]["EngineSection"]["properties"]["args"]
    assert {"type": ["string", "number", "boolean"]} in arguments["additionalProperties"]["anyOf"]
    assert re.search("target model", str(schema["$defs"]["EngineSection"]))


# --- suites


def test_a_suite_has_repeats_and_limits_of_its_own() -> None:
    """Its limits stand over the profile's figure by figure; the other suite keeps those."""
    suite = "    throughput: {concurrency: [1, 4]}\n    repeats: 3\n    limits: {ttft_ms: 400, require: {coding: 5/5}}"
    text = changed("    throughput: {concurrency: [1, 4]}", suite)
    text += "limits: {ttft_ms: 900, tpot_ms: 30, require: {coding: 4/5, tau: '3'}}\n"
    profile = parse(text.encode(), "x")
    assert (profile.passes.quick.repeats, profile.passes.confirm.repeats) == (3, 1)
    own, other = profile.limits_of("quick"), profile.limits_of("confirm")
    assert (own.ttft_ms, own.tpot_ms, own.require) == (400.0, 30.0, {"coding": "5/5", "tau": "3"})
    assert (other.ttft_ms, other.require["coding"]) == (900.0, "4/5")
    assert (objectives(profile, "quick").ttft_s, objectives(profile, "confirm").ttft_s) == (0.4, 0.9)
    recipe = measuring_recipe(profile, "quick", Workload())
    assert (recipe["limits"]["ttft_ms"], recipe["plan"]["repeats"]) == (400.0, 3)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("repeats: 0", "passes.quick.repeats: expected at least 1; read '0'"),
        ("repeats: often", "passes.quick.repeats: expected a whole number; read 'often'"),
        ("limits: {ttft: 3}", "passes.quick.limits.ttft: unknown key; did you mean ttft_ms?"),
        ("limits: {divergence: never}", "passes.quick.limits.divergence:"),
        ("repeat: 3", "passes.quick.repeat: unknown key; did you mean repeats?"),
    ],
)
def test_repeats_and_limits_of_a_suite_are_strict(line: str, told: str) -> None:
    """With the line and the key."""
    assert told in refused(
        changed("    throughput: {concurrency: [1, 4]}", f"    throughput: {{concurrency: [1, 4]}}\n    {line}")
    )


def test_a_suites_repeats_are_the_default_of_new_experiments_alone() -> None:
    """What says its own keeps it; a clone under another suite takes that one's; a printed spec leaves it out."""
    text = changed(
        "    throughput: {concurrency: [1, 4]}",
        "    throughput: {concurrency: [1, 4]}\n  confirm: {throughput: {requests: 32}, repeats: 3}",
    )
    context = SpecContext.of(parse(text.encode(), "x"), Queue())

    def repeats(line: str, context: SpecContext = context) -> int:
        found = parse_spec(line, context)
        assert not isinstance(found, SpecRefusal), found
        return found.drafts[0].repeats

    assert [repeats(f"add B=24 {more}") for more in ("", "suite=confirm", "suite=confirm repeats=2")] == [1, 3, 2]
    added = parse_spec("add B=24", context)
    assert not isinstance(added, SpecRefusal)
    queue = apply(Queue(), added.edit, now=datetime(2026, 12, 2, tzinfo=UTC))
    assert isinstance(queue, Queue)
    there = replace(context, queue=queue)
    assert repeats("clone E1 suite=confirm", there) == 3
    change = parse_spec("edit E1 suite=confirm", there)
    assert isinstance(getattr(change, "edit", None), Change)
    assert change.edit.repeats == 3  # type: ignore[union-attr]
