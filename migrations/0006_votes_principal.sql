-- A vote that the holder of the API's token gave in somebody's name. That person's own vote takes its place.
ALTER TABLE votes ADD COLUMN principal TEXT;

-- On the platforms the API never spoke for itself; on the console the person is the one who asks. The bodies stay as they were sealed.
UPDATE votes SET principal = 'api'
  WHERE body LIKE '%"via":"api"%' AND gate_id IN (SELECT id FROM gates WHERE channel <> 'console');
