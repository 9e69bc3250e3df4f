-- +goose Up
-- Instants are microseconds since 1970 in UTC; 0 or NULL: none.
CREATE TABLE tickets (
    number             INTEGER PRIMARY KEY AUTOINCREMENT,
    state              TEXT    NOT NULL,
    version            INTEGER NOT NULL,
    requester          TEXT    NOT NULL,
    reason             TEXT    NOT NULL,
    idempotency_key    TEXT,
    duration_seconds   INTEGER NOT NULL,
    expires_at         INTEGER NOT NULL,
    message            TEXT    NOT NULL,
    policy             TEXT    NOT NULL,
    policy_uid         TEXT    NOT NULL,
    written_generation INTEGER NOT NULL,
    revoke_generation  INTEGER NOT NULL,
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL
);
CREATE UNIQUE INDEX tickets_idempotency ON tickets (requester, idempotency_key);
CREATE INDEX tickets_state ON tickets (state, expires_at);
CREATE INDEX tickets_policy ON tickets (policy);
CREATE INDEX tickets_updated ON tickets (updated_at);

CREATE TABLE ticket_items (
    ticket           INTEGER NOT NULL REFERENCES tickets (number),
    position         INTEGER NOT NULL,
    application      TEXT    NOT NULL,
    application_name TEXT    NOT NULL,
    resource         TEXT    NOT NULL,
    resource_name    TEXT    NOT NULL,
    actions          TEXT    NOT NULL, -- JSON array
    sid              TEXT    NOT NULL UNIQUE,
    PRIMARY KEY (ticket, position)
);
CREATE INDEX ticket_items_application ON ticket_items (application_name);
CREATE INDEX ticket_items_resource ON ticket_items (resource_name);

CREATE TABLE ticket_steps (
    ticket     INTEGER NOT NULL REFERENCES tickets (number),
    position   INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    note       TEXT    NOT NULL,
    decided_by TEXT    NOT NULL,
    decided_at INTEGER NOT NULL,
    comment    TEXT    NOT NULL,
    PRIMARY KEY (ticket, position)
);
CREATE INDEX ticket_steps_decided ON ticket_steps (decided_by);

CREATE TABLE step_approvers (
    ticket   INTEGER NOT NULL REFERENCES tickets (number),
    position INTEGER NOT NULL, -- of the step
    person   TEXT    NOT NULL,
    PRIMARY KEY (ticket, position, person)
);
CREATE INDEX step_approvers_person ON step_approvers (person);

CREATE TABLE ticket_events (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    ticket   INTEGER NOT NULL REFERENCES tickets (number),
    at       INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    actor    TEXT    NOT NULL,
    step     TEXT    NOT NULL,
    cluster  TEXT    NOT NULL,
    revision TEXT    NOT NULL,
    comment  TEXT    NOT NULL
);
CREATE INDEX ticket_events_ticket ON ticket_events (ticket, seq);

-- One row for each (application, resource, action) that a ticket under way is about.
CREATE TABLE claims (
    application TEXT    NOT NULL,
    resource    TEXT    NOT NULL,
    action      TEXT    NOT NULL,
    ticket      INTEGER NOT NULL REFERENCES tickets (number),
    PRIMARY KEY (application, resource, action)
);
CREATE INDEX claims_ticket ON claims (ticket);

CREATE TABLE outbox (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    ticket      INTEGER NOT NULL REFERENCES tickets (number),
    kind        TEXT    NOT NULL,
    resource    TEXT    NOT NULL,
    run_after   INTEGER NOT NULL,
    attempts    INTEGER NOT NULL,
    parked      BOOLEAN NOT NULL,
    worker      TEXT    NOT NULL,
    lease_until INTEGER NOT NULL
);
CREATE INDEX outbox_resource ON outbox (resource, id);

CREATE TABLE ledger (
    seq  INTEGER PRIMARY KEY,
    text TEXT NOT NULL, -- canonical JSON that holds the hash of the line before
    hash TEXT NOT NULL
);

CREATE TABLE sessions (
    token      TEXT    PRIMARY KEY, -- SHA-256 of what the browser has
    data       BLOB    NOT NULL,
    expires_at INTEGER NOT NULL
);
CREATE INDEX sessions_expires ON sessions (expires_at);
