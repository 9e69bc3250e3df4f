-- A database as the portal made it before items had states and chains of their own, with a ticket of each sort.
CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')));
INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, 1), (1, 1);
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

-- T-1 waits for the owner; T-2 is in force for a time; T-3 was rejected; T-4 is being written.
INSERT INTO tickets VALUES
    (1, 'pending', 2, 'alice', 'because', 'key-12345', 3600, 0, '', '', '', 0, 0, 1767323045000678, 1767323105000678),
    (2, 'effective', 6, 'alice', 'because', NULL, 3600, 1767326705000000, '', 'p-r2', 'uid-2', 4, 0, 1767323045000678, 1767323205000678),
    (3, 'rejected', 2, 'alice', 'because', NULL, 0, 0, '', '', '', 0, 0, 1767323045000678, 1767323105000678),
    (4, 'approved', 3, 'alice', 'because', NULL, 0, 0, 'waiting', '', '', 0, 0, 1767323045000678, 1767323165000678);
INSERT INTO ticket_items VALUES
    (1, 0, 'a1', 'name:a1', 'r1', 'name:r1', '["redis:connect","redis:info"]', 't-1-1'), (2, 0, 'a2', 'name:a2', 'r2', 'name:r2', '["redis:connect"]', 't-2-1'),
    (3, 0, 'a3', 'name:a3', 'r3', 'name:r3', '["redis:connect"]', 't-3-1'), (4, 0, 'a4', 'name:a4', 'r4', 'name:r4', '["redis:connect"]', 't-4-1');
INSERT INTO ticket_steps VALUES
    (1, 0, 'leader', 'approved', '', 'carol', 1767323105000678, 'ok'), (1, 1, 'owner', 'current', 'n', '', 0, ''),
    (2, 0, 'leader', 'approved', '', 'carol', 1767323105000678, 'ok'), (2, 1, 'owner', 'approved', 'n', 'bob', 1767323165000678, ''),
    (3, 0, 'leader', 'rejected', '', 'carol', 1767323105000678, 'no'), (3, 1, 'owner', 'skipped', 'n', '', 0, ''),
    (4, 0, 'leader', 'approved', '', 'carol', 1767323105000678, 'ok'), (4, 1, 'owner', 'approved', 'n', 'dan', 1767323165000678, 'ok');
INSERT INTO step_approvers SELECT ticket, 0, 'carol' FROM ticket_items;
INSERT INTO step_approvers SELECT ticket, 1, 'bob' FROM ticket_items;
INSERT INTO step_approvers SELECT ticket, 1, 'dan' FROM ticket_items;
INSERT INTO ticket_events (ticket, at, kind, actor, step, cluster, revision, comment) VALUES
    (1, 1767323045000678, 'submitted', 'alice', '', '', '', 'because'), (1, 1767323105000678, 'step-approved', 'carol', 'leader', '', '', 'ok'),
    (2, 1767323045000678, 'submitted', 'alice', '', '', '', 'because'), (2, 1767323205000678, 'realized', '', '', 'm1', 'rev-4', ''),
    (3, 1767323045000678, 'submitted', 'alice', '', '', '', 'because'), (4, 1767323045000678, 'submitted', 'alice', '', '', '', 'because');
INSERT INTO claims VALUES ('a1', 'r1', 'redis:connect', 1), ('a1', 'r1', 'redis:info', 1), ('a4', 'r4', 'redis:connect', 4);
INSERT INTO outbox (ticket, kind, resource, run_after, attempts, parked, worker, lease_until) VALUES (4, 'apply', 'name:r4', 0, 0, 0, '', 0);
INSERT INTO sessions VALUES ('token', 'data', 4102444800000000);
