-- Two looks that are not about one turn, and must not become slower with what is stored.

-- Readers of the events of all turns look again and again at the newest ones. Everything that this look needs is in the index.
CREATE INDEX events_at ON events (at, chat, turn_id, seq);
-- Turns that are in the middle of a call hear together whether anybody has said something to one of them.
CREATE INDEX signals_unread ON signals (turn_id) WHERE consumed_at IS NULL;
