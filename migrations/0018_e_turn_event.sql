-- The event that asked for the turn: who sent it finds its turn. Turns of earlier versions have none.
ALTER TABLE turns ADD COLUMN event_id TEXT;
CREATE INDEX turns_event ON turns (event_id) WHERE event_id IS NOT NULL;
