-- Confirms running attempts in the journal, restores lost claims, and returns the attempts that must stop.
-- KEYS: 1 record  2 committed  3 journal
-- ARGV: 1 worker  2 node  3.. triples: rollout id, number of the attempt, nonce of its claim
-- Reply: rollout ids committed or claimed by another attempt; all if the run expired
local gone = redis.call('EXISTS', KEYS[1]) == 0
local over = {}

local function is_current(id, attempt, claim)
  local winner = redis.call('HGET', KEYS[2], id)
  if winner then
    return string.match(winner, '\t(.*)$') == claim
  end
  local text = redis.call('HGET', KEYS[3], id)
  local journal = text and cjson.decode(text) or {}
  for at, entry in ipairs(journal) do
    if entry.claim == claim then
      return at == #journal
    end
  end
  local last = journal[#journal]
  if last and last.attempt >= attempt then
    return false
  end
  -- Redis lost the claim, and no other attempt has claimed.
  journal[#journal + 1] = {
    attempt = attempt,
    worker = ARGV[1],
    node = ARGV[2],
    claim = claim,
    claimed_at = now_ms(),
    ended_at = cjson.null,
    ['end'] = cjson.null,
  }
  redis.call('HSET', KEYS[3], id, cjson.encode(journal))
  redis.call('EXPIRE', KEYS[3], cjson.decode(redis.call('GET', KEYS[1])).ttl)
  return true
end

for i = 3, #ARGV, 3 do
  if gone or not is_current(ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]) then
    over[#over + 1] = ARGV[i]
  end
end
return over
