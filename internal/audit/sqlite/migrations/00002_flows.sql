-- +goose Up
-- An edge also keeps the other names of its ends, so its identity is another one.
CREATE TABLE edges_with_names (
    id              INTEGER PRIMARY KEY,
    cluster         TEXT    NOT NULL,
    source_cluster  TEXT    NOT NULL,
    subject         TEXT    NOT NULL,
    resource        TEXT    NOT NULL,
    source          TEXT    NOT NULL,
    destination     TEXT    NOT NULL,
    action          TEXT    NOT NULL,
    port            INTEGER NOT NULL,
    protocol        TEXT    NOT NULL,
    decision        TEXT    NOT NULL,
    verdict         TEXT    NOT NULL,
    policy          TEXT    NOT NULL,
    sid             TEXT    NOT NULL,
    other_subjects  TEXT    NOT NULL,
    other_resources TEXT    NOT NULL,
    UNIQUE (resource, subject, cluster, source_cluster, source, destination, action, port, protocol, decision, verdict, policy, sid,
        other_subjects, other_resources)
);
INSERT INTO edges_with_names
    SELECT id, cluster, source_cluster, subject, resource, source, destination, action, port, protocol, decision, verdict, policy, sid, '', '' FROM edges;
CREATE TABLE rollups_with_names (
    edge       INTEGER NOT NULL REFERENCES edges_with_names (id),
    bucket     INTEGER NOT NULL,
    count      INTEGER NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen  INTEGER NOT NULL,
    PRIMARY KEY (edge, bucket)
) WITHOUT ROWID;
INSERT INTO rollups_with_names SELECT edge, bucket, count, first_seen, last_seen FROM rollups;
DROP TABLE rollups;
DROP TABLE edges;
ALTER TABLE edges_with_names RENAME TO edges;
ALTER TABLE rollups_with_names RENAME TO rollups;
CREATE INDEX edges_by_subject ON edges (subject);
CREATE INDEX rollups_by_bucket ON rollups (bucket);

CREATE TABLE flows (
    id                  INTEGER PRIMARY KEY,
    time                INTEGER NOT NULL,
    edge                INTEGER NOT NULL REFERENCES edges (id),
    node                TEXT    NOT NULL,
    source_address      TEXT    NOT NULL,
    destination_address TEXT    NOT NULL,
    source_port         INTEGER NOT NULL,
    count               INTEGER NOT NULL,
    reason              TEXT    NOT NULL
);
CREATE INDEX flows_by_time ON flows (time);
CREATE INDEX flows_by_edge ON flows (edge, time);

CREATE TABLE watched (
    source TEXT    NOT NULL,
    began  INTEGER NOT NULL,
    ended  INTEGER NOT NULL,
    PRIMARY KEY (source, began)
) WITHOUT ROWID;

CREATE TABLE leases (
    source TEXT PRIMARY KEY,
    holder TEXT    NOT NULL,
    until  INTEGER NOT NULL
) WITHOUT ROWID;

-- +goose Down
SELECT 'there is no way back: the other names of the ends would be lost';
