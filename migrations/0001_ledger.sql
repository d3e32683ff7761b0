-- The ledger: one SQL text for SQLite and Postgres. TEXT, BIGINT and BYTEA only; times are milliseconds;
-- JSON is TEXT; ids of other people's choosing are compared through 16-byte digests (…_key, …_ref), so that
-- no delimiter, NUL or look-alike makes two of them one. Columns `channel`, `chat`, `user_id` are for filters
-- of lists only.

CREATE TABLE facts (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- What came in and must be handled once. `id` is made by the process: ms << 20 | sequence.
CREATE TABLE inbox (
    id          BIGINT PRIMARY KEY,
    event_key   BYTEA  NOT NULL UNIQUE,
    message_key BYTEA  UNIQUE,
    channel     TEXT   NOT NULL,
    chat        TEXT   NOT NULL,
    person_key  BYTEA  NOT NULL,
    kind        TEXT   NOT NULL,
    state       TEXT   NOT NULL,
    lane_id     TEXT,
    outcome     TEXT,
    received_at BIGINT NOT NULL,
    payload     TEXT   NOT NULL
);
CREATE INDEX inbox_new ON inbox (id) WHERE state = 'new';
CREATE INDEX inbox_new_person ON inbox (person_key, id) WHERE state = 'new';
CREATE INDEX inbox_laned ON inbox (lane_id, id) WHERE state = 'laned';
CREATE INDEX inbox_laned_person ON inbox (person_key, id) WHERE state = 'laned';
CREATE INDEX inbox_said ON inbox (chat, id) WHERE channel = 'console' AND kind = 'message';
CREATE INDEX inbox_received ON inbox (received_at) WHERE state = 'done';

-- Conversation and requester: who works on it (owner, fence, lease_until) and when to look again.
CREATE TABLE lanes (
    id           TEXT   PRIMARY KEY,
    chat_key     BYTEA  NOT NULL,
    conversation TEXT   NOT NULL,
    requester    TEXT   NOT NULL,
    owner        TEXT   NOT NULL,
    fence        BIGINT NOT NULL,
    lease_until  BIGINT NOT NULL,
    ready_at     BIGINT NOT NULL,
    wakes        BIGINT NOT NULL,
    turn_id      TEXT
);
CREATE INDEX lanes_ready ON lanes (ready_at);
CREATE INDEX lanes_leased ON lanes (chat_key) WHERE owner <> '';

CREATE TABLE turns (
    id               TEXT   PRIMARY KEY,
    lane_id          TEXT   NOT NULL REFERENCES lanes (id) DEFERRABLE INITIALLY DEFERRED,
    chat_key         BYTEA  NOT NULL,
    conversation_key BYTEA  NOT NULL,
    request_ref      BYTEA,
    channel          TEXT   NOT NULL,
    chat             TEXT   NOT NULL,
    user_id          TEXT   NOT NULL,
    request          TEXT   NOT NULL,
    inbox_id         BIGINT NOT NULL,
    status           TEXT   NOT NULL,
    reason           TEXT,
    state            TEXT   NOT NULL,
    messages         BIGINT NOT NULL,
    events           BIGINT NOT NULL,
    said             BIGINT NOT NULL,
    created_at       BIGINT NOT NULL,
    started_at       BIGINT,
    finished_at      BIGINT
);
CREATE INDEX turns_created ON turns (created_at, id);
CREATE INDEX turns_open ON turns (chat_key) WHERE finished_at IS NULL;
CREATE INDEX turns_earlier ON turns (conversation_key, created_at) WHERE finished_at IS NOT NULL;
CREATE INDEX turns_finished ON turns (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX turns_request ON turns (request_ref) WHERE request_ref IS NOT NULL;
CREATE INDEX turns_lane ON turns (lane_id);

-- The turn's messages as the model sees them; append only.
CREATE TABLE messages (
    turn_id TEXT   NOT NULL REFERENCES turns (id) DEFERRABLE INITIALLY DEFERRED,
    seq     BIGINT NOT NULL,
    body    TEXT   NOT NULL,
    PRIMARY KEY (turn_id, seq)
);

CREATE TABLE actions (
    id         TEXT   PRIMARY KEY,
    turn_id    TEXT   NOT NULL REFERENCES turns (id) DEFERRABLE INITIALLY DEFERRED,
    gate_id    TEXT,
    position   BIGINT NOT NULL,
    status     TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    call       TEXT   NOT NULL,
    decision   TEXT,
    result     TEXT
);
CREATE INDEX actions_turn ON actions (turn_id);
CREATE INDEX actions_gate ON actions (gate_id) WHERE gate_id IS NOT NULL;
CREATE INDEX actions_created ON actions (created_at, id);

-- A gate is open (`pending`) until its row in `decisions` exists; `status` and `closed_at` follow that row.
CREATE TABLE gates (
    id            TEXT   PRIMARY KEY,
    turn_id       TEXT   NOT NULL REFERENCES turns (id) DEFERRABLE INITIALLY DEFERRED,
    lane_id       TEXT   NOT NULL,
    kind          TEXT   NOT NULL,
    status        TEXT   NOT NULL,
    closed_at     BIGINT,
    chat_key      BYTEA  NOT NULL,
    person_key    BYTEA  NOT NULL,
    channel       TEXT   NOT NULL,
    chat          TEXT   NOT NULL,
    user_id       TEXT   NOT NULL,
    request       TEXT   NOT NULL,
    request_ref   BYTEA,
    digest        TEXT   NOT NULL,
    plan_version  BIGINT NOT NULL,
    card          TEXT   NOT NULL,
    quorum        BIGINT NOT NULL,
    ttl_ms        BIGINT NOT NULL,
    opened_at     BIGINT NOT NULL,
    delivered_at  BIGINT,
    card_at       BIGINT,
    card_message  TEXT,
    card_ref      BYTEA,
    expires_at    BIGINT NOT NULL,
    undeliverable BIGINT NOT NULL
);
CREATE INDEX gates_turn ON gates (turn_id);
CREATE INDEX gates_open_lane ON gates (lane_id) WHERE status = 'pending';
CREATE INDEX gates_open_chat ON gates (chat_key) WHERE status = 'pending';
CREATE INDEX gates_closed ON gates (person_key, closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX gates_opened ON gates (opened_at, id);
CREATE INDEX gates_card ON gates (card_ref) WHERE card_ref IS NOT NULL;
CREATE INDEX gates_request ON gates (request_ref) WHERE request_ref IS NOT NULL;

CREATE TABLE votes (
    gate_id TEXT   NOT NULL REFERENCES gates (id) DEFERRABLE INITIALLY DEFERRED,
    person  BYTEA  NOT NULL,
    at      BIGINT NOT NULL,
    body    TEXT   NOT NULL,
    PRIMARY KEY (gate_id, person)
);

-- The primary key is the arbiter: one gate, one decision.
CREATE TABLE decisions (
    gate_id TEXT   PRIMARY KEY REFERENCES gates (id) DEFERRABLE INITIALLY DEFERRED,
    kind    TEXT   NOT NULL,
    at      BIGINT NOT NULL,
    body    TEXT   NOT NULL
);

-- What people do to a turn from outside its lane's lease.
CREATE TABLE signals (
    id          BIGINT PRIMARY KEY,
    turn_id     TEXT   NOT NULL REFERENCES turns (id) DEFERRABLE INITIALLY DEFERRED,
    kind        TEXT   NOT NULL,
    body        TEXT   NOT NULL,
    consumed_at BIGINT
);
CREATE INDEX signals_turn ON signals (turn_id, id);

CREATE TABLE events (
    turn_id   TEXT   NOT NULL REFERENCES turns (id) DEFERRABLE INITIALLY DEFERRED,
    seq       BIGINT NOT NULL,
    id        TEXT   NOT NULL,
    chat      TEXT   NOT NULL,
    at        BIGINT NOT NULL,
    iteration BIGINT NOT NULL,
    summary   TEXT   NOT NULL,
    body      TEXT   NOT NULL,
    PRIMARY KEY (turn_id, seq)
);

-- What must go out once: FIFO per queue. `target` is the key of the post that a patch repaints.
CREATE TABLE outbox (
    id           BIGINT PRIMARY KEY,
    key          TEXT   NOT NULL UNIQUE,
    queue        TEXT   NOT NULL,
    gate_id      TEXT,
    turn_id      TEXT,
    chat_key     BYTEA  NOT NULL,
    channel      TEXT   NOT NULL,
    chat         TEXT   NOT NULL,
    conversation TEXT   NOT NULL,
    op           TEXT   NOT NULL,
    target       TEXT,
    body         TEXT   NOT NULL,
    state        TEXT   NOT NULL,
    owner        TEXT   NOT NULL,
    held_until   BIGINT NOT NULL,
    ready_at     BIGINT NOT NULL,
    tries        BIGINT NOT NULL,
    plain        BIGINT NOT NULL,
    error        TEXT,
    platform_id  TEXT,
    message_ref  BYTEA,
    created_at   BIGINT NOT NULL,
    give_up_at   BIGINT NOT NULL,
    sent_at      BIGINT
);
CREATE INDEX outbox_waiting ON outbox (queue, id) WHERE state = 'waiting';
CREATE INDEX outbox_target ON outbox (target, id) WHERE target IS NOT NULL;
CREATE INDEX outbox_message ON outbox (message_ref) WHERE message_ref IS NOT NULL;
CREATE INDEX outbox_turn ON outbox (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX outbox_said ON outbox (chat, id) WHERE channel = 'console' AND op = 'post';
CREATE INDEX outbox_created ON outbox (created_at) WHERE turn_id IS NULL;

-- The embedded look-up of pending reviews; may lapse, the gates above are the truth.
CREATE TABLE pending_reviews (
    review_key      TEXT   PRIMARY KEY,
    chat_key        BYTEA  NOT NULL,
    user_id         TEXT   NOT NULL,
    chat_id         TEXT   NOT NULL,
    run_id          TEXT   NOT NULL,
    overall_goal_ui TEXT   NOT NULL,
    internal_plan   TEXT   NOT NULL,
    created_at      BIGINT NOT NULL,
    expires_at      BIGINT NOT NULL,
    review_id       TEXT   NOT NULL
);
CREATE INDEX pending_reviews_chat ON pending_reviews (chat_key);

-- The approval trail: each row's hash covers the row and the hash before it; the head tells a cut tail.
CREATE TABLE audit (
    seq       BIGINT PRIMARY KEY,
    at        BIGINT NOT NULL,
    kind      TEXT   NOT NULL,
    turn_id   TEXT,
    gate_id   TEXT,
    action_id TEXT,
    principal TEXT,
    details   TEXT   NOT NULL,
    prev_hash BYTEA  NOT NULL,
    hash      BYTEA  NOT NULL
);
CREATE TABLE audit_head (
    id   BIGINT PRIMARY KEY,
    seq  BIGINT NOT NULL,
    hash BYTEA  NOT NULL
);
