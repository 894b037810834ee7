-- Stores the planned draws of a run, unless an earlier or concurrent submit of the run stored its plan.
-- KEYS: 1 draws  2 counts   ARGV: 1 life time in seconds  2 number of groups that are open from the start  3.. draws (JSON)
-- Reply: 1 if stored
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
for i = 3, #ARGV do
  redis.call('RPUSH', KEYS[1], ARGV[i])
end
redis.call('HSET', KEYS[2], 'drawn', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[2], ARGV[1])
return 1
