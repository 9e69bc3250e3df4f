-- +goose Up
-- Instants are microseconds since 1970 in UTC; 0 or NULL: no instant.
CREATE TABLE tickets (
    number             SERIAL_KEY,
    state              TEXT    NOT NULL,
    version            BIGINT NOT NULL,
    requester          TEXT    NOT NULL,
    reason             TEXT    NOT NULL,
    idempotency_key    TEXT,
    duration_seconds   BIGINT NOT NULL,
    expires_at         BIGINT NOT NULL,
    message            TEXT    NOT NULL,
    policy             TEXT    NOT NULL,
    policy_uid         TEXT    NOT NULL,
    written_generation BIGINT NOT NULL,
    revoke_generation  BIGINT NOT NULL,
    created_at         BIGINT NOT NULL,
    updated_at         BIGINT NOT NULL
);
CREATE UNIQUE INDEX tickets_idempotency ON tickets (requester, idempotency_key);
CREATE INDEX tickets_state ON tickets (state, expires_at);
CREATE INDEX tickets_policy ON tickets (policy);
CREATE INDEX tickets_updated ON tickets (updated_at);

CREATE TABLE ticket_items (
    ticket           BIGINT NOT NULL REFERENCES tickets (number),
    position         BIGINT NOT NULL,
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
    ticket     BIGINT NOT NULL REFERENCES tickets (number),
    position   BIGINT NOT NULL,
    name       TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    note       TEXT    NOT NULL,
    decided_by TEXT    NOT NULL,
    decided_at BIGINT NOT NULL,
    comment    TEXT    NOT NULL,
    PRIMARY KEY (ticket, position)
);
CREATE INDEX ticket_steps_decided ON ticket_steps (decided_by);

CREATE TABLE step_approvers (
    ticket   BIGINT NOT NULL REFERENCES tickets (number),
    position BIGINT NOT NULL, -- of the step
    person   TEXT    NOT NULL,
    PRIMARY KEY (ticket, position, person)
);
CREATE INDEX step_approvers_person ON step_approvers (person);

CREATE TABLE ticket_events (
    seq      SERIAL_KEY,
    ticket   BIGINT NOT NULL REFERENCES tickets (number),
    at       BIGINT NOT NULL,
    kind     TEXT    NOT NULL,
    actor    TEXT    NOT NULL,
    step     TEXT    NOT NULL,
    cluster  TEXT    NOT NULL,
    revision TEXT    NOT NULL,
    comment  TEXT    NOT NULL
);
CREATE INDEX ticket_events_ticket ON ticket_events (ticket, seq);

-- One row for each (application, resource, action) that a ticket in progress asks for.
CREATE TABLE claims (
    application TEXT    NOT NULL,
    resource    TEXT    NOT NULL,
    action      TEXT    NOT NULL,
    ticket      BIGINT NOT NULL REFERENCES tickets (number),
    PRIMARY KEY (application, resource, action)
);
CREATE INDEX claims_ticket ON claims (ticket);

CREATE TABLE outbox (
    id          SERIAL_KEY,
    ticket      BIGINT NOT NULL REFERENCES tickets (number),
    kind        TEXT    NOT NULL,
    resource    TEXT    NOT NULL,
    run_after   BIGINT NOT NULL,
    attempts    BIGINT NOT NULL,
    parked      BOOLEAN NOT NULL,
    worker      TEXT    NOT NULL,
    lease_until BIGINT NOT NULL
);
CREATE INDEX outbox_resource ON outbox (resource, id);

CREATE TABLE ledger (
    seq  NUMBER_KEY,
    text TEXT NOT NULL, -- canonical JSON that contains the hash of the previous line
    hash TEXT NOT NULL
);

CREATE TABLE sessions (
    token      TEXT    PRIMARY KEY, -- SHA-256 of the token that the browser holds
    data       BYTES  NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX sessions_expires ON sessions (expires_at);
