-- Returns the next command of a session to its attempt; a negative number only checks the lease.
-- KEYS: 1 session  2 commands   ARGV: 1 nonce of the attempt's claim  2 number of the last finished command, or -1
-- Reply: {'command', number, entry (JSON)} | {'none'} | {'expired'} | {'gone'}
if redis.call('HGET', KEYS[1], 'attempt') ~= ARGV[1] then
  return { 'gone' }
end
local done = tonumber(ARGV[2])
if done < 0 then
  return { now_ms() > tonumber(redis.call('HGET', KEYS[1], 'lease_until')) and 'expired' or 'none' }
end
local id = string.format('%d-0', done + 1)
local entry = redis.call('XRANGE', KEYS[2], id, id)[1]
if not entry then
  return { 'none' }
end
redis.call('HSET', KEYS[1], 'taken', done + 1)
return { 'command', done + 1, entry[2][2] }
