-- Joined before the other call scripts: the record and the rules of a call that is held over HTTP.
-- A call is JSON: rollout_id, holder (gateway), held (its open connections), orphan_until (ms, when held is 0), answered,
-- at (ms, when it began), grace (ms, how long it waits for its caller when its gateway died; absent: as who sweeps says)
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
-- Of a gateway's last beat: how long it is surely alive, and after how long it is surely dead.
local FRESH_MS = 2500
local LIFE_MS = 6000
-- For so long after the death of their gateway calls wait for one to come back.
local OUTAGE_MS = 15 * 60 * 1000
-- 'alive', 'unsure' or the time (ms) at which it died; a gateway whose address was taken over is noted with a minus.
local function state_of(beat)
  if not beat then
    return 0
  end
  beat = tonumber(beat)
  if beat < 0 then
    return -beat
  elseif now - beat < FRESH_MS then
    return 'alive'
  elseif now - beat < LIFE_MS then
    return 'unsure'
  end
  return beat + LIFE_MS
end
local function grace_of(call, default)
  return tonumber(call.grace or default)
end
