-- KEYS: overrides by user, users by count, the newest changes by count, the call.
-- ARGV: user, override, call, how many changes are remembered, how long the
-- call is. A change is known by the call that made it. Replies {1}.
if check('call', 'GET', KEYS[4]) then
  return { 1 }
end
local changes = check('override changes', 'ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')
local count = text(math.max(tonumber(changes[2] or '0') + 1, seconds * 1e6 + micros))
check('override log', 'ZSCORE', KEYS[2], ARGV[1]) -- before anything is written
check('overrides', 'HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], count, ARGV[1])
redis.call('ZADD', KEYS[3], count, ARGV[3])
for _, old in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1 - tonumber(ARGV[4]))) do
  redis.call('ZREM', KEYS[3], old)
end
redis.call('SET', KEYS[4], 1, 'PX', ARGV[5])
return { 1 }
