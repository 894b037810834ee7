-- Adds one rollout to running statistics: mean and variance of the logarithm of its seconds, and means of the other values.
-- `given` is JSON: fields (each with its largest weight), values, life time in seconds, maximum of fields. See redis/history.ts.
local function note_history(key, given)
  local note = cjson.decode(given)
  for _, pair in ipairs(note.fields) do
    local field, most = pair[1], pair[2]
    local stored = redis.call('HGET', key, field)
    local known = {}
    for number in string.gmatch(stored or '', '%S+') do
      known[#known + 1] = tonumber(number)
    end
    if #known ~= #note.values + 3 then
      known = { 0, 0, 0 }
    end
    if not stored and redis.call('HLEN', key) >= note.most then
      local other = redis.call('HRANDFIELD', key)
      if string.sub(other, -1) ~= '*' then
        redis.call('HDEL', key, other)
      end
    end
    -- Beyond its largest weight the mean forgets old rollouts, because the policy changes.
    local count = known[1] + 1
    local share = 1 / math.min(count, most)
    local difference = note.log - known[2]
    local text = {
      string.format('%d', count),
      string.format('%.6g', known[2] + share * difference),
      string.format('%.6g', (1 - share) * (known[3] + share * difference * difference)),
    }
    for i, value in ipairs(note.values) do
      local before = known[i + 3] or 0
      text[i + 3] = string.format('%.6g', before + share * (value - before))
    end
    redis.call('HSET', key, field, table.concat(text, ' '))
  end
  redis.call('EXPIRE', key, note.life)
end
