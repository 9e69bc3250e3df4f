-- +goose Up
-- Instants are microseconds since 1970 in UTC. The status 0 means a call in progress.
CREATE TABLE idempotency (
    person          TEXT   NOT NULL,
    idempotency_key TEXT   NOT NULL,
    digest          TEXT   NOT NULL,
    claimed_at      BIGINT NOT NULL,
    status          BIGINT NOT NULL,
    kind            TEXT   NOT NULL,
    body            BYTES NOT NULL,
    PRIMARY KEY (person, idempotency_key)
);
CREATE INDEX idempotency_claimed ON idempotency (claimed_at);
