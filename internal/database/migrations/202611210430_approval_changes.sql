-- +goose Up
-- Which tickets changed lately, numbered in the order in which it can be seen: whoever knows the last number that he has
-- seen, knows what is new. Old rows are removed.
CREATE TABLE changes (
    seq    SERIAL_KEY,
    ticket BIGINT NOT NULL -- 0: a delegation
);
