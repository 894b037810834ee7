-- Removes workers with expired records from the list and counts each once.
-- KEYS: 1 workers  2 counters of workers
-- ARGV: worker ids
local lost = redis.call('ZREM', KEYS[1], unpack(ARGV))
if lost > 0 then
  redis.call('HINCRBY', KEYS[2], 'lost', lost)
end
return lost
