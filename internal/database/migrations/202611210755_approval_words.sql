-- +goose Up
-- What tickets are searched by, as package words splits their texts. 202611210756 fills it with those of before.
-- +sqlite
CREATE TABLE ticket_words (
    ticket BIGINT NOT NULL REFERENCES tickets (number),
    word   TEXT   NOT NULL,
    PRIMARY KEY (ticket, word)
) WITHOUT ROWID;
-- Beginnings are ranges, so the order is that of bytes.
-- +postgres
CREATE TABLE ticket_words (
    ticket BIGINT NOT NULL REFERENCES tickets (number),
    word   TEXT   COLLATE "C" NOT NULL,
    PRIMARY KEY (ticket, word)
);
CREATE INDEX ticket_words_word ON ticket_words (word, ticket);
