-- +goose Up
-- Times are microseconds since 1970 UTC, buckets the same at the start of a minute.
CREATE TABLE edges (
    id             INTEGER PRIMARY KEY,
    cluster        TEXT    NOT NULL,
    source_cluster TEXT    NOT NULL,
    subject        TEXT    NOT NULL,
    resource       TEXT    NOT NULL,
    source         TEXT    NOT NULL,
    destination    TEXT    NOT NULL,
    action         TEXT    NOT NULL,
    port           INTEGER NOT NULL,
    protocol       TEXT    NOT NULL,
    decision       TEXT    NOT NULL,
    verdict        TEXT    NOT NULL,
    policy         TEXT    NOT NULL,
    sid            TEXT    NOT NULL,
    UNIQUE (resource, subject, cluster, source_cluster, source, destination, action, port, protocol, decision, verdict, policy, sid)
);
CREATE INDEX edges_by_subject ON edges (subject);

CREATE TABLE rollups (
    edge       INTEGER NOT NULL REFERENCES edges (id),
    bucket     INTEGER NOT NULL,
    count      INTEGER NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen  INTEGER NOT NULL,
    PRIMARY KEY (edge, bucket)
) WITHOUT ROWID;
CREATE INDEX rollups_by_bucket ON rollups (bucket);

CREATE TABLE losses (
    cluster  TEXT    NOT NULL,
    node     TEXT    NOT NULL,
    reason   TEXT    NOT NULL,
    bucket   INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    began    INTEGER NOT NULL,
    ended    INTEGER NOT NULL,
    PRIMARY KEY (cluster, node, reason, bucket)
) WITHOUT ROWID;
CREATE INDEX losses_by_end ON losses (ended);

-- The resume positions are written in the transaction of the counts that lead up to them.
CREATE TABLE positions (
    source TEXT PRIMARY KEY,
    time   INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE seen (
    source TEXT    NOT NULL,
    time   INTEGER NOT NULL,
    id     INTEGER NOT NULL,
    PRIMARY KEY (source, time, id)
) WITHOUT ROWID;

CREATE TABLE batches (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id  TEXT NOT NULL UNIQUE
);

-- +goose Down
DROP TABLE batches;
DROP TABLE seen;
DROP TABLE positions;
DROP TABLE losses;
DROP TABLE rollups;
DROP TABLE edges;
