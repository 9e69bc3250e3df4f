-- +goose Up
-- The generation of each object of the host cluster that the ledger has recorded. The row without a kind marks that the
-- first comparison was made.
CREATE TABLE ledger_objects (
    kind       TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    uid        TEXT   NOT NULL,
    generation BIGINT NOT NULL,
    PRIMARY KEY (kind, name)
);

-- The portal's own changes, which have ledger lines already, until ledger_objects has caught up, and the objects whose deletion is recorded.
CREATE TABLE ledger_own (
    uid        TEXT   NOT NULL,
    generation BIGINT NOT NULL, -- the largest number: the object's deletion; one less: its end is in the ledger
    PRIMARY KEY (uid, generation)
);
