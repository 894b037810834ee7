-- Adds a command or the submission to a session; compares a command whose number exists.
-- KEYS: 1 session  2 commands (stream, ids <number>-0)  3 contents
-- ARGV: 1 number of the command, 0 for the submission  2 entry (JSON)  3 maximum of entries  4 life time in milliseconds
-- 5 content of the entry, if there is one
-- Reply: {'posted', worker or ''} | {'ended', reason} | {'submitted'} | {'differs'} | {'forgotten', posted} | {'gap', posted} | {'gone'}
if redis.call('EXISTS', KEYS[1]) == 0 then
  return { 'gone' }
end
local posted = tonumber(redis.call('HGET', KEYS[1], 'said'))
local seq = tonumber(ARGV[1])
local worker = redis.call('HGET', KEYS[1], 'worker') or ''
local submitted = redis.call('HGET', KEYS[1], 'submitted') == '1'
if seq == 0 and submitted then
  return { 'posted', worker }
end
-- The submission has the last number, but the driver does not count the submission.
local numbered = submitted and posted - 1 or posted
if seq > 0 and seq <= numbered then
  local id = string.format('%d-0', seq)
  local entry = redis.call('XRANGE', KEYS[2], id, id)[1]
  if not entry then
    return { 'forgotten', posted }
  end
  return { entry[2][2] == ARGV[2] and 'posted' or 'differs', worker }
end
local ended = redis.call('HGET', KEYS[1], 'ended')
if ended then
  return { 'ended', ended }
end
if submitted then
  return { 'submitted' }
end
if seq > posted + 1 then
  return { 'gap', posted }
end
posted = posted + 1
redis.call('XADD', KEYS[2], 'MAXLEN', '=', ARGV[3], string.format('%d-0', posted), 'c', ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
if ARGV[5] then
  redis.call('HSET', KEYS[3], 'in:' .. posted, ARGV[5])
  redis.call('PEXPIRE', KEYS[3], ARGV[4])
end
redis.call('HSET', KEYS[1], 'said', posted, 'submitted', seq == 0 and 1 or 0)
return { 'posted', worker }
