-- A connection closed before it was answered: the last one makes the call an orphan.
-- KEYS: 1 calls of this fingerprint  2 open calls
-- ARGV: 1 call id  2 gateway that held it  3 grace (ms)
local text = redis.call('HGET', KEYS[1], ARGV[1])
local call = text and cjson.decode(text)
if not call or call.holder ~= ARGV[2] or call.held == 0 then
  return 0
end
call.held = call.held - 1
if call.held == 0 and not call.answered then
  call.orphan_until = now + ARGV[3]
  redis.call('ZADD', KEYS[2], call.orphan_until, ARGV[1])
end
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(call))
return 1
