"""Secrets are masked where text comes in."""

from __future__ import annotations

import pytest

from ddconsole.core.masking import Masker


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("api_key='sk-EXAMPLE-do-not-show', mem=0.88", "api_key=***, mem=0.88"),
        ("'admin_api_key': 'a, b', 'x': 1", "'admin_api_key': ***, 'x': 1"),
        ('{"api_key": "k\\"ey", "port": 1}', '{"api_key": ***, "port": 1}'),
        ("python -m x --api-key abc --port 1", "python -m x --api-key *** --port 1"),
        ("--admin-api-key=abc --port 1", "--admin-api-key=*** --port 1"),
        ("Authorization: Bearer abc.def-g", "Authorization: Bearer ***"),
        ("HF_TOKEN=hf_abcdefghijklmnopqrstu", "HF_TOKEN=***"),
        ("api_key=None, admin_api_key=None", "api_key=None, admin_api_key=None"),
        ("mask_token=<|MASK|>, #new-token: 71, token usage: 0.00",
         "mask_token=<|MASK|>, #new-token: 71, token usage: 0.00"),
        ("the word is xyzzy-plugh", "the word is ***"),
    ],
)  # fmt: skip
def test_what_is_masked_and_what_is_not(text: str, shown: str) -> None:
    """Keys, bearers, tokens and the profile's own secrets; not the tokens of a language model."""
    assert Masker(("xyzzy-plugh", "")).text(text) == shown


def test_nested_data_is_masked_by_its_keys() -> None:
    """As /server_info tells them, in lists and inner objects too."""
    data = {"api_key": "k", "port": 1, "states": [{"admin_api_key": "x", "n": None}], "cmd": "run --api-key abc"}
    assert Masker().data(data) == {
        "api_key": "***", "port": 1, "states": [{"admin_api_key": "***", "n": None}], "cmd": "run --api-key ***",
    }  # fmt: skip


def test_a_key_that_is_not_set_stays_none() -> None:
    """None says that there is none."""
    assert Masker().data({"api_key": None}) == {"api_key": None}
