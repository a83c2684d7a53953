"""How much is measured: the full size, and a small one that only shows that everything runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The numbers of one run. A slice is what one contender does before the next one has its turn."""

    append_rounds: int
    append_slice: int
    # For a peer whose every append rewrites the whole conversation: all its slices together stay small.
    quadratic_slice: int
    writers: int
    history: int
    history_rounds: int
    long_history: int
    last_calls: int
    list_sizes: tuple[int, ...]
    peer_list_sizes: tuple[int, ...]
    list_rounds: int
    list_calls: int
    search_messages: int
    search_sessions: int
    search_rounds: int
    search_calls: int
    postgres_rounds: int
    postgres_slice: int
    postgres_history: int
    postgres_sessions: tuple[int, ...]
    import_runs: int
    claude_trees: tuple[int, ...]
    claude_bytes: int
    claude_rounds: int
    fork_bytes: int
    fork_rounds: int
    sync_files: int
    sync_large: int
    sync_unchanged: int
    turn_chunks: int
    turn_rounds: int
    replay_messages: int
    replay_few: int
    replay_sdk_messages: int
    replay_rounds: int
    replay_starts: int
    proxy_updates: int
    proxy_paced: int
    proxy_rounds: int
    load_rounds: int
    load_slice: int
    load_idle: int
    load_silent: int
    load_calls: int
    load_sessions: int
    load_history: int
    page_sessions: int
    page_bytes: int
    page_rounds: int
    page_calls: int
    chats: int
    chat_rounds: int
    origin_sessions: int
    origin_rounds: int


FULL = Sizes(
    append_rounds=25,
    append_slice=200,
    quadratic_slice=20,
    writers=8,
    history=10_000,
    history_rounds=9,
    long_history=100_000,
    last_calls=50,
    list_sizes=(1_000, 10_000, 100_000, 1_000_000),
    peer_list_sizes=(1_000, 10_000),
    list_rounds=7,
    list_calls=20,
    search_messages=1_000_000,
    search_sessions=10_000,
    search_rounds=9,
    search_calls=10,
    postgres_rounds=30,
    postgres_slice=50,
    postgres_history=10_000,
    postgres_sessions=(1_000, 50_000),
    import_runs=9,
    claude_trees=(2_000, 10_000),
    claude_bytes=20_000_000,
    claude_rounds=7,
    fork_bytes=20_000_000,
    fork_rounds=7,
    sync_files=500,
    sync_large=20,
    sync_unchanged=10_000,
    turn_chunks=10_000,
    turn_rounds=7,
    replay_messages=100_000,
    replay_few=1_000,
    replay_sdk_messages=20_000,
    replay_rounds=5,
    replay_starts=15,
    proxy_updates=50_000,
    proxy_paced=3_000,
    proxy_rounds=5,
    load_rounds=9,
    load_slice=1_600,
    load_idle=1_000,
    load_silent=100,
    load_calls=200,
    load_sessions=1_000,
    load_history=10_000,
    page_sessions=100_000,
    page_bytes=100_000_000,
    page_rounds=5,
    page_calls=200,
    chats=1_000_000,
    chat_rounds=9,
    origin_sessions=10_000,
    origin_rounds=5,
)

QUICK = Sizes(
    append_rounds=6,
    append_slice=24,
    quadratic_slice=8,
    writers=8,
    history=500,
    history_rounds=4,
    long_history=2_000,
    last_calls=10,
    list_sizes=(1_000, 2_500),
    peer_list_sizes=(100, 1_000),
    list_rounds=4,
    list_calls=5,
    search_messages=5_000,
    search_sessions=100,
    search_rounds=4,
    search_calls=3,
    postgres_rounds=4,
    postgres_slice=16,
    postgres_history=500,
    postgres_sessions=(200, 800),
    import_runs=3,
    claude_trees=(100, 300),
    claude_bytes=2_000_000,
    claude_rounds=3,
    fork_bytes=2_000_000,
    fork_rounds=2,
    sync_files=20,
    sync_large=2,
    sync_unchanged=500,
    turn_chunks=500,
    turn_rounds=2,
    replay_messages=5_000,
    replay_few=100,
    replay_sdk_messages=1_000,
    replay_rounds=2,
    replay_starts=3,
    proxy_updates=2_000,
    proxy_paced=200,
    proxy_rounds=2,
    load_rounds=3,
    load_slice=240,
    load_idle=200,
    load_silent=20,
    load_calls=40,
    load_sessions=200,
    load_history=500,
    page_sessions=6_000,
    page_bytes=10_000_000,
    page_rounds=3,
    page_calls=20,
    chats=1_000,
    chat_rounds=2,
    origin_sessions=200,
    origin_rounds=3,
)
