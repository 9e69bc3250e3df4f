-- +goose Up
-- A change without a ticket of which nobody was notified yet; JSON, or empty.
ALTER TABLE notify_outbox ADD COLUMN bulletin TEXT NOT NULL DEFAULT '';

-- The rollout state of a resource, as far as it does not follow from its mode.
CREATE TABLE rollout_states (
    resource TEXT PRIMARY KEY, -- the resource's name
    body     TEXT NOT NULL     -- JSON
);

-- The replica that watches the rollouts. The instant is microseconds since 1970 in UTC.
CREATE TABLE rollout_lead (
    name        TEXT PRIMARY KEY,
    holder      TEXT   NOT NULL,
    lease_until BIGINT NOT NULL
);
