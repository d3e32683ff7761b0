-- The cards of gates: one in the gate's chat (`person` is empty), and one in the direct chat of each person to whom the gate was escalated. A row
-- is written with the post; place, `message` and `posted_at` are those of its receipt. It does not refer to `gates`: a program of the version
-- before, which may run beside this one until an upgrade is over, removes gates and knows no cards.
CREATE TABLE cards (
    gate         TEXT   NOT NULL,
    person       TEXT   NOT NULL,
    conversation TEXT   NOT NULL,
    chat_key     BYTEA  NOT NULL,
    outbox_key   TEXT   NOT NULL,
    message      TEXT,
    posted_at    BIGINT,
    PRIMARY KEY (gate, person)
);
CREATE INDEX cards_chat ON cards (chat_key, message);
-- Lark names no chat with a reaction.
CREATE INDEX cards_message ON cards (message) WHERE message IS NOT NULL;
-- The post of a direct card names its person in its content alone: the program reads that.
INSERT INTO cards (gate, person, conversation, chat_key, outbox_key, message, posted_at)
SELECT gate_id, '', conversation, chat_key, key, platform_id, COALESCE(posted_at, sent_at) FROM outbox WHERE gate_id IS NOT NULL AND op = 'post'
ON CONFLICT (gate, person) DO NOTHING;
