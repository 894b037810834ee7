-- Reports that a connection of a call closed without an answer. A call without connections becomes an orphan.
-- KEYS: 1 calls of this fingerprint  2 open calls
-- ARGV: 1 call id, or nonce of its claim  2 gateway of the call  3 grace (ms)  4 kind of 1: id or by
local id = ARGV[1]
if ARGV[4] == 'by' then
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    if cjson.decode(all[i + 1]).by == ARGV[1] then
      id = all[i]
    end
  end
end
local text = redis.call('HGET', KEYS[1], id)
local call = text and cjson.decode(text)
if not call or call.holder ~= ARGV[2] or call.held == 0 then
  return 0
end
call.held = call.held - 1
if call.held == 0 and not call.answered then
  call.orphan_until = now + ARGV[3]
  redis.call('ZADD', KEYS[2], call.orphan_until, id)
end
redis.call('HSET', KEYS[1], id, cjson.encode(call))
return 1
