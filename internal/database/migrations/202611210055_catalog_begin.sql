-- +goose Up
-- Instants are microseconds since 1970 in UTC; 0: none.
-- One row. Whoever changes the catalog moves the revision on from the one that he has seen.
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
    version BIGINT NOT NULL, -- the revision at which it changed last
    PRIMARY KEY (kind, id)
);

CREATE TABLE catalog_previews (
    token      TEXT   PRIMARY KEY, -- SHA-256 of what the person has
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
