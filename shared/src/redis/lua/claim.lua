-- Opens the next attempt at a rollout in its journal, unless it is committed or its run is paused or gone.
-- KEYS: 1 record  2 committed  3 journal  4 cancelled  5 paused  6.. the run's other keys (life time only)
-- ARGV: 1 rollout id  2 worker  3 node  4 nonce of this claim (a command sent again opens no second attempt)  5 group (instance id)
--       6 1: refuse while an attempt of another worker runs  7 nonce of the attempt to ignore, or ''
--       8 1: refuse a rollout without resumable work
-- Reply: {'claimed', journal (JSON, the new attempt last), reason of the cancel or ''} | {'paused'} | {'in_work', worker, nonce of its claim} | {'committed', attempt, outcome} | {'gone'}
local record = redis.call('GET', KEYS[1])
if not record then
  return { 'gone' }
end
local winner = redis.call('HGET', KEYS[2], ARGV[1])
if winner then
  local attempt, outcome = string.match(winner, '^(%S+) (%S+) ')
  return { 'committed', attempt, outcome }
end
local marks = redis.call('HMGET', KEYS[4], ARGV[1], 'group ' .. ARGV[5], '*')
local cancelled = marks[1] or marks[2] or marks[3] or ''
local pause = redis.call('GET', KEYS[5])
if pause and cancelled == '' and cjson.decode(pause).reason ~= cjson.null then
  return { 'paused' }
end
local text = redis.call('HGET', KEYS[3], ARGV[1])
local journal = text and cjson.decode(text) or {}
if ARGV[8] == '1' and cancelled == '' then
  local kept = false
  for _, entry in ipairs(journal) do
    local ended = entry['end']
    kept = kept or type(ended) == 'table' and type(ended.kept) == 'string'
  end
  if not kept then
    return { 'paused' }
  end
end
local last = journal[#journal]
if ARGV[6] == '1' and last and last.ended_at == cjson.null and last.worker ~= ARGV[2] and last.claim and last.claim ~= ARGV[7] then
  return { 'in_work', last.worker, last.claim }
end
if not last or last.claim ~= ARGV[4] then
  journal[#journal + 1] = {
    attempt = (last and last.attempt or 0) + 1,
    worker = ARGV[2],
    node = ARGV[3],
    claim = ARGV[4],
    claimed_at = now_ms(),
    ended_at = cjson.null,
    ['end'] = cjson.null,
  }
  text = cjson.encode(journal)
  redis.call('HSET', KEYS[3], ARGV[1], text)
end
local ttl = cjson.decode(record).ttl
for i = 1, #KEYS do
  redis.call('EXPIRE', KEYS[i], ttl)
end
return { 'claimed', text, cancelled }
