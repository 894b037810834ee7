-- KEYS: 1 lease   ARGV: 1 holder  2 life time in milliseconds   Reply: 1 if the holder has the lease
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
