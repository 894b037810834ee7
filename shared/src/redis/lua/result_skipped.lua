-- Records unreadable results and counts each once.
-- KEYS: 1 record  2 skipped results of the run  3 counters of results
-- ARGV: pairs of stream id and problem
local life = redis.call('PTTL', KEYS[1])
if life < 0 then
  return 0
end
local fresh = 0
for i = 1, #ARGV, 2 do
  fresh = fresh + redis.call('HSETNX', KEYS[2], ARGV[i], ARGV[i + 1])
end
redis.call('PEXPIRE', KEYS[2], life)
if fresh > 0 then
  redis.call('HINCRBY', KEYS[3], 'unreadable', fresh)
end
return fresh
