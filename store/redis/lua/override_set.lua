-- KEYS: overrides by user, users by revision, the revision, the call.
-- ARGV: user, override, call, how long the call is remembered. Replies {1}.
if check('call', 'GET', KEYS[4]) then
  return { 1 }
end
local revision = check('revision', 'HMGET', KEYS[3], 'epoch', 'count')
check('overrides', 'HSET', KEYS[1], ARGV[1], ARGV[2])
if not revision[1] then -- of an empty store: none of before is known to it
  redis.call('HSET', KEYS[3], 'epoch', ARGV[3])
end
-- A count is above those that a failover lost.
local count = math.max(tonumber(revision[2] or '0') + 1, seconds * 1e6 + micros)
redis.call('HSET', KEYS[3], 'count', text(count))
check('override log', 'ZADD', KEYS[2], text(count), ARGV[1])
redis.call('SET', KEYS[4], 1, 'PX', ARGV[4])
return { 1 }
