-- Renews the lease of a session that has not ended.
-- KEYS: 1 session  2 live sessions  3.. its other keys (life time only)
-- ARGV: 1 session id  2 life time of its keys in milliseconds   Reply: 1 if renewed
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HGET', KEYS[1], 'ended') then
  return 0
end
local until_ms = now_ms() + tonumber(redis.call('HGET', KEYS[1], 'lease_ms'))
redis.call('HSET', KEYS[1], 'lease_until', string.format('%d', until_ms))
redis.call('ZADD', KEYS[2], string.format('%d', until_ms), ARGV[1])
for i = 1, #KEYS do
  if i ~= 2 then
    redis.call('PEXPIRE', KEYS[i], ARGV[2])
  end
end
return 1
