-- Functions for the clock of a session, which adds the time of its pauses.

-- Returns the milliseconds of all pauses of the session with record `key`, with the one that lasts.
local function paused_ms(key)
  local state = redis.call('HMGET', key, 'paused_ms', 'paused_at')
  return tonumber(state[1] or 0) + (state[2] and math.max(0, now_ms() - tonumber(state[2])) or 0)
end

local function resume_clock(key)
  local total = string.format('%d', paused_ms(key))
  if redis.call('HDEL', key, 'paused_at') == 1 then
    redis.call('HSET', key, 'paused_ms', total)
  end
end
