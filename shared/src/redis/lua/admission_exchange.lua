-- Renews the leases of a worker's rollouts in a pool, admits waiting rollouts up to the limit, and returns the state of the worker's rollouts.
-- If more rollouts play than the limit allows, the last admitted ones are suspended. An expired lease frees its slot. If the script admits
-- a rollout of another worker, or of none, its slot is reserved for one lease, within which a worker must claim the job.
-- KEYS: 1 pool (hash)  2 playing  3 waiting  4 lapses (sorted sets)  5 pools (sorted set)
-- ARGV: 1 pool  2 fixed limit ('' for the limit of the pool's state)  3 life time of leases (ms)
--       4 time for which a rollout waits without a renewal (ms)  5 life time of the pool (s)  6 refusals since the last exchange
--       7.. triples: rollout, 1 if it plays, priority
-- Reply: limit (-1: none, '': unknown), number of rollouts that play, number that wait; then 'wait', 'play' or 'suspended' for each given
-- rollout; then the admitted rollouts that were not given
local now = now_ms()
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', now, 'LIMIT', 0, 1000)) do
  for i = 2, 4 do
    redis.call('ZREM', KEYS[i], id)
  end
end
if ARGV[6] ~= '0' then
  redis.call('HINCRBY', KEYS[1], 'refused', ARGV[6])
end

local limit = ARGV[2]
if limit == '' then
  local state = redis.call('HGET', KEYS[1], 'state')
  if state then
    local known = cjson.decode(state).limit
    limit = known == cjson.null and '-1' or tostring(math.max(1, math.floor(known)))
  end
end

local bounded = limit ~= '' and limit ~= '-1'
local given = {}
for i = 7, #ARGV, 3 do
  local id = ARGV[i]
  given[id] = true
  local rank = redis.call('ZRANK', KEYS[2], id)
  if ARGV[i + 1] == '1' then
    -- The lease may have expired in an outage, and another rollout may have the slot. This one then ranks last within its millisecond.
    redis.call('ZADD', KEYS[2], 'NX', now + 0.99, id)
    redis.call('ZREM', KEYS[3], id)
    redis.call('ZADD', KEYS[4], now + ARGV[3], id)
  elseif rank and not (bounded and rank >= tonumber(limit)) then
    redis.call('ZADD', KEYS[4], now + ARGV[3], id)
  else
    -- An admitted rollout that has not started waits again if the limit has fallen.
    redis.call('ZREM', KEYS[2], id)
    redis.call('ZADD', KEYS[3], 'NX', ARGV[i + 2], id)
    redis.call('ZADD', KEYS[4], now + ARGV[4], id)
  end
end

local called = {}
local playing = redis.call('ZCARD', KEYS[2])
if limit ~= '' then
  local free = redis.call('ZCARD', KEYS[3])
  if bounded then
    free = math.min(free, limit - playing)
  end
  if free > 0 then
    local admitted = redis.call('ZPOPMIN', KEYS[3], free)
    for i = 1, #admitted, 2 do
      -- Fractions order the rollouts of one call.
      redis.call('ZADD', KEYS[2], now + i / 1e3, admitted[i])
      redis.call('ZADD', KEYS[4], now + ARGV[3], admitted[i])
      if not given[admitted[i]] then
        called[#called + 1] = admitted[i]
      end
    end
    playing = playing + free
  end
end

for i = 1, 4 do
  redis.call('EXPIRE', KEYS[i], ARGV[5])
end
redis.call('ZADD', KEYS[5], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[5], '-inf', now - ARGV[5] * 1000)
redis.call('EXPIRE', KEYS[5], ARGV[5])

local reply = { limit, playing, redis.call('ZCARD', KEYS[3]) }
for i = 7, #ARGV, 3 do
  local rank = redis.call('ZRANK', KEYS[2], ARGV[i])
  if not rank then
    reply[#reply + 1] = 'wait'
  elseif not bounded or rank < tonumber(limit) then
    reply[#reply + 1] = 'play'
  else
    reply[#reply + 1] = 'suspended'
  end
end
for _, id in ipairs(called) do
  reply[#reply + 1] = id
end
return reply
