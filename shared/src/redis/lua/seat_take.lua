-- Reserves a seat (a slot) of one of these workers for a rollout. The workers are sorted by preference for the image.
-- Workers that have the image, or fetch it for another rollout, come first. `home`: no other worker, unless none of these is alive:
-- then the first worker with the fewest images. `any`: otherwise the first worker with a free seat.
-- KEYS: 1..n records of workers  n+1..2n their seats  2n+1..3n their images (sorted set by time of lapse, ms)
-- ARGV: 1 rollout id  2 image  3 'home' or 'any'  4 minimum remaining life time of a live worker's record (ms)  5 life time of seats (s)  6 of images (s)
-- Reply: number of the worker, from 1; 0: none
local n = #KEYS / 3
local now = now_ms()

-- Numbers of slots of the live workers that claim rollouts.
local slots = {}
for i = 1, n do
  local text = redis.call('GET', KEYS[i])
  if text and redis.call('PTTL', KEYS[i]) > tonumber(ARGV[4]) then
    local record = cjson.decode(text)
    if record.paused == cjson.null then
      slots[i] = record.slots
    end
  end
end

local function take(i)
  local seats, images = KEYS[n + i], KEYS[2 * n + i]
  if redis.call('SISMEMBER', seats, ARGV[1]) == 0 and redis.call('SCARD', seats) >= slots[i] then
    return false
  end
  redis.call('SADD', seats, ARGV[1])
  redis.call('EXPIRE', seats, ARGV[5])
  redis.call('ZADD', images, now + ARGV[6] * 1000, ARGV[2])
  redis.call('EXPIRE', images, ARGV[6])
  return true
end

local known = false
for i = 1, n do
  if slots[i] and redis.call('ZSCORE', KEYS[2 * n + i], ARGV[2]) then
    known = true
    if take(i) then
      return i
    end
  end
end
if ARGV[3] == 'any' then
  for i = 1, n do
    if slots[i] and take(i) then
      return i
    end
  end
  return 0
end
if known then
  return 0
end
local best, fewest
for i = 1, n do
  if slots[i] then
    local images = KEYS[2 * n + i]
    redis.call('ZREMRANGEBYSCORE', images, '-inf', now)
    local count = redis.call('ZCARD', images)
    if not best or count < fewest then
      best, fewest = i, count
    end
  end
end
return best and take(best) and best or 0
