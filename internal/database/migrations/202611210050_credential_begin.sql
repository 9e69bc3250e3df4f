-- +goose Up
-- Instants are microseconds since 1970 in UTC; 0: no instant. Hashes are SHA-256 of the secrets that callers hold.
CREATE TABLE tokens (
    id              TEXT   PRIMARY KEY,
    person          TEXT   NOT NULL,
    name            TEXT   NOT NULL,
    scopes          TEXT   NOT NULL, -- separated by spaces
    prefix          TEXT   NOT NULL,
    hash            TEXT   NOT NULL UNIQUE,
    idempotency_key TEXT,
    created_at      BIGINT NOT NULL,
    expires_at      BIGINT NOT NULL,
    last_used_at    BIGINT NOT NULL
);
CREATE UNIQUE INDEX tokens_idempotency ON tokens (person, idempotency_key);
CREATE INDEX tokens_expires ON tokens (expires_at);

CREATE TABLE device_logins (
    device_hash      TEXT   PRIMARY KEY,
    user_hash        TEXT   NOT NULL UNIQUE,
    client           TEXT   NOT NULL,
    address          TEXT   NOT NULL,
    state            TEXT   NOT NULL,
    person           TEXT   NOT NULL,
    created_at       BIGINT NOT NULL,
    expires_at       BIGINT NOT NULL,
    polled_at        BIGINT NOT NULL,
    interval_seconds BIGINT NOT NULL
);
CREATE INDEX device_logins_expires ON device_logins (expires_at);

-- Older sessions have no person and appear in no list; they remain valid until they end.
ALTER TABLE sessions ADD COLUMN person TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN user_agent TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN created_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX sessions_person ON sessions (person);
