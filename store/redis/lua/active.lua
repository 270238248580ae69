-- KEYS: a shard of the index of active users. ARGV: user, life. Replies {1}.
local life = tonumber(ARGV[2])
check('index', 'ZREMRANGEBYSCORE', KEYS[1], '-inf', text(now - life))
redis.call('ZADD', KEYS[1], text(now), ARGV[1])
expire(KEYS[1], after(now, life))
return { 1 }
