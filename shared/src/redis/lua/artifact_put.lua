-- Stores or replaces a blob if the byte budget allows.
-- KEYS: 1 bytes  2 expiry  3 used  4 artifacts of the run  5 blob
-- ARGV: 1 name  2 blob  3 life time in milliseconds  4 budget in bytes
-- Reply: {1 or 0 (over budget), bytes in use}
local size = string.len(ARGV[2])
local replaced = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
local used = tonumber(redis.call('GET', KEYS[3]) or 0)
if used - replaced + size > tonumber(ARGV[4]) then
  return { 0, used }
end
forget(ARGV[1])
redis.call('SET', KEYS[5], ARGV[2], 'PX', ARGV[3])
redis.call('HSET', KEYS[1], ARGV[1], size)
redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[1])
redis.call('SADD', KEYS[4], ARGV[1])
redis.call('PEXPIRE', KEYS[4], ARGV[3])
return { 1, redis.call('INCRBY', KEYS[3], size) }
