-- How often a process died while it worked on the lane's turn, with no step journaled since; and when the lane was claimed last.
ALTER TABLE lanes ADD COLUMN crashes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE lanes ADD COLUMN claimed_at BIGINT NOT NULL DEFAULT 0;
-- The lanes that are claimed one at a time (see `Session::claim_lane`): hardly ever any.
CREATE INDEX lanes_suspect ON lanes (crashes) WHERE crashes > 1;
-- The ready lanes of one chat, and when each of its people was served last.
CREATE INDEX lanes_chat ON lanes (chat_key, ready_at);
CREATE INDEX lanes_served ON lanes (chat_key, requester, claimed_at);
