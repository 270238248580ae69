-- KEYS: the user's records by id, their ids in order, the user's activity.
-- ARGV: id, call, record, most records, their life,
--       minute, day, plan, turns, tokens, first day that is kept, activity's life.
-- Replies {1 if the record is new, or came from this very call}.

local id, call = ARGV[1], ARGV[2]
local known = check('records', 'HGET', KEYS[1], id)
if known then
  return { string.sub(known, 1, #call + 1) == call .. ' ' and 1 or 0 }
end
read_activity(KEYS[3]) -- before anything is written
local newer = check('record order', 'RPUSH', KEYS[2], id)
redis.call('HSET', KEYS[1], id, call .. ' ' .. text(seconds * 1e6 + micros) .. ' ' .. ARGV[3])
for _ = 1, newer - tonumber(ARGV[4]) do
  redis.call('HDEL', KEYS[1], redis.call('LPOP', KEYS[2]))
end
expire(KEYS[1], after(now, tonumber(ARGV[5])))
expire(KEYS[2], after(now, tonumber(ARGV[5])))

local activity = KEYS[3]
local minute, day, plan, turns, tokens = tonumber(ARGV[6]), ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local kept, life = tonumber(ARGV[11]), tonumber(ARGV[12])

-- step rounds up to two significant digits.
local function step(n)
  local head, tail = string.match(n, '^(%d%d)(%d+)$')
  if not head then
    return n
  end
  if string.find(tail, '[1-9]') then
    head = tostring(tonumber(head) + 1)
  end
  return head .. string.rep('0', #tail)
end

-- fold moves the newest minute, which is over, into its day.
local function fold(its_day, its_turns, its_tokens)
  if its_turns ~= '0' then
    redis.call('HINCRBY', activity, 't:' .. its_day .. ':' .. step(its_turns), 1)
  end
  if its_tokens ~= '0' then
    redis.call('HINCRBY', activity, 'k:' .. its_day .. ':' .. step(its_tokens), 1)
  end
end

local function forget(before)
  for _, field in ipairs(redis.call('HKEYS', activity)) do
    local its_day = string.match(field, '^[tk]:(-?%d+):')
    if its_day and tonumber(its_day) < before then
      redis.call('HDEL', activity, field)
    end
  end
end

local last = redis.call('HMGET', activity, 'minute', 'day', 'turns', 'tokens', 'cleared')
if not last[1] or minute > tonumber(last[1]) then
  if last[1] then
    fold(last[2], last[3], last[4])
  end
  local before = math.floor((now - kept) / 86400000)
  if not last[5] or before > tonumber(last[5]) then
    forget(before)
  end
  redis.call('HSET', activity, 'minute', minute, 'day', day, 'turns', 0, 'tokens', 0, 'cleared', before)
end
if not last[1] or minute >= tonumber(last[1]) then -- and not late
  redis.call('HSET', activity, 'plan', plan)
end
redis.call('HINCRBY', activity, 'turns', turns)
redis.call('HINCRBY', activity, 'tokens', tokens)
local ends = after(now, life)
redis.call('HSET', activity, 'until', text(ends))
expire(activity, ends)
return { 1 }
