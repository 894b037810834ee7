-- This text precedes commit.lua: rewards of a group, pass rates of instances, the end of a group, and the next draw of a run with `until`.
-- KEYS and ARGV are those of commit.lua.

-- Maximum of policy versions of an instance, of instances with pass rates, and life time of pass rates in seconds (90 days).
local PASS_VERSIONS = 4
local PASS_INSTANCES = 1000000
local PASS_SECONDS = 7776000

-- Returns the reward of the result, and the share of a success: the score if there is no verdict. Both stand in the pairs of counters.
local function reward_of_result()
  local found = {}
  for i = 18, #ARGV, 2 do
    found[ARGV[i]] = tonumber(ARGV[i + 1])
  end
  local reward = found.reward_sum or 0
  return reward, found.resolved or (found.scored and math.max(0, math.min(1, reward))) or 0
end

local function add_reward(group, reward, passed)
  redis.call('HINCRBYFLOAT', KEYS[4], group .. ' sum', reward)
  redis.call('HINCRBYFLOAT', KEYS[4], group .. ' passed', passed)
  local bounds = redis.call('HMGET', KEYS[4], group .. ' low', group .. ' high')
  if not bounds[1] or reward < tonumber(bounds[1]) then
    redis.call('HSET', KEYS[4], group .. ' low', reward)
  end
  if not bounds[2] or reward > tonumber(bounds[2]) then
    redis.call('HSET', KEYS[4], group .. ' high', reward)
  end
end

-- Counts a usable result in the pass rates of its instance, by policy version.
local function add_pass(instance, version, passed)
  local text = redis.call('HGET', KEYS[13], instance)
  if not text and redis.call('HLEN', KEYS[13]) >= PASS_INSTANCES then
    return
  end
  local versions = text and cjson.decode(text) or {}
  local own
  for _, one in ipairs(versions) do
    own = one[1] == version and one or own
  end
  if not own then
    own = { version, 0, 0 }
    versions[#versions + 1] = own
    if #versions > PASS_VERSIONS then
      table.remove(versions, 1)
    end
  end
  own[2] = own[2] + 1
  own[3] = own[3] + passed
  redis.call('HSET', KEYS[13], instance, cjson.encode(versions))
  redis.call('EXPIRE', KEYS[13], PASS_SECONDS)
end

-- Returns mixed (rewards differ), uniform, short (too few usable results) or cancelled (short because it was cancelled).
local function end_of_group(record, group, usable)
  local wanted = type(record.min_group) == 'number' and record.min_group or record.group_size
  if usable < wanted then
    local marks = redis.call('HMGET', KEYS[10], 'group ' .. group, '*')
    return (marks[1] or marks[2]) and 'cancelled' or 'short'
  end
  local bounds = redis.call('HMGET', KEYS[4], group .. ' low', group .. ' high')
  return bounds[1] and tonumber(bounds[1]) < tonumber(bounds[2]) and 'mixed' or 'uniform'
end

-- Counts an ended group of a run with `until`. Returns whether the group is selected.
local function select_group(rule, ended, count)
  local wanted = ended == 'mixed' or (rule.keep == 'all' and ended == 'uniform')
  local enough = tonumber(redis.call('HGET', KEYS[5], 'selected') or 0) >= rule.groups
  if wanted and not enough then
    redis.call('HINCRBY', KEYS[5], 'selected', 1)
    return true
  end
  count('dropped:' .. (wanted and 'surplus' or ended), 1)
  return false
end

-- Opens the group of the next draw in place of a group that is not selected. If the run has enough groups, cancels its other groups.
local function draw_next(record, is_selected)
  local rule = record['until']
  local drawn = tonumber(redis.call('HGET', KEYS[5], 'drawn') or 0)
  if tonumber(redis.call('HGET', KEYS[5], 'selected') or 0) >= rule.groups then
    if drawn > redis.call('XLEN', KEYS[14]) and redis.call('HSETNX', KEYS[10], '*', 'early_stop') == 1 then
      redis.call('INCR', KEYS[11])
    end
    return
  end
  local text = redis.call('LINDEX', KEYS[15], drawn)
  if is_selected or not text or redis.call('HEXISTS', KEYS[10], '*') == 1 then
    return
  end
  local draw = cjson.decode(text)
  local name = draw.instance_id
  local size = record.group_size + record.oversample
  redis.call('HSET', KEYS[4], name .. ' left', size, name .. ' size', size)
  redis.call('HSET', KEYS[4], name .. ' sequence', draw.sequence, name .. ' image', draw.image)
  redis.call('HINCRBY', KEYS[5], 'drawn', 1)
  redis.call('HINCRBY', KEYS[5], 'drawn_rollouts', size)
end

-- Ends a group whose rollouts all have a result in this Redis, once. Groups of open runs never end.
local function end_group(group, count)
  local record = cjson.decode(redis.call('GET', KEYS[1]))
  local fields = { ' usable', ' size', ' refilled', ' results', ' sum', ' passed' }
  for i, field in ipairs(fields) do
    fields[i] = group .. field
  end
  local counts = redis.call('HMGET', KEYS[4], unpack(fields))
  local usable = tonumber(counts[1] or 0)
  count(usable >= record.group_size and 'groups:complete' or 'groups:short', 1)
  local whole = not record.open and tonumber(counts[2]) == tonumber(counts[4])
  if not whole or redis.call('HSETNX', KEYS[4], group .. ' ended', 1) == 0 then
    return
  end
  local ended = end_of_group(record, group, usable)
  if ended == 'mixed' then
    count('mixed_groups', 1)
  end
  local entry = {
    instance_id = group,
    ['end'] = ended,
    size = tonumber(counts[2]),
    usable = usable,
    refilled = tonumber(counts[3] or 0),
    reward_mean = usable > 0 and tonumber(counts[5] or 0) / usable or cjson.null,
    pass_rate = usable > 0 and tonumber(counts[6] or 0) / usable or cjson.null,
  }
  local draws = type(record['until']) == 'table'
  if draws then
    entry.selected = select_group(record['until'], ended, count)
  end
  redis.call('XADD', KEYS[14], '*', 'g', cjson.encode(entry))
  if draws then
    draw_next(record, entry.selected)
  end
end
