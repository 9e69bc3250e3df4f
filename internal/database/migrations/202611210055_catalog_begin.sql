-- +goose Up
-- Instants are microseconds since 1970 in UTC; 0: no instant.
-- One row. A change of the catalog increments the revision that it was computed from, and fails if it is another one.
CREATE TABLE catalog_revision (
    id       NUMBER_KEY,
    revision BIGINT NOT NULL
);
INSERT INTO catalog_revision (id, revision) VALUES (1, 0);

CREATE TABLE catalog_entities (
    kind    TEXT   NOT NULL,
    id      TEXT   NOT NULL,
    source  TEXT   NOT NULL,
    record  TEXT   NOT NULL, -- JSON
    gone_at BIGINT NOT NULL,
    version BIGINT NOT NULL, -- the revision of its last change
    PRIMARY KEY (kind, id)
);

CREATE TABLE catalog_previews (
    token      TEXT   PRIMARY KEY, -- SHA-256 of the token that the person holds
    source     TEXT   NOT NULL,
    actor      TEXT   NOT NULL,
    revision   BIGINT NOT NULL,
    reading    BYTES  NOT NULL, -- JSON, gzip
    created_at BIGINT NOT NULL
);

CREATE TABLE catalog_sources (
    source TEXT PRIMARY KEY,
    status TEXT NOT NULL -- JSON
);
