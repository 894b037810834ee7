-- Makes a call of a dead gateway an orphan. Without a live gateway no caller can return, so the grace starts later.
-- KEYS: 1 open calls  2 calls of one fingerprint  3 gateways
-- ARGV: 1 call id  2 default grace (ms)  3 1 if a gateway is alive
local text = redis.call('HGET', KEYS[2], ARGV[1])
if not text then
  redis.call('ZREM', KEYS[1], ARGV[1])
  return 0
end
local call = cjson.decode(text)
local state = call.held > 0 and state_of(redis.call('HGET', KEYS[3], call.holder))
if type(state) ~= 'number' then
  return 0
end
local abandoned = state + OUTAGE_MS < now
if ARGV[3] == '0' and not abandoned then
  return 0
end
call.held = 0
call.orphan_until = abandoned and now - 1 or now + grace_of(call, ARGV[2])
redis.call('HSET', KEYS[2], ARGV[1], cjson.encode(call))
redis.call('ZADD', KEYS[1], call.orphan_until, ARGV[1])
return 1
