-- Removes an answered call, or keeps it for the life time of its name.
-- KEYS: 1 calls of this fingerprint  2 open calls
-- ARGV: 1 call id  2 life time of its name (ms); 0: no name
redis.call('ZREM', KEYS[2], ARGV[1])
local text = redis.call('HGET', KEYS[1], ARGV[1])
if not text then
  return 0
end
if ARGV[2] == '0' then
  return redis.call('HDEL', KEYS[1], ARGV[1])
end
local call = cjson.decode(text)
call.held = math.max(0, call.held - 1)
call.answered = true
call.orphan_until = nil
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(call))
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
