-- Opens more rollouts of one instance of a run.
-- KEYS: 1 record  2 groups  3 unfinished runs
-- ARGV: 1 run id  2 instance id  3 number of rollouts
-- Reply: the size of the group; 0 if the run expired
local record = redis.call('GET', KEYS[1])
if not record then
  return 0
end
redis.call('HINCRBY', KEYS[2], ARGV[2] .. ' left', ARGV[3])
local size = redis.call('HINCRBY', KEYS[2], ARGV[2] .. ' size', ARGV[3])
redis.call('EXPIRE', KEYS[2], cjson.decode(record).ttl)
redis.call('SADD', KEYS[3], ARGV[1])
return size
