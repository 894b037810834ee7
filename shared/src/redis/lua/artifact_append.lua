-- Appends to a blob whose length is known, so that a command sent again appends once.
-- KEYS: 1 bytes  2 expiry  3 used  4 artifacts of the run  5 blob
-- ARGV: 1 name  2 bytes to append  3 life time in milliseconds  4 budget in bytes  5 length of the blob before (0: replace the blob)
-- Reply: {1 (appended), 0 (over budget) or -1 (the blob has another length), bytes in use}
local size = string.len(ARGV[2])
local offset = tonumber(ARGV[5])
local used = tonumber(redis.call('GET', KEYS[3]) or 0)
local length = redis.call('STRLEN', KEYS[5])
if offset > 0 then
  if length == offset + size and redis.call('GETRANGE', KEYS[5], offset, -1) == ARGV[2] then
    return { 1, used }
  end
  if length ~= offset then
    return { -1, used }
  end
end
local replaced = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
if used - replaced + offset + size > tonumber(ARGV[4]) then
  return { 0, used }
end
forget(ARGV[1])
if offset == 0 then
  redis.call('DEL', KEYS[5])
end
redis.call('APPEND', KEYS[5], ARGV[2])
redis.call('PEXPIRE', KEYS[5], ARGV[3])
redis.call('HSET', KEYS[1], ARGV[1], offset + size)
redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[1])
redis.call('SADD', KEYS[4], ARGV[1])
redis.call('PEXPIRE', KEYS[4], ARGV[3])
return { 1, redis.call('INCRBY', KEYS[3], offset + size) }
