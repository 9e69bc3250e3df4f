-- +goose Up
-- The search tokens of tickets, as the Go package tokenize splits their texts. Migration 202611210756 adds those of existing tickets.
-- +sqlite
CREATE TABLE ticket_words (
    ticket BIGINT NOT NULL REFERENCES tickets (number),
    word   TEXT   NOT NULL,
    PRIMARY KEY (ticket, word)
) WITHOUT ROWID;
-- A search for a prefix is a range, which needs the order of bytes.
-- +postgres
CREATE TABLE ticket_words (
    ticket BIGINT NOT NULL REFERENCES tickets (number),
    word   TEXT   COLLATE "C" NOT NULL,
    PRIMARY KEY (ticket, word)
);
CREATE INDEX ticket_words_word ON ticket_words (word, ticket);
