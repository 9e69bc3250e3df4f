-- +goose Up
-- What happened without a ticket and people have not been told of yet; JSON, or empty.
ALTER TABLE notify_outbox ADD COLUMN bulletin TEXT NOT NULL DEFAULT '';

-- How far a resource is on its way from observe to enforce, as far as its mode does not say it.
CREATE TABLE rollout_states (
    resource TEXT PRIMARY KEY, -- its resource name
    body     TEXT NOT NULL     -- JSON
);

-- Which replica watches the rollouts. The instant is microseconds since 1970 in UTC.
CREATE TABLE rollout_lead (
    name        TEXT PRIMARY KEY,
    holder      TEXT   NOT NULL,
    lease_until BIGINT NOT NULL
);
