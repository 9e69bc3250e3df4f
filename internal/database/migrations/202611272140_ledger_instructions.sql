-- +goose Up
-- The instructions about waves that the ledger has or does not need, because the portal gave them, by the name of the ProtectedResource, the
-- id of the instruction and the SHA-256 of its content. The row without an object marks that the first comparison was made.
CREATE TABLE ledger_instructions (
    object TEXT NOT NULL,
    id     TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (object, id, digest)
);

INSERT INTO schema_compatibility (version, oldest) VALUES (202611272140, 202611231710);
