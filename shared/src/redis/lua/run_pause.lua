-- Pauses a run, unless it is paused or was resumed since the caller read its state.
-- KEYS: 1 record  2 paused
-- ARGV: 1 reason  2 time of the last resume that the caller knows ('': none; '*': any)
--       3 duration (ms; '': until a user resumes the run)
-- Reply: 1 if this call paused the run
local life = redis.call('PTTL', KEYS[1])
if life < 0 then
  return 0
end
local text = redis.call('GET', KEYS[2])
local before = text and cjson.decode(text) or { at = '', reason = cjson.null, since = cjson.null }
if before.reason ~= cjson.null then
  return 0
end
local at = before.at == '' and '' or string.format('%d', before.at)
if ARGV[2] ~= '*' and ARGV[2] ~= at then
  return 0
end
local pause = { reason = ARGV[1], at = now_ms(), since = before.since }
if ARGV[3] ~= '' then
  pause.ends_at = pause.at + ARGV[3]
end
redis.call('SET', KEYS[2], cjson.encode(pause), 'PX', life)
return 1
