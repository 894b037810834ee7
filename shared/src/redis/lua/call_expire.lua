-- KEYS: 1 calls of this fingerprint  2 open calls   ARGV: 1 call id  2 remove (1) or only check (0)
-- Reply: the rollout id if the grace of the call is over, else false
local text = redis.call('HGET', KEYS[1], ARGV[1])
local call = text and cjson.decode(text)
if not call then
  redis.call('ZREM', KEYS[2], ARGV[1])
  return false
end
if call.held > 0 or call.answered or not call.orphan_until or call.orphan_until >= now then
  return false
end
if ARGV[2] == '1' then
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
end
return call.rollout_id
