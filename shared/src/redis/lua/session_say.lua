-- Adds a command, or the submission, to a session; what was said before under the same number is only compared.
-- KEYS: 1 session  2 commands (stream, ids <number>-0)
-- ARGV: 1 number of the command, 0 for the submission  2 entry (JSON)  3 entries kept  4 life time in milliseconds
-- Reply: {'said', worker or ''} | {'ended', reason} | {'submitted'} | {'differs'} | {'forgotten', said} | {'gap', said} | {'gone'}
if redis.call('EXISTS', KEYS[1]) == 0 then
  return { 'gone' }
end
local said = tonumber(redis.call('HGET', KEYS[1], 'said'))
local seq = tonumber(ARGV[1])
local worker = redis.call('HGET', KEYS[1], 'worker') or ''
local submitted = redis.call('HGET', KEYS[1], 'submitted') == '1'
if seq == 0 and submitted then
  return { 'said', worker }
end
-- The submission has the last number, which its driver never gave it.
local numbered = submitted and said - 1 or said
if seq > 0 and seq <= numbered then
  local id = string.format('%d-0', seq)
  local entry = redis.call('XRANGE', KEYS[2], id, id)[1]
  if not entry then
    return { 'forgotten', said }
  end
  return { entry[2][2] == ARGV[2] and 'said' or 'differs', worker }
end
local ended = redis.call('HGET', KEYS[1], 'ended')
if ended then
  return { 'ended', ended }
end
if submitted then
  return { 'submitted' }
end
if seq > said + 1 then
  return { 'gap', said }
end
said = said + 1
redis.call('XADD', KEYS[2], 'MAXLEN', '=', ARGV[3], string.format('%d-0', said), 'c', ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('HSET', KEYS[1], 'said', said, 'submitted', seq == 0 and 1 or 0)
return { 'said', worker }
