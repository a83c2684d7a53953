"""Secrets as people have them: in settings, commands and files of other programs, and as bare tokens of services.

What services say of their tokens was written down here from their documents, not from our patterns: this is what those are
held to. Each is drawn anew, so that this file holds nothing that looks like a key.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable

from tests.secrets.surroundings import Sample

ALPHABETS = {
    "a": string.ascii_letters + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "h": "0123456789abcdef",
    "d": "123456789",
    "w": string.ascii_letters + string.digits + "_-",
    "U": string.ascii_uppercase + string.digits,
    "b": string.ascii_letters + string.digits + "+/",
    "j": string.ascii_lowercase + string.digits + "!@#$%^&*(-_=+)",
}
"""What stands for what in `{36a}`; j is what Django draws its keys from."""
WORDS = (
    "wombat", "granite", "saffron", "meadow", "turnip", "harbour", "velvet", "cobalt", "lantern", "pepper", "otter", "juniper",
)  # fmt: skip
DRAWN = re.compile(r"\{(\d+)([a-zA-Z])\}|\{(word|words|chosen|uuid)\}")

NAMED = {
    "password of words": ("password", "{words}"),
    "password of a database, one word": ("db_password", "{word}"),
    "password of a database, chosen": ("database_password", "{chosen}"),
    "root of MySQL": ("mysql_root_password", "{word}"),
    "PGPASSWORD": ("pgpassword", "{word}"),
    "short form": ("smtp_pass", "{chosen}"),
    "shorter form": ("redis_pwd", "{chosen}"),
    "passphrase": ("gpg_passphrase", "{words}"),
    "Ansible, become": ("ansible_become_pass", "{word}"),
    "Ansible, ssh": ("ansible_ssh_pass", "{chosen}"),
    "Django": ("secret_key", "django-insecure-{50j}"),
    "Rails": ("secret_key_base", "{128h}"),
    "Laravel": ("app_key", "base64:{43b}="),
    "Flask": ("flask_secret_key", "{48h}"),
    "JWT secret": ("jwt_secret", "{44b}"),
    "client secret": ("client_secret", "{32w}"),
    "Azure storage": ("azure_storage_account_key", "{86b}=="),
    "AWS secret": ("aws_secret_access_key", "{40b}"),
    "AWS session": ("aws_session_token", "IQoJb3JpZ2luX2Vj{200b}"),
    "Datadog": ("dd_api_key", "{32h}"),
    "Cloudflare": ("cloudflare_api_token", "{40w}"),
    "Twilio": ("twilio_auth_token", "{32h}"),
    "Mistral": ("mistral_api_key", "{32a}"),
    "Cohere": ("cohere_api_key", "{40a}"),
    "Azure OpenAI": ("azure_openai_api_key", "{32h}"),
    "Heroku": ("heroku_api_key", "{uuid}"),
    "Snyk": ("snyk_token", "{uuid}"),
    "Okta": ("okta_api_token", "00{40w}"),
    "npm": ("npm_auth_token", "{uuid}"),
    "Zendesk": ("zendesk_token", "{40a}"),
    "signing secret": ("slack_signing_secret", "{32h}"),
    "encryption key": ("encryption_key", "{64h}"),
    "WireGuard": ("private_key", "{43b}="),
    "webhook secret": ("github_webhook_secret", "{40h}"),
    "admin password": ("grafana_admin_password", "{word}"),
    "Spring": ("spring.datasource.password", "{word}"),
}
"""Known by the name under which they are given."""

TOKENS = {
    "Facebook": "EAACEdEose0cBA{150a}", "CircleCI": "CCIPAT_{22a}_{40h}", "CircleCI, project": "CCIPRJ_{22a}_{40h}",
    "HubSpot": "pat-na1-{uuid}", "HubSpot, Europe": "pat-eu1-{uuid}", "Brevo": "xkeysib-{64h}-{16a}", "Brevo, SMTP": "xsmtpsib-{64h}-{16a}",
    "Airtable": "pat{14a}.{64h}", "Sonar": "sqp_{40h}", "Sonar, user": "squ_{40h}", "Sonar, global": "sqa_{40h}",
    "Anthropic": "sk-ant-api03-{93w}AA", "OpenAI": "sk-proj-{74w}T3BlbkFJ{74w}", "OpenRouter": "sk-or-v1-{64h}", "DeepSeek": "sk-{32h}",
    "Groq": "gsk_{52a}", "xAI": "xai-{80a}", "Perplexity": "pplx-{48a}", "Replicate": "r8_{37a}", "NVIDIA": "nvapi-{64w}",
    "Hugging Face": "hf_{34a}", "LangSmith": "lsv2_pt_{32h}_{10h}", "Pinecone": "pcsk_{6a}_{60a}", "Tavily": "tvly-dev-{32a}",
    "Firecrawl": "fc-{32h}", "E2B": "e2b_{40h}", "Jina": "jina_{32h}{28w}", "GitHub": "ghp_{36a}", "GitHub, fine": "github_pat_{22a}_{59a}",
    "GitHub, app": "ghs_{36a}", "GitLab": "glpat-{20w}", "GitLab, runner": "glrt-{20w}", "GitLab, agent": "glagent-{50w}",
    "Bitbucket": "ATBB{32a}", "Atlassian": "ATATT3xFfGF0{176w}={8U}", "AWS": "AKIA{16U}", "AWS, session": "ASIA{16U}",
    "Google": "AIza{35w}", "Google, token": "ya29.a0{150w}", "Google, client": "GOCSPX-{28w}", "Azure": "{3a}8Q~{34w}",
    "DigitalOcean": "dop_v1_{64h}", "Alibaba": "LTAI5t{18a}", "Fly": "fo1_{43w}", "Heroku": "HRKU-AA{58w}", "Netlify": "nfp_{36a}",
    "Vercel": "vcp_{56a}", "Render": "rnd_{28a}", "Neon": "napi_{64l}", "Supabase": "sbp_{40h}", "PlanetScale": "pscale_tkn_{43w}",
    "Databricks": "dapi{32h}-2", "Slack": "xoxb-{12d}-{12d}-{24a}", "Slack, user": "xoxp-{12d}-{12d}-{12d}-{32h}", "Slack, app": "xapp-1-A{10U}-{12d}-{64h}",
    "Slack, webhook": "https://hooks.slack.com/services/T{10U}/B{10U}/{24a}", "Discord, webhook": "https://discord.com/api/webhooks/{18d}/{68w}",
    "Discord": "MT{22a}.G{5a}.{38w}", "Telegram": "{10d}:AA{33w}", "Teams": "https://acme.webhook.office.com/webhookb2/{uuid}@{uuid}/IncomingWebhook/{32h}/{uuid}",
    "Stripe": "sk_live_51{97a}", "Stripe, restricted": "rk_live_{24a}", "Stripe, webhook": "whsec_{32a}", "Square": "EAAA{60w}", "Razorpay": "rzp_live_{14a}",
    "PayPal": "access_token$production${16l}${32h}", "Shopify": "shpat_{32h}", "Twilio": "SK{32h}", "SendGrid": "SG.{22w}.{43w}",
    "Mailgun": "key-{32h}", "Mailchimp": "{32h}-us14", "Resend": "re_{8a}_{24a}", "npm": "npm_{36a}", "PyPI": "pypi-AgEIcHlwaS5vcmc{150w}",
    "RubyGems": "rubygems_{48h}", "crates.io": "cio{32a}", "NuGet": "oy2{43l}", "Docker": "dckr_pat_{27w}", "Artifactory": "AKCp{69a}", "Clojars": "CLOJARS_{60l}",
    "Sentry": "sntryu_{64h}", "Grafana": "glsa_{32a}_{8h}", "New Relic": "NRAK-{27U}", "Dynatrace": "dt0c01.{24U}.{64U}", "Honeycomb": "hcaik_{58l}",
    "PostHog": "phx_{43a}", "LaunchDarkly": "sdk-{uuid}", "Vault": "hvs.{90w}", "Terraform": "{14a}.atlasv1.{67w}", "Doppler": "dp.pt.{43a}",
    "Pulumi": "pul-{40h}", "1Password": "ops_eyJ{250a}", "age": "AGE-SECRET-KEY-1{58U}", "Tailscale": "tskey-auth-k{16a}-{32a}", "Buildkite": "bkua_{40h}",
    "Postman": "PMAK-{24h}-{34h}", "Linear": "lin_api_{40a}", "Notion": "ntn_{11d}{35a}", "Figma": "figd_{43w}", "Asana": "2/{16d}/{16d}:{32h}",
    "Contentful": "CFPAT-{43w}", "Typeform": "tfp_{44a}_{14a}", "Mapbox": "sk.eyJ{60a}.{22w}", "Adobe": "p8e-{32a}", "Duffel": "duffel_live_{43w}", "EasyPost": "EZAK{54a}",
    "Flutterwave": "FLWSECK-{32h}-X", "Sourcegraph": "sgp_{16h}_{40h}", "JSON web token": "eyJhbGciOiJIUzI1NiJ9.eyJ{60w}.{43w}", "Hitherto": "hth_{43w}",
}  # fmt: skip
"""Known by their form alone."""

WRITTEN = {
    "mysql -p": ("mysql -h db -u root -p{} app", "{chosen}"),
    "mysqldump -p": ("mysqldump -uroot -p{} --all-databases", "{word}"),
    ".pgpass": ("db.example.com:5432:app:admin:{}", "{chosen}"),
    ".pgpass, all": ("*:*:*:postgres:{}", "{word}"),
    ".netrc": ("machine api.example.com login me password {}", "{chosen}"),
    "curl -u": ("curl -u admin:{} https://example.com/", "{chosen}"),
    "curl -H": ("curl -H 'Authorization: Bearer {}' https://example.com/", "{40a}"),
    "X-Api-Key": ("curl -H 'X-Api-Key: {}' https://example.com/", "{32h}"),
    "sshpass": ("sshpass -p {} ssh root@example.com", "{chosen}"),
    "redis-cli": ("redis-cli -h cache -a {} ping", "{chosen}"),
    "docker login": ("docker login -u me -p {} registry.example.com", "{chosen}"),
    "openssl": ("openssl rsa -in key.pem -passin pass:{}", "{chosen}"),
    "sudo -S": ("echo {} | sudo -S apt-get update", "{chosen}"),
    "option": ("tool --api-key {} --verbose", "{32a}"),
    "option, password": ("tool --password {} --verbose", "{chosen}"),
    "SQL, user": ("CREATE USER app WITH PASSWORD '{}';", "{word}"),
    "SQL, MySQL": ("CREATE USER 'app'@'%' IDENTIFIED BY '{}';", "{word}"),
    "PostgreSQL": ("postgres://admin:{}@db.example.com/app", "{word}"),
    "Redis": ("redis://:{}@cache.example.com:6379/0", "{chosen}"),
    "MongoDB": ("mongodb+srv://app:{}@cluster0.example.net/app", "{16a}"),
    "git": ("https://oauth2:{}@git.example.com/a/b.git", "{20w}"),
    "connection string": ("Server=db;Database=app;User Id=sa;Password={};", "{chosen}"),
    "cookie": ("Cookie: session_id={}; theme=dark", "{32a}"),
    "signed address": ("https://x.blob.example.net/a?sv=2020&sig={}%3D", "{43a}"),
    ".npmrc": ("//packages.example.com/:_authToken={}", "{uuid}"),
    "wp-config": ("define('DB_PASSWORD', '{}');", "{chosen}"),
    "XML": ("<password>{}</password>", "{chosen}"),
    "private key": ("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----", "{64b}"),
}
"""Known by what is written around them."""


def _drawn(form: str, dice: random.Random) -> str:
    def one(found: re.Match[str]) -> str:
        if found[1]:
            return "".join(dice.choices(ALPHABETS[found[2]], k=int(found[1])))
        match found[3]:
            case "word":
                return dice.choice(WORDS)
            case "words":
                return " ".join(dice.sample(WORDS, 2))
            case "chosen":
                return f"{dice.choice(WORDS).capitalize()}{dice.randint(10, 99)}{dice.choice('!_.')}{dice.choice(WORDS)}"
        return "-".join("".join(dice.choices(ALPHABETS["h"], k=size)) for size in (8, 4, 4, 4, 12))

    return DRAWN.sub(one, form)


def _token(form: str) -> Callable[[random.Random], Sample]:
    def draw(dice: random.Random) -> Sample:
        text = _drawn(form, dice)
        hidden = re.sub(r"^https://[^/]*/(?:services/|api/webhooks/)?", "", text)
        return Sample(text, hidden)

    return draw


def _named(name: str, form: str) -> Callable[[random.Random], Sample]:
    def draw(dice: random.Random) -> Sample:
        text = _drawn(form, dice)
        return Sample(text, text, name)

    return draw


def _written(around: str, form: str) -> Callable[[random.Random], Sample]:
    def draw(dice: random.Random) -> Sample:
        secret = _drawn(form, dice)
        return Sample(around.replace("{}", secret), secret)

    return draw


SHAPES: dict[str, Callable[[random.Random], Sample]] = {
    **{f"{kind}, by name": _named(*shape) for kind, shape in NAMED.items()},
    **{f"{kind}, bare": _token(form) for kind, form in TOKENS.items()},
    **{f"{kind}, written": _written(*shape) for kind, shape in WRITTEN.items()},
}
