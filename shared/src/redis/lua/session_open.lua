-- Assigns a session to an attempt. After the first command no other attempt can continue, because commands cannot be repeated.
-- KEYS: 1 session   ARGV: 1 worker  2 nonce of the attempt's claim   Reply: 'open' | 'lost' | 'expired' | 'gone'
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 'gone'
end
local state = redis.call('HMGET', KEYS[1], 'taken', 'lease_until', 'attempt')
if tonumber(state[1]) > 0 and state[3] ~= ARGV[2] then
  return 'lost'
end
local now = now_ms()
if now > tonumber(state[2]) then
  return 'expired'
end
redis.call('HSET', KEYS[1], 'worker', ARGV[1], 'attempt', ARGV[2])
redis.call('HSETNX', KEYS[1], 'opened_at', string.format('%d', now))
if redis.call('HGET', KEYS[1], 'clock') == 'commands' then
  redis.call('HSETNX', KEYS[1], 'paused_at', string.format('%d', now))
end
return 'open'
