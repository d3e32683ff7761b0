-- What people think of answers: one row a person and turn, and the last word counts. `id` is made from both. A row goes with its turn.
CREATE TABLE feedback (
    id      TEXT   PRIMARY KEY,
    turn_id TEXT   NOT NULL,
    chat    TEXT   NOT NULL,
    user_id TEXT   NOT NULL,
    value   TEXT   NOT NULL,
    at      BIGINT NOT NULL
);
CREATE INDEX feedback_turn ON feedback (turn_id);
CREATE INDEX feedback_at ON feedback (at, id);
