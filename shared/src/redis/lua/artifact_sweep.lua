-- This text precedes the other artifact scripts. KEYS: 1 bytes  2 expiry  3 used
local now = now_ms()

-- Removes an artifact from the accounts. The blob expires, or the caller deletes it.
local function forget(name)
  local size = redis.call('HGET', KEYS[1], name)
  if size then
    redis.call('HDEL', KEYS[1], name)
    redis.call('ZREM', KEYS[2], name)
    redis.call('DECRBY', KEYS[3], size)
  end
end

-- Removes expired artifacts, at most 1000 in one call.
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], 0, now, 'LIMIT', 0, 1000)) do
  forget(name)
end
