//! The tables of each database, version by version. A step that was released is never changed.

use crate::migrate::Format;

/// The database of one project.
///
/// `events.position` is the order in which events were committed; the run that holds the highest is
/// never removed, so that positions are never reused. A run is open while `state = 'open'`; two
/// small partial indexes make it cheap to find the open runs and the attempts of the last minutes.
pub(crate) const PROJECT: Format = Format {
    steps: &[
        "
CREATE TABLE meta (key TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;
CREATE TABLE runs (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL,
    state TEXT NOT NULL,
    surface TEXT NOT NULL,
    session TEXT,
    caller TEXT,
    parent TEXT,
    host_pid INTEGER NOT NULL,
    host_start INTEGER NOT NULL,
    operation TEXT,
    folder TEXT,
    profile TEXT,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    outcome TEXT,
    reason TEXT,
    attempts INTEGER NOT NULL,
    exit INTEGER,
    duration_ms INTEGER,
    next TEXT
) STRICT;
CREATE INDEX runs_open ON runs (n) WHERE state = 'open';
CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    schema INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT,
    attempt INTEGER,
    body TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_of_run ON events (run, seq);
CREATE INDEX events_attempts ON events (at, attempt) WHERE kind = 'attempt.started';
CREATE TABLE children (
    run INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    pid INTEGER NOT NULL,
    start INTEGER NOT NULL,
    process_group INTEGER NOT NULL
) STRICT;
CREATE TABLE deferred (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    argv TEXT NOT NULL,
    folder TEXT NOT NULL,
    runnable INTEGER NOT NULL,
    reason TEXT NOT NULL,
    until TEXT NOT NULL,
    count INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    UNIQUE (argv, folder)
) STRICT;
",
        COUNTED,
        // Phases that run side by side have attempts of the same number.
        "ALTER TABLE children ADD COLUMN operation TEXT;
         ALTER TABLE deferred ADD COLUMN is_task INTEGER NOT NULL DEFAULT 0;
         ALTER TABLE deferred ADD COLUMN address TEXT;",
        // The output of failed attempts; whether deferred work was offered since it was deferred.
        "CREATE TABLE outputs (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            run INTEGER NOT NULL,
            attempt INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            body TEXT NOT NULL
         ) STRICT;
         CREATE INDEX outputs_of_run ON outputs (run, attempt, bytes);
         ALTER TABLE deferred ADD COLUMN offered INTEGER NOT NULL DEFAULT 0;",
        // What campaigns learned.
        "CREATE TABLE lessons (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            run TEXT NOT NULL,
            task TEXT NOT NULL,
            signature TEXT NOT NULL,
            reason TEXT NOT NULL,
            files TEXT NOT NULL,
            tried TEXT NOT NULL,
            cure TEXT,
            attempts INTEGER NOT NULL,
            cost_ms INTEGER NOT NULL,
            at INTEGER NOT NULL,
            UNIQUE (run, task)
         ) STRICT;",
    ],
};

/// Columns for statistics: whether it succeeded, and how long it took or was waited. The index
/// holds everything that `stats` reads, run by run; `counted` is set if the kind of the event is
/// counted.
const COUNTED: &str = "
ALTER TABLE events ADD COLUMN counted INTEGER;
ALTER TABLE events ADD COLUMN ok INTEGER;
ALTER TABLE events ADD COLUMN ms INTEGER;
UPDATE events SET counted = 1, ok = body ->> '$.success', ms = CAST(body ->> '$.duration_ms' AS INTEGER)
    WHERE kind = 'attempt.finished';
UPDATE events SET counted = 2 WHERE kind = 'attempt.lost';
UPDATE events SET counted = 3 WHERE kind = 'error.classified';
UPDATE events SET counted = 4, ms = CAST(round((body ->> '$.after_seconds') * 1000) AS INTEGER)
    WHERE kind = 'decision.made';
UPDATE events SET counted = 5, ok = body ->> '$.success' WHERE kind = 'recovery.attempted';
UPDATE events SET counted = 6, ms = CAST(body ->> '$.waited_ms' AS INTEGER) WHERE kind = 'guard.waited';
CREATE INDEX events_counted ON events (run, seq, at, counted, reason, ok, ms) WHERE counted IS NOT NULL;
";

