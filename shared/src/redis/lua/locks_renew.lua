-- Renews the locks of a worker's jobs. An expired lock is acquired again if no other worker has the job. `back`: the job may be
-- removed from the queue again.
-- KEYS: 1 active  2 stalled  3 wait  4 paused  5 prioritized  6 delayed  7.. the locks
-- ARGV: 1 life time (ms)  2.. triples, one for each lock: job  token  back (1 or 0)
-- Reply: jobs of other workers and removed jobs
local lost = {}
local function take_back(job)
  local removed = redis.call('LREM', KEYS[3], 1, job) + redis.call('LREM', KEYS[4], 1, job)
  removed = removed + redis.call('ZREM', KEYS[5], job) + redis.call('ZREM', KEYS[6], job)
  if removed > 0 then
    redis.call('LPUSH', KEYS[1], job)
  end
  return removed > 0
end
for at = 7, #KEYS do
  local first = 2 + (at - 7) * 3
  local job, token = ARGV[first], ARGV[first + 1]
  local holder = redis.call('GET', KEYS[at])
  local mine = holder == token
  if not holder then
    mine = redis.call('LPOS', KEYS[1], job) or (ARGV[first + 2] == '1' and take_back(job))
  end
  if mine then
    redis.call('SET', KEYS[at], token, 'PX', ARGV[1])
    redis.call('SREM', KEYS[2], job)
  else
    lost[#lost + 1] = job
  end
end
return lost
