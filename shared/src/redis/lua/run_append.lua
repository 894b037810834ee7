-- Adds an instance to an open run, once.
-- KEYS: 1 run record  2 instances  3 appended
-- ARGV: 1 instance id  2 the instance (gzip of JSON)  3 its fingerprint  4 maximum of instances
-- Reply: 'appended' | 'differs' (the run has another instance of this id) | 'full' | 'gone'
local record = redis.call('GET', KEYS[1])
if not record then
  return 'gone'
end
local known = redis.call('HGET', KEYS[3], ARGV[1] .. ' is')
if known and known ~= ARGV[3] then
  return 'differs'
end
if not known and redis.call('HLEN', KEYS[2]) >= tonumber(ARGV[4]) then
  return 'full'
end
redis.call('HSETNX', KEYS[2], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[3], ARGV[1] .. ' is', ARGV[3])
local ttl = cjson.decode(record).ttl
for i = 1, 3 do
  redis.call('EXPIRE', KEYS[i], ttl)
end
return 'appended'
