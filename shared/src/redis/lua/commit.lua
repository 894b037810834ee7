-- Commits the result of a rollout exactly once: the first caller wins; stream, group and counters change in the same step.
-- In the same step, ends a group with enough usable results, opens a rollout that replaces one failed by infrastructure, and ends and
-- draws groups (group_end.lua).
-- KEYS: 1 record  2 committed  3 results  4 groups  5 counts  6 totals  7 versions  8 totals of the version  9 journal
--       10 cancelled  11 cancel epoch  12 a key that must exist: the artifact if it is in this Redis, else the record
--       13 pass rates of the instance's family, or the record: count none  14 ended groups  15 draws
--       16 history of the run's agent  17.. the run's other keys (life time only)
-- ARGV: 1 rollout id  2 attempt  3 outcome  4 signature (worker, claim)  5 result (JSON)  6 group (instance id)  7 usable (1 or 0)
--       8 life time of the run in seconds  9 policy version ('' for none)  10 versions to keep
--       11 usable results that end a group (0: never)
--       12 maximum of refilled rollouts (0: do not refill)
--       13 model of the costs ('' for none)  14 maximum of models with counters  15 name for all other models
--       16 number of pairs of the model  17 note for the history ('' for none)  18.. pairs: counter, increment
-- Reply: {'committed', stream id} | {'late', attempt, outcome, stream id, signature} | {'artifact_lost'} | {'gone'}
if redis.call('EXISTS', KEYS[1]) == 0 then
  return { 'gone' }
end
local winner = redis.call('HGET', KEYS[2], ARGV[1])
if winner then
  local attempt, outcome, id, signature = string.match(winner, '^(%S+) (%S+) (%S+) (.*)$')
  return { 'late', attempt, outcome, id, signature }
end
-- Redis may have lost the artifact in a failover.
if redis.call('EXISTS', KEYS[12]) == 0 then
  return { 'artifact_lost' }
end

local sums = { KEYS[5], KEYS[6] }
if ARGV[9] ~= '' then
  redis.call('ZADD', KEYS[7], now_ms(), ARGV[9])
  redis.call('ZREMRANGEBYRANK', KEYS[7], 0, -1 - ARGV[10])
  sums[3] = KEYS[8]
end
local function count(counter, increment)
  for _, key in ipairs(sums) do
    redis.call('HINCRBYFLOAT', key, counter, increment)
  end
end

local id = redis.call('XADD', KEYS[3], '*', 'r', ARGV[5])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2] .. ' ' .. ARGV[3] .. ' ' .. id .. ' ' .. ARGV[4])
local left = redis.call('HINCRBY', KEYS[4], ARGV[6] .. ' left', -1)
redis.call('HINCRBY', KEYS[4], ARGV[6] .. ' results', 1)
if ARGV[7] == '1' then
  local reward, passed = reward_of_result()
  add_reward(ARGV[6], reward, passed)
  if KEYS[13] ~= KEYS[1] then
    add_pass(ARGV[6], ARGV[9], passed)
  end
  local usable = redis.call('HINCRBY', KEYS[4], ARGV[6] .. ' usable', 1)
  if ARGV[11] ~= '0' and usable >= tonumber(ARGV[11]) then
    if redis.call('HSETNX', KEYS[10], 'group ' .. ARGV[6], 'early_stop') == 1 then
      redis.call('INCR', KEYS[11])
    end
  end
end
if ARGV[12] ~= '0' then
  local ended = redis.call('HEXISTS', KEYS[10], 'group ' .. ARGV[6]) == 1 or redis.call('HEXISTS', KEYS[10], '*') == 1
  local refilled = tonumber(redis.call('HGET', KEYS[4], ARGV[6] .. ' refilled') or 0)
  if not ended and refilled < tonumber(ARGV[12]) then
    redis.call('HINCRBY', KEYS[4], ARGV[6] .. ' refilled', 1)
    redis.call('HINCRBY', KEYS[4], ARGV[6] .. ' size', 1)
    left = redis.call('HINCRBY', KEYS[4], ARGV[6] .. ' left', 1)
    count('refills', 1)
  end
end
if left == 0 then
  end_group(ARGV[6], count)
end
-- Counts earlier attempts by end; the pairs count the committing attempt. The worker of an attempt without an end was lost.
local journal = redis.call('HGET', KEYS[9], ARGV[1])
for _, entry in ipairs(journal and cjson.decode(journal) or {}) do
  if entry.attempt < tonumber(ARGV[2]) then
    local ended = entry['end']
    count('attempt:' .. (type(ended) == 'table' and ended.class or 'lost'), 1)
  end
end
-- Trainers may name a model for each checkpoint; models beyond the limit share one name.
local model = ARGV[13]
if model ~= '' and redis.call('HEXISTS', KEYS[6], 'priced:' .. model) == 0 then
  if tonumber(redis.call('HGET', KEYS[6], 'models') or 0) < tonumber(ARGV[14]) then
    redis.call('HINCRBY', KEYS[6], 'models', 1)
  else
    model = ARGV[15]
  end
end
local of_model = 17 + 2 * tonumber(ARGV[16])
for i = 18, #ARGV, 2 do
  count(i < of_model and ARGV[i] .. ':' .. model or ARGV[i], ARGV[i + 1])
end
if ARGV[17] ~= '' then
  note_history(KEYS[16], ARGV[17])
end
for i = 1, #KEYS do
  if i ~= 6 and i ~= 11 and i ~= 12 and i ~= 13 and i ~= 16 then
    redis.call('EXPIRE', KEYS[i], ARGV[8])
  end
end
return { 'committed', id }
