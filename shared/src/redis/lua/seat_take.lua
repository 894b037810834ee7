-- Takes a seat for a rollout with the first of these workers that lives, claims and has one free.
-- KEYS: 1..n records of workers  n+1..2n their seats
-- ARGV: 1 rollout id  2 'home' (only the node of the first worker that lives) or 'any'  3 least life time of a record (ms)
--       4 life time of seats (s)  5.. the nodes of the workers
-- Reply: number of the worker, from 1; 0: nobody
local n = #KEYS / 2
local home = false
for i = 1, n do
  local node = ARGV[4 + i]
  if ARGV[2] == 'any' or not home or home == node then
    local text = redis.call('GET', KEYS[i])
    if text and redis.call('PTTL', KEYS[i]) > tonumber(ARGV[3]) then
      local record = cjson.decode(text)
      if record.paused == cjson.null then
        home = home or node
        local seats = KEYS[n + i]
        if redis.call('SISMEMBER', seats, ARGV[1]) == 1 or redis.call('SCARD', seats) < record.slots then
          redis.call('SADD', seats, ARGV[1])
          redis.call('EXPIRE', seats, ARGV[4])
          return i
        end
      end
    end
  end
end
return 0
