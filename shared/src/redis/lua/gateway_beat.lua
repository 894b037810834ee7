-- KEYS: 1 gateways   ARGV: 1 gateway  2 life time of the hash in seconds  3 1: last beat, which makes its calls orphans
local beat = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or now)
if beat > 0 then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3] == '1' and -now or now)
end
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
