-- Closes rollouts whose results are outside of Redis, or opens them again.
-- KEYS: 1 record  2 committed  3 groups  4 unfinished runs
-- ARGV: 1 run id  2 close or open  3.. pairs: rollout id, instance id
-- Reply: number of changed rollouts
local record = redis.call('GET', KEYS[1])
if not record then
  return 0
end
local mark = '0 judged 0-0 elsewhere'
local changed = 0
for i = 3, #ARGV, 2 do
  if ARGV[2] == 'close' and redis.call('HSETNX', KEYS[2], ARGV[i], mark) == 1 then
    redis.call('HINCRBY', KEYS[3], ARGV[i + 1] .. ' left', -1)
    changed = changed + 1
  elseif ARGV[2] == 'open' and redis.call('HGET', KEYS[2], ARGV[i]) == mark then
    redis.call('HDEL', KEYS[2], ARGV[i])
    redis.call('HINCRBY', KEYS[3], ARGV[i + 1] .. ' left', 1)
    redis.call('SADD', KEYS[4], ARGV[1])
    changed = changed + 1
  end
end
redis.call('EXPIRE', KEYS[2], cjson.decode(record).ttl)
return changed
