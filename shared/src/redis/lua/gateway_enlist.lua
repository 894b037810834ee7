-- Registers a gateway. An earlier gateway at its address is dead.
-- KEYS: 1 gateways (hash: id → last beat in ms, or minus the time of its end)  2 addresses (hash: address → id)
-- ARGV: 1 gateway  2 address  3 life time of both hashes in seconds
local before = redis.call('HGET', KEYS[2], ARGV[2])
if before and before ~= ARGV[1] then
  local beat = redis.call('HGET', KEYS[1], before)
  if beat and tonumber(beat) > 0 then
    redis.call('HSET', KEYS[1], before, -now)
  end
end
redis.call('HSET', KEYS[1], ARGV[1], now)
redis.call('HSET', KEYS[2], ARGV[2], ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('EXPIRE', KEYS[2], ARGV[3])
return 1
