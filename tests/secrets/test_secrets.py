"""Secrets are found whatever surrounds them, and what only looks like one is left alone.

The samples are drawn here, so that this file holds nothing that looks like a key.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitherto.secrets import redact, redact_value
from hitherto.secrets.kinds import KINDS
from hitherto.secrets.services import SERVICES

LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
_dice = random.Random(20250601)


def drawn(size: int, alphabet: str = LETTERS) -> str:
    return "".join(_dice.choice(alphabet) for _ in range(size))


WEB = LETTERS + "_-"
PEM = "PRIVATE KEY-----"
SAMPLES = {
    "anthropic key": (f"sk-ant-api03-{drawn(93, WEB)}AA",),
    "openai key": (
        f"sk-proj-{drawn(60, WEB)}9T3Blbk{drawn(60)}",
        f"sk-{drawn(48)}",
        f"sk-or-v1-{drawn(64, HEX)}",
    ),
    "github token": (f"ghp_{drawn(36)}", f"ghs_{drawn(36)}", f"github_pat_{drawn(22)}_{drawn(59)}"),
    "gitlab token": (f"glpat-{drawn(20)}",),
    "aws key": (f"AKIA{drawn(16, string.ascii_uppercase + '234567')}",),
    "google key": (f"AIza{drawn(35, WEB)}",),
    "google token": (f"ya29.{drawn(120, WEB)}", f"GOCSPX-{drawn(28, WEB)}"),
    "slack token": (f"xoxb-{drawn(12, string.digits)}-{drawn(24)}", f"xapp-1-{drawn(40)}"),
    "stripe key": (f"sk_live_{drawn(24)}", f"rk_test_{drawn(24)}", f"whsec_{drawn(32)}"),
    "telegram token": (f"{drawn(9, '123456789')}:AA{drawn(33, WEB)}",),
    "twilio key": (f"SK{drawn(32, HEX)}",),
    "sendgrid key": (f"SG.{drawn(22, WEB)}.{drawn(43, WEB)}",),
    "mailgun key": (f"key-{drawn(32, HEX)}",),
    "npm token": (f"npm_{drawn(36)}",),
    "pypi token": (f"pypi-AgEIcHlwaS5vcmc{drawn(70, WEB)}",),
    "hugging face token": (f"hf_{drawn(34)}",),
    "model provider key": (f"gsk_{drawn(52)}", f"xai-{drawn(80)}", f"r8_{drawn(37)}"),
    "digitalocean token": (f"dop_v1_{drawn(64, HEX)}",),
    "databricks token": (f"dapi{drawn(32, HEX)}",),
    "shopify token": (f"shpat_{drawn(32, HEX)}",),
    "vault token": (f"hvs.{drawn(90, WEB)}",),
    "docker token": (f"dckr_pat_{drawn(27, WEB)}",),
    "linear token": (f"lin_api_{drawn(40)}",),
    "new relic token": (f"NRAK-{drawn(27).upper()}",),
    "grafana token": (f"glsa_{drawn(32)}",),
    "json web token": (f"eyJ{drawn(33, WEB)}.eyJ{drawn(60, WEB)}.{drawn(43, WEB)}",),
    "hitherto token": (f"hth_{drawn(43, WEB)}",),
    "private key": (
        f"-----BEGIN RSA {PEM}\n{drawn(64)}\n{drawn(64)}\n-----END RSA {PEM}",
        f"-----BEGIN {PEM}\\n{drawn(64)}\\n{drawn(30)}==\\n-----END {PEM}",
        f"-----BEGIN OPENSSH {PEM}\n{drawn(64)}\n{drawn(64)}",
        f"AGE-SECRET-KEY-1{drawn(58, string.ascii_uppercase)}",
    ),
}
"""Whole secrets, by what they are called."""

BENIGN = {
    "git hash": f"commit {drawn(40, HEX)}",
    "short hash": f"{drawn(7, HEX)}..{drawn(7, HEX)}",
    "sum": f"sha256:{drawn(64, HEX)}",
    "pinned requirement": f"    --hash=sha256:{drawn(64, HEX)} \\",
    "lock file": f'"integrity": "sha512-{drawn(86, LETTERS + "+/")}=="',
    "sum of a module": f"h1:{drawn(43, LETTERS + '+/')}=",
    "UUID": "550e8400-e29b-41d4-a716-446655440000",
    "UUID behind a word": "idempotency_key: 550e8400-e29b-41d4-a716-446655440000",
    "id of a tool call": f"toolu_{drawn(30)} msg_{drawn(30)} call_{drawn(30)}",
    "public key": f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{drawn(43)} user@host",
    "picture": f"data:image/png;base64,iVBORw0KGgo{drawn(60, LETTERS + '+/')}",
    "certificate": "\n".join(("-----BEGIN CERTIFICATE-----", drawn(64), drawn(64), "-----END CERTIFICATE-----")),
    "path": "/usr/lib/python3.11/site-packages/hitherto/service/transfer/export.py",
    "document's address": f"https://docs.example.com/document/d/{drawn(44)}/edit",
    "name": "getHTTPResponseCodeForRequestV2FromServer1AndThenSome",
    "count": 'max_tokens: 1024, "token_count": 12840, tokens=15',
    "call": "token = get_token(request)",
    "type": "password: string; secret: Secret; api_key: str",
    "environment": 'api_key=os.environ["API_KEY"]',
    "attribute": "secret_key = settings.SECRET_KEY",
    "variable": "password=key_password, token=refresh_token",
    "placeholder": "https://user:$PASSWORD@host/ Authorization: Bearer <token> --password ******** token=${TOKEN}",
    "sentence": "The password is wrong. The token is invalid. Enter a password: it has 12 characters or more.",
    "argument": "primary_key=True, key=lambda x: x.name",
    "class name": "sk-learn sk-loading-indicator-large-screen",
    "author": "author: Jane2024Doe",
    "policy": "credentials: same-origin; token_type: bearer; secretName: tls-cert-2024",
}  # fmt: skip


def found(text: str) -> Counter[str]:
    seen: Counter[str] = Counter()
    redact(text, seen)
    return seen


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_secret_is_found_wherever_it_stands(kind: str) -> None:
    for secret in SAMPLES[kind]:
        for text in (
            secret,
            f"use {secret} now",
            f'"{secret}"',
            f"({secret}),",
            f"a\\n{secret}\\tb",
            f"key: {secret}\n",
        ):
            seen: Counter[str] = Counter()
            out = redact(text, seen)
            assert secret not in out, (kind, text)
            assert f"[redacted: {kind}]" in out, (kind, text, out)
            assert seen.total() == 1


def test_every_kind_is_called_by_a_name_that_its_mark_can_hold() -> None:
    allowed = set(string.ascii_lowercase + string.digits + " .")
    assert all(set(kind.name) <= allowed for kind in (*KINDS, *SERVICES))


@pytest.mark.parametrize(
    ("before", "secret", "after"),
    [
        ("Authorization: Bearer ", drawn(40), "\n"),
        ("authorization: basic ", "dXNlcjpodW50ZXIyMg", "=="),
        ("x-api-key: ", drawn(40), ""),
        ("Cookie: ", f"session_id={drawn(32)}; theme=dark", ""),
        ("postgres://admin:", "hunter2!", "@db.example.com/x"),
        ("https://", drawn(40), "@github.com/a/b.git"),
        ("curl -u admin:", "hunter22", " https://example.com"),
        ("machine x login y password ", "hunter22", ""),
        ("https://x.example/blob?sv=2020&sig=", drawn(43), "%3D"),
        ("https://hooks.slack.com/", f"services/T{drawn(8)}/B{drawn(8)}/{drawn(24)}", ""),
        ("API_KEY=", drawn(32, HEX), ""),
        ("export SECRET_KEY='", drawn(50), "'"),
        ("aws_secret_access_key = ", drawn(40, LETTERS + "+/"), ""),
        ("AccountKey=", drawn(86, LETTERS + "+/"), "==;"),
        ("SERVICE_KEY=", drawn(32), ""),
        ('{"api_key": "', drawn(32), '"}'),
        ('{\\"client_secret\\": \\"', drawn(32), '\\"}'),
        ("password: ", "Hunter2!x", ""),
        ("password = '", "correcthorse", "'"),
        ("<password>", "hunter22", "</password>"),
        ("mysql --password ", "hunter22x", " db"),
        ("tool --api-key ", drawn(32), ""),
        ("my password is ", "hunter22", " ok"),
        ("the API key is ", drawn(32), "."),
        ("nothing names ", drawn(44), " here"),
    ],
)
def test_a_value_is_known_by_what_stands_before_it(before: str, secret: str, after: str) -> None:
    seen: Counter[str] = Counter()
    out = redact(before + secret + after, seen)
    assert secret not in out
    assert out.startswith(before)
    assert seen.total() == 1


@pytest.mark.parametrize("what", BENIGN)
def test_what_only_looks_like_a_secret_is_left_alone(what: str) -> None:
    assert not found(BENIGN[what]), redact(BENIGN[what], Counter())


def test_a_secret_in_base64_is_found() -> None:
    secret = SAMPLES["github token"][0]
    for packed in (base64.b64encode, base64.urlsafe_b64encode):
        text = f"config: {packed(f'user: me, token: {secret}'.encode()).decode()}"
        assert found(text) == {"encoded secret": 1}


def test_the_name_of_a_member_says_what_its_value_is() -> None:
    seen: Counter[str] = Counter()
    value: Any = {
        "db": {"password": "hunter2", "user": "me", "port": 5432},
        "list": ["a", {"token": drawn(20)}],
    }
    out = redact_value(value, seen)
    assert out["db"] == {"password": "[redacted: named secret]", "user": "me", "port": 5432}
    assert out["list"] == ["a", {"token": "[redacted: named secret]"}]
    assert seen == {"named secret": 2}


def test_a_value_of_any_depth_is_looked_through() -> None:
    secret = SAMPLES["github token"][0]
    value: Any = secret
    for _ in range(300):
        value = [{"in": value}]
    seen: Counter[str] = Counter()
    assert secret not in json.dumps(redact_value(value, seen))
    assert seen == {"github token": 1}


def test_a_long_text_is_looked_through_piece_by_piece_with_the_same_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secrets = [sample for samples in SAMPLES.values() for sample in samples]
    text = "\n".join(f"{number} {each} and so on" for number, each in enumerate([*secrets, *BENIGN.values()]))
    told: Counter[str] = Counter()
    whole = redact(text, told)
    monkeypatch.setattr("hitherto.secrets.AROUND", 8_000)
    for piece in (211, 997):
        monkeypatch.setattr("hitherto.secrets.PIECE", piece)
        seen: Counter[str] = Counter()
        assert redact(text, seen) == whole
        assert seen == told


def test_two_that_touch_are_both_gone() -> None:
    one, two = SAMPLES["aws key"][0], SAMPLES["github token"][0]
    for text in (one + two, two + one, f"{one}-{two}", f"password={one}{two}"):
        out = redact(text, Counter())
        assert one[4:] not in out
        assert two[4:] not in out


PIECES = st.one_of(
    st.text(max_size=20),
    st.sampled_from([each[0] for each in SAMPLES.values()]),
    st.sampled_from(list(BENIGN.values())),
    st.sampled_from(
        [
            "password=",
            "token: '",
            "Bearer ",
            "://a:",
            "@",
            "-----BEGIN ",
            "eyJ",
            "[redacted: ",
            "[redacted: aws key]",
            "'",
            "\\n",
            "=",
        ]
    ),
)


@settings(max_examples=400)
@given(st.lists(PIECES, max_size=8).map("".join))
def test_any_text_is_taken_and_the_second_time_changes_nothing(text: str) -> None:
    once = redact(text, Counter())
    again: Counter[str] = Counter()
    assert redact(once, again) == once
    assert not again


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | PIECES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PIECES, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=400)
@given(JSON)
def test_any_value_is_taken_and_the_second_time_changes_nothing(value: Any) -> None:
    once = redact_value(value, Counter())
    again: Counter[str] = Counter()
    assert redact_value(once, again) == once
    assert not again
