-- Changes the record of a policy; equal values change nothing.
-- KEYS: the policy's hash, the set of names. ARGV: name, life time in seconds, then field and value in turn.
-- Reply: 1 if a field changed
local policy, names = KEYS[1], KEYS[2]
local changed = redis.call('EXISTS', policy) == 0
for i = 3, #ARGV, 2 do
  local field, value = ARGV[i], ARGV[i + 1]
  if redis.call('HGET', policy, field) ~= value then
    changed = true
    redis.call('HSET', policy, field, value)
    if field == 'version' then
      local known = redis.call('HGET', policy, 'versions')
      local versions = known and cjson.decode(known) or {}
      versions[#versions + 1] = value
      -- The limit is MOST_VERSIONS of policy.ts.
      while #versions > 100 do table.remove(versions, 1) end
      redis.call('HSET', policy, 'versions', cjson.encode(versions))
    end
  end
end
if changed then
  redis.call('HSET', policy, 'changed_at', now_ms())
end
redis.call('SADD', names, ARGV[1])
redis.call('EXPIRE', policy, ARGV[2])
redis.call('EXPIRE', names, ARGV[2])
return changed and 1 or 0
