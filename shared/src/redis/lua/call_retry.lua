-- Replaces the failed rollout of a call by a new one.
-- KEYS: 1 calls of this fingerprint  2 run record  3 groups  4 unfinished runs  5 policies of rollouts
-- ARGV: 1 call id  2 run id  3 instance id  4 the failed rollout
-- Reply: the rollout id of the call | false (the call or the run expired)
local text = redis.call('HGET', KEYS[1], ARGV[1])
if not text or redis.call('EXISTS', KEYS[2]) == 0 then
  return false
end
local call = cjson.decode(text)
if call.rollout_id ~= ARGV[4] then
  return call.rollout_id
end
local index = redis.call('HINCRBY', KEYS[3], ARGV[3] .. ' size', 1) - 1
redis.call('HINCRBY', KEYS[3], ARGV[3] .. ' left', 1)
redis.call('SADD', KEYS[4], ARGV[2])
call.rollout_id = ARGV[2] .. '.' .. ARGV[3] .. '.' .. index
local policy = redis.call('HGET', KEYS[5], ARGV[4])
if policy then
  redis.call('HSET', KEYS[5], call.rollout_id, policy)
end
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(call))
return call.rollout_id
