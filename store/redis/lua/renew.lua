-- KEYS: the lease set. ARGV: of each lease its member and how long it lasts.
-- Replies of each lease 1 if it was held.
live(KEYS[1])
local held = {}
for i = 1, #ARGV, 2 do
  local is = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if is then
    redis.call('ZADD', KEYS[1], text(after(now, tonumber(ARGV[i + 1]))), ARGV[i])
  end
  held[#held + 1] = is and 1 or 0
end
local last = redis.call('ZRANGE', KEYS[1], '-1', '-1', 'WITHSCORES')
if last[2] then
  expire(KEYS[1], tonumber(last[2]))
end
return held
