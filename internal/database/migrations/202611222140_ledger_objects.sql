-- +goose Up
-- Which generation of each of the host cluster's objects the ledger knows. The row without a kind says that there was a
-- first comparison.
CREATE TABLE ledger_objects (
    kind       TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    uid        TEXT   NOT NULL,
    generation BIGINT NOT NULL,
    PRIMARY KEY (kind, name)
);

-- The portal's own changes, which have lines already, until ledger_objects is as far, and which objects' ends are recorded.
CREATE TABLE ledger_own (
    uid        TEXT   NOT NULL,
    generation BIGINT NOT NULL, -- the largest number: its deletion; one less: its end is in the ledger
    PRIMARY KEY (uid, generation)
);
