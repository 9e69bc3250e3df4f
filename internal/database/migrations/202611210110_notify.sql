-- +goose Up
-- Changes of which nobody was notified yet; a row is written in the transaction of the change.
CREATE TABLE notify_outbox (
    id           SERIAL_KEY,
    ticket       BIGINT NOT NULL, -- 0: the change concerns a delegation
    first_event  BIGINT NOT NULL, -- positions in the ticket's timeline
    last_event   BIGINT NOT NULL,
    delegation   BIGINT NOT NULL
);

-- One row for each person, event and channel. The rows of the channel "inbox" are the inbox.
CREATE TABLE notifications (
    id          SERIAL_KEY,
    person      TEXT    NOT NULL, -- empty: a shared receiver
    event       TEXT    NOT NULL,
    channel     TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    ticket      BIGINT  NOT NULL,
    at          BIGINT  NOT NULL,
    facts       TEXT    NOT NULL, -- JSON
    state       TEXT    NOT NULL, -- unread, read; queued, sent, dead
    digest      BOOLEAN NOT NULL,
    run_after   BIGINT  NOT NULL,
    attempts    BIGINT  NOT NULL,
    worker      TEXT    NOT NULL,
    lease_until BIGINT  NOT NULL,
    problem     TEXT    NOT NULL, -- why the last attempt failed
    done_at     BIGINT  NOT NULL, -- read, sent or given up
    UNIQUE (person, event, channel)
);
CREATE INDEX notifications_inbox ON notifications (person, channel, id);
CREATE INDEX notifications_unread ON notifications (person, channel, state, id);
CREATE INDEX notifications_due ON notifications (channel, state, run_after);
CREATE INDEX notifications_done ON notifications (state, done_at);

CREATE TABLE notify_preferences (
    person     TEXT   PRIMARY KEY,
    body       TEXT   NOT NULL, -- JSON
    updated_at BIGINT NOT NULL
);
