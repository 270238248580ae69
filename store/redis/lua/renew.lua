-- KEYS: the lease set. ARGV: of each lease its member and how long it lasts.
-- Replies of each lease 1 if it was held.
live(KEYS[1])
local held = {}
for i = 1, #ARGV, 2 do
  local is = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if is then
    redis.call('ZADD', KEYS[1], after(now, tonumber(ARGV[i + 1])), ARGV[i])
  end
  held[#held + 1] = is and 1 or 0
end
keep_leases(KEYS[1])
return held