/// The database of the user: what belongs to no project.
pub(crate) const USER: Format = Format {
    steps: &["
CREATE TABLE trust (path BLOB PRIMARY KEY, hash TEXT NOT NULL, at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE nested (
    parent TEXT NOT NULL,
    run TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    reason TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (parent, run)
) STRICT, WITHOUT ROWID;
"],
};

/// The database of shared limits: rate limits and budgets belong to an account, not to a folder.
/// Losing it costs knowledge, but no work, which is why it is a file of its own.
pub(crate) const LIMITS: Format = Format {
    steps: &[
        "
CREATE TABLE guards (
    provider TEXT PRIMARY KEY,
    learned_at INTEGER,
    until INTEGER,
    why TEXT,
    queue INTEGER NOT NULL DEFAULT 0,
    answers INTEGER NOT NULL DEFAULT 0,
    refusals INTEGER NOT NULL DEFAULT 0,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE breakers (
    provider TEXT NOT NULL,
    operation TEXT NOT NULL,
    failures INTEGER NOT NULL,
    opened INTEGER NOT NULL,
    open_since INTEGER,
    probe_since INTEGER,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (provider, operation)
) STRICT, WITHOUT ROWID;
CREATE TABLE budgets (
    name TEXT PRIMARY KEY,
    units INTEGER NOT NULL,
    per TEXT NOT NULL,
    unit TEXT NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE spent (
    budget TEXT NOT NULL,
    scope TEXT NOT NULL,
    units INTEGER NOT NULL,
    refused INTEGER NOT NULL DEFAULT 0,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (budget, scope)
) STRICT, WITHOUT ROWID;
CREATE TABLE streaks (
    operation TEXT PRIMARY KEY,
    signature TEXT NOT NULL,
    count INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE experience (
    signature TEXT PRIMARY KEY,
    reason TEXT NOT NULL,
    seen INTEGER NOT NULL,
    retried INTEGER NOT NULL,
    cured INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE results (
    key TEXT PRIMARY KEY,
    stdout BLOB NOT NULL,
    stderr BLOB NOT NULL,
    at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) STRICT;
",
        // Guards are those of an account and a model now: `provider` holds the whole key. Accounts
        // are hashed with a secret that never leaves this file.
        "
CREATE TABLE account_secret (id INTEGER PRIMARY KEY CHECK (id = 1), secret BLOB NOT NULL) STRICT;
",
        // Times are also stored as milliseconds since the machine was started (`boot` says which
        // start), so that a wall clock that is set back keeps nothing closed. What a sentence
        // closed is probed. Waiters are known by their process, so that one that was killed is not
        // counted.
        "
ALTER TABLE guards ADD COLUMN boot INTEGER;
ALTER TABLE guards ADD COLUMN learned_boot_ms INTEGER;
ALTER TABLE guards ADD COLUMN in_words INTEGER NOT NULL DEFAULT 0;
ALTER TABLE guards ADD COLUMN probed_at INTEGER;
ALTER TABLE breakers ADD COLUMN boot INTEGER;
ALTER TABLE breakers ADD COLUMN open_boot_ms INTEGER;
ALTER TABLE breakers ADD COLUMN probe_boot_ms INTEGER;
ALTER TABLE spent ADD COLUMN boot INTEGER;
ALTER TABLE spent ADD COLUMN began_boot_ms INTEGER;
CREATE TABLE waiters (
    guard TEXT NOT NULL,
    place INTEGER NOT NULL,
    pid INTEGER NOT NULL,
    start INTEGER NOT NULL,
    PRIMARY KEY (guard, place, pid, start)
) STRICT, WITHOUT ROWID;
",
        // How many requests a provider still takes in its window; `provider` holds a guard's key.
        "
CREATE TABLE windows (
    provider TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
",
        // When a scope was first spent from, by the wall clock, so that one that is set forward
        // begins no new day.
        "
ALTER TABLE spent ADD COLUMN began_at INTEGER;
",
    ],
};

/// The outbox: notifications to send, and those sent lately. A file of its own, because nothing
/// else waits for it.
///
/// A note is `queued`, `sending`, `sent` or `failed`. Queued notes of one group are one row with a
/// count.
pub(crate) const OUTBOX: Format = Format {
    steps: &["
CREATE TABLE notes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    sink TEXT NOT NULL,
    target TEXT NOT NULL,
    project TEXT NOT NULL,
    grouped TEXT NOT NULL,
    body TEXT NOT NULL,
    labels TEXT NOT NULL,
    urgent INTEGER NOT NULL,
    count INTEGER NOT NULL,
    state TEXT NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    not_before INTEGER NOT NULL,
    rounds INTEGER NOT NULL DEFAULT 0,
    done_at INTEGER,
    said TEXT
) STRICT;
CREATE INDEX notes_open ON notes (target, grouped) WHERE state IN ('queued', 'sending');
CREATE INDEX notes_done ON notes (done_at) WHERE done_at IS NOT NULL;
"],
};

/// What hooks remember: tasks reported by others, repeated faults of a session, turns that were
/// held. Losing it costs counts, but no work.
pub(crate) const HOOKS: Format = Format {
    steps: &["
CREATE TABLE tasks (
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    severity TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    of INTEGER NOT NULL,
    retry_at INTEGER,
    run TEXT,
    why TEXT NOT NULL,
    context TEXT,
    first_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (project, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_updated ON tasks (updated_at);
CREATE TABLE failures (
    project TEXT NOT NULL,
    task TEXT NOT NULL,
    reason TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX failures_of_task ON failures (project, task, reason, at);
CREATE TABLE streaks (
    session TEXT PRIMARY KEY,
    signature TEXT NOT NULL,
    count INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE held (session TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
"],
};
