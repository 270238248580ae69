-- KEYS: overrides by user, users by count, the newest changes by count.
-- ARGV: the change up to which the reader knows all.
-- Replies {newest change, 1 if these are all, user, override, ...}.
check('overrides', 'HGET', KEYS[1], '') -- also where the log is empty
local newest = check('override changes', 'ZRANGE', KEYS[3], -1, -1)[1] or ''
-- A change that a failover lost is none that is known here.
local known = redis.call('ZSCORE', KEYS[3], ARGV[1])
local reply = { newest, known and 0 or 1 }
local users = check('override log', 'ZRANGEBYSCORE', KEYS[2], known and '(' .. known or '-inf', '+inf')
for _, user in ipairs(users) do
  reply[#reply + 1] = user
  reply[#reply + 1] = redis.call('HGET', KEYS[1], user)
end
return reply
