-- +goose Up
-- The tickets that changed lately, numbered in the order in which the changes become visible: the rows after the last
-- number that a reader has seen are new to it. Old rows are removed.
CREATE TABLE changes (
    seq    SERIAL_KEY,
    ticket BIGINT NOT NULL -- 0: a delegation
);
