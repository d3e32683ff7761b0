-- What people allowed in a chat from a card, until a date: the call is in `body`. `number` is what people of the chat call it. One press of a
-- button makes one row, whose `action_id` is the call that the button belonged to. `chat` is for the
-- filter of lists only, and `channel` for whoever reads the table by hand.
CREATE TABLE standing_grants (
    id         TEXT   PRIMARY KEY,
    chat_key   BYTEA  NOT NULL,
    channel    TEXT   NOT NULL,
    chat       TEXT   NOT NULL,
    number     BIGINT NOT NULL,
    action_id  TEXT   NOT NULL UNIQUE,
    body       TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT,
    used       BIGINT NOT NULL,
    UNIQUE (chat_key, number)
);
CREATE INDEX standing_grants_created ON standing_grants (created_at, id);
CREATE INDEX standing_grants_ended ON standing_grants (expires_at);
