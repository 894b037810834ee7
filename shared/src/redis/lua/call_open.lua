-- Opens a call with the next rollout of an instance of an open run.
-- KEYS: 1 calls of this fingerprint  2 open calls  3 run record  4 groups  5 appended  6 committed  7 unfinished runs
--       8 policies of rollouts
-- ARGV: 1 call id  2 gateway  3 named  4 run id  5 instance id  6 life time of the call (ms)
--       7 sequence of the first waiting rollout of this class  8 grace of the call (ms), or ''
--       9 number of waiting rollouts before which a new group is queued; negative: behind which
--       10 what the rollout changes in the policy of the run (JSON), or ''
-- If the command is sent again, it finds the call that it opened.
-- Reply: {'opened', rollout id} | {'taken'} (a call of this name exists: claim it) | {'gone'}
local own = redis.call('HGET', KEYS[1], ARGV[1])
if own then
  return { 'opened', cjson.decode(own).rollout_id }
end
if ARGV[3] == '1' and redis.call('EXISTS', KEYS[1]) == 1 then
  return { 'taken' }
end
local record = redis.call('GET', KEYS[3])
if not record then
  return { 'gone' }
end
local index = redis.call('HINCRBY', KEYS[4], ARGV[5] .. ' size', 1) - 1
local left = redis.call('HINCRBY', KEYS[4], ARGV[5] .. ' left', 1)
local before = redis.call('HINCRBY', KEYS[5], '*', 1) - 1 - redis.call('HLEN', KEYS[6])
-- If the group had no open rollouts, its new rollout is queued behind the waiting rollouts of the run, less its lead.
if left == 1 then
  redis.call('HSET', KEYS[4], ARGV[5] .. ' sequence', math.max(0, tonumber(ARGV[7]), ARGV[7] + before - ARGV[9]))
end
local ttl = cjson.decode(record).ttl
for i = 3, 6 do
  redis.call('EXPIRE', KEYS[i], ttl)
end
redis.call('SADD', KEYS[7], ARGV[4])
local rollout_id = ARGV[4] .. '.' .. ARGV[5] .. '.' .. index
if ARGV[10] ~= '' then
  redis.call('HSET', KEYS[8], rollout_id, ARGV[10])
  redis.call('EXPIRE', KEYS[8], ttl)
end
local call = { rollout_id = rollout_id, holder = ARGV[2], held = 1, at = now, grace = tonumber(ARGV[8]) }
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(call))
redis.call('PEXPIRE', KEYS[1], ARGV[6])
redis.call('ZADD', KEYS[2], 'inf', ARGV[1])
redis.call('EXPIRE', KEYS[2], 30 * 24 * 3600)
return { 'opened', rollout_id }
