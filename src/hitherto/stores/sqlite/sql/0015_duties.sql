-- The user of a chat was last heard of then, or later; 0: nothing is known. NULL for what never starts anew by the clock. It is
-- the very time if heard_revision is the session's revision: what an older program writes beside a newer one leaves it behind.
ALTER TABLE session ADD COLUMN heard_at INTEGER;
ALTER TABLE session ADD COLUMN heard_revision INTEGER;
UPDATE session SET heard_at = 0 WHERE key IS NOT NULL AND source IS NULL AND archived = 0 AND message_count > 0;

-- What kind of chat it is, with its channel: `values.keys.chat_of`. No name in a key has a colon.
CREATE INDEX session_heard ON session (
    CASE WHEN key GLOB 'subagent:agent:*:*' THEN 'subagent:' || coalesce(channel, '')
         WHEN key GLOB 'agent:*:*:dm:*' AND key GLOB 'agent:*:*:group:*' THEN ''
    WHEN key GLOB 'agent:*:*:dm:*' THEN 'directmessage:' || coalesce(channel, '')
         WHEN key GLOB 'agent:*:*:group:*' THEN 'group:' || coalesce(channel, '')
         WHEN key GLOB 'agent:*:cron:*' THEN 'task:' || coalesce(channel, '')
         WHEN key GLOB 'agent:*:main' THEN 'main:' || coalesce(channel, '')
         ELSE '' END,
    heard_at, owner, id
) WHERE heard_at IS NOT NULL;

-- What one of several servers does at a time: which, and until when unless it asks again.
CREATE TABLE duty (
    name       TEXT PRIMARY KEY,
    holder     TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
