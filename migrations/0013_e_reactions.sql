-- A reaction names a message, and on Lark not even its chat: the open gate whose card it is, and the copy of a card, are found by the message.
CREATE INDEX gates_open_card ON gates (card_message) WHERE status = 'pending';
CREATE INDEX outbox_copy_message ON outbox (platform_id) WHERE copy_of IS NOT NULL;
-- Platforms tell of a reaction and of its end in any order: the later one counts.
CREATE INDEX inbox_reactions ON inbox (person_key, id) WHERE kind = 'reaction';
