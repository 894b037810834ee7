-- Creates the record of a session once, and renews its lease.
-- KEYS: 1 session  2 live sessions
-- ARGV: 1 session id  2 lease in milliseconds  3 life time of the record in milliseconds  4.. pairs: field, value
-- Reply: {created (1 or 0)}
local created = 0
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'said', 0, 'taken', 0, 'answered', 0, 'submitted', 0, 'attempt', 0, 'lease_ms', ARGV[2], unpack(ARGV, 4))
  created = 1
end
if not redis.call('HGET', KEYS[1], 'ended') then
  local until_ms = now_ms() + tonumber(redis.call('HGET', KEYS[1], 'lease_ms'))
  redis.call('HSET', KEYS[1], 'lease_until', string.format('%d', until_ms))
  redis.call('ZADD', KEYS[2], string.format('%d', until_ms), ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return { created }
