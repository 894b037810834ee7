-- Renews the locks of jobs that a worker has in work. A lock that has run out is taken again while nobody else has the job; it may be
-- back in the queue by then, which `back` allows to undo.
-- KEYS: 1 active  2 stalled  3 wait  4 paused  5 prioritized  6 delayed  7.. the locks
-- ARGV: 1 life time (ms)  2.. triples, one for each lock: job  token  back (1 or 0)
-- Reply: the jobs that are somebody else's, or gone
local lost = {}
local function take_back(job)
  local there = redis.call('LREM', KEYS[3], 1, job) + redis.call('LREM', KEYS[4], 1, job)
  there = there + redis.call('ZREM', KEYS[5], job) + redis.call('ZREM', KEYS[6], job)
  if there > 0 then
    redis.call('LPUSH', KEYS[1], job)
  end
  return there > 0
end
for at = 7, #KEYS do
  local place = 2 + (at - 7) * 3
  local job, token = ARGV[place], ARGV[place + 1]
  local holder = redis.call('GET', KEYS[at])
  local mine = holder == token
  if not holder then
    mine = redis.call('LPOS', KEYS[1], job) or (ARGV[place + 2] == '1' and take_back(job))
  end
  if mine then
    redis.call('SET', KEYS[at], token, 'PX', ARGV[1])
    redis.call('SREM', KEYS[2], job)
  else
    lost[#lost + 1] = job
  end
end
return lost
