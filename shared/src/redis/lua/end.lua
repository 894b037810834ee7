-- Writes the end of an attempt, once.
-- KEYS: 1 journal
-- ARGV: 1 rollout id  2 nonce of the attempt's claim  3 end (JSON)
local text = redis.call('HGET', KEYS[1], ARGV[1])
if not text then
  return 0
end
local journal = cjson.decode(text)
for _, entry in ipairs(journal) do
  if entry.claim == ARGV[2] and entry.ended_at == cjson.null then
    entry.ended_at = now_ms()
    entry['end'] = cjson.decode(ARGV[3])
    redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(journal))
    return 1
  end
end
return 0
