-- Stores the answer to an input of a session once. Contents of earlier inputs and answers are removed.
-- KEYS: 1 session  2 answers  3 contents
-- ARGV: 1 number of the input  2 answer (JSON)  3 maximum of answers  4 life time in milliseconds  5 content, if there is one
-- Reply: 1 if the answer is new
local seq = tonumber(ARGV[1])
if redis.call('HSETNX', KEYS[2], ARGV[1], ARGV[2]) == 0 then
  return 0
end
redis.call('HDEL', KEYS[2], seq - tonumber(ARGV[3]))
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('HDEL', KEYS[3], 'in:' .. seq, 'out:' .. (seq - 1))
if ARGV[5] then
  redis.call('HSET', KEYS[3], 'out:' .. seq, ARGV[5])
  redis.call('PEXPIRE', KEYS[3], ARGV[4])
end
redis.call('HSET', KEYS[1], 'answered', seq)
if redis.call('HGET', KEYS[1], 'clock') == 'commands' then
  redis.call('HSETNX', KEYS[1], 'paused_at', string.format('%d', now_ms()))
end
return 1
