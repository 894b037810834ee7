-- This text precedes the other call scripts: the record of a call and the rules for gateways.
-- A call is JSON: rollout_id, holder (gateway), held (number of open connections), orphan_until (ms, if held is 0), answered,
-- at (ms, start), grace (ms after the death of its gateway; absent: that of the sweep), by (nonce of the last claim)
local now = now_ms()
-- A gateway is alive up to the first age of its last beat, and dead beyond the second age.
local FRESH_MS = 2500
local LIFE_MS = 6000
-- Time for which calls of a dead gateway wait for another gateway.
local OUTAGE_MS = 15 * 60 * 1000
-- Returns 'alive', 'unsure', or the time (ms) at which the gateway died (0: unknown). A negative beat is minus the time of death.
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
