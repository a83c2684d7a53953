-- What each session has used; derived from `entry`, in the background. `revision` is that of the session when it was counted.
CREATE TABLE session_usage (
    session  INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL,
    body     BLOB NOT NULL
);

-- It goes with its session, also if a program deletes that which does not know of it.
CREATE TRIGGER usage_of_deleted_session AFTER DELETE ON session
BEGIN
    DELETE FROM session_usage WHERE session = OLD.num;
END;
