-- Removes a run without open rollouts from the set of unfinished runs.
-- KEYS: 1 groups  2 unfinished runs
-- ARGV: 1 run id
-- Reply: 1 if removed
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  if string.sub(fields[i], -5) == ' left' and tonumber(fields[i + 1]) > 0 then
    return 0
  end
end
redis.call('SREM', KEYS[2], ARGV[1])
return 1
