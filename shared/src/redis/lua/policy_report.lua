-- Stores a worker's report on its endpoints, and the sums over all workers. The next report removes expired reports from the sums.
-- KEYS: 1 reports (hash)  2 time of lapse by worker (sorted set, ms)  3 rollouts bound by endpoint (hash)
-- ARGV: 1 worker  2 views (JSON)  3 life time (ms)
-- Reply: pairs of endpoint and rollouts of other workers
local now = now_ms()

local function add(text, sign)
  for _, view in ipairs(cjson.decode(text)) do
    if view.load ~= 0 and redis.call('HINCRBY', KEYS[3], view.url, sign * view.load) <= 0 then
      redis.call('HDEL', KEYS[3], view.url)
    end
  end
end

local function forget(worker)
  local text = redis.call('HGET', KEYS[1], worker)
  if text then
    add(text, -1)
    redis.call('HDEL', KEYS[1], worker)
  end
  redis.call('ZREM', KEYS[2], worker)
end

-- Removes expired reports, at most 100 in one call.
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 100)) do
  forget(worker)
end
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then
  forget(ARGV[1])
end
local others = {}
if ARGV[2] ~= '[]' then
  if redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) == 1 then
    add(ARGV[2], 1)
  end
  redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[1])
  for i = 1, 3 do
    redis.call('PEXPIRE', KEYS[i], ARGV[3] * 4)
  end
  for _, view in ipairs(cjson.decode(ARGV[2])) do
    others[view.url] = -view.load
  end
end
local reply = {}
local sums = redis.call('HGETALL', KEYS[3])
for i = 1, #sums, 2 do
  reply[i] = sums[i]
  reply[i + 1] = sums[i + 1] + (others[sums[i]] or 0)
end
return reply
