-- Stops the clock of a session, or starts it again. The next input starts it too. Needs session_time.lua.
-- KEYS: 1 session   ARGV: 1 '1' to stop, '0' to start   Reply: 'ok' | 'busy' (an input has no answer yet) | 'ended' | 'gone'
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 'gone'
end
local state = redis.call('HMGET', KEYS[1], 'said', 'answered', 'ended')
if state[3] then
  return 'ended'
end
if ARGV[1] == '0' then
  resume_clock(KEYS[1])
elseif tonumber(state[1]) > tonumber(state[2]) then
  return 'busy'
else
  redis.call('HSETNX', KEYS[1], 'paused_at', string.format('%d', now_ms()))
end
return 'ok'
