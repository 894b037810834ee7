-- Claims a call that lost its connection or its gateway and is within its grace, or (named) the call of this id.
-- KEYS: 1 calls of this fingerprint  2 open calls  3 gateways
-- ARGV: 1 gateway  2 named (1: the caller gave an id, which identifies one call)
--       3 nonce of this claim: if the command is sent again, it finds the call that it claimed
-- Reply: {'attached', call id, rollout id, its age (ms)} | {'wait'} (undecided: try again) | {'none'}
local unsure = false
local best, best_id
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local call = cjson.decode(all[i + 1])
  if call.by == ARGV[3] and call.holder == ARGV[1] and call.held > 0 then
    return { 'attached', all[i], call.rollout_id, tostring(now - call.at) }
  end
  local free
  if call.held == 0 then
    free = call.answered or call.orphan_until >= now
  elseif call.holder == ARGV[1] then
    free = false
  else
    local state = state_of(redis.call('HGET', KEYS[3], call.holder))
    unsure = unsure or state == 'unsure'
    free = type(state) == 'number' and state + OUTAGE_MS >= now
    if free then
      call.held = 0
    end
  end
  -- A named request claims the call of its id, connected or not. If the grace of the call is over, the request waits for the sweep.
  if ARGV[2] == '1' then
    unsure = call.held == 0 and not free
    free = not unsure
  end
  if free and (not best or call.at < best.at) then
    best, best_id = call, all[i]
  end
end
if best then
  if best.holder ~= ARGV[1] then
    best.held = 0
  end
  best.holder = ARGV[1]
  best.held = best.held + 1
  best.orphan_until = nil
  best.by = ARGV[3]
  redis.call('HSET', KEYS[1], best_id, cjson.encode(best))
  if not best.answered then
    redis.call('ZADD', KEYS[2], 'inf', best_id)
  end
  return { 'attached', best_id, best.rollout_id, tostring(now - best.at) }
end
return { unsure and 'wait' or 'none' }
