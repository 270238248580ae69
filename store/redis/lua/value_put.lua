-- KEYS: the value. ARGV: value, ttl. Replies {1}.
local ends = after(now, tonumber(ARGV[2]))
redis.call('SET', KEYS[1], text(ends) .. ' ' .. ARGV[1], 'PX', text(ends - now + GRACE))
return { 1 }
