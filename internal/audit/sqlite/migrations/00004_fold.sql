-- +goose Up
-- Minutes lie in the order in which they come, which makes adding them cheap. What is over is added up by hours, which lie by
-- edge: that is what long windows are answered from. "folded" is the hour up to which that was done.
CREATE TABLE minutes (
    bucket     INTEGER NOT NULL,
    edge       INTEGER NOT NULL,
    count      INTEGER NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen  INTEGER NOT NULL,
    PRIMARY KEY (bucket, edge)
) WITHOUT ROWID;
INSERT INTO minutes SELECT bucket, edge, count, first_seen, last_seen FROM rollups ORDER BY bucket, edge;
DROP TABLE rollups;
ALTER TABLE minutes RENAME TO rollups;

CREATE TABLE hours (
    edge       INTEGER NOT NULL,
    bucket     INTEGER NOT NULL,
    count      INTEGER NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen  INTEGER NOT NULL,
    PRIMARY KEY (edge, bucket)
) WITHOUT ROWID;

CREATE TABLE folding (folded INTEGER NOT NULL, newest INTEGER NOT NULL);
INSERT INTO folding SELECT coalesce(min(bucket) / 3600000000 * 3600000000, 0), coalesce(max(bucket), 0) FROM rollups;

-- What all edges together come to, for the series that everybody looks at first.
CREATE TABLE tallies (
    bucket   INTEGER NOT NULL,
    decision TEXT    NOT NULL,
    count    INTEGER NOT NULL,
    PRIMARY KEY (bucket, decision)
) WITHOUT ROWID;
INSERT INTO tallies SELECT r.bucket, e.decision, sum(r.count) FROM rollups r JOIN edges e ON e.id = r.edge GROUP BY r.bucket, e.decision;

-- An edge is found by a hash of all that it says.
CREATE TABLE hashed (
    id              INTEGER PRIMARY KEY,
    hash            BLOB    NOT NULL UNIQUE,
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
    other_resources TEXT    NOT NULL
);
-- What was there before has no hash yet, and is counted under a new edge from now on.
INSERT INTO hashed SELECT id, CAST('before ' || id AS BLOB), cluster, source_cluster, subject, resource, source, destination, action, port, protocol, decision, verdict,
    policy, sid, other_subjects, other_resources FROM edges;
CREATE TABLE raw (
    id                  INTEGER PRIMARY KEY,
    time                INTEGER NOT NULL,
    edge                INTEGER NOT NULL,
    node                TEXT    NOT NULL,
    source_address      TEXT    NOT NULL,
    destination_address TEXT    NOT NULL,
    source_port         INTEGER NOT NULL,
    count               INTEGER NOT NULL,
    reason              TEXT    NOT NULL
);
INSERT INTO raw SELECT id, time, edge, node, source_address, destination_address, source_port, count, reason FROM flows;
DROP TABLE flows;
DROP TABLE edges;
ALTER TABLE hashed RENAME TO edges;
ALTER TABLE raw RENAME TO flows;
CREATE INDEX edges_by_resource ON edges (resource);
CREATE INDEX edges_by_subject ON edges (subject);
CREATE INDEX flows_by_time ON flows (time);
CREATE INDEX flows_by_edge ON flows (edge, time);

-- +goose Down
SELECT 'there is no way back: an older program would not know the hours';
