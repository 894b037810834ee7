-- Returns the next input of a session to its attempt; a negative number only checks the lease. Needs session_time.lua.
-- KEYS: 1 session  2 commands   ARGV: 1 nonce of the attempt's claim  2 number of the last finished input, or -1
-- Reply: {'command', milliseconds of all pauses, number, entry (JSON)} | {'none' or 'expired', milliseconds of all pauses} | {'gone'}
if redis.call('HGET', KEYS[1], 'attempt') ~= ARGV[1] then
  return { 'gone' }
end
local done = tonumber(ARGV[2])
if done < 0 then
  local expired = now_ms() > tonumber(redis.call('HGET', KEYS[1], 'lease_until'))
  return { expired and 'expired' or 'none', paused_ms(KEYS[1]) }
end
local id = string.format('%d-0', done + 1)
local entry = redis.call('XRANGE', KEYS[2], id, id)[1]
if not entry then
  return { 'none', paused_ms(KEYS[1]) }
end
resume_clock(KEYS[1])
redis.call('HSET', KEYS[1], 'taken', done + 1)
return { 'command', paused_ms(KEYS[1]), done + 1, entry[2][2] }
