-- What was done while nobody answered a gate: the reminder, and the people who were asked in direct messages. Older gates have nothing.
ALTER TABLE gates ADD COLUMN reminded_at BIGINT;
ALTER TABLE gates ADD COLUMN escalated_at BIGINT;
ALTER TABLE gates ADD COLUMN escalated_to TEXT;
-- The gate whose card the message is a copy of, and when the platform says that it was posted.
ALTER TABLE outbox ADD COLUMN copy_of TEXT;
ALTER TABLE outbox ADD COLUMN posted_at BIGINT;
CREATE INDEX outbox_copies ON outbox (copy_of) WHERE copy_of IS NOT NULL;
CREATE INDEX outbox_copies_chat ON outbox (chat_key) WHERE copy_of IS NOT NULL;
