-- The user of a chat was last heard of then, or later; 0: nothing is known. NULL for what never starts anew by the clock. It is
-- the very time if heard_revision is the session's revision: what an older program writes beside a newer one leaves it behind.
ALTER TABLE session ADD COLUMN heard_at bigint;
ALTER TABLE session ADD COLUMN heard_revision bigint;
UPDATE session SET heard_at = 0 WHERE key IS NOT NULL AND source IS NULL AND NOT archived AND message_count > 0;

-- What kind of chat it is, with its channel: `values.keys.chat_of`. No name in a key has a colon.
CREATE INDEX session_heard ON session (
    (CASE WHEN key LIKE 'subagent:agent:%:%' THEN 'subagent:' || coalesce(channel, '')
          WHEN key LIKE 'agent:%:%:dm:%' AND key LIKE 'agent:%:%:group:%' THEN ''
          WHEN key LIKE 'agent:%:%:dm:%' THEN 'directmessage:' || coalesce(channel, '')
          WHEN key LIKE 'agent:%:%:group:%' THEN 'group:' || coalesce(channel, '')
          WHEN key LIKE 'agent:%:cron:%' THEN 'task:' || coalesce(channel, '')
          WHEN key LIKE 'agent:%:main' THEN 'main:' || coalesce(channel, '')
          ELSE '' END) COLLATE "C",
    heard_at, owner, id
) WHERE heard_at IS NOT NULL;

-- What one of several servers does at a time: which, and until when unless it asks again.
CREATE TABLE duty (
    name       text COLLATE "C" PRIMARY KEY,
    holder     text NOT NULL,
    expires_at bigint NOT NULL
);
